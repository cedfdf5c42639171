"""Arrow values that are not plain, made of plain ones to try conversions out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.plugin import Declined

from .dense import flat_array, to_numpy
from .dtypes import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa


def with_null(array: pa.Array) -> pa.Array:
    """Return an array with a null in the place of the last element."""
    import numpy as np

    nulls = np.zeros(len(array), np.bool_)
    nulls[-1:] = True
    if not len(array):
        msg = "an array of no elements has no null"
        raise Declined(msg)
    return flat_array(array.to_numpy(zero_copy_only=False), nulls)


def row(array: pa.Array) -> pa.ListScalar:
    """Return a row with the elements of an array."""
    import pyarrow as pa

    lists = pa.list_(array.type, len(array))
    return pa.Array.from_buffers(lists, 1, [None], 0, children=[array])[0]


def ragged(array: pa.ListArray) -> pa.ListArray:
    """Return lists with the same numbers whose first row lacks an element."""
    import pyarrow as pa

    rows = array.to_pylist()
    if len(rows) < 2 or not rows[0]:
        msg = "rows differ in length only if there are two, and one is not empty"
        raise Declined(msg)
    return pa.array([rows[0][:-1], *rows[1:]], array.type)


def read_only(array: pa.Array) -> pa.Array:
    """Return an array of the same numbers in memory that is flagged read-only."""
    import pyarrow as pa

    bits, data = array.buffers()
    buffers = [bits, pa.py_buffer(data.to_pybytes())]
    return pa.Array.from_buffers(array.type, len(array), buffers, -1, array.offset)


def unaligned(array: pa.Array) -> pa.Array:
    """Return an array of the same numbers at an address that is not a multiple of their size."""
    import pyarrow as pa

    data = array.buffers()[1]
    if array.type.bit_width < 16:
        msg = f"every address is a multiple of the size of {array.type}"
        raise Declined(msg)
    memory = pa.py_buffer(bytearray(b"\0" + data.to_pybytes()))
    return pa.Array.from_buffers(array.type, len(array), [None, memory.slice(1)], 0, array.offset)


def in_chunks(chunked: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a chunked array of the same numbers in two chunks."""
    import pyarrow as pa

    half = len(chunked) // 2
    if not half:
        msg = "one element does not lie in two chunks"
        raise Declined(msg)
    chunks = [chunk for part in (chunked[:half], chunked[half:]) for chunk in part.chunks]
    return pa.chunked_array(chunks, chunked.type)


def chunks_with_nulls(chunked: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a chunked array with a null in the place of the last element of each chunk."""
    import pyarrow as pa

    return pa.chunked_array([with_null(chunk) for chunk in chunked.chunks if len(chunk)])


VARIANTS = {"readonly": read_only, "unaligned": unaligned, "masked": with_null}
CHUNKED_VARIANTS = {"chunked": in_chunks, "masked": chunks_with_nulls}


def table_of_tensors(tensors: pa.FixedShapeTensorArray) -> pa.Table:
    """Return a table with the numbers of an array of tensors of one axis."""
    import pyarrow as pa

    array = to_numpy(tensors)
    if array.ndim != 2:
        msg = f"a table has two axes, not {array.ndim}"
        raise Declined(msg)
    columns = [flat_array(array[:, place].copy()) for place in range(array.shape[1])]
    names = [str(place) for place in range(len(columns))]  # which are no labels
    schema = pa.schema([(name, arrow_type(array.dtype.name)) for name in names])
    return pa.Table.from_arrays(columns, schema=schema)


def batch_of_tensors(tensors: pa.FixedShapeTensorArray) -> pa.RecordBatch:
    """Return a record batch with the numbers of an array of tensors of one axis."""
    return table_of_tensors(tensors).combine_chunks().to_batches()[0]
