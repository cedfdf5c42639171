"""The helpers that plugins call for their arrays."""

from __future__ import annotations

import functools
import gc
import itertools
import weakref

import ml_dtypes
import numpy as np
import pytest

from interop.kit import (
    MemoryAt,
    address,
    dtype_name,
    extent,
    extents,
    memory_traits,
    null_number,
    numpy_dtype,
    overlaps,
    real_part,
    stride_traits,
)
from interop.plugin import DTYPES

_DTYPES = [np.dtype(code) for code in np.typecodes["All"] if code not in "SUV"]
_DTYPES += [np.dtype("S3"), np.dtype("U3"), np.dtype([("a", "i4")])]
_DTYPES += [
    np.dtype(scalar)
    for scalar in vars(ml_dtypes).values()
    if isinstance(scalar, type) and issubclass(scalar, np.generic)
]


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
def test_the_address_of_any_array_is_that_of_its_first_element(dtype: np.dtype) -> None:
    """It is NumPy's own, whatever the dtype, the byte order, the layout and the flags."""
    for shape in ((), (3,), (2, 3), (2, 0)):
        array = np.zeros(shape, dtype)
        swapped = array if dtype.isbuiltin == 2 else array.view(dtype.newbyteorder())
        layouts = [array, array.T, array[..., ::-1] if shape else array, swapped]
        for view in (*layouts, *(layout.view() for layout in layouts)):
            assert address(view) == view.ctypes.data
            view.flags.writeable = False
            assert address(view) == view.ctypes.data


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("f4", "float32"),
        (">f4", "float32"),
        (np.longlong, "int64"),
        ("g", "longdouble"),
        ("G", "clongdouble"),
        (ml_dtypes.bfloat16, "bfloat16"),
        ("M8[s]", "datetime64[s]"),
        ([("a", "i4")], "[('a', '<i4')]"),
    ],
)
def test_dtypes_have_one_name(dtype: object, name: str) -> None:
    """A dtype of numbers is named alike in either byte order; others are named as NumPy does.

    The name of one of numbers leads back to it, in the machine's order.
    """
    for _ in range(2):
        assert dtype_name(np.dtype(dtype)) == name
    if name in DTYPES:
        assert numpy_dtype(name) == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    ("target", "is_real"), [("f4", True), ("i8", True), ("c8", False), ("?", False)]
)
def test_the_real_part_is_what_a_real_dtype_holds(target: str, is_real: bool) -> None:
    """Complex numbers lose the imaginary part on the way to floats, and to no other dtype."""
    array = np.array([1 + 2j, 3j])
    part = real_part(array, np.dtype(target))
    assert np.shares_memory(part, array)
    assert part.dtype == ("f8" if is_real else "c16")
    reals = np.ones(2)
    assert real_part(reals, np.dtype(target)) is reals


@pytest.mark.parametrize("dtype", ["f4", "c8", "g", "bfloat16", "float8_e5m2", "i4", "?", "int4"])
def test_nulls_become_nan_or_zero(dtype: str) -> None:
    """The number in the place of a null is NaN if the dtype has one, and 0 else."""
    array = np.zeros(1, getattr(ml_dtypes, dtype, dtype))
    array[0] = null_number(array.dtype)
    assert np.isnan(array.astype("c16"))[0] == (dtype not in {"i4", "?", "int4"})


def test_extents_are_addresses_and_lengths() -> None:
    """Strided and backwards arrays count from their lowest address; empty ones are left out."""
    base = np.zeros((4, 6))
    start = base.ctypes.data
    assert extents([base, base[1:, ::2], base[::-1], base[:0]]) == (
        (start, 192),
        (start + 48, 136),
        (start, 192),
    )
    assert extents([]) == ()


def test_an_extent_spans_what_is_touched() -> None:
    """The extent reaches from the lowest to the highest byte that any stride leads to."""
    assert extent(1000, (4, 6), (48, 8), 8) == (1000, 192)
    assert extent(1144, (4, 6), (-48, 8), 8) == (1000, 192)
    assert extent(1000, (5, 3), (0, 16), 8) == (1000, 40)
    assert extent(1000, (), (), 4) == (1000, 4)
    assert extent(1000, (3, 0), (8, 8), 8) == (1000, 0)


