"""PyArrow: what it alone has; what it shares with pandas and Polars is tested with the columns."""

from __future__ import annotations

import mmap
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import BadRequestError, RefusedError
from interop.kit import address
from interop_plugins.pyarrow import dense, describe, dtypes
from tests.cases import together
from tests.plugins.values import data, same, start

DTYPES = sorted(dtypes.DTYPES)


def numbers(name, shape=(6,)):
    """Return small numbers that the dtype can hold; of a real one, also halves and negatives."""
    size = int(np.prod(shape))
    values = np.arange(size).reshape(shape) % 100
    if name.startswith("float"):
        values = values / 2 - 1
    return (values % 3 == 1) if name == "bool" else values.astype(name)


def array(name, nulls=False):
    """Return an array that Arrow itself has made, perhaps with every other element null."""
    a = numbers(name)
    mask = np.arange(6) % 2 == 1 if nulls else None
    return pa.array(a, type=dtypes.arrow_type(name), mask=mask)


@pytest.mark.parametrize("has_dlpack", [True, False])
def test_plain_arrays_are_shared_by_what_the_installed_version_has(monkeypatch, has_dlpack):
    """PyArrow's own consumer of DLPack, and what is made of a buffer before 26, give the same."""
    if has_dlpack and not hasattr(pa.Array, "from_dlpack"):
        pytest.skip(f"PyArrow {pa.__version__} does not consume DLPack")
    types, from_dlpack, *rest = dense._constructors()
    monkeypatch.setattr(
        dense, "_constructors", lambda: (types, from_dlpack if has_dlpack else None, *rest)
    )
    for name in sorted(dtypes.NUMBERS):
        for length in (0, 1, 6):
            values = numbers(name)[:length]
            values.flags.writeable = length != 1
            result = dense.array_fast_path(values)
            assert result.type == dtypes.arrow_type(name)
            assert (result.null_count, result.to_pylist()) == (0, values.tolist())
            assert not length or result.buffers()[1].address == address(values)


def test_nulls_are_those_of_the_slice():
    """A slice has nulls only if they are inside it, whoever counts them first."""
    value = pa.array([1, None, 3, 4, None])
    assert interop.spec(value[2:4]).traits == {"immutable"}
    assert interop.spec(value[1:3]).traits == {"immutable", "masked"}
    assert interop.convert(value[2:4], to="numpy").tolist() == [3, 4]
    unknown = pa.Array.from_buffers(pa.int64(), 3, value.buffers(), -1, 2)
    assert "masked" in interop.spec(unknown).traits
    bits_and_no_nulls = pa.Array.from_buffers(
        pa.int8(), 2, [pa.py_buffer(b"\x03"), pa.py_buffer(bytearray(b"\x05\x06"))], -1
    )
    assert interop.spec(bits_and_no_nulls).traits == {"immutable"}
    assert interop.convert(bits_and_no_nulls, to="numpy").tolist() == [5, 6]


def test_memory_that_is_flagged():
    """Buffers that are flagged read-only, or not aligned, are described as such."""
    raw = bytes(range(33))
    locked = pa.Array.from_buffers(pa.uint8(), 3, [None, pa.py_buffer(raw)])
    assert interop.spec(locked).traits == {"immutable", "readonly"}
    odd = pa.Array.from_buffers(pa.int32(), 8, [None, pa.py_buffer(bytearray(raw)).slice(1)])
    assert "unaligned" in interop.spec(odd).traits
    result = interop.convert(odd, to="numpy", copy=False)
    assert same(np.array(result), np.frombuffer(raw, "i4", offset=1))
    assert interop.convert(odd, to="torch").tolist() == result.tolist()
    table = pa.table({"a": odd})
    frame = interop.convert(table, to="pandas.dataframe", copy=False)
    for spec in (interop.plan(table, to="pandas.dataframe").result, interop.spec(frame)):
        assert spec.traits >= {"unaligned", "readonly"}


