"""torchao's tensors of known codes: unpacked, and packed over given components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from interop.plugin import Declined, Parts

from .describe import (
    CLASSES,
    CODE_DTYPES,
    axis_of,
    blocks_along,
    dtype_name,
    inside_of,
    kind_of,
    packed_axis,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torchao.utils import TorchAOBaseTensor


def unpack(value: TorchAOBaseTensor) -> Parts:
    """Return the components: one element for each code, and scales that vary along one axis.

    Scales of bfloat16, which not all frameworks have, are widened. Blocks along several axes are
    cut into blocks along one, which have the same scales.
    """
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        kind = kind_of(type(value))
        assert kind is not None
        inside = inside_of(value, kind)
        assert inside is not None
        shape, codes, blocks = tuple(value.shape), inside.codes, inside.blocks
        zero_point, bias = inside.zero_point, None
        if kind.format == "torchao.int4":
            codes, zero_point, bias = _unpacked(torch, codes, shape), None, zero_point
        axis, block_size = axis_of(shape, blocks)
        arrays = {
            "codes": codes.detach(),
            "scale": _along_axis(inside.scale, shape, blocks, axis, block_size),
            "zero_point": _along_axis(zero_point, shape, blocks, axis, block_size),
            "bias": _along_axis(bias, shape, blocks, axis, block_size),
        }
        extras = {name: getattr(value, name, None) for name in kind.extras}
    dtype = dtype_name(value)
    facts = {"axis": axis, "block_size": block_size, "dtype": dtype, kind.format: extras}
    return Parts(shape, arrays, facts)


def _along_axis(
    part: Tensor | None,
    shape: tuple[int, ...],
    blocks: tuple[int, ...],
    axis: int | None,
    block_size: int | None,
) -> Tensor | None:
    """Return scales or the like in the shape that goes with one axis of blocks."""
    if part is None:
        return None
    part = part.detach()
    part = part.float() if dtype_name(part) == "bfloat16" else part
    grid = blocks_along(shape, blocks)
    if axis is None:
        return part.reshape(())
    part = part.reshape(grid)
    if block_size is None:
        return part.reshape(shape[axis])
    for i, n in enumerate(shape):
        if i == axis or grid[i] == n:
            continue
        if grid[i] == 1:
            part = part.expand(*part.shape[:i], n, *part.shape[i + 1 :])
        else:
            part = part.repeat_interleave(blocks[i], i).narrow(i, 0, n)
    return part


def _unpacked(torch: ModuleType, packed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return one element for each code; of two codes that share a byte, the first is the lower."""
    axis = packed_axis(shape, tuple(packed.shape))
    assert axis is not None
    packed = packed.view(torch.int8).movedim(axis, -1)
    codes = _blank(torch, (*packed.shape[:-1], packed.shape[-1] * 2), packed.device)
    low, high = codes[..., ::2], codes[..., 1::2]
    torch.bitwise_left_shift(packed, 4, out=low)
    low.bitwise_right_shift_(4)  # which brings the sign along
    torch.bitwise_right_shift(packed, 4, out=high)
    return codes.movedim(-1, axis)


