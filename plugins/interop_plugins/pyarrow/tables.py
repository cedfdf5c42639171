"""Arrow's tables and record batches, whose columns become the columns of one array."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import Declined, RefusedError
from interop.kit import EMPTY, INTEGERS, REALS, null_number
from interop.plugin import Spec

from .dense import cast_decimals, flat_array, null_places, to_numpy
from .describe import device, memory, memory_of_chunks
from .dtypes import DTYPES, NUMBERS, dtype_name, element_layout, number_types, traits_of
from .lists import describe_chunks

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]
    Columns: TypeAlias = pa.Table | pa.RecordBatch

_IMMUTABLE, _MIXED = frozenset({"immutable"}), frozenset({"several_dtypes"})

#: Bytes of a column that are written at a time, so that a part of every column stays in the caches.
_BYTES = 2**16
#: How many types, and columns of one type, a refusal names.
_NAMED = 3


def describe_table(table: pa.Table) -> Spec:
    """Return the spec of a table, whose dtype names all types if the columns have several."""
    return _describe_columns("pyarrow.table", table)


def describe_batch(batch: pa.RecordBatch) -> Spec:
    """Return the spec of a record batch, as of a table."""
    return _describe_columns("pyarrow.record_batch", batch)


def copy(table: pa.Table) -> pa.Table:
    """Return a table of the same columns in new memory."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return reader.read_all()


def from_array(array: Array) -> pa.Table:
    """Return a table with a copy of an array, whose columns are named by their numbers."""
    import numpy as np
    import pyarrow as pa

    if not array.shape[1]:
        msg = "a table without columns has no rows and no dtype"
        raise Declined(msg)
    columns = [flat_array(np.array(column)) for column in np.asarray(array).T]
    return pa.table(columns, names=[str(place) for place in range(len(columns))])


def from_masked(masked: np.ma.MaskedArray[Any, Any]) -> pa.Table:
    """Return a table with a copy of a masked array, whose columns have nulls in masked places."""
    import numpy as np
    import pyarrow as pa

    mask = np.ma.getmaskarray(masked)
    columns = [
        flat_array(np.array(column), nulls)
        for column, nulls in zip(np.ma.getdata(masked, subok=False).T, mask.T, strict=True)
    ]
    return pa.table(columns, names=[str(place) for place in range(len(columns))])


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


def adopt(offer: Callable[[Any], Any], value: Any) -> pa.Table:
    """Return the columns that a value offers as a table over the same memory."""
    table = offer(value)
    return table if table is NotImplemented else from_stream(table)


def are_named(table: Columns) -> bool:
    """Tell whether columns have names other than their numbers; Arrow has none without.

    Polars writes a word before the numbers.
    """
    names: list[str] = table.schema.names
    numbers = range(table.num_columns)
    return names not in ([str(n) for n in numbers], [f"column_{n}" for n in numbers])


def _describe_columns(name: str, table: Columns) -> Spec:
    types = table.schema.types
    traits = set(_IMMUTABLE)
    if not types:
        traits.add("unknown_dtype")
        dtype = "of no dtype"
    elif any(type_ != types[0] for type_ in types[1:]):
        dtype = _columns_by_type(table.schema)
        traits |= _traits_of_types(types, mixed=True)
    else:
        dtype = dtype_name(types[0])
        traits |= _traits_of_types(types[:1], mixed=False)
    traits |= _kinds_of_columns(table)
    location = "cpu" if table.is_cpu else device(table.column(0))
    if len(types) == 1 and dtype in NUMBERS and not traits & {"masked"}:
        traits |= _traits_of_one(table)
    width = element_layout(types[0]).width if dtype in DTYPES else 0
    nbytes = table.num_rows * table.num_columns * width
    return Spec(name, dtype, location, table.shape, frozenset(traits), nbytes)


def _traits_of_types(types: list[pa.DataType], *, mixed: bool) -> frozenset[str]:
    """Return the traits of columns of some types; beside decimals numbers count as decimals."""
    others = {dtype_name(type_) for type_ in types} - DTYPES
    if others and all("untyped" in traits_of(other) for other in others):
        return traits_of(min(others))
    traits = _MIXED if mixed else EMPTY
    return traits | {"not_numbers"} if others else traits


