"""Arrays and Series of objects that are lists or arrays: they are what the list of these is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked, together
from tests.plugins.values import objects

#: What makes a row of numbers.
ROWS: dict[str, Callable[[list[int]], Any]] = {
    "lists": list,
    "arrays": np.array,
    "tensors": torch.tensor,
}
#: What holds rows as objects.
MAKERS: dict[str, Callable[..., Any]] = {
    "array": objects,
    "series": lambda *elements: pd.Series(objects(*elements)),
    "labelled": lambda *elements: pd.Series(objects(*elements), index=[5, 6], name="x"),
    "extension": lambda *elements: pd.arrays.NumpyExtensionArray(objects(*elements)),
}


@together("rows, maker", [(rows, maker) for rows in ROWS for maker in MAKERS])
def test_rows_of_one_length_in_objects_become_one_array(rows: str, maker: str) -> None:
    """Elements of one shape are stacked, in the target's memory; the objects stay as they are."""
    elements = [ROWS[rows]([1, 2]), ROWS[rows]([3, 4])]
    value = MAKERS[maker](*elements)
    tensor, array = interop.convert(value, to="torch"), interop.convert(value, to="numpy")
    assert (tensor.tolist(), tensor.dtype) == ([[1, 2], [3, 4]], torch.int64)
    assert (array.tolist(), array.dtype) == ([[1, 2], [3, 4]], np.int64)
    assert all(map(operator.is_, value, elements))


@together("rows, maker", [(rows, maker) for rows in ROWS for maker in MAKERS])
def test_rows_of_several_lengths_in_objects_are_ragged_or_padded(rows: str, maker: str) -> None:
    """Ragged targets take the rows as they are; dense ones take them with allow="pad" alone."""
    value = MAKERS[maker](ROWS[rows]([1, 2]), ROWS[rows]([3]))
    lists = interop.convert(value, to="pyarrow.list")
    assert (lists.to_pylist(), lists.type.value_type) == ([[1, 2], [3]], pa.int64())
    jagged = interop.convert(value, to="torch.jagged")
    assert jagged.values().tolist() == [1, 2, 3]
    assert jagged.offsets().tolist() == [0, 2, 3]
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch")
    assert interop.convert(value, to="torch", allow="pad").tolist() == [[1, 2], [3, 0]]


@together("maker", MAKERS)
@pytest.mark.parametrize("target", marked(["tensorflow.ragged", "awkward"]))
def test_lists_in_objects_are_ragged_in_other_libraries(target: str, maker: str) -> None:
    """TensorFlow's ragged tensors and Awkward's arrays take rows of objects as those of lists."""
    assert interop.convert(MAKERS[maker]([1, 2], [3]), to=target).to_list() == [[1, 2], [3]]


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
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch")
    series = pd.Series(value)
    if name != "a missing row":
        assert interop.spec(series).dtype == "object", name
        with pytest.raises(RefusedError):
            interop.convert(series, to="torch")


@together("missing", [None, float("nan"), pd.NA])
def test_missing_rows_of_a_series_are_refused_or_stay_null(missing: Any) -> None:
    """Arrays refuse them and say what leaves them out; lists of Arrow and Polars keep them."""
    for first in ([1, 2], np.array([1, 2])):
        series = pd.Series(objects(first, missing))
        for to in ("torch", "numpy", "torch.jagged"):
            for allow in ((), "pad", "drop_mask"):
                with pytest.raises(RefusedError):
                    interop.convert(series, to=to, allow=allow)
        assert interop.convert(series, to="pyarrow.list").to_pylist() == [[1, 2], None]
        assert interop.convert(series, to="polars").to_list() == [[1, 2], None]
        assert interop.convert(series.dropna(), to="torch").tolist() == [[1, 2]]
    with pytest.raises(RefusedError):
        interop.convert(pd.Series(objects(torch.ones(2), missing)), to="torch")


@together("type_", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
def test_ragged_lists_in_arrows_memory_are_arrows(type_: pa.DataType) -> None:
    """A Series of lists of Arrow's is what those are, in chunks and padded, too; text stays text."""
    ragged = pd.Series([[1, 2], [3]], dtype=pd.ArrowDtype(type_))
    jagged = interop.convert(ragged, to="torch.jagged")
    assert (jagged.values().tolist(), jagged.offsets().tolist()) == ([1, 2, 3], [0, 2, 3])
    assert interop.convert(ragged, to="torch", allow="pad").tolist() == [[1, 2], [3, 0]]
    lists = interop.convert(pd.concat([ragged, ragged]), to="pyarrow.list")
    assert lists.to_pylist() == [[1, 2], [3], [1, 2], [3]]
    text = pd.Series([["a"]], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    assert interop.spec(text).format == "pandas.series"


def test_rows_stay_in_pandas() -> None:
    """A Series of rows is given back for pandas; a copy has rows of its own, and the labels."""
    row = np.ones(2)
    series = pd.Series([row, np.zeros(2)], index=[5, 6], name="x")
    assert interop.convert(series, to="pandas") is interop.convert(series, to=pd.Series) is series
    copied = interop.convert(series, to="pandas", copy=True)
    assert (copied.name, copied.index.tolist(), copied.dtype) == ("x", [5, 6], object)
    row[0] = 7
    assert copied[5].tolist() == [1, 1]
    lists = pd.Series([[1, 2], [3]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    copy = interop.convert(lists, to="pandas", copy=True)
    own, other = (x.array.__arrow_array__().chunk(0).values.buffers()[1] for x in (lists, copy))
    assert (copy.tolist(), copy.dtype) == (lists.tolist(), lists.dtype)
    assert own.address != other.address


@together("maker", MAKERS)
def test_rows_that_differ_from_those_before_take_their_own_way(maker: str) -> None:
    """What was learnt from plain rows serves no rows of another dtype, shape, length or kind."""
    make = MAKERS[maker]
    for rows in (
        ([1, 2], [3, 4]),
        ([1.5, 2], [3, 4]),
        ([1.5, 2j], [3, 4]),
        ([[1.5], [2]], [[3], [4]]),
        ([True, False], [False, True]),
    ):
        for dtype in (None, "complex64"):
            expected = np.array(rows)
            made = make(*expected)
            for to in ("numpy", "torch"):
                for _ in range(3):
                    result = interop.convert(made, to=to, dtype=dtype)
                    assert result.tolist() == expected.tolist()
                    assert str(result.dtype).endswith(dtype or str(expected.dtype))
    ragged = make(np.ones(2), np.ones(1))
    with pytest.raises(RefusedError):
        interop.convert(ragged, to="numpy")


def test_a_list_of_arrays_of_rows_is_read_anew() -> None:
    """Its elements have the dtype of objects, whatever the dtype of their rows is."""
    integers = [objects(np.array([1, 2]), np.array([3, 4])) for _ in "ab"]
    reals = [objects(np.array([1.5, 2]), np.array([3, 4.0])) for _ in "ab"]
    for to in ("numpy", "torch"):
        for value, first in ((integers, 1), (integers, 1), (reals, 1.5)):
            result = interop.convert(value, to=to, copy=True)
            assert result.tolist() == [[[first, 2], [3, 4]]] * 2


@together("rows", [[[1, 2], [3]], [torch.ones(2), torch.ones(3)], [np.arange(2), np.arange(0)]])
def test_ragged_rows_in_an_array_become_what_their_list_becomes(rows):
    """The word of a framework means its ragged format for an array of rows of several lengths."""
    result = interop.convert(objects(*rows), to="polars")
    assert result.equals(interop.convert(rows, to="polars"))
    assert [len(row) for row in result] == [*map(len, rows)]
