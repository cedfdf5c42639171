"""C has two integers of 64 bits, so NumPy has two equal dtypes, of which others know only one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparse

import interop
from interop.errors import RefusedError
from tests.properties.readers import FORMATS, read, same

TWINS = [np.dtype(np.longlong), np.dtype(np.ulonglong)]


def _arrays(dtype: np.dtype) -> Iterator[np.ndarray]:
    yield np.array([[0, 3, 0], [np.iinfo(dtype).max, 0, 1]], dtype)
    yield np.array(9, dtype)


def _made_by_hand(array: np.ndarray) -> Iterator[Any]:
    """Yield what the libraries themselves make of an array of such a dtype."""
    yield from (array, sparse.COO.from_numpy(array), sparse.DOK.from_numpy(array))
    if array.ndim:
        yield sparse.GCXS.from_numpy(array)
    if array.ndim == 2:
        for kind in ("coo", "csr", "csc", "bsr", "dia", "lil", "dok"):
            yield getattr(scipy.sparse, f"{kind}_array")(array)


@cache
def _values() -> list[tuple[np.ndarray, Any]]:
    """Return arrays of such dtypes, each with a value that holds it."""
    return [pair for dtype in TWINS for array in _arrays(dtype) for pair in _holders(array)]


def _holders(array: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    for value in _made_by_hand(array):
        yield array, value
    # Those of dask hold what is held without it, and take ten times as long.
    for name in [name for name in FORMATS if not name.startswith("dask")]:
        try:
            value = interop.convert(array, to=name)
        except RefusedError:
            continue  # it has no such dtype, or not as many axes
        if read(value).dtype.num == array.dtype.num:
            yield array, value


@pytest.mark.slow
@pytest.mark.parametrize("target", FORMATS)
def test_either_twin_arrives(target: str) -> None:
    """Whatever holds one of the two equal dtypes is converted as if it held the other."""
    for array, value in _values():
        try:
            result = interop.convert(value, to=target)
        except RefusedError:
            continue
        numbers = read(result)
        if interop.spec(result).dtype in ("int32", "uint32"):  # each was looked at, and fits
            numbers = numbers.astype(array.dtype)
        assert same(numbers, array, zeros=False), (array.dtype.char, type(value), value)


@pytest.mark.parametrize("value", [2**64 - 1, [2**64 - 1], [np.ulonglong(3)], [np.longlong(3)]])
def test_lists_become_the_dtype_that_numpy_prefers(value: Any) -> None:
    """No list or number brings the other twin into the world."""
    dtype = interop.convert(value, to="numpy").dtype
    assert dtype.num == np.dtype(dtype.str).num