def _kinds_of_columns(table: Columns) -> set[str]:
    """Return ``masked``, and the traits of columns that other libraries keep in another way."""
    numbers = number_types()
    types = table.schema.types
    kinds = {_kind_of_number(numbers[t.id]) if t.id in numbers else kind_of_type(t) for t in types}
    for column, type_ in zip(table.columns, types, strict=True) if table.is_cpu else ():
        if column.null_count:
            kinds.add("masked")
            if type_.id in numbers or str(type_).startswith(("timestamp", "duration")):
                kinds.add("bit_columns")
        chunks = getattr(column, "num_chunks", 1)
        if chunks != 1:
            kinds.add("chunked_columns")
        if type_.id not in numbers or (chunks == 1 and numbers[type_.id][0] != "bool"):
            kinds.add("block_columns")
    return kinds - {""}


def _kind_of_number(number: tuple[str, int]) -> str:
    return "bit_columns" if number[0] == "bool" else ""


def kind_of_type(type_: pa.DataType) -> str:
    """Return the trait of columns that are no numbers; "" if all libraries share their memory."""
    name = str(type_)
    if "dictionary" in name:
        return "category_columns"
    if "view" in name:
        return "view_columns"
    if "tz=" in name:
        return "zoned_columns"
    return "text_columns" if "string" in name or "binary" in name else ""


def _traits_of_one(table: Columns) -> frozenset[str]:
    """Return the traits of the memory of an only column, if it lies in one block."""
    spec = describe_chunks(_column(table))
    return EMPTY if "chunked" in spec.traits else spec.traits | {"one_column"}


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


def _columns_by_type(schema: pa.Schema) -> str:
    """Say which columns are of which type."""
    by_type: dict[str, list[str]] = {}
    for field in schema:
        by_type.setdefault(str(field.type), []).append(repr(field.name))
    return _listed([f"{type_} ({_listed(names)})" for type_, names in by_type.items()], " / ")


def _listed(names: list[str], separator: str = ", ") -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return separator.join(names[:_NAMED]) + more


def memory_of_columns(table: Columns) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of all columns."""
    return tuple(
        extent
        for column in table.columns
        for extent in (memory_of_chunks(column) if hasattr(column, "chunks") else memory(column))
    )


def stacked(table: Columns, *, dtype: str | None = None) -> Array:
    """Return the columns side by side in one block, with NaN or zero for nulls."""
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
    import numpy as np

    out = np.empty(table.shape, dtype or dtype_name(table.schema.types[0]))
    start = 0
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        _write(out[start : start + batch.num_rows], batch.columns)
        start += batch.num_rows
    return out


def stacked_with_nulls(table: Columns) -> np.ma.MaskedArray[Any, Any]:
    """Return the columns side by side in one block, with a mask in the places of nulls."""
    import numpy as np

    mask = np.empty(table.shape, np.bool_)
    for place, column in enumerate(table.columns):
        mask[:, place] = column.is_null().to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(stacked(table), mask=mask)


def cast_columns(table: Columns, *, dtype: str) -> Array:
    """Return columns of decimals, and of numbers beside them, side by side in one block."""
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
    import numpy as np

    out = np.empty(table.shape, dtype)
    for place, (name, column) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        try:
            out[:, place] = cast_decimals(column, dtype=dtype)
        except RefusedError as error:  # of a decimal that does not fit
            error.locate(f"column {name!r}")
            raise
    return out


def _write(out: Array, columns: list[pa.Array]) -> None:
    """Write columns side by side, some rows of each at a time; bits are unpacked on the way."""
    import numpy as np

    fill, bits = null_number(out.dtype), dtype_name(columns[0].type) == "bool"
    sources = columns if bits else [to_numpy(column) for column in columns]
    masked = [bool(column.null_count) for column in columns]
    count = _BYTES // out.itemsize
    for start in range(0, len(out), count):
        rows = slice(start, start + count)
        for place, source in enumerate(sources):
            out[rows, place] = to_numpy(source[rows]) if bits else source[rows]
            nulls = null_places(columns[place][rows]) if masked[place] else None
            if nulls is not None:
                np.copyto(out[rows, place], fill, casting="unsafe", where=nulls)
