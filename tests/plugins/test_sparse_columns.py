"""pandas' sparse columns: what they store goes to sparse formats, and all of it to dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import interop
from interop.errors import RefusedError
from tests.cases import together

DENSE = np.array([[0, 1, 0], [2, 0, 0], [0, 3, 0], [0, 0, 0]])


def frame(dtype: str = "float64") -> pd.DataFrame:
    """Return a frame of sparse columns, the last of which stores nothing."""
    columns = {
        name: pd.arrays.SparseArray(column.astype(dtype), fill_value=np.dtype(dtype).type(0))
        for name, column in zip("abc", DENSE.T, strict=True)
    }
    return pd.DataFrame(columns, index=list("wxyz"))


VECTORS = {
    "Series": lambda: frame()["b"],
    "Index": lambda: pd.Index(frame()["b"].array),
    "array": lambda: frame()["b"].array,
}


@together("target", ["scipy.coo", "scipy.csc", "scipy.csr", "sparse.coo", "torch.sparse_coo"])
@together("dtype", ["float64", "float32", "int8", "bool"])
def test_a_frame_of_sparse_columns_stays_sparse(target: str, dtype: str) -> None:
    """The stored numbers arrive at their places, in their dtype, and nothing is made dense."""
    value = frame(dtype)
    route = interop.plan(value, to=target, forbid="densify")
    result = route(value)
    spec = interop.spec(result)
    assert (spec.format, spec.dtype, spec.shape, spec.nnz) == (target, dtype, DENSE.shape, 3)
    assert interop.convert(result, to="numpy").tolist() == DENSE.astype(dtype).tolist()
    assert value.equals(frame(dtype))


@pytest.mark.parametrize("make", VECTORS.values(), ids=VECTORS)
def test_one_sparse_column_stays_sparse(make: Any) -> None:
    """A Series, an Index and an array become coordinates of one axis, in memory of their own."""
    value = make()
    result = interop.convert(value, to="scipy.coo", forbid="densify")
    assert (result.coords[0].tolist(), result.data.tolist(), result.shape) == ([0, 2], [1, 3], (4,))
    assert result.has_canonical_format
    result.data[:] = 9
    result.coords[0][:] = 0
    assert interop.convert(value, to="numpy").tolist() == [1, 0, 3, 0]


@together("dtype", [None, "float32", "int64"])
def test_sparse_columns_become_dense_as_an_effect(dtype: str | None) -> None:
    """A dense target gets all numbers, whatever fills them up; `densify` may be forbidden."""
    for value, numbers in (
        (frame(), DENSE),
        (pd.Series(pd.arrays.SparseArray([1, 1, 2], fill_value=1)), np.array([1, 1, 2])),
        (pd.Series(pd.arrays.SparseArray([5.0, 1.0], fill_value=np.nan)), np.array([5, 1])),
        (frame().assign(d=[1.0, 2.0, 3.0, 4.0]), np.c_[DENSE, 1:5]),
    ):
        route = interop.plan(value, to="torch", dtype=dtype)
        assert "densify" in route.effects
        result = route(value)
        expected = dtype or interop.spec(value).dtype
        assert interop.spec(result).dtype == expected
        assert result.tolist() == numbers.astype(expected).tolist()
        with pytest.raises(RefusedError):
            interop.convert(value, to="torch", dtype=dtype, forbid="densify")


def test_columns_filled_with_nan_or_ones_are_stored_whole() -> None:
    """A sparse target of a column that NaN or ones fill up has every number."""
    values = pd.arrays.SparseArray([np.nan, 1.0, 0.0], fill_value=np.nan)
    result = interop.convert(pd.Series(values), to="scipy.coo")
    assert np.array_equal(result.toarray(), [np.nan, 1, 0], equal_nan=True)


def test_sparse_columns_of_several_dtypes_are_checked() -> None:
    """Integers among floats pass if each is exact, as in dense columns; nulls are refused."""
    mixed = frame().assign(n=pd.arrays.SparseArray([0, 7, 0, 0]))
    assert interop.convert(mixed, to="numpy").tolist() == np.c_[DENSE, [0, 7, 0, 0]].tolist()
    rounded = frame().assign(n=pd.arrays.SparseArray([0, 2**53 + 1, 0, 0]))
    with pytest.raises(RefusedError):
        interop.convert(rounded, to="numpy")
    nulls = frame().assign(n=pd.array([1, None, 2, 3], dtype="Int64"))
    with pytest.raises(RefusedError):
        interop.convert(nulls, to="numpy", dtype="float64")
    filled = interop.convert(nulls, to="numpy", dtype="float64", allow="drop_mask")
    assert np.array_equal(filled[:, 3], [1, np.nan, 2, 3], equal_nan=True)


def test_sparse_columns_stay_as_they_are_in_pandas() -> None:
    """A sparse frame is what was asked for, and its copy is as sparse and as labelled."""
    value = frame()
    assert interop.convert(value, to="pandas.dataframe") is value
    copied = interop.convert(value, to="pandas.dataframe", copy=True)
    assert copied is not value
    pd.testing.assert_frame_equal(copied, value)
    assert not np.shares_memory(copied["b"].array.sp_values, value["b"].array.sp_values)
    random = scipy.sparse.random_array((40, 30), density=0.1, rng=0, format="csr")
    around = interop.convert(pd.DataFrame.sparse.from_spmatrix(random), to="scipy.csr")
    assert (around != random).nnz == 0
