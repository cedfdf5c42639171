"""Tables and Series of Arrow, and steps within polars that keep names and nulls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar, cast

from interop.plugin import Declined

from .columns import READER
from .describe import NAMES, SHARED_NAMES

if TYPE_CHECKING:
    import polars as pl

_Columns = TypeVar("_Columns", bound="pl.Series | pl.DataFrame")

#: The most seconds that milliseconds of 64 bits hold.
_MOST_SECONDS = (2**63 - 1) // 1000
#: The length of a day, by Arrow's units.
_DAY = {unit: 86_400 * 1000**power for power, unit in enumerate(("s", "ms", "us", "ns"))}
#: The errors by which a library says that it does not take elements; PyArrow's are among them.
_REFUSALS = (TypeError, ValueError, NotImplementedError, OverflowError)


def to_pyarrow(value: pl.Series | pl.DataFrame) -> Any:
    """Return a Series or a DataFrame as PyArrow's, over the same memory where Arrow can have it."""
    try:
        return without_objects(value).to_arrow()
    except _REFUSALS as error:
        raise Declined(str(error)) from error


def without_objects(value: _Columns) -> _Columns:
    """Return a Series or a DataFrame, from which Arrow would get the addresses of objects."""
    import polars as pl

    if pl.Object in (value.dtypes if isinstance(value, pl.DataFrame) else [value.dtype]):
        msg = "Arrow would get the addresses of its Python objects; x.to_pandas() keeps them"
        raise Declined(msg)
    return value


def elements_to_pyarrow(series: pl.Series) -> Any:
    """Return nulls, texts and other elements as PyArrow's; lists are of another format there."""
    import polars as pl

    if isinstance(series.dtype, (pl.List, pl.Array)):
        kept = "x.to_arrow() keeps them, and x.explode() opens them"
        raise Declined(f"its elements are lists ({series.dtype}); {kept}")
    return to_pyarrow(series)


def from_pyarrow(lists: Any) -> pl.Series:
    """Return PyArrow's lists as a Series over the memory of their values."""
    import polars as pl

    return cast("pl.Series", pl.from_arrow(lists))


def offer(frame: pl.DataFrame) -> Any:
    """Return a PyArrow table of columns that are several, and integers or floats; else pass."""
    dtypes = frame.dtypes
    names = {str(dtype) for dtype in dtypes}
    return to_pyarrow(frame) if len(dtypes) > 1 and names <= SHARED_NAMES else NotImplemented


def made(make: Callable[[Any], _Columns], value: Any) -> _Columns:
    """Return what Polars makes of a value, or decline it with Polars' words."""
    import polars as pl

    try:
        return make(value)
    except (pl.exceptions.PolarsError, *_REFUSALS) as error:
        raise Declined(str(error)) from error


def from_table(value: Any) -> pl.DataFrame:
    """Return the columns of an Arrow stream as a DataFrame."""
    return frame_of(_read(value, "table"))


def frame_of(value: Any) -> pl.DataFrame:
    """Return columns of numbers, or of what Polars holds all of, as a DataFrame."""
    import polars as pl

    frame = made(pl.DataFrame, value)
    names = getattr(value, "column_names", frame.columns)
    if names != frame.columns:  # Polars numbers the columns without a name
        frame.columns = names
    return frame


def from_stream(value: Any) -> pl.Series:
    """Return an array that exports an Arrow stream as a Series of its name, with its nulls."""
    import polars as pl

    name, value = getattr(value, "name", None), _read(value, "chunked_array")
    return made(pl.Series, value).alias("" if name is None else str(name))


def lists_from_stream(value: Any) -> pl.Series:
    """Return lists that are exported as an Arrow stream as a Series of lists, of its name."""
    import polars as pl

    series = from_stream(value)
    return series.arr.to_list() if isinstance(series.dtype, pl.Array) else series


def _read(value: Any, kind: str) -> Any:
    """Return a stream as PyArrow's, where that is loaded, and see that its times fit.

    Polars multiplies seconds to milliseconds, and lets them wrap around. A time that lies outside
    of a day is null in it.

    Raises
    ------
    Declined
        Some do not fit.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None:
        return value
    try:
        if not isinstance(value, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)):
            value = getattr(pa, kind)(value)
    except (pa.ArrowException, *_REFUSALS):
        return value  # Polars may read more than PyArrow does
    columns = value.columns if isinstance(value, (pa.Table, pa.RecordBatch)) else [value]
    for column in columns:
        if any(unit in str(column.type) for unit in ("[s", "time32[", "time64[")):
            for chunk in getattr(column, "chunks", [column]):
                _check_times(chunk)
    return value


def _check_times(array: Any) -> None:
    """Decline times that Polars does not hold, also inside of lists and records."""
    kind, _, unit = str(array.type).partition("[")
    limit = _DAY.get(unit[:-1]) if kind in {"time32", "time64"} else None
    if limit or (kind in {"timestamp", "duration"} and unit.startswith("s")):
        counts = array.drop_null().view("int32" if kind == "time32" else "int64").to_numpy()
        least, most = (0, limit - 1) if limit else (-_MOST_SECONDS, _MOST_SECONDS)
        if counts.size and not least <= int(counts.min()) <= int(counts.max()) <= most:
            msg = f"Polars has no place for all of its times ({array.type})"
            raise Declined(msg)
    elif hasattr(array, "dictionary"):
        _check_times(array.dictionary)
    elif hasattr(array, "flatten"):
        children = array.flatten()
        for child in children if isinstance(children, list) else [children]:
            _check_times(child)


def copy_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a DataFrame of the same columns in new memory."""
    import polars as pl

    if not frame.width:
        return frame.clone()
    rows = pl.int_range(frame.height, eager=True)
    if all(map(_is_plain, frame.dtypes)):
        return frame.select(pl.all().gather(rows))
    without_objects(frame)
    file = BytesIO()  # Polars' copies of texts share them
    frame.write_ipc_stream(file)
    file.seek(0)
    return pl.read_ipc_stream(file, use_pyarrow=False)


def _is_plain(dtype: pl.DataType) -> bool:
    """Return whether elements of a dtype are numbers or times, which a look-up copies."""
    return str(dtype) in NAMES or dtype.is_temporal() or dtype.is_decimal()


def copy_series(series: pl.Series) -> pl.Series:
    """Return a Series of the same name and elements in new memory."""
    return copy_frame(series.to_frame()).to_series()


def copy_lists(series: pl.Series) -> pl.Series:
    """Return a Series of the same name with the same lists in new memory."""
    import polars as pl

    return series.gather(pl.int_range(series.len(), eager=True))


def recast(series: pl.Series, *, dtype: str) -> pl.Series:
    """Return a Series of the same name and nulls in new memory, cast as NumPy casts."""
    cast: pl.Series = READER.cast(series, dtype=dtype)
    return cast.alias(series.name)


def cast_columns(frame: pl.DataFrame, *, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return a DataFrame whose columns of some dtypes have others, cast as NumPy casts.

    The others are those of the frame. Nulls stay nulls.
    """
    casts = zip(READER.cast_columns(frame, columns), frame.columns, strict=True)
    return frame.with_columns(column.alias(name) for column, name in casts)
