"""What torchao's tensors are made of: described and taken apart.

Outside they are tensors without memory, of the dtype of the numbers that they stand for. Inside are
codes, scales and zero points, which are plain tensors. What is inside of a known class, but not as
this module knows it, is taken for opaque: its own `dequantize` is then the only way to its numbers.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from interop.plugin import Parts, Spec

__all__ = [
    "CLASSES",
    "KINDS",
    "blocks_along",
    "describe",
    "detach",
    "dtype_name",
    "memory",
    "unpack",
]

FLOAT8 = frozenset({"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"})
_HALVES_AND_SINGLES = frozenset({"float16", "bfloat16", "float32"})
_INT8 = frozenset({"int8"})
#: The first bit of a byte is that of a sign, or of a number; the nibbles are the same.
_BYTES = frozenset({"int8", "uint8"})


class Kind(NamedTuple):
    """A class of torchao's whose codes are known.

    Parameters
    ----------
    format : str
    codes : frozenset of str
        The dtypes that its codes may have.
    zero_points : frozenset of str
        Those that its zero points may have; its numbers are torchao's to the last bit.
    extras : tuple of str
        What it remembers beside the components, for those who compute with it.
    """

    format: str
    codes: frozenset[str]
    zero_points: frozenset[str]
    extras: tuple[str, ...]


_ACTIVATIONS = ("act_pre_scale", "act_quant_scale", "act_quant_zero_point", "act_quant_kwargs")
KINDS = {
    "Int8Tensor": Kind("torchao.int8", _INT8, _INT8, (*_ACTIVATIONS, "reduce_range")),
    "Float8Tensor": Kind(
        "torchao.float8",
        FLOAT8,
        frozenset(),
        ("mm_config", "act_quant_kwargs", "kernel_preference"),
    ),
    "Int4Tensor": Kind(
        "torchao.int4", _BYTES, _HALVES_AND_SINGLES, ("act_pre_scale", "activation_dtype")
    ),
    "IntxUnpackedToInt8Tensor": Kind(
        "torchao.intx",
        _INT8,
        _INT8 | _HALVES_AND_SINGLES,
        ("target_dtype", "activation_quantization"),
    ),
}
CLASSES = {kind.format: name for name, kind in KINDS.items()}


def _kind(type_: type) -> Kind | None:
    own = type_.__module__.partition(".")[0] == "torchao"
    return KINDS.get(type_.__name__) if own else None


def dtype_name(part: Any) -> str:
    return str(part.dtype).removeprefix("torch.")


class _Inside(NamedTuple):
    """What a tensor is made of, in the order of its axes: the codes as they lie in memory."""

    codes: Any
    scale: Any
    zero_point: Any
    blocks: tuple[int, ...]


def _inside(value: Any, kind: Kind) -> _Inside | None:
    """Return what is inside of a tensor of a known class, or None if it is not as is known."""
    codes, scale = getattr(value, "qdata", None), getattr(value, "scale", None)
    zero_point = getattr(value, "zero_point", None)
    parts = [part for part in (codes, scale, zero_point) if part is not None]
    if codes is None or scale is None or not all(map(_is_plain, parts)):
        return None
    if dtype_name(codes) not in kind.codes or dtype_name(scale) not in _HALVES_AND_SINGLES:
        return None
    if zero_point is not None and dtype_name(zero_point) not in kind.zero_points:
        return None
    blocks = _blocks(value, kind, codes, scale)
    if blocks is None:
        return None
    if kind.format == "torchao.int4":
        if zero_point is None or zero_point.shape != scale.shape:
            return None
        scale, zero_point = scale.transpose(-2, -1), zero_point.transpose(-2, -1)
    grid = blocks_along(tuple(value.shape), blocks)
    if any(part is not None and part.numel() != prod(grid) for part in (scale, zero_point)):
        return None
    return _Inside(codes, scale, zero_point, blocks)


def _is_plain(part: Any) -> bool:
    import torch

    return type(part) in (torch.Tensor, torch.nn.Parameter) and part.layout is torch.strided


def blocks_along(shape: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many blocks there are along each axis, the last of which may be shorter."""
    return tuple(-(-n // block) for n, block in zip(shape, blocks, strict=True))


def _blocks(value: Any, kind: Kind, codes: Any, scale: Any) -> tuple[int, ...] | None:
    """Return how many elements along each axis share a scale, if that is clear."""
    shape = tuple(value.shape)
    if kind.format == "torchao.float8":  # torchao itself goes by the shape of the scale
        whole = tuple(max(n, 1) for n in shape)
        if scale.numel() == 1:
            return whole if tuple(codes.shape) == shape else None
        if scale.dim() != len(shape) or tuple(codes.shape) != shape:
            return None
        blocks = tuple(n // max(m, 1) or 1 for n, m in zip(shape, scale.shape, strict=True))
        return blocks if blocks_along(shape, blocks) == tuple(scale.shape) else None
    given = getattr(value, "block_size", None)
    if given is None or len(given) != len(shape) or any(block < 1 for block in given):
        return None
    if kind.format == "torchao.int4":
        # The scales' last two axes are the other way round.
        fits = len(shape) in (2, 3) and _packed_axis(shape, tuple(codes.shape)) is not None
        grid = blocks_along(shape, tuple(given))
        return tuple(given) if fits and (*grid[:-2], *grid[:-3:-1]) == tuple(scale.shape) else None
    blocks = tuple(min(block, max(n, 1)) for block, n in zip(given, shape, strict=True))
    exact = all(n % block == 0 for n, block in zip(shape, blocks, strict=True))
    return blocks if exact and tuple(codes.shape) == shape else None


def _packed_axis(shape: tuple[int, ...], stored: tuple[int, ...]) -> int | None:
    """Return the axis along which two codes share a byte."""
    if len(shape) != len(stored):
        return None
    shorter = [i for i, (n, m) in enumerate(zip(shape, stored, strict=True)) if n != m]
    if len(shorter) == 1 and stored[shorter[0]] * 2 == shape[shorter[0]]:
        return shorter[0]
    return len(shape) - 1 if not shorter and not shape[-1] else None


def describe(value: Any) -> Spec:
    """Return the spec of a tensor of torchao's.

    Parameters
    ----------
    value : torchao.utils.TorchAOBaseTensor or NF4Tensor

    Returns
    -------
    Spec
        One whose numbers cannot be had has a trait that says why.
    """
    import torch

    # Every attribute of these tensors is looked up by way of code in Python otherwise.
    with torch._C.DisableTorchFunctionSubclass():
        kind = _kind(type(value))
        inside = None if kind is None else _inside(value, kind)
        if kind is None or inside is None:
            return _describe_opaque(torch, value)
        parts = [part for part in inside[:3] if part is not None]
        found = {
            "grad": value.requires_grad or any(part.requires_grad for part in parts),
            "noncontiguous": not all(part.is_contiguous() for part in parts),
            "mixed_components": any(part.device != value.device for part in parts),
            "biased": kind.format == "torchao.int4",
            "act_pre_scale": getattr(value, "act_pre_scale", None) is not None,
        }
        traits = _missing(torch, parts) | {trait for trait, holds in found.items() if holds}
        return Spec(
            kind.format,
            dtype_name(value),
            str(value.device),
            tuple(value.shape),
            frozenset(traits),
            sum(part.nbytes for part in parts),
            code_dtype="int8" if kind.format == "torchao.int4" else dtype_name(inside.codes),
        )


def _missing(torch: Any, parts: list[Any]) -> set[str]:
    """Return why the elements of components cannot be read, if they cannot be."""
    if any(part.is_meta for part in parts):
        return {"meta"}
    if any(torch._is_functional_tensor(part) for part in parts):
        return {"traced"}
    try:
        absent = any(not part.data_ptr() and part.numel() for part in parts)
    except RuntimeError:  # inside a transform
        return {"traced"}
    return {"no_storage"} if absent else set()


def _describe_opaque(torch: Any, value: Any) -> Spec:
    inner = _inner(value)
    traits = {"grad"} if value.requires_grad else set()
    if value.device.type == "meta" or any(part.is_meta for part in inner):
        traits.add("meta")
    if any(not _is_plain(part) for part in inner):
        traits.add("no_storage")
    name, nbytes = "torchao.opaque", sum(part.nbytes for part in inner)
    if hasattr(type(value), "get_original_weight"):
        name = "torchao.nf4"
        if not value.is_contiguous():  # it would be given the order that it had
            traits.add("noncontiguous")
    elif type(value).dequantize is torch.Tensor.dequantize:
        traits.add("no_dequantize")
    shape, device = tuple(value.shape), str(value.device)
    return Spec(name, dtype_name(value), device, shape, frozenset(traits), nbytes)


def _inner(value: Any) -> list[Any]:
    """Return the tensors inside a tensor, as it names them itself."""
    import torch

    try:
        names, _ = value.__tensor_flatten__()
    except (AttributeError, NotImplementedError, AssertionError):
        return []
    parts = [getattr(value, name, None) for name in names]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of each tensor inside."""
    return tuple(_extent(part) for part in _inner(value) if _is_plain(part) and part.numel())


def _extent(part: Any) -> tuple[int, int]:
    reach = sum((n - 1) * step for n, step in zip(part.shape, part.stride(), strict=True))
    return part.data_ptr(), (reach + 1) * part.itemsize


def detach(value: Any) -> Any:
    """Return the tensor outside any autograd graph, over the same components."""
    return value.detach()


def unpack(value: Any) -> Parts:
    """Return the components: of one element for each code, and with scales along one axis.

    Scales of bfloat16, which not all frameworks have, are widened. Blocks along several axes are
    cut into such along one, whose scales are the same.
    """
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        kind = _kind(type(value))
        assert kind is not None
        inside = _inside(value, kind)
        assert inside is not None
        shape, codes, zero_point, bias = tuple(value.shape), inside.codes, inside.zero_point, None
        if kind.format == "torchao.int4":
            codes, zero_point, bias = _unpacked(torch, codes, shape), None, zero_point
        axis, block = _axis(shape, inside.blocks)
        arrays = {
            "codes": codes.detach(),
            "scale": _spread(inside.scale, shape, inside.blocks, axis, block),
            "zero_point": _spread(zero_point, shape, inside.blocks, axis, block),
            "bias": _spread(bias, shape, inside.blocks, axis, block),
        }
        extras = {name: getattr(value, name, None) for name in kind.extras}
    facts = {"axis": axis, "block_size": block, "dtype": dtype_name(value), kind.format: extras}
    return Parts(shape, arrays, facts)


def _axis(shape: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int | None, int | None]:
    """Return the axis along which scales vary, and how many elements along it share one."""
    several = [i for i, n in enumerate(blocks_along(shape, blocks)) if n != 1]
    if not several:
        return None, None
    if len(several) == 1 and blocks[several[0]] == 1:
        return several[0], None
    axis = max(range(len(shape)), key=lambda i: (blocks[i], i))
    return axis, blocks[axis]


def _spread(
    part: Any, shape: tuple[int, ...], blocks: tuple[int, ...], axis: int | None, block: int | None
) -> Any:
    """Return scales or the like in the shape that goes with one axis of blocks."""
    if part is None:
        return None
    part = part.detach()
    part = part.float() if dtype_name(part) == "bfloat16" else part
    grid = blocks_along(shape, blocks)
    if axis is None:
        return part.reshape(())
    part = part.reshape(grid)
    if block is None:
        return part.reshape(shape[axis])
    for i, n in enumerate(shape):
        if i == axis or grid[i] == n:
            continue
        if grid[i] == 1:
            part = part.expand(*part.shape[:i], n, *part.shape[i + 1 :])
        else:
            part = part.repeat_interleave(blocks[i], i).narrow(i, 0, n)
    return part


def _unpacked(torch: Any, packed: Any, shape: tuple[int, ...]) -> Any:
    """Return one element for each of the codes of which two share a byte, the first the lower."""
    axis = _packed_axis(shape, tuple(packed.shape))
    packed = packed.view(torch.int8).movedim(axis, -1)
    codes = _blank(torch, (*packed.shape[:-1], packed.shape[-1] * 2), packed.device)
    low, high = codes[..., ::2], codes[..., 1::2]
    torch.bitwise_left_shift(packed, 4, out=low)
    low.bitwise_right_shift_(4)  # which brings the sign along
    torch.bitwise_right_shift(packed, 4, out=high)
    return codes.movedim(-1, axis)


def _blank(torch: Any, shape: tuple[int, ...], device: Any) -> Any:
    """Return memory of NumPy's on the host, which comes in huge pages where it is large."""
    if device.type != "cpu":
        return torch.empty(shape, dtype=torch.int8, device=device)
    import numpy as np

    return torch.from_numpy(np.empty(shape, "int8"))
