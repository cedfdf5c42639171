"""Coordinates that are stored twice: their sum, by interop and by the framework of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.experimental.sparse as jax_sparse
import numpy as np
import pytest
import scipy.sparse
import sparse
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked
from tests.properties.readers import FORMATS, read

EXPECTED = np.array([[0.0, 3, 0], [5, 0, -7], [0, 0, 1]], np.float32)
ROWS, COLUMNS = [2, 0, 1, 0, 1], [2, 1, 0, 1, 2]
NUMBERS = np.array([1.0, 2, 5, 1, -7], np.float32)


def _csr(numbers: np.ndarray) -> Any:
    pointers, columns = [0, 2, 4, 5], [1, 1, 2, 0, 2]
    return scipy.sparse.csr_array((numbers[[1, 3, 4, 2, 0]], columns, pointers), shape=(3, 3))


def _of_tensorflow(numbers: np.ndarray) -> Any:
    import tensorflow as tf

    return tf.SparseTensor(np.array([ROWS, COLUMNS], np.int64).T, numbers, (3, 3))


SOURCES: dict[str, Callable[[np.ndarray], Any]] = {
    "scipy.coo": lambda numbers: scipy.sparse.coo_array((numbers, (ROWS, COLUMNS)), shape=(3, 3)),
    "scipy.csr": _csr,
    "scipy.csc": lambda numbers: _csr(numbers).T,
    "torch.sparse_coo": lambda numbers: torch.sparse_coo_tensor(
        torch.tensor([ROWS, COLUMNS]), torch.tensor(numbers), (3, 3), check_invariants=True
    ),
    "tensorflow.sparse": _of_tensorflow,
    "jax.bcoo": lambda numbers: jax_sparse.BCOO(
        (numbers, np.array([ROWS, COLUMNS], np.int32).T), shape=(3, 3)
    ),
    "sparse.coo": lambda numbers: sparse.COO(np.array([ROWS, COLUMNS]), numbers, shape=(3, 3)),
}


#: Formats that every source reaches.
EXPECTED_FORMATS = {"numpy", "torch.sparse_csr", "jax.bcsr", "pandas.dataframe"}
EXPECTED_FORMATS |= {*SOURCES} & {*FORMATS}


def _dense(value: Any) -> np.ndarray:
    """Return the dense array that the framework of a sparse one makes of it."""
    if interop.spec(value).format == "tensorflow.sparse":
        import tensorflow as tf

        return tf.sparse.to_dense(value).numpy()
    if isinstance(value, torch.Tensor) and not value.is_nested:
        return value.to_dense().numpy()
    for method in ("toarray", "todense"):
        if hasattr(value, method):
            return np.asarray(getattr(value, method)())
    array = np.asarray(read(value))
    return np.stack([*array]) if array.dtype == object else array


CAST = {"dtype": "int32"}


@pytest.mark.extra
@pytest.mark.parametrize("source", marked(SOURCES))
@pytest.mark.parametrize(
    "request_",
    [
        {},
        pytest.param(CAST, marks=pytest.mark.slow, id="cast"),
        pytest.param({**CAST, "copy": True}, marks=pytest.mark.slow, id="copied cast"),
    ],
)
def test_duplicates_are_summed_before_a_cast(request_: dict[str, Any], source: str) -> None:
    """A result that holds a coordinate twice is one that its framework sums: 3.4 + 1.7 becomes 5."""
    value = SOURCES[source](NUMBERS * np.float32(1.7 if request_ else 1))
    expected = np.array([[0, 5, 0], [8, 0, -11], [0, 0, 1]], "int32") if request_ else EXPECTED
    arrived = set()
    for target in FORMATS:
        try:
            result = interop.convert(value, to=target, **request_)
        except RefusedError:
            continue  # numbers that would be rounded, in formats of codes or without the dtype
        arrived.add(target)
        if target == source and not request_:
            assert result is value
            continue
        if request_ and target != "python":  # whose integers have no width
            assert interop.spec(result).dtype == "int32", target
        assert np.array_equal(_dense(result), expected.T if source == "scipy.csc" else expected)
    assert arrived >= EXPECTED_FORMATS


@pytest.mark.parametrize("row", [(), (2,)])
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_sums_that_torch_cannot_add_overflow_as_others_do(dtype: str, row: tuple[int, ...]) -> None:
    """Unsigned integers that torch only stores are summed in their own width, without rounding."""
    half = 2 ** (8 * np.dtype(dtype).itemsize - 1)
    numbers = np.array([half, half + 5, half + 1], dtype).repeat(len(row) + 1).reshape(3, *row)
    places = torch.tensor([[0, 0, 1]])
    value = torch.sparse_coo_tensor(places, torch.tensor(numbers), check_invariants=True)
    result = interop.convert(value, to="numpy")
    assert result.dtype == dtype
    assert result.reshape(2, -1)[:, -1].tolist() == [5, half + 1]