def test_names_of_dtypes():
    """Arrow's types name dtypes, and its classes and its module name formats."""
    assert interop.convert([1, 2], to="pyarrow", dtype=pa.float32()).type == pa.float32()
    assert interop.convert(array("int8"), to="torch", dtype=pa.float16()).dtype == torch.float16
    assert interop.convert([True], to="numpy", dtype=pa.bool8()).dtype == bool
    for target, type_ in (
        (pa, pa.DoubleArray),
        (pa.Array, pa.DoubleArray),
        (pa.ChunkedArray, pa.ChunkedArray),
        (pa.Tensor, pa.Tensor),
    ):
        assert type(interop.convert(np.ones(2), to=target)) is type_
    value = array("int8", nulls=True)
    assert interop.convert(value, to="pyarrow") is value
    assert type(interop.convert([1.0], like=value)) is pa.DoubleArray


def test_mapped_files(tmp_path, in_fork):
    """A tensor made of a mapped file can be written, although the mapped memory cannot."""
    in_fork(
        f"""
        import pyarrow as pa, interop
        path = {str(tmp_path / "numbers.arrow")!r}
        batch = pa.record_batch({{"a": pa.array(range(1000))}})
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write(batch)
        column = pa.ipc.open_file(pa.memory_map(path)).get_batch(0).column(0)
        assert interop.spec(column).traits == {{"immutable", "readonly"}}
        tensor = interop.convert(column, to="torch")
        tensor.zero_()
        assert column[7].as_py() == 7
        lists = pa.ListArray.from_arrays(pa.array([0, 3, 5], pa.int32()), column)
        interop.convert(lists, to="torch.jagged").values().zero_()
        assert lists.to_pylist() == [[0, 1, 2], [3, 4]]
        """
    )


def test_truth_values_of_a_byte_each():
    """Every byte of bool8 but zero is true, and becomes 1."""
    storage = pa.array([0, 1, 2, -1, None], pa.int8())
    value = pa.ExtensionArray.from_storage(pa.bool8(), storage)
    result = interop.convert(value[1:4], to="numpy")
    assert (result.dtype, result.tobytes()) == (bool, b"\1\1\1")
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")
    result = interop.convert(value, to="numpy", allow="drop_mask")
    assert result.tobytes() == b"\0\1\1\1\0"


def test_not_written_into():
    """``out=`` cannot be an Arrow array, which never changes; it can be a tensor."""
    with pytest.raises(BadRequestError):
        interop.convert(np.ones(2), out=array("float64"))
    memory = np.zeros((2, 2), "f4")
    out = pa.Tensor.from_numpy(memory)
    assert interop.convert(torch.ones(2, 2, dtype=torch.float64), out=out) is out
    assert memory.tolist() == [[1, 1], [1, 1]]
    memory.flags.writeable = False
    with pytest.raises(BadRequestError):
        interop.convert(np.ones((2, 2)), out=pa.Tensor.from_numpy(memory))


@pytest.mark.parametrize("target", ["pyarrow.fixed_shape_tensor", "pyarrow.fixed_size_list"])
@pytest.mark.parametrize("name", DTYPES)
@together("shape", [(2, 3), (2, 3, 4), (0, 3), (3, 0), (1, 2, 3, 4)])
def test_nested_arrays(target, name, shape):
    """Arrays of tensors and of lists share compact arrays of several axes, both ways."""
    a = numbers(name, shape)
    value = interop.convert(a, to=target)
    value.validate(full=True)
    assert interop.spec(value) == interop.Spec(
        target, name, "cpu", shape, frozenset({"immutable"}), a.nbytes
    )
    assert value.to_pylist() == a.tolist() or target.endswith("tensor")
    for rows, expected in ((value, a), (value[1:], a[1:])):
        back = interop.convert(rows, to="numpy")
        assert same(np.ascontiguousarray(back), np.ascontiguousarray(expected))
        if name == "bool":
            assert back.flags.writeable
        else:
            assert not back.flags.writeable
            assert start(back) == start(a) + a[0:1].nbytes * (rows is not value) or not back.size
    if target.endswith("tensor") and name != "bool" and a.size:
        assert (value.to_numpy_ndarray() == a).all()
    flipped = interop.convert(a[::-1], to=target)
    assert same(np.ascontiguousarray(interop.convert(flipped, to="numpy")), a[::-1].copy())
    copied = interop.convert(value, to=target, copy=True)
    assert copied.equals(value)


