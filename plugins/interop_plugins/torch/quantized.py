"""torch's own quantized tensors: unpacked, packed and dequantized."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product, repeat
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from interop.kit import parallel_for, quietly
from interop.plugin import Declined, Parts

from .dense import fresh, write
from .describe import dtype_name
from .team import run

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    Array = np.ndarray[Any, Any]

_DEPRECATED = "torch.quantize_per_tensor, torch.quantize_per_channel and other quantized"

#: Elements from which on torch would dequantize into small pages that the system has to find anew.
_MANY = 2**23
#: Elements that fit into a core's cache.
_BLOCK = 2**16
#: By the dtype of its codes, torch's quantized dtype.
CODE_DTYPES = {"uint8": "quint8", "int8": "qint8", "int32": "qint32"}


class _Tools(NamedTuple):
    """The tools of unpacking, kept because import statements are slow on every call.

    Parameters
    ----------
    blanks : dict of torch.dtype to torch.Tensor
        For each quantized dtype, an empty tensor of the dtype of its codes.
    per_tensor : torch.qscheme
    from_numpy, array : callable
        torch's and NumPy's functions of these names.
    """

    blanks: dict[torch.dtype, Tensor]
    per_tensor: torch.qscheme
    from_numpy: Callable[[object], Tensor]
    array: Callable[..., object]


@cache
def _tools() -> _Tools:
    import numpy as np
    import torch

    blanks = {
        getattr(torch, kind): torch.empty(0, dtype=getattr(torch, code), device="cpu")
        for code, kind in CODE_DTYPES.items()
    }
    return _Tools(blanks, torch.per_tensor_affine, torch.from_numpy, np.array)


def fast_unpack(value: Tensor) -> Any:
    """Return the components of an ordinary quantized tensor on the host, or `NotImplemented`."""
    if not value.is_quantized or not value.is_cpu or not value.is_contiguous():
        return NotImplemented
    if value.dtype in _tools().blanks:  # others have several codes in a byte
        return unpack(value)
    return NotImplemented


def unpack(value: Tensor) -> Parts:
    """Return codes that share the tensor's memory, with their scale and zero point beside them.

    What torch has as numbers becomes arrays, on the device of the codes.
    """
    tools = _tools()
    blank = tools.blanks.get(value.dtype)
    if blank is None:
        msg = f"torch packs the codes of {value.dtype} by itself"
        raise Declined(msg)
    # Making one tensor like another is quicker than naming its dtype and device.
    codes = blank.new_empty(0) if value.is_cpu else blank.new_empty(0, device=value.device)
    codes.set_(value.untyped_storage(), value.storage_offset(), value.size(), value.stride())
    axis = None
    if value.qscheme() == tools.per_tensor:
        # By way of NumPy, which is four times as fast as torch.tensor and knows no other device.
        scale = tools.from_numpy(tools.array(value.q_scale(), "float64"))
        zero_point = tools.from_numpy(tools.array(value.q_zero_point(), "int64"))
    else:
        axis = value.q_per_channel_axis()
        scale, zero_point = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    if not value.is_cpu:
        scale, zero_point = scale.to(value.device), zero_point.to(value.device)
    arrays = {"codes": codes, "scale": scale, "zero_point": zero_point}
    facts = {"axis": axis, "block_size": None, "dtype": "float32"}
    return Parts(tuple(value.shape), arrays, facts)


def pack(parts: Parts) -> Tensor:
    """Return a quantized tensor over given codes.

    Raises
    ------
    Declined
        torch has no such scheme.
    """
    import torch

    codes = parts.arrays["codes"]
    dtype, axis = dtype_name(codes.dtype), parts.facts["axis"]
    if dtype not in CODE_DTYPES:
        msg = f"torch has no quantized dtype for {dtype} codes"
        raise Declined(msg)
    if parts.facts["block_size"] is not None:
        msg = "torch has no quantized tensors with a scale per block"
        raise Declined(msg)
    if axis is not None and not codes.is_contiguous():
        msg = "torch's per-channel tensors are contiguous, and these codes are not"
        raise Declined(msg)
    scale, zero_point = _parameters(torch, parts)
    kind = getattr(torch, CODE_DTYPES[dtype])
    quietly(
        _DEPRECATED,
        lambda: _empty(torch, kind, scale.new_ones(()), zero_point.new_zeros(()), None),
    )
    empty = _empty(torch, kind, scale, zero_point, axis)
    return empty.set_(codes.untyped_storage(), codes.storage_offset(), codes.size(), codes.stride())


def _parameters(torch: ModuleType, parts: Parts) -> tuple[Tensor, Tensor]:
    """Return scale and zero point in the dtypes that torch's schemes want."""
    codes, scale, zero_point = (parts.arrays[role] for role in ("codes", "scale", "zero_point"))
    if zero_point is None:
        zero_point = torch.zeros_like(scale, dtype=torch.int64)
    if zero_point.is_floating_point():
        # torch ends the process when it dequantizes 32-bit codes with such zero points.
        if parts.facts["axis"] is None or codes.itemsize > 1:
            msg = "torch takes zero points that are real numbers only per channel, for 8-bit codes"
            raise Declined(msg)
        return scale.to(torch.float32), zero_point.to(torch.float32)
    limits = torch.iinfo(codes.dtype)
    # Before they are compared: an int8 tensor makes one of its own dtype of a limit, and -1 of 255.
    zero_point = zero_point.to(torch.int64)
    if zero_point.numel() and not limits.min <= zero_point.min() <= zero_point.max() <= limits.max:
        msg = f"torch takes only zero points that are {dtype_name(codes.dtype)} themselves"
        raise Declined(msg)
    return scale.to(torch.float64), zero_point


