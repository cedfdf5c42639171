"""Tables: how the columns of a DataFrame become Arrow's, each in its own dtype, and come back.

Nulls stay nulls, and NaN stays NaN. The index becomes what ``pyarrow.Table.from_pandas`` makes of
it: a range is noted in the schema, and any other index is a column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import interop
from interop.errors import InteropError, RefusedError
from interop.kit import arrow_nulls, arrow_numbers
from interop.plugin import Declined

from .columns import READER
from .describe import chunks_of, is_sparse, is_untyped, rows_of, storage

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from .describe import Storage, Vector

    Array: TypeAlias = np.ndarray[Any, Any]

#: The names that PyArrow gives to levels of an index without names.
_LEVEL = re.compile(r"__index_level_[0-9]+__")
#: Of the columns of GeoPandas.
_GEOMETRIES = (
    "PyArrow takes no geometries: x.to_wkb() writes them as bytes, x.to_arrow() as Arrow's, and "
    "the get_coordinates() of a column as numbers"
)


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors by which PyArrow says that it does not take elements."""
    import pyarrow as pa

    return pa.ArrowException, TypeError, ValueError, NotImplementedError, OverflowError


# ---------------------------------------------------------------------- to Arrow


def to_table(frame: pd.DataFrame) -> pa.Table:
    """Return the columns as a PyArrow table, over their memory where Arrow keeps them so.

    PyArrow's own function makes nulls of NaN, for which it reads all numbers.
    """
    import pyarrow as pa

    try:
        schema = pa.Schema.from_pandas(frame)
        _check_names(schema.names)
        arrays = [
            _column(series, field.type)
            for series, field in zip(_columns_of(frame, schema), schema, strict=True)
        ]
    except _refusals() as error:
        # It is no reason to take another way, on which names and dtypes would be lost.
        if any(str(dtype) == "geometry" for dtype in frame.dtypes):
            raise RefusedError(f"{_GEOMETRIES}.") from error
        others = [name for name, dtype in frame.dtypes.items() if is_untyped(dtype)]
        names = f" (columns of objects: {', '.join(map(repr, others))})" if others else ""
        reason = str(error).rstrip(".")
        move = "Rename the columns, or give their elements one type."
        if any(map(is_sparse, frame.dtypes)):
            move = "Make dense columns of sparse ones: x['a'].sparse.to_dense()."
        msg = f"PyArrow makes no table of the DataFrame: {reason}{names}. {move}"
        raise RefusedError(msg) from error
    if not arrays:
        return pa.Table.from_pandas(frame)  # a table of no arrays has no rows
    return pa.Table.from_arrays(arrays, schema=schema)


def _check_names(names: list[str]) -> None:
    """Raise a `ValueError` if several columns have one name, such as 0 and "0"."""
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        msg = f"Duplicate column names found: {twice}"
        raise ValueError(msg)


def _columns_of(frame: pd.DataFrame, schema: pa.Schema) -> Iterator[Storage | pd.Index]:
    """Yield the columns of a frame, and the levels of its index that a schema has columns for."""
    yield from frame._iter_column_arrays()
    if len(schema) > frame.shape[1]:
        for level in range(frame.index.nlevels):
            yield frame.index.get_level_values(level)