@pytest.mark.parametrize("name", ["float32", "bool"])
def test_permuted_tensors(name):
    """The axes of tensors come in the order of their type, not in that of their memory."""
    a = numbers(name, (2, 3, 4, 5))
    plain = interop.convert(a, to="pyarrow.fixed_shape_tensor")
    type_ = pa.fixed_shape_tensor(dtypes.arrow_type(name), [3, 4, 5], permutation=[2, 0, 1])
    value = pa.ExtensionArray.from_storage(type_, plain.storage)
    spec = interop.spec(value)
    assert (spec.shape, spec.traits) == ((2, 5, 3, 4), {"immutable", "noncontiguous"})
    result = interop.convert(value, to="numpy")
    assert (result == a.transpose(0, 3, 1, 2)).all()
    assert (start(result) == start(a)) is (name != "bool")
    chunks = pa.chunked_array([value, value[1:]])
    assert (interop.convert(chunks, to="numpy")[2] == result[1]).all()
    assert (interop.convert(pa.chunked_array([value]), to="torch").numpy() == result).all()


def test_nulls_of_rows_and_inside_them():
    """A null row is filled as a whole, and a null inside a row by itself."""
    inner = pa.array([1, 2, None, 4, 5, 6, 7, 8], pa.float32())
    type_ = pa.list_(pa.float32(), 2)
    rows = pa.Array.from_buffers(type_, 4, [pa.py_buffer(b"\x0b")], children=[inner])
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), rows)
    nan = np.nan
    expected = np.array([[1, 2], [nan, 4], [nan, nan], [7, 8]], "f4")
    for value in (rows, tensors, pa.chunked_array([tensors[:1], tensors[1:]])):
        assert "masked" in interop.spec(value).traits
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy")
        result = interop.convert(value, to="numpy", allow="drop_mask")
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(
            interop.convert(value[1:3], to="numpy", allow="drop_mask"), expected[1:3]
        )
    assert interop.spec(rows[3:]).traits == {"immutable"}
    inside = pa.chunked_array([rows[1:2], rows[3:]])
    assert inside.null_count == 0
    assert "masked" in interop.spec(inside).traits
    assert interop.convert(rows, to="pyarrow.fixed_size_list", copy=True).equals(rows)


def test_columns_in_chunks_and_with_nulls():
    """Columns cut in different places are put together, and their nulls filled if permitted."""
    first = pa.chunked_array([[1.0, None], [3.0]])
    second = pa.chunked_array([[4.0], [5.0, 6.0]])
    value = pa.table({"a": first, "b": second})
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")
    result = interop.convert(value, to="numpy", allow="drop_mask")
    np.testing.assert_array_equal(result, [[1, 4], [np.nan, 5], [3, 6]])
    truth = pa.table({"a": [True, None, True], "b": [False, True, None]})
    result = interop.convert(truth, to="numpy", allow="drop_mask")
    assert result.tolist() == [[True, False], [False, True], [True, False]]


def test_an_array_becomes_columns_named_by_their_numbers():
    """An array of two axes becomes a table whose columns have the names that mean none."""
    table = interop.convert(np.array([[1, 2], [3, 4]]), to="pyarrow.table")
    assert table.to_pydict() == {"0": [1, 3], "1": [2, 4]}
    assert "labelled" not in interop.spec(table).traits


@pytest.mark.parametrize("name", DTYPES)
def test_scalars(name):
    """A scalar becomes an array of no axes, and the other way round."""
    a = numbers(name)[4:5].reshape(())
    value = pa.array(a.reshape(1))[0]
    assert interop.spec(value).traits == set()
    assert same(interop.convert(value, to="numpy"), a)
    assert interop.convert(value, to="torch").item() == a.item()
    scalar = interop.convert(a, to="pyarrow.scalar")
    assert scalar.equals(value)
    null = pa.scalar(None, dtypes.arrow_type(name))
    expected = numbers(name)[:1].reshape(()).copy()
    expected[...] = np.nan if name.startswith("float") else 0
    assert same(interop.convert(null, to="numpy", allow="drop_mask"), expected)
    for target in ("numpy", "torch", "python", "pyarrow.tensor"):
        with pytest.raises(RefusedError):
            interop.convert(null, to=target)


