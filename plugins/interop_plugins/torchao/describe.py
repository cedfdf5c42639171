"""The specs of torchao's tensors: of the classes whose codes are known, and of the others.

From the outside they are tensors without memory, of the dtype of the numbers that they stand for.
On the inside are codes, scales and zero points, which are plain tensors. A tensor of a known class
whose inside is not as this module expects counts as opaque: its own `dequantize` is then the only
way to its numbers.
"""

from __future__ import annotations

from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from interop.plugin import Spec

if TYPE_CHECKING:
    from torch import Tensor
    from torchao.utils import TorchAOBaseTensor

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

#: By format, the dtypes of its codes once there is one element for each.
CODE_DTYPES = {kind.format: kind.codes for kind in KINDS.values()} | {"torchao.int4": _INT8}


def kind_of(type_: type) -> Kind | None:
    """Return what is known of a class; None of one that torchao does not define."""
    is_torchao = type_.__module__.partition(".")[0] == "torchao"
    return KINDS.get(type_.__name__) if is_torchao else None


def dtype_name(part: Tensor) -> str:
    """Return the name of the dtype of a tensor."""
    return str(part.dtype).removeprefix("torch.")


class Inside(NamedTuple):
    """The parts of a tensor, in the order of its axes; the codes as they lie in memory.

    Parameters
    ----------
    codes, scale : torch.Tensor
    zero_point : torch.Tensor or None
    blocks : tuple of int, in elements
        How many elements along each axis share a scale.
    """

    codes: Tensor
    scale: Tensor
    zero_point: Tensor | None
    blocks: tuple[int, ...]

    @property
    def parts(self) -> list[Tensor]:
        """The tensors that there are."""
        return [part for part in self[:3] if part is not None]


def inside_of(value: TorchAOBaseTensor, kind: Kind) -> Inside | None:
    """Return what is inside a tensor of a known class, or None if it is not as expected."""
    codes: Tensor | None = getattr(value, "qdata", None)
    scale: Tensor | None = getattr(value, "scale", None)
    zero_point: Tensor | None = getattr(value, "zero_point", None)
    if codes is None or scale is None or not (_is_plain(codes) and _is_plain(scale)):
        return None
    if dtype_name(codes) not in kind.codes or dtype_name(scale) not in _HALVES_AND_SINGLES:
        return None
    if zero_point is not None and not (
        _is_plain(zero_point) and dtype_name(zero_point) in kind.zero_points
    ):
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
    return Inside(codes, scale, zero_point, blocks)


def _is_plain(part: Tensor) -> bool:
    import torch

    return type(part) in (torch.Tensor, torch.nn.Parameter) and part.layout is torch.strided


