"""Arrays in Arrow's memory, in whichever library they lie: where it is, and copies that own it."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from interop._model.typing import Value
from interop.errors import Declined

from .cast_errors import cast_digits, cast_objects


def buffer_extents(arrays: Iterable[Value]) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of all memory in which Arrow's arrays lie.

    Parameters
    ----------
    arrays : iterable of array
        Chunks with ``buffers()``, or chunked arrays of such; ``dictionary`` where they have one.

    Returns
    -------
    tuple of tuple of int
    """
    buffers: list[Any] = []
    for array in arrays:
        for chunk in getattr(array, "chunks", [array]):
            buffers += chunk.buffers()
            dictionary = getattr(chunk, "dictionary", None)
            buffers += () if dictionary is None else dictionary.buffers()
    return tuple((b.address, b.size) for b in buffers if b is not None and b.size)


#: NumPy's names of the dtypes that Arrow names differently.
_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def arrow_dtype(type_: str) -> str:
    """Return the dtype of numbers by Arrow's name of their type, or the name of other types.

    Parameters
    ----------
    type_ : str
        As ``str`` of a type says it.

    Returns
    -------
    str

    Examples
    --------
    >>> arrow_dtype("halffloat"), arrow_dtype("date32[day]")
    ('float16', 'date32[day]')
    """
    return _NAMES.get(type_, type_)


def arrow_numbers(array: Value) -> Value:
    """Return the numbers of an array of Arrow's, with anything in the places of nulls.

    Parameters
    ----------
    array : array
        Of one axis, with ``buffers()``, an ``offset`` and a ``type``.

    Returns
    -------
    numpy.ndarray
        Read-only over their memory; truth values, which are bits, in new memory.
    """
    import numpy as np

    data, length, dtype = array.buffers()[1], len(array), arrow_dtype(str(array.type))
    if dtype == "bool":
        return _truth_values(data, array.offset, length)
    first = array.offset * np.dtype(dtype).itemsize
    numbers = np.frombuffer(data, dtype, length, first) if length else np.empty(0, dtype)
    numbers.flags.writeable = False
    return numbers


def arrow_nulls(array: Value) -> Value | None:
    """Return which elements of an array of Arrow's are null, or None if none is.

    Parameters
    ----------
    array : array
        With ``buffers()``, an ``offset`` and a ``null_count``.

    Returns
    -------
    numpy.ndarray or None
    """
    if not array.null_count:
        return None
    valid = _truth_values(array.buffers()[0], array.offset, len(array))
    return ~valid


def _truth_values(bits: Value, offset: int, length: int) -> Value:
    """Return the truth values that some bits stand for."""
    import numpy as np

    if not length:
        return np.empty(0, np.bool_)
    first, skipped = divmod(offset, 8)
    packed = np.frombuffer(bits, np.uint8, (skipped + length + 7) // 8, first)
    unpacked = np.unpackbits(packed, count=skipped + length, bitorder="little")
    return unpacked[skipped:].view(np.bool_)


def copied_columns(arrow: ModuleType, table: Value) -> Value:
    """Return a table of Arrow's in memory of its own, texts, lists and dictionaries included.

    Arrow's own copies share some of it.

    Parameters
    ----------
    arrow : module
        The library that the table is of, which writes and reads Arrow's format of streams.
    table : table

    Returns
    -------
    table

    Raises
    ------
    Declined
        An extension type inside of lists or records is one that the format does not keep.
    """
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with arrow.ipc.open_stream(sink.getvalue()) as reader:
        copied = reader.read_all()
    kept = [*zip(table.schema, copied.schema.types, strict=True)]
    for index, (field, type_) in enumerate(kept):
        if type_ != field.type:
            copied = copied.set_column(index, field, _typed(arrow, table.column(index)))
    return copied


def _typed(arrow: ModuleType, column: Value) -> Value:
    """Return a copy of a column of a type that streams do not keep, by copies of its parts."""
    type_ = column.type

    def part(arrays: list[Value], type_: Value) -> Value:
        table = arrow.table({"": arrow.chunked_array(arrays, type_)})
        return copied_columns(arrow, table).column(0).chunks

    if isinstance(type_, arrow.BaseExtensionType):
        storage = part([chunk.storage for chunk in column.chunks], type_.storage_type)
        chunks = [type_.wrap_array(chunk) for chunk in storage]
    elif isinstance(type_, arrow.DictionaryType):
        chunks = [
            arrow.DictionaryArray.from_arrays(
                *part([chunk.indices], type_.index_type),
                *part([chunk.dictionary], type_.value_type),
                ordered=type_.ordered,
                safe=False,
            )
            for chunk in column.chunks
        ]
    else:
        msg = f"Arrow's streams have no {type_}"
        raise Declined(msg)
    return arrow.chunked_array(chunks, type_)


def cast_decimals(array: Value, *, dtype: str) -> Value:
    """Return the numbers of decimals in one array, with NaN for nulls, or zero if it has none.

    Parameters
    ----------
    array : array
        Decimals with ``buffers()``, or chunks of such, with ``chunks`` and ``to_pylist()``.
    dtype : str
        Of the result.

    Returns
    -------
    numpy.ndarray
        In which decimals of few digits are cast at once, and others one by one.
    """
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
    import numpy as np

    target = np.dtype(dtype)
    parts = [np.empty(0, target)]
    for chunk in getattr(array, "chunks", [array]):
        width, end = chunk.type.byte_width, chunk.offset + len(chunk)
        size, data = max(width // 8, 1), chunk.buffers()[1] or b""
        words = np.frombuffer(data, "i4" if width == 4 else "i8", end * size).reshape(end, size)
        words = words[chunk.offset :].astype("i8", copy=False)
        part = cast_digits(words, chunk.type.scale, target, arrow_nulls(chunk))
        if part is None:
            return cast_objects(np.array(array.to_pylist(), object), target, fill_nulls=True)
        parts.append(part)
    return parts[1] if len(parts) == 2 else np.concatenate(parts)
