"""Tensors of torchao's classes, put together over given components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from interop.plugin import Declined, Parts

from ._torchao_tensors import CLASSES, KINDS, blocks_along, dtype_name

if TYPE_CHECKING:
    import torch

__all__ = ["pack"]


class _Order(NamedTuple):
    """What a tensor is to be made of.

    Parameters
    ----------
    make : type
    parts : Parts
    blocks : list of int
        How many elements along each axis share a scale.
    dtype : torch.dtype
        Of the numbers.
    extras : mapping of str to object
        What another tensor of the class remembered beside its components.
    """

    make: Callable[..., Any]
    parts: Parts
    blocks: list[int]
    dtype: Any
    extras: Mapping[str, Any]

    @property
    def codes(self) -> Any:
        return self.parts.arrays["codes"]

    @property
    def zero_point(self) -> Any:
        return self.parts.arrays["zero_point"]

    def shaped(self, part: Any) -> Any:
        """Return scales or the like in the shape that goes with the blocks."""
        return part.reshape(blocks_along(self.parts.shape, tuple(self.blocks)))


def pack(format_: str, parts: Parts) -> torch.Tensor:
    """Return a tensor of the class of a format, over given components.

    Raises
    ------
    Declined
        The class has no such scheme.
    """
    import torch
    import torchao.quantization as ao

    name = CLASSES[format_]
    codes = parts.arrays["codes"]
    if dtype_name(codes) not in KINDS[name].codes:
        msg = f"{format_} has no codes of {dtype_name(codes)}"
        raise Declined(msg)
    extras = {
        extra: found.to(codes.device, copy=True) if isinstance(found, torch.Tensor) else found
        for extra, found in parts.facts.get(format_, {}).items()
    }
    dtype = getattr(torch, parts.facts["dtype"])
    order = _Order(getattr(ao, name), parts, _block_sizes(parts), dtype, extras)
    made: torch.Tensor = _MAKERS[format_](order)
    return made


def _block_sizes(parts: Parts) -> list[int]:
    axis, block = parts.facts["axis"], parts.facts["block_size"]
    if axis is None:
        return [max(n, 1) for n in parts.shape]
    if block is None:
        return [1 if i == axis else max(n, 1) for i, n in enumerate(parts.shape)]
    return [block if i == axis else 1 for i in range(len(parts.shape))]


def _exact(order: _Order) -> _Order:
    """Return the order with blocks no longer than their axes, if all of them are of one size."""
    shape = order.parts.shape
    fitted = [min(block, max(n, 1)) for block, n in zip(order.blocks, shape, strict=True)]
    if any(n % block for n, block in zip(shape, fitted, strict=True)):
        msg = f"torchao's blocks are all of one size, which {shape} does not have of {order.blocks}"
        raise Declined(msg)
    return order._replace(blocks=fitted)


def _scale(order: _Order, part: Any, dtype: Any = None) -> Any:
    """Return scales of a dtype that torchao computes with, and of the shape it wants.

    Those of 64 bits, which are torch's own, are taken if they have no more digits than 32 bits do.
    """
    import torch

    found = part.to(dtype or (torch.float32 if part.dtype is torch.float64 else part.dtype))
    if found.dtype is not part.dtype and not torch.equal(found.to(part.dtype), part):
        msg = f"scales are {dtype_name(found)} here, which these {dtype_name(part)} do not fit"
        raise Declined(msg)
    return order.shaped(found)


def _zeros(order: _Order) -> Any:
    """Return zero points as int8, or None."""
    import torch

    part = order.zero_point
    if part is None:
        return None
    found = part.to(torch.int8)
    if found.dtype is not part.dtype and not torch.equal(found.to(part.dtype), part):
        msg = "torchao takes only zero points that are int8 themselves"
        raise Declined(msg)
    return order.shaped(found)


def _int8(order: _Order) -> Any:
    order = _exact(order)
    scale = _scale(order, order.parts.arrays["scale"])
    zeros = _zeros(order)
    return order.make(
        order.codes, scale, order.blocks, order.dtype, zero_point=zeros, **order.extras
    )


def _float8(order: _Order) -> Any:
    order = _exact(order)
    if order.zero_point is not None and bool(order.zero_point.float().any()):
        msg = "torchao.float8 has no zero points"
        raise Declined(msg)
    scale = _scale(order, order.parts.arrays["scale"])
    return order.make(
        order.codes, scale, block_size=order.blocks, dtype=order.dtype, **order.extras
    )


def _intx(order: _Order) -> Any:
    import torch

    order = _exact(order)
    scale = _scale(order, order.parts.arrays["scale"])
    if order.zero_point is None:
        zeros = torch.zeros_like(scale, dtype=torch.int8)
    elif order.zero_point.is_floating_point():
        zeros = _scale(order, order.zero_point)
    else:
        zeros = _zeros(order)
    kept = {"target_dtype": torch.int8, "activation_quantization": None, **order.extras}
    blocks = tuple(order.blocks)
    return order.make(order.codes, scale, zeros, block_size=blocks, dtype=order.dtype, **kept)


def _int4(order: _Order) -> Any:
    import torch

    _check_int4(order)
    codes, arrays = order.codes, order.parts.arrays
    scale = _scale(order, arrays["scale"], order.dtype)
    bias = arrays.get("bias")
    bias = torch.zeros_like(scale) if bias is None else _scale(order, bias, order.dtype)
    upright = (part.transpose(-2, -1).contiguous() for part in (scale, bias))
    packed = codes[..., 1::2] << 4
    packed |= codes[..., ::2] & 15
    return order.make(packed, *upright, order.blocks, torch.Size(order.parts.shape), **order.extras)


def _check_int4(order: _Order) -> None:
    codes, facts, last = order.codes, order.parts.facts, len(order.parts.shape) - 1
    problem = ""
    if facts["block_size"] is None or facts["axis"] != last or last not in (1, 2):
        problem = "has a scale for each block along the last of two or three axes"
    elif order.zero_point is not None and bool(order.zero_point.any()):
        problem = "has a bias in the place of zero points"
    elif order.parts.shape[-1] % 2 or dtype_name(codes) != "int8":
        problem = "holds rows of an even number of int8 codes"
    elif codes.numel() and not -8 <= int(codes.min()) <= int(codes.max()) <= 7:
        problem = "holds codes from -8 to 7"
    if problem:
        msg = f"torchao.int4 {problem}"
        raise Declined(msg)


_MAKERS: Mapping[str, Callable[[_Order], Any]] = {
    "torchao.int8": _int8,
    "torchao.float8": _float8,
    "torchao.int4": _int4,
    "torchao.intx": _intx,
}
