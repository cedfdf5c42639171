"""What every plugin promises: numbers arrive, memory is taken once, and errors keep nothing."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Set
from functools import cache
from typing import Any
from weakref import ref

import ml_dtypes
import numpy as np
import pytest

import interop
from interop._model.dtype import preserves
from interop.plugin import DTYPES
from interop_plugins.numpy.dtypes import ONLY_ML_DTYPES
from tests.inside import forget

__all__ = [
    "LARGE_CASTS",
    "LATER",
    "NAMES",
    "check_arrivals",
    "check_departures",
    "is_kept",
    "large",
    "peak_of",
]

#: Dtypes of later ml_dtypes: those of a single bit came with 0.6, several floats with 0.5.
LATER = {name for name in ONLY_ML_DTYPES if not hasattr(ml_dtypes, name)}
#: NumPy has no conversion from or to complex32, which only ml_dtypes know.
NAMES = sorted(set(DTYPES) - {"complex32"} - LATER)

#: Pairs of dtypes between which NumPy casts at the speed of memory, the result being no less than
#: half as large.
LARGE_CASTS = [
    *(("float64", name) for name in ("float32", "int32", "complex64")),
    *(("int64", name) for name in ("float32", "int32", "complex64")),
    *(("complex128", name) for name in ("complex64",)),
    *(("complex64", name) for name in ("float32", "int32")),
    *(("float32", name) for name in ("int32", "bfloat16", "complex64")),
    *(("int32", name) for name in ("float32", "bfloat16", "complex64")),
    *(("bfloat16", name) for name in ("float32", "int32", "complex64")),
    *((name, "float32") for name in ("bool", "uint8", "int16")),
    *((name, "complex64") for name in ("bool", "uint64", "longdouble")),
]

#: Bits of what ml_dtypes store one to a byte.
_BITS = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}

#: Integers of less than a byte, of which some bits are free.
_SMALL_INTEGERS = {
    name for name, facts in DTYPES.items() if facts.kind in "ui" and facts.digits < 7
}

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": lambda array: array,
    "every second": lambda array: np.repeat(array, 2)[::2],
    "backwards": lambda array: array[::-1],
    "a number": lambda array: array[len(array) // 2 :][:1].reshape(()),
    "empty": lambda array: array[:0],
    "no columns": lambda array: array[:0].reshape(3, 0),
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype),
    "unaligned": lambda array: np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1),
    "large": lambda array: np.resize(array, (300, 257)),
    "large columns": lambda array: np.resize(array, (300, 257)).T,
    "repeated": lambda array: np.broadcast_to(array, (3, len(array))),
}


def every_number(name: str) -> np.ndarray:
    """Return all numbers of a dtype of at most 16 bits, or the extreme ones; -0.0 is in the middle."""
    dtype, facts = np.dtype(getattr(ml_dtypes, name, name)), DTYPES[name]
    if facts.kind == "b":
        return np.array([False, True])
    if facts.kind in "iu":
        low = -(2**facts.digits) if facts.kind == "i" else 0
        high = 2**facts.digits - 1
        numbers = range(low, high + 1) if facts.digits <= 8 else (low, low + 1, 0, 1, high)
        return np.array(list(numbers), dtype if facts.digits > 8 else "i2").astype(dtype)
    if facts.kind == "f" and dtype.itemsize <= 2:
        bits = _BITS.get(name, 8 * dtype.itemsize)
        return np.arange(2**bits, dtype=f"u{dtype.itemsize}").view(dtype)
    real = np.dtype(f"f{dtype.itemsize // 2}") if facts.kind == "c" else dtype
    info = np.finfo(real)
    least = info.smallest_subnormal
    numbers = [info.max, info.tiny, 1 / 3, 1, 0, least, -0.0, -least, np.nan, np.inf, -np.inf, -1]
    reals = np.array(numbers, real)
    if facts.kind == "f":
        return reals
    pairs = np.empty((len(reals), len(reals)), dtype)
    pairs.real, pairs.imag = np.meshgrid(reals, reals)
    return pairs.ravel()


def _widest(array: np.ndarray) -> np.ndarray:
    """Return an array in the widest dtype, as pairs of real and imaginary part."""
    with np.errstate(invalid="ignore"):  # of a NaN that signals
        if array.dtype.name in DTYPES and array.dtype.isbuiltin not in {0, 1}:
            array = array.astype("f4")
        wide = array.astype(np.clongdouble)
        if array.dtype.kind != "c":
            wide.real = array.astype(np.longdouble)  # a cast to complex drops the sign of zero
    return np.stack([wide.real, wide.imag], -1)


def same_numbers(array: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether two arrays hold the same numbers: NaN is NaN, and -0.0 is not 0.0."""
    if array.dtype == other.dtype and array.dtype.name not in _SMALL_INTEGERS:
        return (array.shape, array.tobytes()) == (other.shape, other.tobytes())
    wide, others = _widest(array), _widest(other)
    signed = ~np.isnan(wide)
    return np.array_equal(wide, others, equal_nan=True) and np.array_equal(
        np.signbit(wide)[signed], np.signbit(others)[signed]
    )


