"""The real numbers that codes stand for, in the arithmetic of NumPy, torch or CuPy.

The arithmetic is torch's own, to the last bit: of one scale for all, the difference to the zero
point is exact and the product is of the result's precision; of a scale per channel, the difference
is of the result's precision and the product is of the wider of that and the scale's. The numbers
are of the dtype that the array says. Another that is asked for is made of them, so that it does not
matter whether a step of its own casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

from interop.plugin import PACKED, Declined, QuantizedArray, parallel_for

__all__ = [
    "DTYPES",
    "NUMPY_DTYPES",
    "dequantize_cupy",
    "dequantize_into_numpy",
    "dequantize_numpy",
    "dequantize_torch",
    "dtype_name",
    "unpack_cupy",
    "unpack_numpy",
    "unpack_torch",
]

DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
NUMPY_DTYPES = DTYPES - {"bfloat16"}
_HALVES = frozenset({"float16", "bfloat16"})

#: Elements that are dequantized at a time: of NumPy what the caches hold twice. torch divides each
#: operation among threads, whose meeting at its end has to be worth while.
_PIECE, _THREADED_PIECE, _DEVICE_PIECE = 2**18, 2**22, 2**26

#: What the codes of float4_e2m1fn are, in order.
_FLOAT4 = tuple(sign * n for sign in (1.0, -1.0) for n in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0))


def dtype_name(part: Any) -> str:
    """Return the name of the dtype of an array."""
    return str(part.dtype).removeprefix("torch.")


class _Framework(NamedTuple):
    """What of a framework the arithmetic needs, beyond the operators of its arrays."""

    empty: Callable[[tuple[int, ...], str], Any]
    arange: Callable[..., Any]
    view: Callable[[Any, str], Any]
    look_up: Callable[[tuple[float, ...], Any], Any]
    piece: int
    parallel_for: Callable[[Callable[[int, int], None], int, int], None]


def _at_once(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Do all of the work here, because the framework has threads of its own."""
    work(0, count)