def _blank(torch: ModuleType, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return NumPy memory on the host, which comes in huge pages where it is large."""
    tensor: Tensor
    if device.type != "cpu":
        tensor = torch.empty(shape, dtype=torch.int8, device=device)
        return tensor
    import numpy as np

    tensor = torch.from_numpy(np.empty(shape, "int8"))
    return tensor


class _Recipe(NamedTuple):
    """The class and the arguments of a tensor that is to be made.

    Parameters
    ----------
    make : type
    parts : Parts
    blocks : list of int, in elements
        How many elements along each axis share a scale.
    dtype : torch.dtype
        Of the numbers.
    extras : mapping of str to object
        What another tensor of the class remembered beside its components.
    """

    make: Callable[..., TorchAOBaseTensor]
    parts: Parts
    blocks: list[int]
    dtype: torch.dtype
    extras: Mapping[str, object]

    @property
    def codes(self) -> Tensor:
        codes: Tensor = self.parts.arrays["codes"]
        return codes

    @property
    def zero_point(self) -> Tensor | None:
        zero_point: Tensor | None = self.parts.arrays["zero_point"]
        return zero_point

    def shaped(self, part: Tensor) -> Tensor:
        """Return scales or the like in the shape that goes with the blocks."""
        return part.reshape(blocks_along(self.parts.shape, tuple(self.blocks)))


def pack(format_: str, parts: Parts) -> TorchAOBaseTensor:
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
    if dtype_name(codes) not in CODE_DTYPES[format_]:
        msg = f"{format_} has no codes of {dtype_name(codes)}"
        raise Declined(msg)
    extras = {
        extra: part.to(codes.device, copy=True) if isinstance(part, torch.Tensor) else part
        for extra, part in parts.facts.get(format_, {}).items()
    }
    dtype = getattr(torch, parts.facts["dtype"])
    return _MAKERS[format_](_Recipe(getattr(ao, name), parts, _block_sizes(parts), dtype, extras))


def _block_sizes(parts: Parts) -> list[int]:
    axis, block_size = parts.facts["axis"], parts.facts["block_size"]
    if axis is None:
        return [max(n, 1) for n in parts.shape]
    if block_size is None:
        return [1 if i == axis else max(n, 1) for i, n in enumerate(parts.shape)]
    return [block_size if i == axis else 1 for i in range(len(parts.shape))]


def _fitted(recipe: _Recipe) -> _Recipe:
    """Return the recipe with blocks no longer than their axes, if all of them are of one size."""
    shape = recipe.parts.shape
    blocks = [min(block, max(n, 1)) for block, n in zip(recipe.blocks, shape, strict=True)]
    if any(n % block for n, block in zip(shape, blocks, strict=True)):
        msg = f"torchao's blocks are all of one size, and {recipe.blocks} do not divide {shape}"
        raise Declined(msg)
    return recipe._replace(blocks=blocks)


def _scale(recipe: _Recipe, part: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return scales of a dtype that torchao computes with, and of the shape it wants.

    Scales of 64 bits, which are torch's own, are taken if they have no more digits than 32 bits do.
    """
    import torch

    scale = part.to(dtype or (torch.float32 if part.dtype is torch.float64 else part.dtype))
    if scale.dtype is not part.dtype and not torch.equal(scale.to(part.dtype), part):
        msg = f"scales are {dtype_name(scale)} here, which these {dtype_name(part)} do not fit"
        raise Declined(msg)
    return recipe.shaped(scale)


def _zero_point(recipe: _Recipe) -> Tensor | None:
    """Return zero points as int8, or None if there are none."""
    return None if recipe.zero_point is None else _int8_zero_point(recipe, recipe.zero_point)


def _int8_zero_point(recipe: _Recipe, part: Tensor) -> Tensor:
    import torch

    zero_point = part.to(torch.int8)
    if zero_point.dtype is not part.dtype and not torch.equal(zero_point.to(part.dtype), part):
        msg = "torchao takes only zero points that are int8 themselves"
        raise Declined(msg)
    return recipe.shaped(zero_point)


def _int8(recipe: _Recipe) -> TorchAOBaseTensor:
    recipe = _fitted(recipe)
    scale = _scale(recipe, recipe.parts.arrays["scale"])
    zero_point = _zero_point(recipe)
    return recipe.make(
        recipe.codes, scale, recipe.blocks, recipe.dtype, zero_point=zero_point, **recipe.extras
    )


def _float8(recipe: _Recipe) -> TorchAOBaseTensor:
    recipe = _fitted(recipe)
    if recipe.zero_point is not None and bool(recipe.zero_point.float().any()):
        msg = "torchao.float8 has no zero points"
        raise Declined(msg)
    scale = _scale(recipe, recipe.parts.arrays["scale"])
    return recipe.make(
        recipe.codes, scale, block_size=recipe.blocks, dtype=recipe.dtype, **recipe.extras
    )


def _intx(recipe: _Recipe) -> TorchAOBaseTensor:
    import torch

    recipe = _fitted(recipe)
    scale = _scale(recipe, recipe.parts.arrays["scale"])
    if recipe.zero_point is None:
        zero_point = torch.zeros_like(scale, dtype=torch.int8)
    elif recipe.zero_point.is_floating_point():
        zero_point = _scale(recipe, recipe.zero_point)
    else:
        zero_point = _int8_zero_point(recipe, recipe.zero_point)
    extras = {"target_dtype": torch.int8, "activation_quantization": None, **recipe.extras}
    blocks = tuple(recipe.blocks)
    return recipe.make(
        recipe.codes, scale, zero_point, block_size=blocks, dtype=recipe.dtype, **extras
    )


def _int4(recipe: _Recipe) -> TorchAOBaseTensor:
    import torch

    _check_int4(recipe)
    codes, arrays = recipe.codes, recipe.parts.arrays
    scale = _scale(recipe, arrays["scale"], recipe.dtype)
    bias = arrays.get("bias")
    bias = torch.zeros_like(scale) if bias is None else _scale(recipe, bias, recipe.dtype)
    # torchao stores the last two axes of scales and biases the other way round.
    stored = (part.transpose(-2, -1).contiguous() for part in (scale, bias))
    packed = codes[..., 1::2] << 4
    packed |= codes[..., ::2] & 15
    shape = torch.Size(recipe.parts.shape)
    return recipe.make(packed, *stored, recipe.blocks, shape, **recipe.extras)


def _check_int4(recipe: _Recipe) -> None:
    codes, facts, last = recipe.codes, recipe.parts.facts, len(recipe.parts.shape) - 1
    problem = ""
    if facts["block_size"] is None or facts["axis"] != last or last not in (1, 2):
        problem = "has a scale for each block along the last of two or three axes"
    elif recipe.zero_point is not None and bool(recipe.zero_point.any()):
        problem = "has a bias in the place of zero points"
    elif recipe.parts.shape[-1] % 2:
        problem = "holds rows of an even number of codes"
    elif codes.numel() and not -8 <= int(codes.min()) <= int(codes.max()) <= 7:
        problem = "holds codes from -8 to 7"
    if problem:
        msg = f"torchao.int4 {problem}"
        raise Declined(msg)


_MAKERS: Mapping[str, Callable[[_Recipe], TorchAOBaseTensor]] = {
    "torchao.int8": _int8,
    "torchao.float8": _float8,
    "torchao.int4": _int4,
    "torchao.intx": _intx,
}
