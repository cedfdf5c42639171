"""Indices and elements that SciPy's and sparse's constructors would have changed, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparse

import interop
from interop.errors import RefusedError
from tests.properties.readers import FORMATS, read

ARRAY = np.array([[0.0, 3, 0], [5, 0, -7], [0, 0, 1]])
KINDS = ("csr", "csc", "bsr", "coo")


def _with_indices(kind: str, dtype: str, matrix: str = "array") -> Any:
    value = getattr(scipy.sparse, f"{kind}_{matrix}")(ARRAY)
    if kind == "coo":
        value.coords = tuple(indices.astype(dtype) for indices in value.coords)
    else:
        value.indices, value.indptr = value.indices.astype(dtype), value.indptr.astype(dtype)
    return value


def _big_endian(kind: str) -> Any:
    value = getattr(scipy.sparse, f"{kind}_array")(ARRAY)
    value.data = value.data.astype(">f8")
    return value


SOURCES: dict[str, Callable[[], Any]] = {
    **{
        f"{kind} of {dtype}": lambda kind=kind, dtype=dtype: _with_indices(kind, dtype)
        for kind in KINDS
        for dtype in ("u1", "i2", "u8", "q", ">i4")
    },
    **{f"matrix {kind}": lambda kind=kind: _with_indices(kind, "u8", "matrix") for kind in KINDS},
    # SciPy itself cannot make a dense array of such a bsr array.
    **{f"{kind} of >f8": lambda kind=kind: _big_endian(kind) for kind in ("csr", "csc", "coo")},
    "sparse.coo of >f8": lambda: sparse.COO.from_numpy(ARRAY.astype(">f8")),
    "sparse.coo of u1": lambda: sparse.COO(
        np.array([[0, 1, 1, 2], [1, 0, 2, 2]], "u1"), np.array([3.0, 5, -7, 1]), shape=(3, 3)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_odd_components_arrive_as_they_do_in_a_plan(
    convert: Callable[..., Any], source: str
) -> None:
    """Whatever a plan says becomes of them does, cold and warm, and nothing fails on the way."""
    interop.convert(scipy.sparse.csr_array(ARRAY), to="numpy")  # learns fast paths
    arrived = set()
    for target in FORMATS:
        for copy in (None, True, False):
            value = SOURCES[source]()
            try:
                route = interop.plan(value, to=target, copy=copy)
            except RefusedError:
                with pytest.raises(RefusedError):
                    interop.convert(value, to=target, copy=copy)
                continue
            result = convert(value, to=target, copy=copy)
            assert interop.spec(result).format == route.result.format
            assert np.array_equal(read(result), ARRAY), (target, copy)
            arrived.add(target)
    assert arrived >= {"numpy", "torch", "scipy.csr", "sparse.coo", "torch.sparse_csr", "dask"}