def _quiet(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Cut the work up among threads, each of which has its own state of NumPy's errors."""
    import numpy as np

    def silently(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            work(start, stop)

    parallel_for(silently, count, nbytes)


def dequantize_numpy(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of NumPy codes as a NumPy array."""
    out = _empty_numpy(value.shape, dtype)
    dequantize_into_numpy(out, value)
    return out


def dequantize_into_numpy(out: Any, value: QuantizedArray) -> None:
    """Write the real numbers of NumPy codes into an array of real numbers."""
    import numpy as np

    if dtype_name(out) not in DTYPES:
        msg = f"quantized arrays stand for real numbers, not for {out.dtype}"
        raise Declined(msg)
    with np.errstate(all="ignore"):
        _dequantize(value, dtype_name(out), _numpy(), out)


def unpack_numpy(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one NumPy element for each code."""
    return _unpacked(value, _numpy())


def _numpy() -> _Framework:
    import numpy as np

    def view(array: Any, name: str) -> Any:
        return array.view(name)

    def look_up(table: tuple[float, ...], indices: Any) -> Any:
        return np.array(table, "float32")[indices]

    return _Framework(_empty_numpy, np.arange, view, look_up, _PIECE, _quiet)


def dequantize_torch(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of torch codes as a tensor on their device."""
    return _dequantize(value, dtype, _torch(value.codes.device))


def unpack_torch(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one element of a tensor for each code."""
    return _unpacked(value, _torch(value.codes.device))


def _torch(device: Any) -> _Framework:
    import torch

    def empty(shape: tuple[int, ...], name: str) -> Any:
        return torch.empty(shape, dtype=getattr(torch, name), device=device)

    def view(tensor: Any, name: str) -> Any:
        return tensor.view(getattr(torch, name))

    def look_up(table: tuple[float, ...], indices: Any) -> Any:
        return torch.tensor(table, dtype=torch.float32, device=device)[indices.long()]

    arange = partial(torch.arange, device=device)
    if device.type == "cpu":
        return _Framework(_empty_torch, arange, view, look_up, _THREADED_PIECE, _at_once)
    return _Framework(empty, arange, view, look_up, _DEVICE_PIECE, _at_once)


def dequantize_cupy(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of CuPy codes as a CuPy array."""
    with value.codes.device:
        return _dequantize(value, dtype, _cupy())


def unpack_cupy(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one CuPy element for each code."""
    with value.codes.device:
        return _unpacked(value, _cupy())


def _cupy() -> _Framework:
    import cupy

    def view(array: Any, name: str) -> Any:
        return array.view(name)

    def look_up(table: tuple[float, ...], indices: Any) -> Any:
        return cupy.asarray(table, "float32")[indices]

    return _Framework(cupy.empty, cupy.arange, view, look_up, _DEVICE_PIECE, _at_once)


def _empty_numpy(shape: tuple[int, ...], dtype: str) -> Any:
    import numpy as np

    if dtype != "bfloat16":
        return np.empty(shape, dtype)
    import ml_dtypes

    return np.empty(shape, ml_dtypes.bfloat16)


def _empty_torch(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an empty tensor in memory of NumPy's, which comes in huge pages where it is large."""
    import torch

    if dtype != "bfloat16":
        return torch.from_numpy(_empty_numpy(shape, dtype))
    return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")


def _unpacked(value: QuantizedArray, xp: _Framework) -> QuantizedArray:
    codes = _codes(value.codes, value.packed or "", 0, prod(value.shape), xp)
    zero_point = _zero_point(value, xp)
    return QuantizedArray(
        codes.reshape(value.shape),
        value.scale,
        zero_point,
        axis=value.axis,
        block_size=value.block_size,
        dtype=value.dtype,
        bias=value.bias,
    )


def _codes(packed: Any, kind: str, start: int, count: int, xp: _Framework) -> Any:
    """Return `count` codes of those that share bytes, from the one at `start` on."""
    each = PACKED[kind]
    bits = 8 // each
    found = packed[start // each : -(-(start + count) // each)]
    codes = xp.empty((len(found) * each,), "uint8")
    for place in range(each):
        codes[place::each] = (found >> bits * place) & (2**bits - 1)
    codes = codes[start % each :][:count]
    if kind.startswith("float"):
        return xp.look_up(_FLOAT4, codes)
    if kind.startswith("u"):
        return codes
    # The sign stands for minus the place it has.
    codes ^= 1 << (bits - 1)
    codes -= 1 << (bits - 1)
    return xp.view(codes, "int8")


def _zero_point(value: QuantizedArray, xp: _Framework) -> Any:
    """Return the zero points, one element for each."""
    if not value.packed_zero_point:
        return value.zero_point
    shape = tuple(value.scale.shape)
    return _codes(value.zero_point, value.packed or "", 0, prod(shape), xp).reshape(shape)


class _Arithmetic(NamedTuple):
    """The dtypes in which the difference, the product and what is made of them are rounded."""

    difference: str
    product: str
    working: str


def _arithmetic(value: QuantizedArray) -> _Arithmetic:
    """Return dtypes that give torch's numbers, and of those the ones that are fastest."""
    working = "float64" if value.dtype == "float64" else "float32"
    codes, zero_point = value.codes.dtype.itemsize, value.zero_point
    whole = zero_point is None or "int" in dtype_name(zero_point)
    if not whole and value.dtype in _HALVES:
        return _Arithmetic(value.dtype, working, working)
    if value.axis is None and codes > 2:  # codes of 32 bits have more digits than float32
        return _Arithmetic("float64", working, working)
    if value.axis is not None and dtype_name(value.scale) == "float64":
        return _Arithmetic(working, "float64", working)
    return _Arithmetic(working, working, working)


class _Parameters(NamedTuple):
    """What is done to the codes: numbers, or arrays of dtypes fit to compute with."""

    zero_point: Any
    scale: Any
    bias: Any


def _dequantize(value: QuantizedArray, dtype: str, xp: _Framework, out: Any = None) -> Any:
    """Write the real numbers piece by piece, so that what is computed on stays in the caches."""
    arithmetic = _arithmetic(value)
    parameters = _parameters(value, arithmetic, xp)
    out = xp.empty(value.shape, dtype) if out is None else out
    pieces = list(_pieces(value.shape, xp.piece))
    starts = _starts(pieces, out) if value.packed else []

    def work(start: int, stop: int) -> None:
        for number in range(start, stop):
            index = pieces[number]
            part = out[index]
            if value.packed:
                size = prod(part.shape)
                codes = _codes(value.codes, value.packed, starts[number], size, xp)
                codes = codes.reshape(part.shape)
            else:
                codes = value.codes[index]
            own = _Parameters(*(_along(one, index, value, xp) for one in parameters))
            _write(part, codes, own, arithmetic, value.dtype, xp)

    xp.parallel_for(work, len(pieces), out.nbytes)
    return out


def _starts(pieces: list[tuple[Any, ...]], out: Any) -> list[int]:
    """Return how many elements lie before each piece."""
    starts, count = [], 0
    for index in pieces:
        starts.append(count)
        count += prod(out[index].shape)
    return starts


def _write(  # noqa: PLR0917 - made in one place
    part: Any, codes: Any, own: _Parameters, rounding: _Arithmetic, dtype: str, xp: _Framework
) -> None:
    """Write the real numbers of a piece, which are of `dtype`, into `part`."""
    working = rounding.working
    direct = dtype_name(part) == working
    reals = part if direct else xp.empty(part.shape, working)
    wide = reals if rounding.difference == working else xp.empty(part.shape, rounding.difference)
    wide[...] = codes
    if own.zero_point is not None:
        wide -= own.zero_point
    if rounding.product != rounding.difference:
        exact = reals if rounding.product == working else xp.empty(part.shape, rounding.product)
        exact[...] = wide
        wide = exact
    wide *= own.scale
    if wide is not reals:
        reals[...] = wide
    if own.bias is not None:
        reals += own.bias
    if dtype not in (working, dtype_name(part)):
        rounded = xp.empty(part.shape, dtype)
        rounded[...] = reals
        part[...] = rounded
    elif not direct:
        part[...] = reals


def _parameters(value: QuantizedArray, rounding: _Arithmetic, xp: _Framework) -> _Parameters:
    zero_point, scale, bias = _zero_point(value, xp), value.scale, value.bias
    rounded = zero_point is not None and rounding.difference in _HALVES
    if value.axis is None:
        if rounded:
            zero_point = _cast(zero_point, rounding.difference, xp)
        elif zero_point is not None:
            zero_point = float(zero_point)
        return _Parameters(zero_point, float(scale), None if bias is None else float(bias))
    if zero_point is not None:
        zero_point = _cast(zero_point, rounding.difference if rounded else rounding.working, xp)
    if dtype_name(scale) not in ("float32", "float64"):
        scale = _cast(scale, rounding.working, xp)
    if bias is not None:
        bias = _cast(bias, rounding.working, xp)
    return _Parameters(zero_point, scale, bias)


def _cast(part: Any, dtype: str, xp: _Framework) -> Any:
    result = xp.empty(tuple(part.shape), dtype)
    result[...] = part
    return result


def _along(part: Any, index: tuple[Any, ...], value: QuantizedArray, xp: _Framework) -> Any:
    """Return what of a scale or zero point belongs to the piece of the codes at `index`."""
    axis, block = value.axis, value.block_size
    if part is None or axis is None:
        return part
    whole = slice(None)
    index = (*index, *(whole,) * (value.ndim - len(index)))
    if block is None:
        shape = [1] * value.ndim
        shape[axis] = -1
        return part.reshape(shape)[
            tuple(index[i] if i == axis else whole for i in range(len(index)))
        ]
    start, stop, _ = index[axis].indices(value.shape[axis])
    blocks = xp.arange(start, stop) // block
    return part[(*index[:axis], blocks, *index[axis + 1 :])]


def _pieces(shape: tuple[int, ...], step: int) -> Iterator[tuple[Any, ...]]:
    """Yield the indices that cut an array of `shape` into pieces of about `step` elements."""
    if not shape:
        yield (...,)
        return
    inner = prod(shape[1:])
    if inner > step:
        for start in range(shape[0]):
            for rest in _pieces(shape[1:], step):
                yield (slice(start, start + 1), *rest)
        return
    rows = max(1, step // max(inner, 1))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)
