"""Arrays of objects whose elements are lists or arrays: they are what the list of these is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import together


def objects(*elements: Any) -> np.ndarray:
    """Return an array of objects, which NumPy does not look into."""
    array = np.empty(len(elements), object)
    for place, element in enumerate(elements):
        array[place] = element
    return array


#: What makes a row of numbers.
ROWS: dict[str, Callable[[list[int]], Any]] = {
    "lists": list,
    "arrays": np.array,
    "tensors": torch.tensor,
}
MAKERS = {"array": objects}


@together("rows, maker", [(rows, maker) for rows in ROWS for maker in MAKERS])
def test_rows_of_one_length_in_objects_become_one_array(rows: str, maker: str) -> None:
    """Elements of one shape are stacked, in the target's memory; the objects stay as they are."""
    elements = [ROWS[rows]([1, 2]), ROWS[rows]([3, 4])]
    value = MAKERS[maker](*elements)
    tensor, array = interop.convert(value, to="torch"), interop.convert(value, to="numpy")
    assert (tensor.tolist(), tensor.dtype) == ([[1, 2], [3, 4]], torch.int64)
    assert (array.tolist(), array.dtype) == ([[1, 2], [3, 4]], np.int64)
    assert all(value[place] is element for place, element in enumerate(elements))


@together("rows, maker", [(rows, maker) for rows in ROWS for maker in MAKERS])
def test_rows_of_several_lengths_in_objects_are_ragged_or_padded(rows: str, maker: str) -> None:
    """Ragged targets take the rows as they are; dense ones take them with allow="pad" alone."""
    value = MAKERS[maker](ROWS[rows]([1, 2]), ROWS[rows]([3]))
    lists = interop.convert(value, to="pyarrow.list")
    assert (lists.to_pylist(), lists.type.value_type) == ([[1, 2], [3]], pa.int64())
    jagged = interop.convert(value, to="torch.jagged")
    assert jagged.values().tolist() == [1, 2, 3]
    assert jagged.offsets().tolist() == [0, 2, 3]
    with pytest.raises(RefusedError, match=r"allow=\{'pad'\}"):
        interop.convert(value, to="torch")
    assert interop.convert(value, to="torch", allow="pad").tolist() == [[1, 2], [3, 0]]


@pytest.mark.extra("tensorflow")
def test_rows_in_objects_become_ragged_tensors_of_tensorflow() -> None:
    """TensorFlow's ragged tensors take rows of objects as they take those of lists."""
    for make in MAKERS.values():
        ragged = interop.convert(make([1, 2], [3]), to="tensorflow.ragged")
        assert ragged.to_list() == [[1, 2], [3]]


@pytest.mark.extra("awkward")
def test_rows_in_objects_become_arrays_of_awkward() -> None:
    """Awkward's arrays take rows of objects as they take those of lists."""
    for make in MAKERS.values():
        assert interop.convert(make([1, 2], [3]), to="awkward").to_list() == [[1, 2], [3]]


@together("maker", MAKERS)
def test_rows_in_objects_are_converted_in_trees_and_after_plain_arrays(maker: str) -> None:
    """What a first call and a tree make of rows does not depend on what was converted before."""
    value = MAKERS[maker](np.ones(2), np.zeros(2))
    for to in ("numpy", "torch", "numpy"):
        interop.convert(np.ones(2), to=to)
        assert interop.convert(value, to=to).tolist() == [[1, 1], [0, 0]]
        tree = interop.convert_tree([np.ones(2), value], to=to)
        assert tree[1].tolist() == [[1, 1], [0, 0]]


def test_gradients_of_tensors_in_objects_are_kept() -> None:
    """A stack of tensors that are elements of an array belongs to their graphs."""
    row = torch.ones(2, requires_grad=True)
    interop.convert(objects(row, torch.ones(2)), to="torch").sum().backward()
    assert row.grad is not None
    assert row.grad.tolist() == [1, 1]


@together(
    "name, elements",
    [
        ("text", [["a"], ["b"]]),
        ("a missing row", [[1], None]),
        ("several shapes", [np.ones((2, 2)), np.ones((3, 3))]),
        ("dicts", [{"a": 1}, {"a": 2}]),
    ],
)
def test_objects_that_are_no_rows_stay_objects(name: str, elements: list[Any]) -> None:
    """They pass through trees unchanged, and a refusal alone says what they are."""
    value = objects(*elements)
    assert interop.spec(value).dtype == "object", name
    assert interop.convert_tree([value, np.ones(1)], to="torch")[0] is value
    with pytest.raises(RefusedError, match="its elements are objects and no numbers"):
        interop.convert(value, to="torch")
