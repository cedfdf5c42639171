"""Rows of several lengths whose elements are vectors, between all libraries that have them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import together

VALUES = np.arange(18, dtype="float32").reshape(6, 3)
OFFSETS = np.array([0, 2, 6, 6])
ROWS = [VALUES[0:2], VALUES[2:6], VALUES[6:6]]
LISTS = [row.tolist() for row in ROWS]

pytestmark = pytest.mark.extra("tensorflow")
ak = pytest.importorskip("awkward")


def arrow(kind: Any = pa.ListArray, dtype: str = "int32") -> Any:
    """Return Arrow's lists of vectors over the memory of the values."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VALUES.reshape(-1)), 3)
    return kind.from_arrays(pa.array(OFFSETS.astype(dtype)), vectors)


def awkward(content: Any) -> Any:
    """Return Awkward's rows of a content."""
    return ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(OFFSETS), content))


def tensorflow() -> Any:
    """Return TensorFlow's rows of vectors."""
    tf = pytest.importorskip("tensorflow")
    return tf.RaggedTensor.from_row_splits(tf.constant(VALUES), OFFSETS)


def nested(rows: list[torch.Tensor]) -> Any:
    """Return a nested tensor of torch's older layout, of which torch says that it is a prototype."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.nested.as_nested_tensor(rows)


def objects() -> Any:
    """Return NumPy's array of rows."""
    array = np.empty(len(ROWS), dtype=object)
    array[:] = ROWS
    return array


_DEEP = pa.list_(pa.list_(pa.float32()))


def _twice_ragged(rows: Any) -> Any:
    tf = pytest.importorskip("tensorflow")
    return tf.ragged.constant(rows, ragged_rank=2, dtype="float32")


#: What makes the rows as a library has them.
SOURCES: dict[str, Callable[[], Any]] = {
    "lists of arrays": lambda: [row.copy() for row in ROWS],
    "lists of tensors": lambda: [torch.tensor(row) for row in ROWS],
    "an array of arrays": objects,
    "awkward": lambda: awkward(ak.contents.NumpyArray(VALUES)),
    "awkward, regular": lambda: awkward(
        ak.contents.RegularArray(ak.contents.NumpyArray(VALUES.reshape(-1)), 3)
    ),
    "torch.jagged": lambda: torch.nested.nested_tensor_from_jagged(
        torch.tensor(VALUES), torch.tensor(OFFSETS)
    ),
    "torch.nested": lambda: nested([torch.tensor(row) for row in ROWS]),
    "tensorflow": tensorflow,
    "pyarrow": arrow,
    "pyarrow, large": lambda: arrow(pa.LargeListArray, "int64"),
    "pyarrow, in a chunk": lambda: pa.chunked_array([arrow()]),
    "pyarrow, in chunks": lambda: pa.chunked_array([arrow()[:1], arrow()[1:]]),
    "polars": lambda: pl.Series("rows", LISTS, dtype=pl.List(pl.Array(pl.Float32, 3))),
    # No type says of these that the rows within the rows are of one length.
    "awkward, lists in lists": lambda: ak.values_astype(ak.Array(LISTS), "float32"),
    "tensorflow, lists in lists": lambda: _twice_ragged(LISTS),
    "pyarrow, lists in lists": lambda: pa.array([*LISTS, LISTS[0]], _DEEP)[:3],
    "pyarrow, lists in lists, in chunks": lambda: pa.chunked_array([LISTS[:1], LISTS[1:]], _DEEP),
    "polars, lists in lists": lambda: pl.Series(LISTS, dtype=pl.List(pl.List(pl.Float32))),
}
#: What reads the rows of a result.
TARGETS: dict[str, Callable[[Any], Any]] = {
    "awkward": lambda x: x.to_list(),
    "torch.jagged": lambda x: [row.tolist() for row in x.unbind()],
    "tensorflow.ragged": lambda x: x.to_list(),
    "pyarrow.list": lambda x: x.to_pylist(),
    "polars.list": lambda x: x.to_list(),
    "python.ragged": lambda x: [np.asarray(row).tolist() for row in x],
}


#: Chunks are joined by no route to formats whose rows are NumPy's.
NOT_JOINED = {
    (chunks, target)
    for chunks in ("pyarrow, in chunks", "pyarrow, lists in lists, in chunks")
    for target in ("awkward", "python.ragged")
}


@pytest.mark.parametrize("source", SOURCES)
@together("target", TARGETS)
def test_rows_of_vectors_arrive_whole(source: str, target: str) -> None:
    """Every library's rows of vectors become every other's, cast and copied where that is asked."""
    if (source, target) in NOT_JOINED:
        return
    value, read = SOURCES[source](), TARGETS[target]
    spec = interop.spec(value)
    assert (spec.dtype, spec.shape) == ("float32", (3, 4, 3))
    for _ in range(2):
        result = interop.convert(value, to=target)
        assert read(result) == LISTS
        assert interop.spec(result).shape == (3, 4, 3)
    assert read(interop.convert(value, to=target, copy=True)) == LISTS
    if (source[:6], target) != ("polars", "polars.list"):  # Polars itself casts no such lists
        cast = interop.convert(value, to=target, dtype="float64")
        assert interop.spec(cast).dtype == "float64"
        assert read(cast) == LISTS


