"""Arrow's tables and record batches, whose columns become the columns of one array."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import Declined
from interop.kit import (
    EMPTY,
    INTEGERS,
    REALS,
    ColumnReader,
    are_numbered,
    cast_decimals,
    checked_cast,
    common_dtype,
    copied_columns,
    describe_columns,
    kinds_of_column,
)
from interop.plugin import Spec, itemsize

from .dense import all_chunks, flat_array, null_places, to_numpy
from .describe import device, memory
from .dtypes import DTYPES, NUMBERS, dtype_name, element_layout, number_types, traits_of
from .lists import describe_chunks, is_list, regular

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]
    Columns: TypeAlias = pa.Table | pa.RecordBatch

_IMMUTABLE, _SCATTERED = frozenset({"immutable"}), frozenset({"scattered"})

#: The keyword with which an array gives its numbers, bits or not.
_ANY = {"zero_copy_only": False}
#: Floats that Arrow casts to those of 64 bits.
_FLOATS = frozenset({"float32", "float64"})
#: The bytes of an array that caches hold, whichever way it is written.
_MOST_BYTES = 2**24


def cast_columns(table: pa.Table, *, columns: Mapping[str, str]) -> pa.Table:
    """Return a table whose columns of some dtypes have others, cast as NumPy casts.

    The others are those of the table. Nulls stay nulls.
    """
    import pyarrow as pa

    arrays = READER.cast_columns(table, columns)
    fields = [
        field.with_type(array.type) for field, array in zip(table.schema, arrays, strict=True)
    ]
    schema = pa.schema(fields, table.schema.metadata)
    return pa.table(arrays, schema.with_metadata(_without_casts(schema)))


def own_name(type_: pa.DataType) -> str:
    """Return the dtype of a column of numbers, ``untyped`` of decimals, or "" of others."""
    name = dtype_name(type_)
    return name if name in DTYPES else "untyped" if "untyped" in traits_of(name) else ""


def _without_casts(schema: pa.Schema) -> dict[bytes, bytes] | None:
    """Return the metadata of a schema, in which pandas finds the types that columns have now."""
    metadata: dict[bytes, bytes] | None = schema.metadata
    noted = schema.pandas_metadata
    if not noted:
        return metadata
    for column in noted["columns"]:
        place = schema.get_field_index(column["field_name"] or "")
        if place >= 0 and (name := dtype_name(schema.field(place).type)) in DTYPES:
            column.update(pandas_type=name, numpy_type=name)
    return {**(metadata or {}), b"pandas": json.dumps(noted).encode()}


def copy(table: pa.Table) -> pa.Table:
    """Return a table of the same columns in new memory."""
    import pyarrow as pa

    return copied_columns(pa, table)


def from_stream(value: Any) -> pa.Table:
    """Return the columns that a value streams as a table over the same memory."""
    import pyarrow as pa

    table = value if isinstance(value, pa.Table) else pa.table(value)
    if not table.num_columns:
        msg = "a table without columns has no rows and no dtype"
        raise Declined(msg)
    return table


def offer(table: pa.Table) -> Any:
    """Return a table whose columns are several, and integers or floats; else pass."""
    types = table.schema.types
    plain = len(types) > 1 and table.is_cpu and {type_.id for type_ in types} <= _shared_ids()
    return table if plain else NotImplemented


@cache
def _shared_ids() -> frozenset[int]:
    """Return Arrow's ids of the types of numbers that every library shares."""
    names = INTEGERS | REALS
    return frozenset(number for number, (name, _) in number_types().items() if name in names)


def are_labelled(table: Columns) -> bool:
    """Tell whether columns have names other than their numbers, or the schema more to say."""
    return not are_numbered(table.schema.names) or _has_metadata(table)


def _has_metadata(table: Columns) -> bool:
    """Tell whether a schema says more than what pandas notes of its own frames."""
    metadata = table.schema.metadata
    return metadata is not None and not metadata.keys() <= {b"pandas"}


def named(value: Any, like: Columns) -> Any:
    """Return a table with the names of another of its shape, or a value as it is."""
    import pyarrow as pa

    is_like = isinstance(value, pa.Table) and value.shape == like.shape
    return value.rename_columns(like.schema.names) if is_like else value


def describe(name: str, table: Columns) -> Spec:
    """Return the spec of a table."""
    names = map(dtype_name, table.schema.types)
    dtype, traits = describe_columns(zip(names, table.schema.names, strict=True))
    traits |= _IMMUTABLE | _kinds_of_columns(table)
    traits |= {"attributes"} if _has_metadata(table) else EMPTY
    location = "cpu" if table.is_cpu else device(table.column(0))
    is_one = table.num_columns == 1 and dtype in NUMBERS and not traits & {"masked"}
    traits |= _traits_of_one(table) if is_one else _SCATTERED
    nbytes = table.num_rows * table.num_columns * (itemsize(dtype) if dtype in DTYPES else 0)
    return Spec(name, dtype, location, table.shape, traits, nbytes)


def fast_key(table: Columns) -> tuple[object, ...] | None:
    """Return what tells one table of several columns of numbers from another."""
    if table.num_columns < 2 or not table.is_cpu:
        return None
    names, dtype = _dtypes(table.schema.serialize().to_pybytes())
    if not DTYPES.issuperset(names):
        return None
    columns = table.columns
    chunks = [getattr(column, "num_chunks", 1) == 1 for column in columns]
    nulls = [column.null_count > 0 for column in columns]
    is_plain = all(chunks) and not any(nulls)  # as nearly always
    facts = frozenset(names if is_plain else zip(names, chunks, nulls, strict=True))
    nbytes = table.num_rows * len(columns) * itemsize(dtype)
    size = nbytes.bit_length() >> 1  # its `size_class`
    return facts, are_labelled(table), _has_metadata(table), size