def test_memory_at_an_address_keeps_its_owner_alive() -> None:
    """An array over a `MemoryAt` holds the owner until the array is gone."""
    base = np.arange(3.0)
    alive = weakref.ref(base)
    array = np.asarray(MemoryAt(base.__array_interface__, base))
    del base
    gc.collect()
    assert alive() is not None
    assert array.tolist() == [0.0, 1.0, 2.0]
    del array
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2), (1, 3), (0, 3)], ids=str)
def test_overlaps_are_told_over_all_small_strides(shape: tuple[int, ...]) -> None:
    """It is said of every overlap, and of nothing else if all axes are of whole elements."""
    for itemsize in (1, 2):
        for strides in itertools.product(range(-9, 10), repeat=len(shape)):
            axes = (np.arange(n) * step for n, step in zip(shape, strides, strict=True))
            starts = functools.reduce(np.add.outer, axes).ravel()
            bytes_ = (starts[:, None] + np.arange(itemsize)).ravel()
            expected = len(set(bytes_.tolist())) < bytes_.size
            told = overlaps(shape, strides, itemsize)
            exact = not any(
                n > 1 and step % itemsize for n, step in zip(shape, strides, strict=True)
            )
            assert told == expected if exact else told >= expected, (strides, itemsize)


@pytest.mark.parametrize(
    ("shape", "strides", "traits"),
    [
        ((4, 6), (1, 4), set()),
        ((4, 6), (-6, 1), {"negative_strides"}),
        ((4, 6), (0, 1), {"broadcast"}),
        ((4, 6), (0, -1), {"negative_strides", "broadcast"}),
        ((4, 1, 1), (2, 0, -1), set()),
    ],
)
def test_strides_tell_the_traits_of_a_layout(
    shape: tuple[int, ...], strides: tuple[int, ...], traits: set[str]
) -> None:
    """The strides of axes that are stepped along say whether they go backwards or nowhere."""
    assert stride_traits(shape, strides) == traits | {"noncontiguous"}


def test_strides_tell_fortran_order_if_the_size_of_an_element_is_known() -> None:
    """A block whose first axis varies fastest is in Fortran order; one with gaps is not."""
    fortran = {"noncontiguous", "fortran"}
    assert stride_traits((4, 6), (1, 4), 1) == stride_traits((4, 6), (8, 32), 8) == fortran
    assert stride_traits((4, 1, 6), (8, 7, 32), 8) == fortran
    for shape, strides in (((4, 6), (16, 64)), ((4, 6), (8, 40)), ((2, 3, 4), (8, 64, 16))):
        assert stride_traits(shape, strides, 8) == {"noncontiguous"}
    assert stride_traits((4, 6), (0, 0)) == {"noncontiguous", "broadcast"}


def test_one_element_is_one_block() -> None:
    """Where no axis is stepped along, strides say nothing."""
    assert stride_traits((1, 1), (8, -8)) == stride_traits((), ()) == frozenset()


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _at(offset: int, dtype: str) -> np.ndarray:
    """Return six numbers at so many bytes past a multiple of 16."""
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 16 + offset
    return memory[start : start + 6 * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize(
    ("array", "traits"),
    [
        (np.zeros((2, 3)), ""),
        (np.zeros((2, 3)).T, "noncontiguous fortran"),
        (np.zeros((3, 1)).T[::-1], ""),
        (np.zeros(6)[::-1], "noncontiguous negative_strides"),
        (np.broadcast_to(np.zeros(3), (2, 3)), "noncontiguous broadcast readonly"),
        (
            np.lib.stride_tricks.sliding_window_view(np.zeros(6), 3),
            "noncontiguous broadcast readonly",
        ),
        (_locked(np.zeros(2)), "readonly"),
        (_at(4, "f8"), "unaligned"),
        (_at(4, "f4"), ""),
        (_at(4, "c8"), "unaligned"),
        (_at(8, "c8"), ""),
        (_at(8, "c16"), "unaligned"),
        (_at(16, "c16"), ""),
        (_at(8, ">c16"), "unaligned"),
        (_at(8, "c16")[:0], ""),
        (np.zeros(3, [("a", "c16"), ("b", "f8")])["a"], "noncontiguous unaligned"),
        (np.zeros(1, [("a", "c16"), ("b", "f8")])["a"], ""),
    ],
)
def test_flags_and_strides_tell_the_traits_of_memory(array: np.ndarray, traits: str) -> None:
    """Complex numbers are aligned at multiples of their whole size, unlike NumPy's flag."""
    assert memory_traits(array) == set(traits.split())
    plain = np.zeros(3, "int64")
    assert memory_traits(plain, array, plain) == set(traits.split())


def test_several_arrays_have_the_traits_of_any() -> None:
    """What one of the components of a composite value is, the whole is."""
    assert memory_traits() == set()
    arrays = _locked(np.zeros(2)), np.zeros(4)[::2], _at(8, "c16")
    assert memory_traits(*arrays) == {"readonly", "noncontiguous", "unaligned"}