def test_the_memory_of_every_array_is_known():
    """The addresses of an array's numbers are known, so receipts can tell what is shared."""
    value = pa.array(np.arange(40), mask=np.arange(40) % 2 == 1)[17:33]
    bits, numbers_ = describe.memory(value)
    assert numbers_ == (data(value), 128)
    assert bits == (value.buffers()[0].address + 2, 3)  # among the bits of others
    with interop.trace() as receipts:
        interop.convert(array("int32"), to="numpy")
        interop.convert(array("bool"), to="numpy")
        interop.convert(numbers("int32", (2, 3)), to="pyarrow.fixed_shape_tensor")
        interop.convert(numbers("int32", (2, 3)), to="pyarrow.tensor")
    assert [receipt.aliased for receipt in receipts] == [True, False, True, True]


def test_a_row_is_an_array():
    """A row of tensors or lists is the array in it, over the same memory; a null one is refused."""
    tensors = interop.convert(np.arange(12.0).reshape(2, 2, 3), to="pyarrow.fixed_shape_tensor")
    result = interop.convert(tensors[1], to="numpy", copy=False)
    assert same(result, np.arange(6.0, 12).reshape(2, 3))
    assert start(result) == tensors.storage.values.buffers()[1].address + 48
    lists = pa.array([[1.0, 2.0], [3.0], None])
    row = interop.convert(lists[1], to="numpy", copy=False)
    assert same(row, np.array([3.0]))
    assert start(row) == lists.values.buffers()[1].address + 16
    with pytest.raises(RefusedError):
        interop.convert(lists[2], to="numpy")


def test_lists_without_rows_are_refused_where_their_width_would_be_lost() -> None:
    """Lists of one length each tell it by their rows; without any, the shape could not come back."""
    for width in (0, 1, 3):
        array = np.zeros((0, width))
        if width:
            with pytest.raises(RefusedError, match=f"would have {width} numbers each"):
                interop.convert(array, to="pyarrow.list")
        else:
            assert interop.spec(interop.convert(array, to="pyarrow.list")).shape == (0, 0)
        fixed = interop.convert(array, to="pyarrow.fixed_size_list")
        assert interop.spec(fixed).shape == (0, width)


@together("width, offsets", [(2**30 - 1, pa.int32()), (2**30, pa.int64())])
def test_offsets_are_as_wide_as_the_number_of_elements_needs(width: int, offsets: Any) -> None:
    """The last offset is that number, and 2**31 is more than 32 bits hold. The memory is virtual."""
    numbers = pa.Array.from_buffers(
        pa.int8(), 2 * width, [None, pa.py_buffer(mmap.mmap(-1, 2 * width))]
    )
    rows = pa.Array.from_buffers(pa.list_(pa.int8(), width), 2, [None], children=[numbers])
    result = interop.convert(rows, to="pyarrow.list")
    assert result.offsets.equals(pa.array([0, width, 2 * width], offsets))


def test_empty_arrays_of_any_strides_are_tensors() -> None:
    """PyArrow refuses strides below zero, also of arrays without elements, which need none."""
    for array in (np.arange(3.0)[::-1][:0], np.ones((2, 3))[::-1, ::-1][:, :0], np.ones((0, 2)).T):
        result = interop.convert(array, to="pyarrow.tensor")
        assert (result.shape, result.to_numpy().dtype) == (array.shape, "float64")


def test_decimals_that_are_cast_keep_their_nulls() -> None:
    """They are Arrow's before and after."""
    result = interop.convert(pa.array([Decimal("1.5"), None]), to="pyarrow", dtype="float32")
    assert result.equals(pa.array([1.5, None], pa.float32()))


def test_a_table_whose_columns_were_cast_tells_pandas_their_dtypes():
    """The metadata that pandas leaves in a schema name the dtypes of the result, the index's too."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [1.5, 2.5]}, index=pandas.Index([5, 6], name="k"))
    table = pa.Table.from_pandas(frame)
    result = interop.convert(table, to="pyarrow.table", dtype={"integral": "float32"})
    noted = {c["field_name"]: c["numpy_type"] for c in result.schema.pandas_metadata["columns"]}
    assert noted == {"a": "float32", "b": "float64", "k": "float32"}
    assert noted == {
        field.name: str(field.type.to_pandas_dtype().__name__) for field in result.schema
    }
