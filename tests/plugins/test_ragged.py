"""Ragged rows: handed over by values and offsets, without copies, and padded only on consent."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch

import interop
from interop.errors import BadRequestError, HandOffError, RefusedError
from tests.cases import together

ROWS = [[1.0, 2.0], [], [3.0, 4.0, 5.0]]
PADDED = [[1, 2, 0], [0, 0, 0], [3, 4, 5]]


def jagged(rows, dtype=torch.int64):
    """Return a jagged tensor of rows."""
    offsets = np.cumsum([0, *map(len, rows)])
    values = torch.tensor([number for row in rows for number in row], dtype=torch.float64)
    return torch.nested.nested_tensor_from_jagged(values, torch.tensor(offsets, dtype=dtype))


def awkward_array(rows):
    import awkward as ak

    return ak.values_astype(ak.Array(rows), "float64")


def ragged_tensor(rows):
    import tensorflow as tf

    return tf.ragged.constant(rows, dtype=tf.float64)


MAKERS = {
    "pyarrow.list": lambda rows: pa.array(rows, pa.list_(pa.float64())),
    "polars.list": lambda rows: pl.Series(rows, dtype=pl.List(pl.Float64)),
    "torch.jagged": jagged,
    "awkward": awkward_array,
    "tensorflow.ragged": ragged_tensor,
}
#: Their rows as lists, and the address of the first of their values.
LISTS = {
    "pyarrow.list": lambda x: x.to_pylist(),
    "polars.list": lambda x: x.to_list(),
    "torch.jagged": lambda x: [row.tolist() for row in x.unbind()],
    "awkward": lambda x: x.to_list(),
    "tensorflow.ragged": lambda x: x.to_list(),
}
ADDRESSES = {
    "pyarrow.list": lambda x: x.values.buffers()[1].address,
    "polars.list": lambda x: x.to_arrow().values.buffers()[1].address,
    "torch.jagged": lambda x: x.values().data_ptr(),
    "awkward": lambda x: x.layout.content.data.ctypes.data,
}
#: The formats that the extra `test-all` alone brings.
EXTRA = ("awkward", "tensorflow.ragged")
HERE = [name for name in MAKERS if name not in EXTRA]


def marked(names):
    """Return names as parameters, those of formats of the extra with its mark."""
    return [
        pytest.param(name, marks=pytest.mark.extra(name.split(".")[0])) if name in EXTRA else name
        for name in names
    ]


@pytest.mark.parametrize("source", marked(MAKERS))
@pytest.mark.parametrize("target", marked(MAKERS))
def test_ragged_rows_are_handed_over(source, target):
    """Every ragged format becomes every other with the same rows, and shares values on the way.

    TensorFlow copies what comes in.
    """
    value = MAKERS[source](ROWS)
    result = interop.convert(value, to=target)
    assert LISTS[target](result) == ROWS
    spec = interop.spec(result)
    assert (spec.format, spec.dtype, spec.shape) == (target, "float64", (3, 3))
    if source in ADDRESSES and target in ADDRESSES:
        shared = interop.convert(value, to=target, copy=False, allow="share_readonly")
        assert ADDRESSES[target](shared) == ADDRESSES[source](value)
        copied = interop.convert(value, to=target, copy=True)
        assert ADDRESSES[target](copied) != ADDRESSES[source](value)
        assert LISTS[target](copied) == ROWS


@pytest.mark.parametrize("source", marked(MAKERS))
@together("target", ["numpy", "torch", "jax"])
def test_ragged_rows_are_padded_only_if_that_is_permitted(source, target):
    """A dense result of rows of several lengths takes the consent `pad`; zeros fill the rows up."""
    value = MAKERS[source](ROWS)
    with pytest.raises(RefusedError):
        interop.convert(value, to=target, dtype="float32")
    plan = interop.plan(value, to=target, dtype="float32", allow="pad")
    assert plan.effects >= {"copy", "pad"}
    result = interop.convert(value, to=target, dtype="float32", allow="pad")
    assert interop.convert(result, to="numpy").dtype == np.float32
    assert result.tolist() == PADDED
    with pytest.raises(BadRequestError):
        interop.convert(value, to=target, allow="pad", copy=False)


@pytest.mark.parametrize("source", marked(MAKERS))
def test_rows_of_one_length_are_dense(source):
    """Rows of one length become an array of two axes over the same memory, without consent."""
    value = MAKERS[source]([[1.0, 2.0], [3.0, 4.0]])
    result = interop.convert(value, to="numpy", copy=False)
    assert (result.dtype, result.tolist()) == (np.float64, [[1, 2], [3, 4]])
    if source in ADDRESSES:
        assert result.ctypes.data == ADDRESSES[source](value)


@pytest.mark.parametrize("source", marked(MAKERS))
@together("rows", [[], [[]], [[], []], [[], [1.0]], [[1.0], []]])
def test_few_and_empty_rows(source, rows):
    """No rows and empty rows are rows as well, to lists and to arrays."""
    if source == "tensorflow.ragged":
        import tensorflow as tf

        value = tf.ragged.constant(rows, tf.float64, ragged_rank=1)
    elif source == "awkward":
        import awkward as ak

        offsets = np.cumsum([0, *map(len, rows)])
        content = ak.contents.NumpyArray(np.array([number for row in rows for number in row]))
        value = ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(offsets), content))
    else:
        value = MAKERS[source](rows)
    assert interop.convert(value, to="pyarrow.list").to_pylist() == rows
    result = interop.convert(value, to="numpy", allow="pad")
    longest = max(map(len, rows), default=0)
    assert result.shape == (len(rows), longest)
    assert result.tolist() == [row + [0.0] * (longest - len(row)) for row in rows]


@pytest.mark.parametrize("target", marked(["torch.jagged", "awkward", "numpy"]))
@together("type_", [pa.list_(pa.float64()), pa.large_list(pa.float64())])
def test_slices_and_both_widths_of_offsets(target, type_):
    """Offsets of a slice begin above zero, and are of 32 or 64 bits: the rows are right."""
    rows = [[9.0], *ROWS, [9.0]]
    value = pa.array(rows, type_)[1:4]
    result = interop.convert(value, to=target, allow="pad")
    assert (LISTS[target](result) if target in LISTS else result.tolist()) == (
        ROWS if target in LISTS else PADDED
    )
    if target == "torch.jagged":
        width = torch.int32 if type_ == pa.list_(pa.float64()) else torch.int64
        assert result.offsets().dtype == width
        assert result.values().data_ptr() == value.values.buffers()[1].address + 8


def test_chunks_of_lists_are_joined_by_a_planned_copy():
    """Ragged rows in several chunks become one jagged tensor, by a copy that the plan shows."""
    chunks = pa.chunked_array([ROWS[:2], ROWS[2:]])
    assert "copy" in interop.plan(chunks, to="torch.jagged").effects
    assert LISTS["torch.jagged"](interop.convert(chunks, to="torch.jagged")) == ROWS
    series = pl.concat([pl.Series(ROWS[:2]), pl.Series(ROWS[2:])], rechunk=False)
    assert LISTS["torch.jagged"](interop.convert(series, to="torch.jagged")) == ROWS


def test_jagged_tensors_that_are_not_plain():
    """A graph is left behind, rows of arrays are kept or padded, other jagged axes refused."""
    values = torch.arange(5.0, requires_grad=True)
    in_graph = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5]))
    assert interop.plan(in_graph, to="pyarrow.list").effects == {"detach"}
    assert interop.convert(in_graph, to="pyarrow.list").to_pylist() == [[0, 1], [2, 3, 4]]
    dense = interop.convert(in_graph, to="torch", allow="pad")
    assert dense.tolist() == [[0, 1, 0], [2, 3, 4]]
    pairs = torch.nested.nested_tensor_from_jagged(
        torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 3])
    )
    padded = interop.convert(pairs, to="numpy", allow="pad")
    assert padded.tolist() == [[[0, 1], [0, 0]], [[2, 3], [4, 5]]]
    lists = interop.convert(pairs, to="pyarrow.list")
    assert lists.to_pylist() == [[[0, 1]], [[2, 3], [4, 5]]]
    with pytest.raises(RefusedError):
        interop.convert(pairs.transpose(1, 2), to="numpy", allow="pad")


@together("lengths", [(2, 3), (3, 3)])
@together("kind", ["jagged", "computed", "of values", "list"])
def test_rows_in_a_graph_stay_in_it_when_they_become_dense(kind, lengths):
    """A plan without the effect `detach` keeps the history of rows, padded or of one length."""
    rows = [torch.ones(length) for length in lengths]
    if kind == "list":
        leaves = value = [row.requires_grad_() for row in rows]
    elif kind == "of values":
        leaves = [torch.cat(rows).requires_grad_()]
        offsets = torch.tensor([0, lengths[0], sum(lengths)])
        value = torch.nested.nested_tensor_from_jagged(*leaves, offsets)
    else:
        leaves = [torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)]
        value = leaves[0] * 1 if kind == "computed" else leaves[0]
    plan = interop.plan(value, to="torch", allow="pad")
    assert "detach" not in plan.effects
    for _ in range(2):
        dense = interop.convert(value, to="torch", allow="pad")
        assert dense.shape == (2, 3)
        gradients = torch.autograd.grad((2 * dense).sum(), leaves, retain_graph=True)
        flat = [grad.values() if grad.is_nested else grad for grad in gradients]
        assert torch.cat(flat).tolist() == [2] * sum(lengths)


@pytest.mark.extra("awkward")
@together("shape", [(0,), (3,), (0, 3), (2, 0), (2, 3), (2, 3, 4), (0, 3, 4), (2, 3, 0)])
def test_awkward_arrays_that_are_blocks_are_cast_and_copied(shape):
    """An array of any number of axes and of any length keeps its shape, also without elements."""
    ak = import_module("awkward")
    numbers = np.arange(float(np.prod(shape))).reshape(shape)
    for value in (ak.from_numpy(numbers), ak.to_regular(ak.from_numpy(numbers), axis=None)):
        for request in ({"dtype": "float32"}, {"copy": True}, {"dtype": "int8", "copy": True}):
            result = interop.convert(value, to="awkward", **request)
            dense = ak.to_numpy(result)
            assert dense.dtype == request.get("dtype", "float64")
            assert dense.shape == shape
            assert (dense == numbers).all()
            assert not np.shares_memory(dense, numbers)


@pytest.mark.extra("awkward")
def test_awkward_arrays_of_other_kinds():
    """Rows in another order are joined by a copy."""
    value = awkward_array(ROWS)[[2, 0]]
    assert "copy" in interop.plan(value, to="pyarrow.list").effects
    assert interop.convert(value, to="pyarrow.list").to_pylist() == [ROWS[2], ROWS[0]]


@together("make", [pa.array, pl.Series, jagged])
@together("target, able", [("pyarrow", "pyarrow.list"), ("polars.series", "polars.list")])
def test_a_refusal_names_the_format_that_has_ragged_rows(make, target, able):
    """A target that cannot have them is refused with a format of its framework that can."""
    value = make(ROWS)
    with pytest.raises(RefusedError, match=f"rows may differ in length;.* Or ask for to='{able}'"):
        interop.convert(value, to=target)
    assert interop.spec(interop.convert(value, to=able)).format == able


def test_a_refusal_names_what_lists_of_rows_are_made_from() -> None:
    """Where no route leads to rows, the formats that do are named, and none that is missing."""
    with pytest.raises(RefusedError):
        interop.convert(scipy.sparse.csr_array(np.eye(3)), to="python.ragged")


def _ragged(library: str, offsets: list[int]) -> object:
    """Return ragged rows of four numbers whose offsets nobody has checked."""
    numbers = np.arange(1.0, 5)
    if library == "pyarrow":
        buffers = [None, pa.py_buffer(np.array(offsets, "i4"))]
        values = pa.array(numbers)
        type_ = pa.list_(pa.float64())
        return pa.Array.from_buffers(type_, len(offsets) - 1, buffers, children=[values])
    if library == "awkward":
        contents = pytest.importorskip("awkward").contents
        index = pytest.importorskip("awkward").index.Index64(np.array(offsets))
        layout = contents.ListOffsetArray(index, contents.NumpyArray(numbers))
        return pytest.importorskip("awkward").Array(layout)
    if library == "tensorflow":
        tf = pytest.importorskip("tensorflow")
        splits = tf.constant(np.array(offsets, "i8"))
        return tf.RaggedTensor.from_row_splits(tf.constant(numbers), splits, validate=False)
    offsets_ = torch.tensor(offsets)
    return torch.nested.nested_tensor_from_jagged(torch.from_numpy(numbers), offsets=offsets_)


@pytest.mark.parametrize("library", ["pyarrow", "awkward", "tensorflow", "torch"])
@together("offsets", [[0, 2, 5], [0, 2, 10**6], [-3, 0, 2], [0, 3, 1, 4]])
def test_offsets_that_lead_outside_are_refused(library: str, offsets: list[int]) -> None:
    """Libraries take offsets on trust, and would read other numbers or none."""
    if library == "pyarrow" and offsets != [0, 3, 1, 4]:
        return  # Arrow looks at the ends itself
    value = _ragged(library, offsets)
    for target in ("numpy", "torch.jagged", "pyarrow.list", "awkward", "python"):
        if target.partition(".")[0] != library:
            with pytest.raises(HandOffError):
                interop.convert(value, to=target, allow="pad")


@pytest.mark.extra("awkward")
@together("numbers", [[1, None, 3], [1.5, None], [None, True]])
def test_missing_numbers_of_awkward_become_masked(numbers: list[Any]) -> None:
    """An array of numbers of which some are missing keeps them as a mask, in memory of its own."""
    import awkward as ak

    longer = ak.Array([numbers[-1] or numbers[0], *numbers])
    for array in (ak.Array(numbers), ak.Array(numbers)[::-1][::-1], longer[1:]):
        result = interop.convert(array, to="numpy.ma")
        assert type(result) is np.ma.MaskedArray
        assert result.tolist() == numbers
        result[0] = 0
        assert array.to_list() == numbers
        with pytest.raises(RefusedError):
            interop.convert(array, to="torch")
        floats = interop.convert(array, to="numpy", dtype="float64", allow="drop_mask")
        expected = [np.nan if number is None else number for number in numbers]
        assert np.array_equal(floats, expected, equal_nan=True)
        filled = interop.convert(ak.fill_none(array, 0), to="numpy")
        assert filled.tolist() == [number or 0 for number in numbers]
    whole = ak.Array([1, None, 3])[[0, 2]]  # none is missing, although its type permits it
    for to in ("numpy", "torch", "awkward"):
        assert interop.convert(whole, to=to, copy=True).tolist() == [1, 3]
    with pytest.raises(RefusedError):
        interop.convert(ak.Array([[1], [None, 2]]), to="numpy.ma")


def test_bools_become_bits_of_arrow_by_a_copy() -> None:
    """The rows are packed, which the plan says and copy=False refuses; numbers are shared."""
    rows = jagged(ROWS)
    bools = torch.nested.nested_tensor_from_jagged(rows.values() > 2, rows.offsets())
    for value in (bools, torch.tensor([[True, False]])):
        route = interop.plan(value, to="pyarrow.list")
        assert (route.effects, route.zero_copy) == ({"copy"}, False)
        with pytest.raises(RefusedError):
            interop.convert(value, to="pyarrow.list", copy=False)
    packed = interop.convert(bools, to="pyarrow.list").to_pylist()
    assert packed == [[False, False], [], [True, True, True]]
    assert interop.plan(rows, to="pyarrow.list").zero_copy