def _column(values: Storage | pd.Index, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return a column as Arrow's, of a type."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    if not isinstance(values, np.ndarray):
        return pa.array(pd.Series(values, copy=False), type_, from_pandas=True)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return pa.array(values, type_, from_pandas=values.dtype.kind not in "biuf")


def to_arrow(vector: Vector) -> pa.Array:
    """Return a Series, an Index or an extension array as a PyArrow array, with its nulls."""
    import pyarrow as pa

    array = _array_of(vector)
    if isinstance(array, (pa.ListArray, pa.FixedSizeListArray)):  # of formats of their own
        msg = (
            "its elements are lists, but not of numbers; pyarrow.array(x) makes an Arrow array "
            "of them, and polars.from_pandas(x) a Series"
        )
        raise Declined(msg)
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _array_of(vector: Vector) -> pa.Array | pa.ChunkedArray:
    """Return the elements of a vector as Arrow's, also where these are lists."""
    import numpy as np
    import pyarrow as pa

    values = storage(vector)
    is_real = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    try:
        rows = rows_of(vector)
        if isinstance(rows, list):
            return _lists_of(rows)
        return pa.array(values, from_pandas=not is_real) if rows is None else rows
    except _refusals() as error:
        reason = _GEOMETRIES if str(values.dtype) == "geometry" else str(error)
        raise Declined(reason) from error


def _lists_of(rows: list[Any]) -> pa.Array:
    """Return lists or arrays as Arrow's lists; numbers in the dtype that their spec has."""
    import pyarrow as pa

    try:
        return interop.convert(rows, to="pyarrow.list")
    except InteropError:  # they are no numbers
        return pa.array(rows)


class Exported:
    """What a Series exports by Arrow's protocol: its name, and its elements, of which NaN is one.

    The export of pandas itself makes nulls of NaN.
    """

    def __init__(self, series: Vector) -> None:
        self.name = getattr(series, "name", None)
        self._array = _array_of(series)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return chunks_of(self._array).__arrow_c_stream__(requested_schema)


# ---------------------------------------------------------------------- from Arrow


def from_table(value: Any) -> pd.DataFrame:
    """Return the columns of an Arrow stream as a DataFrame, each in its own dtype."""
    import pyarrow as pa

    try:
        return _frame_of(value if isinstance(value, pa.Table) else pa.table(value))
    except _refusals() as error:
        raise Declined(str(error)) from error


def _frame_of(table: pa.Table) -> pd.DataFrame:
    import pandas as pd

    _check_names(table.column_names)
    if _is_for_pyarrow(table):
        frame: pd.DataFrame = table.to_pandas(types_mapper=_type_of_pandas, split_blocks=True)
        return frame
    # An empty frame tells what PyArrow makes of names, of types, and of what the schema notes.
    empty = table.schema.empty_table().to_pandas(types_mapper=_type_of_pandas)
    levels, index = _index(table)
    places = [place for place, name in enumerate(table.column_names) if name not in levels]
    empty = empty.drop(columns=[name for name in empty.columns if name in levels])
    columns = {
        number: _values(table.column(place), empty.dtypes.iloc[number])
        for number, place in enumerate(places)
    }
    frame = pd.DataFrame(columns, index=index, copy=False)
    frame.columns = empty.columns
    frame.attrs = empty.attrs
    return frame


def _is_for_pyarrow(table: pa.Table) -> bool:
    """Return whether PyArrow's own call keeps all: no numbers are null, and no index is unnoted.

    Columns that are noted as pandas' nullable floats it would read so that NaN is null.
    """
    from pyarrow import types

    metadata = table.schema.metadata or {}
    if any(_LEVEL.fullmatch(name) for name in table.column_names) and not metadata:
        return False
    if b'"Float' in metadata.get(b"pandas", b""):
        return False
    columns = zip(table.columns, table.schema.types, strict=True)
    return not any(types.is_primitive(type_) and column.null_count for column, type_ in columns)


def _index(table: pa.Table) -> tuple[set[str], pd.Index]:
    """Return the names of the columns that are the index of the rows, and the index."""
    noted = (table.schema.pandas_metadata or {}).get("index_columns")
    if noted is not None:
        names = [level for level in noted if isinstance(level, str)]
        if not set(names) <= set(table.column_names):
            names = []
        return set(names), _levels(table, names).index
    names = [name for name in table.column_names if _LEVEL.fullmatch(name)]
    if not names:
        return set(), table.select([]).to_pandas().index
    frame = _levels(table, names).set_index(names)
    return set(names), frame.index.set_names([None] * len(names))


def _levels(table: pa.Table, names: list[str]) -> pd.DataFrame:
    """Return some columns by PyArrow's call, integers with nulls as nullable ones."""
    import pandas as pd
    from pyarrow import types

    levels = table.select(names)
    gaps = {column.type for column in levels.columns if column.null_count}
    integers = {
        type_: pd.api.types.pandas_dtype(str(type_).replace("i", "I").replace("u", "U"))
        for type_ in gaps
        if types.is_integer(type_)
    }
    frame: pd.DataFrame = levels.to_pandas(types_mapper=integers.get)
    return frame


def _type_of_pandas(type_: pa.DataType) -> Any:
    """Return the dtype that keeps elements which would be Python's objects in pandas, or None."""
    import pandas as pd
    from pyarrow import types

    name = str(type_)
    # Of categories that are periods PyArrow makes the integers that count them, of lists arrays.
    is_odd = types.is_dictionary(type_) and "extension<" in name
    is_odd |= types.is_dictionary(type_) and types.is_nested(type_.value_type)
    if is_odd or "union<" in name:
        msg = f"pandas has no elements of {name}"
        raise NotImplementedError(msg)
    own = types.is_primitive(type_) and not name.startswith(("date", "time32", "time64"))
    if own or types.is_dictionary(type_) or name.endswith(("string", "string_view")):
        return None
    # Periods and intervals are pandas' own, under Arrow's names for them.
    is_own = getattr(type_, "extension_name", "").startswith("pandas.")
    return type_.to_pandas_dtype() if is_own else pd.ArrowDtype(type_)


def _values(column: pa.ChunkedArray, dtype: Any) -> Storage:
    """Return the elements of a column as pandas keeps them, with its nulls."""
    import numpy as np
    import pandas as pd

    has_gaps = isinstance(dtype, np.dtype) and dtype.kind in "biuf" and column.null_count
    if has_gaps or isinstance(dtype, (pd.Float32Dtype, pd.Float64Dtype)):
        return _nullable(column)
    if isinstance(dtype, np.dtype):
        return column.to_numpy()
    if isinstance(dtype, (pd.CategoricalDtype, pd.DatetimeTZDtype)):
        return column.to_pandas().array
    return dtype.__from_arrow__(column)


def _nullable(column: pa.ChunkedArray) -> Storage:
    """Return numbers some of which are null, over their memory, with the mask beside it."""
    import pandas as pd

    if str(column.type) == "halffloat":  # of which pandas has none with nulls
        return pd.arrays.ArrowExtensionArray(column)
    chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return READER.make(arrow_numbers(chunk), arrow_nulls(chunk))


def from_arrow(value: Any) -> pd.Series:
    """Return an array that exports an Arrow stream as a Series of its name, with its nulls."""
    import pandas as pd
    import pyarrow as pa

    is_array = isinstance(value, (pa.Array, pa.ChunkedArray))
    try:
        chunked = chunks_of(value) if is_array else pa.chunked_array(value)
    except _refusals() as error:
        raise Declined(str(error)) from error
    table = pa.table({"": chunked})
    dtype = table.schema.empty_table().to_pandas(types_mapper=_type_of_pandas).dtypes.iloc[0]
    return pd.Series(_values(chunked, dtype), name=getattr(value, "name", None) or None, copy=False)


# ---------------------------------------------------------------------- masked arrays


def to_masked(vector: Vector) -> np.ma.MaskedArray[Any, Any]:
    """Return the numbers and the mask of a nullable array, read-only over its memory."""
    import numpy as np

    values = storage(vector)
    if not hasattr(values, "_mask"):
        msg = f"{values.dtype} keeps no mask beside its numbers"
        raise Declined(msg)
    numbers, mask = values._data.view(), values._mask.view()
    numbers.flags.writeable = mask.flags.writeable = False
    return np.ma.MaskedArray(numbers, mask=mask)


def rows_to_masked(vector: Vector) -> np.ma.MaskedArray[Any, Any]:
    """Return objects that are lists of one length as an array of two axes, with None masked."""
    return interop.convert(rows_of(vector), to="numpy.ma")


def fill_rows(vector: Vector, *, dtype: Any) -> Array:
    """Return objects that are lists of one length in a dtype, with NaN or 0 for None."""
    filled: Array = interop.convert(rows_of(vector), to="numpy", dtype=dtype, allow="drop_mask")
    return filled


def from_masked(masked: np.ma.MaskedArray[Any, Any]) -> pd.Series:
    """Return a masked array as a nullable Series over its numbers and its mask."""
    import numpy as np
    import pandas as pd

    numbers, nulls = np.ma.getdata(masked, subok=False), np.ma.getmaskarray(masked)
    return pd.Series(READER.make(numbers, nulls), copy=False)