def _empty(
    torch: ModuleType, dtype: torch.dtype, scale: Tensor, zero_point: Tensor, axis: int | None
) -> Tensor:
    """Return a quantized tensor without elements."""
    empty: Tensor
    if axis is None:
        empty = torch._empty_affine_quantized(
            [0],
            scale=scale.item(),
            zero_point=int(zero_point),
            dtype=dtype,
            device=scale.device,
        )
    else:
        empty = torch._empty_per_channel_affine_quantized(
            [0] * (axis + 1),
            scales=scale,
            zero_points=zero_point,
            axis=axis,
            dtype=dtype,
            device=scale.device,
        )
    return empty


def dequantize(value: Tensor) -> Tensor:
    """Return the real numbers that the codes stand for."""
    _check_zero_points(value)

    def alone() -> Tensor:
        out = fresh(value.shape, "float32")[1]
        dequantize_into(out, value)
        return out

    if value.is_cpu and value.numel() >= _MANY:
        return alone()
    return run(value, 4 * value.numel(), value.dequantize, alone)


def dequantize_into(out: Tensor, value: Tensor) -> None:
    """Write the real numbers into a tensor."""
    _check_zero_points(value)
    has_codes = value.is_cpu and value.dtype in _tools().blanks  # others have several in a byte
    if has_codes and dtype_name(out.dtype) == "float32" and out.is_cpu and not out.is_neg():
        _dequantize_by_numpy(out.detach().numpy(), unpack(value))
    else:
        write(out, value.dequantize())


def _dequantize_by_numpy(out: Array, parts: Parts) -> None:
    """Write the real numbers that codes stand for, a cache's worth at a time."""
    import numpy as np

    axis, codes = parts.facts["axis"], parts.arrays["codes"].numpy()
    blocks = _blocks(codes.shape)

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for block in blocks[start:stop]:
                channels = ... if axis is None else block[1 + axis]
                _write_numbers(out[block], codes[block], scale[channels], zero_point[channels])

    with np.errstate(all="ignore"):
        scale, zero_point = _exact(parts)
    parallel_for(work, len(blocks), out.nbytes)


def _exact(parts: Parts) -> tuple[Array, Array]:
    """Return scale and zero point in the fastest dtypes that give torch's numbers to the last bit.

    With one scale, torch's difference to the zero point is as wide as the codes, and wraps around.
    With a scale for each channel, it is of float32, and the product is as wide as the scale.
    """
    axis = parts.facts["axis"]
    codes, scale, zero_point = (
        parts.arrays[role].numpy() for role in ("codes", "scale", "zero_point")
    )
    narrow = scale.astype("float32")
    if axis is None or (narrow == scale).all():  # a product of two float32 is rounded only once
        scale = narrow
    wraps = axis is None and codes.itemsize > 1  # float32 holds the others, and is quicker
    zero_point = zero_point.astype(codes.dtype if wraps else "float32")
    if axis is None:
        return scale, zero_point
    shape = -1, *[1] * (codes.ndim - axis - 1)
    return scale.reshape(shape), zero_point.reshape(shape)


def _write_numbers(out: Array, codes: Array, scale: Array, zero_point: Array) -> None:
    """Write the real numbers of a block, whose steps all find it in the cache."""
    if zero_point.dtype == codes.dtype:
        codes = codes - zero_point
    out[...] = codes
    if zero_point.dtype == out.dtype and zero_point.any():
        out -= zero_point
    if scale.dtype == out.dtype:
        out *= scale
    else:
        wide = out.astype(scale.dtype)
        wide *= scale
        out[...] = wide


def _blocks(shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the indices of parts of an array that fit into a core's cache, in C order."""
    steps, room = [], _BLOCK
    for length in reversed(shape):
        count = -(-length // max(1, room)) or 1
        steps.append(-(-length // count) or 1)
        room //= max(1, length)
    begins = product(*map(range, repeat(0), shape, reversed(steps)))
    return [
        (..., *(slice(b, b + step) for b, step in zip(begin, reversed(steps), strict=True)))
        for begin in begins
    ]


def _check_zero_points(value: Tensor) -> None:
    """Refuse what would end the process."""
    import torch

    has_real_zeros = value.qscheme() == torch.per_channel_affine_float_qparams
    if has_real_zeros and value.dtype == torch.qint32:
        msg = "torch ends the process when it dequantizes 32-bit codes with real zero points"
        raise Declined(msg)