def blocks_along(shape: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many blocks there are along each axis, the last of which may be shorter."""
    return tuple(-(-n // block) for n, block in zip(shape, blocks, strict=True))


def _blocks(
    value: TorchAOBaseTensor, kind: Kind, codes: Tensor, scale: Tensor
) -> tuple[int, ...] | None:
    """Return how many elements along each axis share a scale, if that is clear."""
    shape = tuple(value.shape)
    if kind.format == "torchao.float8":  # torchao itself goes by the shape of the scale
        return _blocks_by_scale(shape, codes, scale)
    block_size = getattr(value, "block_size", None)
    if block_size is None or len(block_size) != len(shape) or any(n < 1 for n in block_size):
        return None
    if kind.format == "torchao.int4":
        # The scales' last two axes are the other way round.
        fits = len(shape) in (2, 3) and packed_axis(shape, tuple(codes.shape)) is not None
        grid = blocks_along(shape, tuple(block_size))
        fits = fits and (*grid[:-2], *grid[:-3:-1]) == tuple(scale.shape)
        return tuple(block_size) if fits else None
    blocks = tuple(min(block, max(n, 1)) for block, n in zip(block_size, shape, strict=True))
    is_exact = all(n % block == 0 for n, block in zip(shape, blocks, strict=True))
    return blocks if is_exact and tuple(codes.shape) == shape else None


def _blocks_by_scale(
    shape: tuple[int, ...], codes: Tensor, scale: Tensor
) -> tuple[int, ...] | None:
    """Return the blocks that make as many along each axis as there are scales."""
    if tuple(codes.shape) != shape:
        return None
    if scale.numel() == 1:
        return tuple(max(n, 1) for n in shape)
    if scale.dim() != len(shape):
        return None
    blocks = tuple(n // max(m, 1) or 1 for n, m in zip(shape, scale.shape, strict=True))
    return blocks if blocks_along(shape, blocks) == tuple(scale.shape) else None


def axis_of(shape: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int | None, int | None]:
    """Return the axis along which scales vary, and how many elements along it share one."""
    axes = [i for i, n in enumerate(blocks_along(shape, blocks)) if n != 1]
    if not axes:
        return None, None
    if len(axes) == 1 and blocks[axes[0]] == 1:
        return axes[0], None
    axis = max(range(len(shape)), key=lambda i: (blocks[i], i))
    return axis, blocks[axis]


def packed_axis(shape: tuple[int, ...], stored: tuple[int, ...]) -> int | None:
    """Return the axis along which two codes share a byte."""
    if len(shape) != len(stored):
        return None
    shorter = [i for i, (n, m) in enumerate(zip(shape, stored, strict=True)) if n != m]
    if len(shorter) == 1 and stored[shorter[0]] * 2 == shape[shorter[0]]:
        return shorter[0]
    return len(shape) - 1 if not shorter and not shape[-1] else None


def describe(value: TorchAOBaseTensor) -> Spec:
    """Return the spec of a tensor of torchao's.

    Parameters
    ----------
    value : torchao.utils.TorchAOBaseTensor or NF4Tensor

    Returns
    -------
    Spec
        If the numbers cannot be had, a trait says why.
    """
    import torch

    # Otherwise every attribute of these tensors is looked up by way of code in Python.
    with torch._C.DisableTorchFunctionSubclass():
        kind = kind_of(type(value))
        inside = None if kind is None else inside_of(value, kind)
        if kind is None or inside is None:
            return _describe_opaque(torch, value)
        parts = inside.parts
        own_traits = {
            "grad": value.requires_grad or any(part.requires_grad for part in parts),
            "noncontiguous": not all(part.is_contiguous() for part in parts),
            "mixed_components": any(part.device != value.device for part in parts),
            "biased": kind.format == "torchao.int4",
            "per_block": axis_of(tuple(value.shape), inside.blocks)[1] is not None,
            "act_pre_scale": getattr(value, "act_pre_scale", None) is not None,
        }
        traits = _missing_memory(torch, parts)
        traits |= {trait for trait, holds in own_traits.items() if holds}
        return Spec(
            kind.format,
            dtype_name(value),
            str(value.device),
            tuple(value.shape),
            frozenset(traits),
            sum(part.nbytes for part in parts),
            code_dtype="int8" if kind.format == "torchao.int4" else dtype_name(inside.codes),
        )


def _missing_memory(torch: ModuleType, parts: list[Tensor]) -> set[str]:
    """Return why the elements of components cannot be read, or nothing if they can."""
    if any(part.is_meta for part in parts):
        return {"meta"}
    if any(torch._is_functional_tensor(part) for part in parts):
        return {"traced"}
    try:
        is_absent = any(not part.data_ptr() and part.numel() for part in parts)
    except RuntimeError:  # inside a transform
        return {"traced"}
    return {"no_storage"} if is_absent else set()


def _describe_opaque(torch: ModuleType, value: TorchAOBaseTensor) -> Spec:
    parts = _inner_tensors(value)
    traits = {"grad"} if value.requires_grad else set()
    if value.device.type == "meta" or any(part.is_meta for part in parts):
        traits.add("meta")
    if any(not _is_plain(part) for part in parts):
        traits.add("no_storage")
    name, nbytes = "torchao.opaque", sum(part.nbytes for part in parts)
    if hasattr(type(value), "get_original_weight"):
        name = "torchao.nf4"
        if not value.is_contiguous():  # its numbers would come in the order they had before
            traits.add("noncontiguous")
    elif type(value).dequantize is torch.Tensor.dequantize:
        traits.add("no_dequantize")
    shape, device = tuple(value.shape), str(value.device)
    return Spec(name, dtype_name(value), device, shape, frozenset(traits), nbytes)


def _inner_tensors(value: TorchAOBaseTensor) -> list[Tensor]:
    """Return the tensors inside a tensor, as it names them itself."""
    import torch

    try:
        names, _ = value.__tensor_flatten__()
    except (AttributeError, NotImplementedError, AssertionError):
        return []
    parts = [getattr(value, name, None) for name in names]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def memory(value: TorchAOBaseTensor) -> tuple[tuple[int, int], ...]:
    """Return the address and the length in bytes of the memory of each tensor inside."""
    parts = _inner_tensors(value)
    return tuple(_extent(part) for part in parts if _is_plain(part) and part.numel())


def _extent(part: Tensor) -> tuple[int, int]:
    reach = sum((n - 1) * step for n, step in zip(part.shape, part.stride(), strict=True))
    return part.data_ptr(), (reach + 1) * part.itemsize