@together(
    "source, target",
    [
        ("awkward", "torch.jagged"),
        ("awkward, regular", "torch.jagged"),
        ("torch.jagged", "awkward"),
        ("torch.jagged", "pyarrow.list"),
        ("pyarrow", "torch.jagged"),
        ("pyarrow, large", "awkward"),
        ("tensorflow", "awkward"),
        ("polars", "awkward"),
        ("awkward", "polars.list"),
        ("torch.jagged", "python.ragged"),
    ],
)
def test_the_vectors_are_shared(source: str, target: str) -> None:
    """Where both sides have values and offsets, the values stay where they are."""
    value = SOURCES[source]()
    assert interop.plan(value, to=target).aliases
    with interop.trace() as receipts:
        interop.convert(value, to=target)
    assert receipts[0].aliased is not False
    copied = interop.plan(value, to=target, copy=True)
    assert not copied.aliases


def test_slices_of_rows_of_vectors() -> None:
    """A slice begins at its own first row."""
    for value in (SOURCES["awkward"]()[1:], arrow()[1:], SOURCES["polars"]()[1:]):
        result = interop.convert(value, to="torch.jagged")
        assert [row.tolist() for row in result.unbind()] == LISTS[1:]


def test_bfloat16_vectors() -> None:
    """Rows of vectors of bfloat16 pass where both sides have it."""
    rows = [torch.tensor(row).bfloat16() for row in ROWS]
    jagged = interop.convert(rows, to="torch.jagged")
    ragged = interop.convert(jagged, to="tensorflow.ragged")
    assert ragged.dtype.name == "bfloat16"
    back = interop.convert(ragged, to="torch.jagged")
    assert [row.float().tolist() for row in back.unbind()] == LISTS


def test_gradients_reach_the_rows_of_a_nested_tensor() -> None:
    """A nested tensor of torch's older layout becomes a jagged one in the same graph."""
    rows = [torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)]
    jagged = interop.convert(nested(rows), to="torch.jagged")
    jagged.values().sum().backward()
    assert rows[0].grad is not None
    assert rows[0].grad.tolist() == [[1.0] * 3] * 2


def test_rows_that_differ_along_another_axis_are_refused() -> None:
    """Rows are told apart along one axis only."""
    twice = nested([torch.ones(2, 3), torch.ones(1, 2)])
    with pytest.raises(RefusedError, match="differ along another axis"):
        interop.convert(twice, to="torch.jagged")
    with pytest.raises(RefusedError):
        interop.convert(ak.Array([[[1.0], [2.0, 3.0]], [[4.0]]]), to="torch.jagged")


@together(
    "make",
    [
        ak.Array,
        lambda rows: pa.array(rows, _DEEP),
        lambda rows: pa.chunked_array([rows[:1], rows[1:]], _DEEP),
        lambda rows: pl.Series(rows, dtype=pl.List(pl.List(pl.Float32))),
    ],
)
@together("odd", [[[1.0]], [None], [[None, 1.0]]])
def test_lists_in_lists_are_vectors_only_if_all_have_one_length(make: Any, odd: Any) -> None:
    """One row within a row that is shorter, missing, or lacks an element, and they are refused."""
    assert interop.convert(make([[], [[1.0, 2.0]]]), to="torch.jagged").shape[2] == 2
    with pytest.raises(RefusedError):
        interop.convert(make([[[1.0, 2.0]], [], [[1.0, 2.0], *odd]]), to="torch.jagged")


def test_missing_vectors_are_refused() -> None:
    """A null among the vectors, or in one, is not filled."""
    type_ = pa.list_(pa.list_(pa.float32(), 2))
    for rows in ([[[1.0, 2.0], None], []], [[[1.0, None]], []], [None, [[1.0, 2.0]]]):
        with pytest.raises(RefusedError):
            interop.convert(pa.array(rows, type_), to="torch.jagged")


def test_rows_of_vectors_are_padded_if_permitted() -> None:
    """Dense formats take them with zeros after the shorter rows."""
    padded = np.zeros((3, 4, 3), "float32")
    for number, row in enumerate(ROWS):
        padded[number, : len(row)] = row
    for source in ("awkward", "torch.jagged", "pyarrow", "tensorflow", "lists of arrays"):
        value = SOURCES[source]()
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy")
        assert np.array_equal(interop.convert(value, to="numpy", allow="pad"), padded), source