@cache
def _cold_and_warm(to: str) -> tuple[interop.Interop, interop.Interop]:
    """Return an instance to forget its plans, and one that knows every fast path to a format."""
    cold, warm = interop.Interop(), interop.Interop()
    for name in ("bool", "uint8", "int32", "float16", "float32", "complex64"):
        for _ in range(3):
            warm.convert(np.ones(2, name), to=to)
    return cold, warm


def check_arrivals(to: str, name: str, held: Set[str]) -> None:
    """Convert every number of a dtype, in every layout, cold and warm, and check what arrives.

    Parameters
    ----------
    to : str
        The format.
    name : str
        The dtype.
    held : set of str
        The dtypes that the format holds as things stand. What none of them can hold is refused.
    """
    numbers = every_number(name)
    cold, warm = _cold_and_warm(to)
    forget(cold)
    for instance in (cold, warm):
        for layout in LAYOUTS.values():
            array = layout(numbers)
            native = array.astype(array.dtype.newbyteorder("="))
            _check_arrival(instance, array, to, held, name=name, expected=native)


def _check_arrival(
    instance: interop.Interop,
    value: Any,
    to: str,
    held: Set[str],
    *,
    name: str,
    expected: np.ndarray,
) -> None:
    """Convert a value again and again, and check what arrives, or that it is refused."""
    can_hold = any(preserves(name, dtype) for dtype in held)
    # Integers are looked at one by one: they pass if each of them fits.
    fit = expected.dtype.kind in "iu" and any(
        np.array_equal(expected.astype(dtype), expected)
        for dtype in ("int32", "uint32")
        if dtype in held
    )
    for _ in range(3):
        if not can_hold and not fit:
            with pytest.raises(interop.errors.RefusedError, match=r"narrow|does not fit"):
                instance.convert(value, to=to)
            continue
        result = instance.convert(value, to=to)
        arrived = instance.spec(result).dtype
        assert arrived in held
        assert fit or preserves(name, arrived)
        assert same_numbers(np.asarray(instance.convert(result, "numpy")), expected)


def _targets() -> list[tuple[str, str, Set[str]]]:
    """Return the dense formats of some frameworks, their states and dtypes."""
    names = ("numpy", "torch", "jax", "mlx", "tensorflow")
    formats = {declared.name: declared for declared in interop.formats()}
    return [(name, formats[name].state, formats[name].format.dtypes) for name in names]


def check_departures(make: Callable[[np.ndarray], Any], name: str) -> None:
    """Convert every number of a dtype to other frameworks, and check what arrives.

    Parameters
    ----------
    make : callable
        It makes an array of the framework from one of NumPy's.
    name : str
        The dtype.
    """
    numbers = every_number(name)
    for array in (numbers, numbers[len(numbers) // 2 :][:1].reshape(()), numbers[:0]):
        value = make(array)
        for to, state, held in _targets():
            if state == "missing":  # beside the oldest versions only some are installed
                continue
            _check_arrival(interop.default, value, to, held, name=name, expected=array)


def large(dtype: str) -> Iterator[np.ndarray]:
    """Yield arrays whose memory counts: in order, backwards, and by columns."""
    array = (np.arange(2**20, dtype="f4") % 2).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    yield array
    yield array[::-1]
    yield array.reshape(2**8, 2**12).T


def peak_of(function: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a function gives, and the most bytes that NumPy's new arrays took meanwhile.

    It is called once before: a first call plans, and may import.
    """
    function()
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def is_kept(
    make: Callable[[], Any],
    fail: Callable[[Any], object],
    error: type[Exception] | tuple[type[Exception], ...] = interop.errors.InteropError,
) -> bool:
    """Tell whether a value outlives the error that a call with it raises, if nobody collects."""
    value = make()
    alive = ref(value)
    gc.collect()
    gc.disable()
    try:
        try:
            fail(value)
        except error:
            pass
        else:
            pytest.fail("nothing was raised")
        del value
        return alive() is not None
    finally:
        gc.enable()
