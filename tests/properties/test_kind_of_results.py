"""The format of a result follows from the request and from the kind of the value alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked

from .effort import TIMES

_SIZES = (0, 1, 6, 300, 300_000) if TIMES else (0, 1, 6, 10_000)
_KEYWORDS: tuple[dict[str, Any], ...] = ({}, {"copy": True}, {"copy": False}, {"dtype": "f4"})
_TARGETS = ("polars", "scipy", "sparse", "pyarrow", "pandas", "numpy", "torch")


def _plane(size: int) -> Iterator[np.ndarray]:
    rows = np.arange(2.0 * size).reshape(size, 2) + 1
    yield rows
    yield np.asfortranarray(rows)


def _lists(size: int) -> Iterator[pa.ListArray]:
    for unequal in (0, 1):
        offsets = np.arange(size + 1, dtype="int32") * 2
        offsets[1:2] -= unequal if size > 1 else 0
        yield pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.arange(2.0 * size)))


def _sparse(size: int) -> Iterator[Any]:
    """Yield arrays in COO, whose coordinates occur once and in order, or neither."""
    places, shape = np.arange(size), (7, max(size, 7))
    yield sp.coo_array((places + 1.0, (places % 7, places)), shape=shape)
    twice = np.concatenate([places[::-1], places])
    yield sp.coo_array((twice + 1.0, (twice % 7, twice)), shape=shape)


def _compressed(layout: str, size: int) -> Iterator[Any]:
    """Yield compressed arrays in canonical form, and with their rows turned round."""
    for array in _sparse(size):
        made = array.asformat(layout)
        yield made
        back = made.copy()
        pairs = zip(back.indptr[:-1], back.indptr[1:], strict=True)
        for first, last in pairs if size < 1000 else ():
            back.indices[first:last] = back.indices[first:last][::-1].copy()
        yield type(back)((back.data, back.indices, back.indptr), shape=back.shape)


def _awkward(size: int) -> Iterator[Any]:
    """Yield rows that may have several lengths by their type, whatever lengths they have."""
    import awkward as ak

    for lists in _lists(size):
        offsets, numbers = lists.offsets.to_numpy(), lists.values.to_numpy()
        yield ak.Array(
            ak.contents.ListOffsetArray(ak.index.Index(offsets), ak.contents.NumpyArray(numbers))
        )


#: For each kind of value, those of a size: in orders of memory, canonical or not, of equal rows or not.
KINDS: dict[str, Callable[[int], Iterator[Any]]] = {
    "numpy": _plane,
    "torch": lambda n: map(torch.from_numpy, _plane(n)),
    "pyarrow.tensor": lambda n: map(pa.Tensor.from_numpy, _plane(n)),
    "pyarrow.fixed_size_list": lambda n: (
        pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 2) for rows in _plane(n)
    ),
    "pyarrow.list": _lists,
    "polars.list": lambda n: (pl.Series(lists) for lists in _lists(n)),
    "awkward": _awkward,
    "scipy.coo": _sparse,
    "scipy.csr": lambda n: _compressed("csr", n),
    "scipy.csc": lambda n: _compressed("csc", n),
    "sparse.coo": lambda n: (sparse.COO(array) for array in _sparse(n)),
    "torch.sparse_coo": lambda n: (
        torch.sparse_coo_tensor(
            np.stack(array.coords), array.data, array.shape, check_invariants=False
        )
        for array in _sparse(n)
    ),
}


def _kind(result: Any) -> tuple[str, bool]:
    """Return the format of a result, and whether it is one of Awkward's whose rows may vary."""
    format_ = interop.spec(result).format
    return format_, format_ == "awkward" and "var" in str(result.type)


#: Kinds of which others of the same layout are tried in each run.
_ALIKE = {"scipy.coo", "scipy.csc", "torch.sparse_coo"}


@pytest.mark.parametrize(
    "kind",
    [
        *marked(kind for kind in KINDS if kind not in _ALIKE),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted(_ALIKE)),
    ],
)
def test_the_format_depends_on_the_request_and_the_kind_alone(kind: str) -> None:
    """No size, order of elements or of memory, and no length of rows, changes what comes out."""
    for target in (*_TARGETS, kind):
        for keywords in _KEYWORDS:
            kinds: dict[str, tuple[str, bool]] = {}
            for size in _SIZES:
                for number, value in enumerate(KINDS[kind](size)):
                    try:
                        result = interop.convert(value, to=target, **keywords)
                    except RefusedError:
                        continue  # not every target holds rows of several lengths
                    kinds[f"{size} elements, the {number}"] = _kind(result)
            assert len(set(kinds.values())) <= 1, (target, keywords, kinds)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_copy_keeps_duplicates_and_order(layout: str) -> None:
    """A copy of a sparse array has the elements that were stored, as they were, at every size."""
    for size in _SIZES:
        for array in _sparse(size) if layout == "coo" else _compressed(layout, size):
            for keywords in ({"to": f"scipy.{layout}"}, {"to": "scipy"}, {"like": array}):
                copy = interop.convert(array, copy=True, **keywords)
                assert copy.format == layout
                assert np.array_equal(copy.data, array.data)
                assert not np.shares_memory(copy.data, array.data) or not size
