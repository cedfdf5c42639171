"""Lists and tuples of rows of several lengths: to ragged formats as they are, and padded if asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked, together

#: The same rows, as people hold them.
BATCHES: dict[str, Any] = {
    "lists": [[1.0, 2.0], [], [3.0]],
    "tuples": ((1.0, 2.0), (), (3.0,)),
    "numpy": [np.array([1.0, 2.0]), np.array([]), np.array([3.0])],
    "torch": [torch.tensor(row, dtype=torch.float64) for row in ([1.0, 2.0], [], [3.0])],
    "mixed": [torch.tensor([1.0, 2.0]), [], jnp.array([3.0])],
}


_RAGGED = marked(["torch.jagged", "pyarrow.list", "polars.list", "awkward", "tensorflow.ragged"])


def _rows(value: Any) -> list[list[float]]:
    if isinstance(value, torch.Tensor):
        return [row.tolist() for row in value.unbind()]
    return value.to_pylist() if isinstance(value, pa.Array) else value.to_list()


@pytest.mark.parametrize("target", _RAGGED)
@together("batch", BATCHES.values())
def test_rows_of_several_lengths_become_ragged_arrays(batch: Any, target: str) -> None:
    """Every row comes out with its numbers and its length, in memory of its own."""
    spec = interop.spec(batch)
    assert (spec.format, spec.shape, spec.nnz) == ("python.ragged", (3, 2), 3)
    assert "nested" in spec.traits
    assert "copy" in interop.plan(batch, to=target).effects
    result = interop.convert(batch, to=target)
    assert interop.spec(result).format == target
    assert _rows(result) == [[1.0, 2.0], [], [3.0]]
    with pytest.raises(RefusedError):
        interop.convert(batch, to=target, copy=False)


_KIND: dict[str, Callable[[Any], Any]] = {
    "torch.jagged": lambda result: result.offsets().dtype,
    "pyarrow.list": lambda result: result.type,
    "tensorflow.ragged": lambda result: result.row_splits.dtype,
}


@pytest.mark.parametrize("target", marked(_KIND))
@together("make", [list, np.array, torch.tensor])
def test_a_ragged_target_gets_rows_of_one_length_all_the_same(make: Any, target: str) -> None:
    """A batch whose rows happen to be of one length comes out as all others do."""
    kinds = set()
    for rows in ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0]]):
        result = interop.convert([make(row) for row in rows], to=target)
        kinds.add((interop.spec(result).format, interop.spec(result).dtype, _KIND[target](result)))
        assert _rows(result) == rows
    assert len(kinds) == 1


def test_dense_arrays_become_ragged_over_their_memory() -> None:
    """A matrix goes to a ragged format if that is asked for, and only offsets are written."""
    array, tensor = np.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
    lists = interop.convert(array, to="pyarrow.list", copy=False)
    assert lists.values.buffers()[1].address == array.ctypes.data
    jagged = interop.convert(tensor, to="torch.jagged", copy=False)
    assert jagged.values().data_ptr() == tensor.data_ptr()
    assert _rows(lists) == _rows(jagged) == array.tolist()
    turned = interop.convert(tensor.T, to="torch.jagged")
    assert _rows(turned) == array.T.tolist()
    leaf = torch.ones(2, 2, requires_grad=True)
    interop.convert(leaf, to="torch.jagged").values().sum().backward()
    assert leaf.grad is not None


@together("target", ["numpy", "torch", "jax"])
@together("batch", BATCHES.values())
def test_rows_are_padded_only_if_that_is_permitted(batch: Any, target: str) -> None:
    """Zeros follow the shorter rows; without consent the refusal names the effect."""
    with pytest.raises(RefusedError):
        interop.convert(batch, to=target, dtype="float32")
    result = interop.convert(batch, to=target, dtype="float32", allow="pad")
    assert np.asarray(result).tolist() == [[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]
    assert np.asarray(result).dtype == np.float32


def test_numbers_of_pythons_take_the_default_dtype_of_the_target() -> None:
    """Rows of Python's numbers have no dtype of their own, as lists of one length have none."""
    rows = [[1.0, 2.0], [3.0]]
    assert interop.convert(rows, to="torch", allow="pad").dtype is torch.float32
    assert interop.convert(rows, to="torch.jagged").dtype is torch.float32
    assert interop.convert(rows, to="numpy", allow="pad").dtype == np.float64
    assert interop.convert([[1], [2, 3]], to="pyarrow.list").type == pa.list_(pa.int64())
    assert interop.convert([[1], [2.5, 3]], to="torch", allow="pad").tolist() == [[1, 0], [2.5, 3]]


@pytest.mark.parametrize("target", [*_RAGGED, "numpy", "torch"])
@pytest.mark.parametrize("number", [300, -1])
def test_a_number_that_does_not_fit_is_refused(number: int, target: str) -> None:
    """Python's integers do not wrap around, wherever they go."""
    with pytest.raises(RefusedError, match=f"{number} does not fit in uint8"):
        interop.convert([[number], [1, 2]], to=target, dtype="uint8", allow="pad")


def test_rows_of_tensors_stay_part_of_their_graphs() -> None:
    """The gradient of a padded or jagged batch reaches each row; NumPy's rows are detached."""
    for target, words in (("torch", {"allow": "pad"}), ("torch.jagged", {})):
        rows = [torch.ones(2, requires_grad=True), torch.ones(3)]
        result: Any = interop.convert(rows, to=target, **words)
        (result.values() if target == "torch.jagged" else result).sum().backward()
        assert rows[0].grad.tolist() == [1.0, 1.0]
    rows = [torch.ones(2, requires_grad=True), torch.ones(3)]
    assert "detach" in interop.plan(rows, to="pyarrow.list").effects
    assert _rows(interop.convert(rows, to="pyarrow.list")) == [[1.0, 1.0], [1.0, 1.0, 1.0]]


def test_rows_of_arrays_are_padded_along_the_first_axis() -> None:
    """Sequences of embeddings differ in length, and not in width."""
    rows = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))]
    for target in ("numpy", "torch"):
        result = np.asarray(interop.convert(rows, to=target, allow="pad"))
        assert result.shape == (2, 3, 2)
        assert result[0].tolist() == rows[0].tolist()
        assert result[1].tolist() == [[1, 1], [0, 0], [0, 0]]


def test_ragged_arrays_become_lists_of_arrays_over_their_memory() -> None:
    """A target for whoever wants the rows one by one."""
    source = pa.array([[1.0, 2.0], [3.0]])
    rows = interop.convert(source, to="python.ragged")
    assert [row.tolist() for row in rows] == [[1.0, 2.0], [3.0]]
    assert rows[0].ctypes.data == source.values.buffers()[1].address
