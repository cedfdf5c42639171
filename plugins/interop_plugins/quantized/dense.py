"""The real numbers that codes stand for, in the arithmetic of NumPy, torch or CuPy.

The arithmetic is torch's own, to the last bit. With one scale for all, the difference to the zero
point is exact, and the product has the result's precision. With a scale per channel, the difference
has the result's precision, and the product the wider of that and the scale's. The numbers are of
the dtype that the array names. If another is asked for, they are cast to it afterwards, so that it
does not matter whether a separate step casts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop.plugin import Declined

from .array import QuantizedArray
from .codes import unpack_codes, unpack_zero_point
from .frameworks import (
    DTYPES,
    Framework,
    cupy_framework,
    dtype_name,
    empty_numpy,
    numpy_framework,
    torch_framework,
)

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .frameworks import Array

    #: Slices, or an ellipsis for an array of no axes.
    Index: TypeAlias = tuple[Any, ...]

_HALVES = frozenset({"float16", "bfloat16"})


def dequantize_numpy(value: QuantizedArray, *, dtype: str) -> Array:
    """Return the real numbers of NumPy codes as a NumPy array."""
    out = empty_numpy(value.shape, dtype)
    dequantize_into_numpy(out, value)
    return out


def dequantize_into_numpy(out: Array, value: QuantizedArray) -> None:
    """Write the real numbers of NumPy codes into an array of real numbers."""
    import numpy as np

    if dtype_name(out) not in DTYPES:
        msg = f"quantized arrays stand for real numbers, not for {out.dtype}"
        raise Declined(msg)
    with np.errstate(all="ignore"):
        _dequantize(value, dtype_name(out), numpy_framework(), out)


def dequantize_torch(value: QuantizedArray, *, dtype: str) -> Array:
    """Return the real numbers of torch codes as a tensor on their device."""
    return _dequantize(value, dtype, torch_framework(value.codes.device))


def dequantize_cupy(value: QuantizedArray, *, dtype: str) -> Array:
    """Return the real numbers of CuPy codes as a CuPy array."""
    with value.codes.device:
        return _dequantize(value, dtype, cupy_framework())


class _Arithmetic(NamedTuple):
    """The dtypes of the difference, of the product, and of the sum with the bias."""

    difference: str
    product: str
    working: str


def _arithmetic(value: QuantizedArray) -> _Arithmetic:
    """Return the fastest dtypes that give torch's numbers."""
    working = "float64" if value.dtype == "float64" else "float32"
    codes, zero_point = value.codes.dtype.itemsize, value.zero_point
    is_integer = zero_point is None or "int" in dtype_name(zero_point)
    if not is_integer and value.dtype in _HALVES:
        return _Arithmetic(value.dtype, working, working)
    if value.axis is None and codes > 2:  # codes of 32 bits have more digits than float32
        return _Arithmetic("float64", working, working)
    if value.axis is not None and dtype_name(value.scale) == "float64":
        return _Arithmetic(working, "float64", working)
    return _Arithmetic(working, working, working)


class _Parameters(NamedTuple):
    """The parameters of dequantizing: numbers, or arrays of dtypes that are fit to compute with."""

    zero_point: Array | float | None
    scale: Array | float
    bias: Array | float | None


def _dequantize(
    value: QuantizedArray, dtype: str, xp: Framework, out: Array | None = None
) -> Array:
    """Write the real numbers piece by piece, so that intermediate results stay in the caches."""
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
                codes = unpack_codes(value.codes, value.packed, starts[number], size, xp)
                codes = codes.reshape(part.shape)
            else:
                codes = value.codes[index]
            local = _Parameters(*(_at(index, parameter, value, xp) for parameter in parameters))
            _write(part, codes, local, arithmetic, value.dtype, xp)

    xp.parallel_for(work, len(pieces), out.nbytes)
    return out


def _starts(pieces: list[Index], out: Array) -> list[int]:
    """Return how many elements lie before each piece."""
    starts, count = [], 0
    for index in pieces:
        starts.append(count)
        count += prod(out[index].shape)
    return starts


def _write(  # noqa: PLR0917 - called in one place
    part: Array,
    codes: Array,
    parameters: _Parameters,
    arithmetic: _Arithmetic,
    dtype: str,
    xp: Framework,
) -> None:
    """Write the real numbers of a piece, which are of `dtype`, into `part`."""
    working = arithmetic.working
    direct = dtype_name(part) == working
    reals = part if direct else xp.empty(part.shape, working)
    difference, product = arithmetic.difference, arithmetic.product
    wide = reals if difference == working else xp.empty(part.shape, difference)
    wide[...] = codes
    if parameters.zero_point is not None:
        wide -= parameters.zero_point
    if product != difference:
        exact = reals if product == working else xp.empty(part.shape, product)
        exact[...] = wide
        wide = exact
    wide *= parameters.scale
    if wide is not reals:
        reals[...] = wide
    if parameters.bias is not None:
        reals += parameters.bias
    if dtype not in (working, dtype_name(part)):
        rounded = xp.empty(part.shape, dtype)
        rounded[...] = reals
        part[...] = rounded
    elif not direct:
        part[...] = reals


def _parameters(value: QuantizedArray, arithmetic: _Arithmetic, xp: Framework) -> _Parameters:
    zero_point, scale, bias = unpack_zero_point(value, xp), value.scale, value.bias
    difference = arithmetic.difference
    if value.axis is None:
        if zero_point is not None:
            is_rounded = difference in _HALVES
            zero_point = _cast(zero_point, difference, xp) if is_rounded else float(zero_point)
        return _Parameters(zero_point, float(scale), None if bias is None else float(bias))
    if zero_point is not None:
        zero_point = _cast(zero_point, difference, xp)
    if dtype_name(scale) not in ("float32", "float64"):
        scale = _cast(scale, arithmetic.working, xp)
    if bias is not None:
        bias = _cast(bias, arithmetic.working, xp)
    return _Parameters(zero_point, scale, bias)


def _cast(part: Array, dtype: str, xp: Framework) -> Array:
    result = xp.empty(tuple(part.shape), dtype)
    result[...] = part
    return result


def _at(index: Index, parameter: Array | None, value: QuantizedArray, xp: Framework) -> Array:
    """Return what of a parameter belongs to the piece of the codes at `index`."""
    axis, block = value.axis, value.block_size
    if parameter is None or axis is None:
        return parameter
    everything = slice(None)
    index = (*index, *(everything,) * (value.ndim - len(index)))
    if block is None:
        shape = [1] * value.ndim
        shape[axis] = -1
        along = [index[i] if i == axis else everything for i in range(len(index))]
        return parameter.reshape(shape)[tuple(along)]
    start, stop, _ = index[axis].indices(value.shape[axis])
    blocks = xp.arange(start, stop) // block
    return parameter[(*index[:axis], blocks, *index[axis + 1 :])]


def _pieces(shape: tuple[int, ...], step: int) -> Iterator[Index]:
    """Yield the indices of the pieces of an array, each of about `step` elements."""
    if not shape:
        yield (...,)
        return
    inner = prod(shape[1:])
    if inner > step:
        for start in range(shape[0]):
            for inner_index in _pieces(shape[1:], step):
                yield (slice(start, start + 1), *inner_index)
        return
    rows = max(1, step // max(inner, 1))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)
