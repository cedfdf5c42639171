"""Values of Arrow's that are not plain, made of plain ones, to try conversions out."""

from __future__ import annotations

from typing import Any

from interop.plugin import Declined

from ._pyarrow_arrays import flat_array, to_numpy
from ._pyarrow_types import arrow_type

__all__ = [
    "CHUNKED_VARIANTS",
    "VARIANTS",
    "batch_of_tensors",
    "table_of_tensors",
]


def with_null(value: Any) -> Any:
    """Return an array with a null in the place of the last element."""
    import numpy as np

    nulls = np.zeros(len(value), np.bool_)
    nulls[-1:] = True
    if not len(value):
        msg = "an array of no elements has no null"
        raise Declined(msg)
    array = value.to_numpy(zero_copy_only=False)
    return flat_array(array, nulls)


def locked(value: Any) -> Any:
    """Return an array of the same numbers in memory that is flagged read-only."""
    import pyarrow as pa

    bits, data = value.buffers()
    buffers = [bits, pa.py_buffer(data.to_pybytes())]
    return pa.Array.from_buffers(value.type, len(value), buffers, -1, value.offset)


def shifted(value: Any) -> Any:
    """Return an array of the same numbers at an address that is not a multiple of their size."""
    import pyarrow as pa

    data = value.buffers()[1]
    if value.type.bit_width < 16:
        msg = f"the address of {value.type} is a multiple of its size wherever it is"
        raise Declined(msg)
    memory = pa.py_buffer(bytearray(b"\0" + data.to_pybytes()))
    return pa.Array.from_buffers(value.type, len(value), [None, memory.slice(1)], 0, value.offset)


def in_chunks(value: Any) -> Any:
    """Return a chunked array of the same numbers in two chunks."""
    import pyarrow as pa

    half = len(value) // 2
    chunks = [chunk for part in (value[:half], value[half:]) for chunk in part.chunks]
    return pa.chunked_array(chunks, value.type)


def chunk_with_null(value: Any) -> Any:
    """Return a chunked array with a null in the place of the last element of each chunk."""
    import pyarrow as pa

    return pa.chunked_array([with_null(chunk) for chunk in value.chunks if len(chunk)])


VARIANTS = {"readonly": locked, "unaligned": shifted, "masked": with_null}
CHUNKED_VARIANTS = {"chunked": in_chunks, "masked": chunk_with_null}


def table_of_tensors(value: Any) -> Any:
    """Return a table with the numbers of an array of tensors of one axis."""
    import pyarrow as pa

    array = to_numpy(value)
    if array.ndim != 2:
        msg = f"a table has two axes, not {array.ndim}"
        raise Declined(msg)
    columns = [flat_array(array[:, place].copy()) for place in range(array.shape[1])]
    names = [f"column {place}" for place in range(len(columns))]
    schema = pa.schema([(name, arrow_type(array.dtype.name)) for name in names])
    return pa.Table.from_arrays(columns, schema=schema)


def batch_of_tensors(value: Any) -> Any:
    """Return a record batch with the numbers of an array of tensors of one axis."""
    return table_of_tensors(value).combine_chunks().to_batches()[0]
