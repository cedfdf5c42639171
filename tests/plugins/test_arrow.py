"""Arrow's protocols: what any library exports or streams is what PyArrow reads of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import interop
from interop.errors import RefusedError, UnknownValueError
from interop_plugins.protocols.samples import ArrowArray
from tests.cases import together
from tests.plugins.values import data, start


class Stream:
    """A value that streams what PyArrow holds, whenever it is asked, and counts how often."""

    def __init__(self, value):
        self.value = value
        self.count = 0

    def __len__(self):
        return len(self.value)

    def __arrow_c_stream__(self, requested_schema=None):
        self.count += 1
        return self.value.__arrow_c_stream__(requested_schema)


class WithNulls(Stream):
    """A stream that also offers ``__array__``, which has no nulls, and no large integers."""

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, "float64")


def test_exporters_are_read_by_arrows_interface(in_subprocess):
    """What any library exports by ``__arrow_c_array__`` is shared as PyArrow's own array is."""
    plain = pa.array([1, 2, 3])
    value = ArrowArray(plain)
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("arrow_c_array", "int64", (3,))
    result = interop.convert(value, to="numpy", copy=False)
    assert start(result) == data(plain)
    assert not result.flags.writeable
    assert interop.convert_tree([value], to="torch")[0].tolist() == [1, 2, 3]
    assert interop.convert(value, to="polars", copy=False).to_list() == [1, 2, 3]
    lists = ArrowArray(pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4]), 2))
    assert interop.convert(lists, to="torch").tolist() == [[1, 2], [3, 4]]
    with_null = ArrowArray(pa.array([1, None]))
    with pytest.raises(RefusedError):
        interop.convert(with_null, to="numpy")
    assert interop.convert(with_null, to="numpy", allow="drop_mask").tolist() == [1, 0]
    text = ArrowArray(pa.array(["a"]))
    assert interop.convert(text, to="numpy").tolist() == ["a"]
    with pytest.raises(RefusedError):
        interop.convert(text, to="torch")
    in_subprocess(
        """
        import sys
        sys.modules["pyarrow"] = None  # as if it were not installed
        import interop
        class Exporter:
            def __arrow_c_array__(self, requested_schema=None):
                raise AssertionError
        try:
            interop.convert(Exporter(), to="numpy")
        except interop.errors.NotInstalledError as error:
            assert "pip install pyarrow" in str(error) and error.name == "pyarrow"
        else:
            raise AssertionError("it was read without pyarrow")
        """
    )


def test_a_streamed_column_is_shared_as_pyarrows_own_is():
    """A stream of one chunk of numbers is shared, read-only, at its address.

    Arrow takes all memory that is streamed for read-only, so torch shares it only if that is
    permitted.
    """
    plain = pa.array([1, 2, 3])
    value = Stream(pa.chunked_array([plain]))
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("pyarrow.chunked_array", "int64", (3,))
    result = interop.convert(value, to="numpy", copy=False)
    assert start(result) == data(plain)
    assert (result.tolist(), result.dtype) == ([1, 2, 3], np.int64)
    assert not result.flags.writeable
    tensor = interop.convert(value, to="torch", copy=False, allow="share_readonly")
    assert tensor.data_ptr() == data(plain)
    assert interop.convert(value, to="torch").data_ptr() != data(plain)


def test_streamed_chunks_are_joined_by_a_planned_copy():
    """Several chunks become one array by a step with the effect `copy`, and by no other way."""
    value = Stream(pa.chunked_array([[1.0, 2.0], [3.0]]))
    assert interop.plan(value, to="numpy").effects == {"copy"}
    assert interop.convert(value, to="numpy").tolist() == [1, 2, 3]
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", copy=False)


def test_streamed_rows_are_tables():
    """A stream of structs, the form of rows, becomes the columns of one array."""
    value = Stream(pa.table({"a": [1.0, 2], "b": [3.0, 4]}))
    assert interop.spec(value).format == "pyarrow.table"
    assert interop.convert(value, to="torch").tolist() == [[1, 3], [2, 4]]
    rows = ArrowArray(pa.StructArray.from_arrays([pa.array([1.0, 2])], ["a"]))
    assert interop.spec(rows).wrapped == "pyarrow.record_batch"
    assert interop.convert(rows, to="numpy").tolist() == [[1], [2]]
    mixed = Stream(pa.table({"a": [1.0, 2], "b": [2**53 + 1, 4]}))
    with pytest.raises(RefusedError):
        interop.convert(mixed, to="numpy")


def test_nulls_of_a_stream_are_not_lost_by_another_protocol():
    """Arrow's protocols come before ``__array__``, which loses nulls and integers silently."""
    value = WithNulls(pa.chunked_array([[2**53 + 1, None]]))
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")
    result = interop.convert(value, to="numpy", allow="drop_mask")
    assert (result.tolist(), result.dtype) == ([2**53 + 1, 0], np.int64)
    array = interop.convert(value, to="pyarrow")
    assert array.to_pylist() == [2**53 + 1, None]


CALLS = {
    "convert": lambda value: interop.convert(value, to="numpy"),
    "dtype by dtype": lambda value: interop.convert(value, to="numpy", dtype={"int8": "int16"}),
    "converter": interop.converter("numpy"),
    "convert_tree": lambda value: interop.convert_tree([value, value], to="numpy")[1],
    "accepts": lambda value: interop.accepts("numpy")(lambda x: (x,))(value)[0],
    "out=": lambda value: interop.convert(value, out=np.zeros((2, 1))),
}


@together("call", CALLS)
def test_a_stream_is_read_once(call):
    """Every call reads a stream once, so that a reader can be converted and a query runs once."""
    value = Stream(pa.chunked_array([[1.0, 2.0], [3.0]]))
    expected = [1, 2, 3]
    if call == "out=":
        value, expected = Stream(pa.table({"a": [1.0, 2.0]})), [[1], [2]]
    if call == "accepts":  # a chunked array has no others to be given back as
        expected = pa.chunked_array([expected], "double")
    result = CALLS[call](value)
    assert value.count == 1
    assert result.tolist() == expected if isinstance(result, np.ndarray) else result == expected


def test_a_reader_is_used_up_by_converting_alone():
    """To describe and to plan leave a reader as it is; a conversion reads all of its rows."""
    reader = pa.table({"a": [1.0, 2.0]}).to_reader()
    for ask in (interop.spec, lambda value: interop.plan(value, to="numpy")):
        with pytest.raises(UnknownValueError):
            ask(reader)
    assert interop.convert(reader, to="numpy").tolist() == [[1], [2]]


@pytest.mark.extra("narwhals")
def test_wrapped_series_keep_their_nulls():
    """A Series in a wrapper of narwhals's is refused for its nulls as a bare one is."""
    import narwhals as nw
    import polars as pl

    bare = pl.Series([2**53 + 1, None])
    wrapped = nw.from_native(bare, series_only=True)
    for value in (bare, wrapped, nw.from_native(pl.DataFrame({"a": bare}))):
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy")
    whole = nw.from_native(pl.Series([1.0, 2.0]), series_only=True)
    assert interop.convert(whole, to="numpy", copy=False).tolist() == [1, 2]