@lru_cache(maxsize=256)
def _dtypes(schema: bytes) -> tuple[tuple[str, ...], str]:
    """Return the names of the dtypes of columns, and the common one, by a schema as bytes.

    To write a schema takes less time than to ask each of its fields.
    """
    import pyarrow as pa

    fields = [*pa.ipc.read_schema(pa.py_buffer(schema))]
    # Extensions that are not registered are read as what they store.
    are_stored = [b"ARROW:extension:name" in (field.metadata or {}) for field in fields]
    names = tuple(
        "extension" if is_stored else dtype_name(field.type)
        for field, is_stored in zip(fields, are_stored, strict=True)
    )
    return names, common_dtype(frozenset(names) & DTYPES)[0]


def _kinds_of_columns(table: Columns) -> set[str]:
    """Return ``masked``, and the traits of columns that other libraries keep in another way."""
    if not table.is_cpu:
        return {"block_columns"}
    kinds: set[str] = set()
    for column in table.columns:
        kinds |= kinds_of_column(column)
        if column.null_count:
            kinds.add("masked")
    return kinds


def _traits_of_one(table: Columns) -> frozenset[str]:
    """Return the traits of the memory of an only column, if it lies in one block."""
    spec = describe_chunks(_column(table))
    return _SCATTERED if "chunked" in spec.traits else spec.traits | {"one_column"}


def tensor_column(table: Columns) -> pa.ChunkedArray | None:
    """Return the only column if its rows are arrays themselves, which are then those of the table.

    Of all other tables it returns None.
    """
    if table.num_columns != 1 or dtype_name(table.schema.types[0]) in DTYPES:
        return None
    column = _column(table)
    return column if len(describe_chunks(column).shape) > 1 else None


def _column(table: Columns) -> pa.ChunkedArray:
    """Return the only column."""
    import pyarrow as pa

    column = table.column(0)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def column_to_numpy(table: Columns) -> Array:
    """Return the numbers of the only column, which lies in one block, as a matrix of one."""
    import numpy as np

    return to_numpy(_column(table).chunk(0))[:, np.newaxis]


def memory_of_columns(table: Columns) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of all columns."""
    return tuple(extent for column in table.columns for extent in memory(column))


# ---------------------------------------------------------------------- columns


def _is_chunked(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether a column is one of chunks; to look for these would make them all."""
    return hasattr(column, "num_chunks")


def chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array | pa.ChunkedArray]:
    """Return the parts of a column: its chunks if elements are null, else the column itself."""
    if not _is_chunked(column) or not (column.null_count or _has_rows(column)):
        return [column]
    return [chunk for chunk in column.chunks if len(chunk)] or [all_chunks(column)]


def numbers(chunk: pa.Array | pa.ChunkedArray) -> Array:
    """Return the numbers of a part of a column, with anything in the places of nulls."""
    if chunk.null_count or _has_rows(chunk):
        return to_numpy(_regular(chunk))
    array: Array = chunk.to_numpy(**({} if _is_chunked(chunk) else _ANY))
    return array != 0 if dtype_name(chunk.type) == "bool" else array


def nulls(chunk: pa.Array | pa.ChunkedArray) -> Array | None:
    """Return the places of nulls in a part of a column; None if none is."""
    return null_places(_regular(chunk)) if chunk.null_count or _has_rows(chunk) else None


def _has_rows(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether elements are arrays or lists of numbers."""
    return is_list(column.type) or bool(element_layout(column.type).stored_shape)


def _regular(array: pa.Array) -> pa.Array:
    """Return an array, one of lists that have one length as one of arrays."""
    return regular(array) if is_list(array.type) else array


def columns(table: Columns) -> Iterable[tuple[str, pa.Array | pa.ChunkedArray]]:
    """Return the name and the values of each column."""
    return zip(table.schema.names, table.columns, strict=True)


def stack(table: Columns, *, dtype: str | None, order: str = "C") -> Any:
    """Return columns of one chunk each by Arrow's call, with NaN for nulls in floats of 64 bits.

    That casts as NumPy does to the dtype of one of them. It writes column by column, so that a
    large table in C order is left to what writes some rows of each at a time.
    """
    import pyarrow as pa

    every, common = _dtypes(table.schema.serialize().to_pybytes())
    names, dtype = frozenset(every), dtype or common
    is_small = table.num_rows * table.num_columns * itemsize(dtype) < _MOST_BYTES
    if not (is_small or order == "F") or not table.num_rows or not names <= NUMBERS:
        return NotImplemented
    if dtype == "float32" and names <= _FLOATS and "float64" in names:
        whole = stack(table, dtype="float64", order=order)
        return whole if whole is NotImplemented else checked_cast(whole, dtype)
    if dtype != "float64" and names != {dtype}:
        return NotImplemented
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    if len(batches) > 1 or ("float16" in names and len(names) > 1):
        return NotImplemented
    try:
        tensor = batches[0].to_tensor(null_to_nan=dtype == "float64", row_major=order == "C")
    except pa.ArrowTypeError:  # it has nulls, for which integers have no NaN
        return NotImplemented
    array = tensor.to_numpy()
    return array if array.dtype == dtype else NotImplemented


READER = ColumnReader(
    columns=columns,
    numbers=numbers,
    nulls=nulls,
    chunks=chunks,
    dtype=lambda column: own_name(column.type),
    untyped=cast_decimals,
    stack=stack,
    make=flat_array,
    by_rows=True,
)
