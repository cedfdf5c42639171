"""polars: Series and DataFrames.

Names are not part of an array: they are dropped when it leaves polars (the effect `drop_labels`),
and kept from polars to polars. A Series never changes. Its memory is shared, read-only, if it holds
numbers in one chunk without nulls; truth values are bits in polars. An array of one aligned block
becomes the memory of a Series. The columns of a DataFrame lie side by side only by chance, so they
are copied; a single column is shared like a Series.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from interop.errors import RefusedError, UnknownValueError
from interop.kit import (
    COMPLEX,
    COPY,
    EMPTY,
    INTEGERS,
    REALS,
    ROW_TRAITS,
    SEVERAL_DTYPES,
    CastErrors,
    cast_dtypes,
    cast_objects,
    common_dtype,
    extents,
    gathered,
    misfit,
    null_number,
    streamed,
    words_of_columns,
)
from interop.plugin import (
    COLUMN_TRAITS,
    DTYPES,
    MEMORY_TRAITS,
    Cast,
    CastColumns,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Declined,
    Format,
    Labels,
    Limits,
    Result,
    Samples,
    Spec,
    Wrapper,
    hookimpl,
    itemsize,
    preserves,
)
from interop.plugin.advanced import Advanced

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from polars.datatypes import DataTypeClass

    Array: TypeAlias = np.ndarray[Any, Any]
    Extents: TypeAlias = tuple[tuple[int, int], ...]

_Columns = TypeVar("_Columns", bound="pl.Series | pl.DataFrame")

_READONLY, _NONCONTIGUOUS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_FORTRAN = _NONCONTIGUOUS | {"fortran"}
_IMMUTABLE, _MASKED = frozenset({"immutable"}), frozenset({"masked"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})
_MIXED, _NESTED = frozenset({"mixed"}), frozenset({"nested"})
#: The traits of decimals.
_UNTYPED = _NOT_NUMBERS | {"untyped"}
#: The trait of lists some of which are null.
_NULL_ROWS = frozenset({"null_rows"})
#: The trait of a DataFrame without columns, which has no numbers and so no dtype.
_UNKNOWN_DTYPE = frozenset({"unknown_dtype"})

_CARRIED = _IMMUTABLE | _MASKED | _SCATTERED | _UNTYPED

_BOOL = frozenset({"bool"})
#: The dtypes whose memory NumPy and polars can share.
_SHARED = INTEGERS | REALS
_DTYPES = _SHARED | _BOOL
#: The dtypes in which nulls can be filled: with NaN in floats, with 0 in others.
_FILLED = _DTYPES | COMPLEX | frozenset(d for d in DTYPES if d.startswith(("bfloat", "float8")))
#: The traits of a DataFrame whose common dtype in NumPy does not hold the numbers of each column.
_SEVERAL = _MIXED | SEVERAL_DTYPES

#: NumPy's names of the dtypes of numbers, by polars' names.
_NAMES = {"Boolean": "bool"} | {
    f"UI{name[2:]}" if name.startswith("u") else name.capitalize(): name for name in _SHARED
}
_SHARED_NAMES = _NAMES.keys() - {"Boolean"}

#: The kinds of columns that Polars copies, and those of which it shares some memory.
_SHARED_KINDS = frozenset({"bit_columns", "block_columns", "view_columns", "zoned_columns"})
_COPIED_KINDS = COLUMN_TRAITS - _SHARED_KINDS | {"chunked", "lists", "nested"}
_SHARED_KINDS |= {"text_columns", "large_text_columns", "list_columns"}
_ODD_COLUMNS = SEVERAL_DTYPES | _UNTYPED
_LABELLED, _HYBRID = frozenset({"labelled"}), frozenset({"hybrid"})
#: The traits of the only column of a table if its rows are lists.
_ROWS = frozenset(
    {"lists", "nested", "chunked", "null_rows", "lists_of_lists", "bits", "deep", "noncontiguous"}
)
#: The traits of a DataFrame with columns of any kind.
_ANY_COLUMNS = _CARRIED | _SEVERAL | _UNKNOWN_DTYPE | _FORTRAN | COLUMN_TRAITS
_ANY_COLUMNS |= _ODD_COLUMNS | {"indexed"}
#: The traits of columns that have one dtype once they are cast.
_KINDS = COLUMN_TRAITS | SEVERAL_DTYPES

#: How many elements are written at a time.
_PIECE = 2**18
_GATHER = Cost(2e-5, 8e9)
#: The cost of looking at every decimal.
_OBJECTS = Cost(3e-5, 5e7)
#: Lies between the costs of a few long columns and of many short ones, since polars makes each.
_COLUMNS = Cost(3e-5, 8e8)

#: The errors by which a library says that it does not take elements; PyArrow's are among them.
_REFUSALS = (TypeError, ValueError, NotImplementedError)
_REFUSAL_HINTS = {
    "not_numbers": "these are not numbers; turn them into numbers in polars first: x.cast(float) "
    "of text, x.to_physical() of dates, spans and categories, x.explode() of lists.",
    "null_rows": "some of its rows are null, or elements of rows of several lengths; leave null "
    "rows out (drop_nulls), or make empty rows of them (fill_null([])), and fill the elements.",
    "drop_mask": "x.fill_null(...) says what nulls become, and to='numpy.ma' keeps them; so do "
    "x.to_arrow() and x.to_pandas(use_pyarrow_extension_array=True). With drop_mask nulls "
    "become NaN in floats, but 0 in integers and False in bools, as if that had been measured.",
}
_SERIES_HINTS = {
    **_REFUSAL_HINTS,
    "Int128": "x.cast(polars.Int64) makes integers of 64 bits, if all of them fit.",
    "Struct": "x.struct.unnest() makes a DataFrame of its fields.",
    "Object": "x.to_list() makes a list of its objects, and x.to_pandas() a Series of them.",
}
_FRAME_HINTS = {
    **_REFUSAL_HINTS,
    "not_numbers": "these are not numbers; choose columns of numbers "
    "(x.select(polars.selectors.numeric())), or turn the others into numbers in polars first "
    "(x.cast(float), or column by column). A column of arrays converts by itself (x['a']).",
}


@cache
def _unsupported(device: str) -> frozenset[str]:
    """Return the dtypes that the installed polars does not have; float16 came with 1.36."""
    try:
        major, minor = version("polars").split(".")[:2]
    except PackageNotFoundError:  # it was installed under another name
        return EMPTY
    return frozenset({"float16"}) if (int(major), int(minor)) < (1, 36) else EMPTY


# ---------------------------------------------------------------------- describing


def describe(series: pl.Series) -> Spec:
    """Return the spec of a Series; the axes of fixed-size arrays come after its own axis."""
    dtype = series.dtype
    if _holds_lists(dtype) and (spec := _describe_lists(series)) is not None:
        return spec
    shape: tuple[int, ...] = (series.len(),)
    elements, inner_shape = _elements(dtype)
    name = _NAMES.get(elements)
    if name is None:
        traits = _IMMUTABLE | _other_traits({str(dtype)}, series.null_count())
        return Spec("polars.series", str(dtype), "cpu", shape, traits, 8 * shape[0])
    shape += inner_shape
    traits = _IMMUTABLE
    if series.n_chunks() != 1 or name == "bool":
        traits |= _SCATTERED
    if _has_nulls(series, inner_shape):
        traits |= _MASKED
    return Spec("polars.series", name, "cpu", shape, traits, prod(shape) * itemsize(name))


def _holds_lists(dtype: pl.DataType) -> bool:
    """Tell whether rows are lists of numbers, however deep, whose lengths are not in the type."""
    import polars as pl

    *levels, elements = _levels(dtype)
    return str(elements) in _NAMES and any(isinstance(level, pl.List) for level in levels)


def _levels(dtype: pl.DataType) -> Iterator[pl.DataType]:
    """Yield a dtype, then that of the elements of its lists or arrays, down to numbers."""
    import polars as pl

    yield dtype
    while isinstance(dtype, (pl.List, pl.Array)):
        dtype = cast("pl.DataType", dtype.inner)
        yield dtype


def _describe_lists(series: pl.Series) -> Spec | None:
    """Return the spec of a Series of lists, whose second axis is as long as its longest row.

    Lists that have one length at each level are arrays. Of other lists of lists it returns None.
    """
    import polars as pl

    if _lengths(series) is not None:
        spec = describe(to_arrays(series))
        return spec._replace(format="polars.list", wrapped=spec.format)
    first, *levels, elements = _levels(series.dtype)
    if isinstance(first, pl.Array) or any(isinstance(level, pl.List) for level in levels):
        return None
    inner = tuple(cast("pl.Array", level).size for level in levels)
    name, lengths = _NAMES[str(elements)], series.list.len()
    longest, stored = cast("int", lengths.max() or 0), int(lengths.sum() or 0)
    nulls = series.null_count() or _has_nulls(series.filter(lengths > 0).explode(), inner)
    traits = _IMMUTABLE | (_NULL_ROWS if nulls else _NESTED) | (_HYBRID if inner else EMPTY)
    if series.n_chunks() != 1:
        traits |= _SCATTERED
    nbytes, shape = stored * prod(inner) * itemsize(name), (series.len(), longest, *inner)
    return Spec("polars.list", name, "cpu", shape, traits, nbytes, stored, "int64")


def _lengths(series: pl.Series) -> tuple[int, ...] | None:
    """Return the length that all rows have at each level; None if they differ or one is null."""
    import polars as pl

    lengths: list[int] = []
    for level in [*_levels(series.dtype)][:-1]:
        if lengths:
            series = (series if lengths[-1] else series.clear()).explode()
        if series.null_count():
            return None
        if isinstance(level, pl.Array):
            lengths.append(level.size)
            continue
        counts = series.list.len()
        shortest, longest = counts.min() or 0, counts.max() or 0
        if shortest != longest:
            return None
        lengths.append(cast("int", longest))
    return tuple(lengths)


def _elements(dtype: pl.DataType) -> tuple[str, tuple[int, ...]]:
    """Return polars' name of the elements' dtype, and the shape of fixed-size arrays."""
    elements: pl.DataType | DataTypeClass = dtype
    shape: tuple[int, ...] = getattr(dtype, "shape", ())
    for _ in shape:
        elements = cast("pl.Array", elements).inner
    return str(elements), shape


def _has_nulls(series: pl.Series, inner_shape: tuple[int, ...]) -> bool:
    """Tell whether there are nulls, also inside fixed-size arrays."""
    if series.null_count():
        return True
    return bool(inner_shape) and bool(_flat(series).null_count())


def _flat(series: pl.Series) -> pl.Series:
    return series.reshape((-1,)) if getattr(series.dtype, "shape", ()) else series


def describe_frame(frame: pl.DataFrame | pl.LazyFrame) -> Spec:
    """Return the spec of a DataFrame.

    Raises
    ------
    UnknownValueError
        It is a LazyFrame, whose length is known only once it is computed.
    """
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        msg = (
            "a polars.LazyFrame has no numbers and no length until it is computed; convert "
            "what its collect() returns."
        )
        raise UnknownValueError(msg)
    name, traits = _inspect_frame(frame)
    traits |= _kinds_of_columns(frame)
    shape = frame.shape
    return Spec("polars.dataframe", name, "cpu", shape, traits, prod(shape) * itemsize(name))


def only_column_of_rows(frame: pl.DataFrame | pl.LazyFrame) -> pl.Series | None:
    """Return the only column if its rows are arrays or lists, which are then those of the frame.

    Of all other frames it returns None.
    """
    import polars as pl

    if isinstance(frame, pl.LazyFrame) or frame.width != 1:
        return None
    column = frame.to_series()
    if not isinstance(column.dtype, (pl.Array, pl.List)):
        return None
    spec = describe(column)
    if "not_numbers" in spec.traits:
        return None
    return to_arrays(column) if spec.wrapped else column


def _inspect_frame(frame: pl.DataFrame) -> tuple[str, frozenset[str]]:
    """Return the common dtype of the columns, and their traits."""
    dtypes = {str(dtype) for dtype in frame.dtypes}
    columns = zip(map(str, frame.dtypes), frame.columns, strict=True)
    words = words_of_columns([column for column in columns if column[0] not in _NAMES])
    names = frozenset(_NAMES[dtype] for dtype in dtypes & _NAMES.keys())
    name, several = common_dtype(names, words)
    if not dtypes:
        return name, _IMMUTABLE | _SCATTERED | several
    nulls = any(column.null_count() for column in frame.iter_columns())
    if others := dtypes - _NAMES.keys():
        return name, _IMMUTABLE | several | _other_traits(others, nulls)
    traits = _IMMUTABLE | several
    if nulls or several or name == "bool" or not _is_one_block(frame):
        traits |= _SCATTERED
    elif min(frame.shape) > 1:
        traits |= _FORTRAN
    return name, traits | _MASKED if nulls else traits


def _other_traits(dtypes: Set[str], nulls: int) -> frozenset[str]:
    """Return the traits of elements of dtypes that are not of numbers; decimals may be numbers."""
    if not all(dtype.startswith("Decimal") for dtype in dtypes):
        return _NOT_NUMBERS
    return _UNTYPED | _MASKED if nulls else _UNTYPED


def _is_one_block(frame: pl.DataFrame) -> bool:
    """Tell whether the columns lie side by side, as polars itself finds out."""
    try:
        frame.to_numpy(allow_copy=False)
    except RuntimeError:
        return False
    return True


# ---------------------------------------------------------------------- out of polars


def to_numpy(value: pl.Series | pl.DataFrame) -> Array:
    """Return a read-only array over the memory of a Series, or of columns that are one block."""
    try:
        array = value.to_numpy(allow_copy=False).view()
    except RuntimeError as reason:
        raise Declined(str(reason)) from reason
    array.flags.writeable = False
    return array


def series_fast_path(series: pl.Series) -> Any:
    """Return a read-only array over the memory of a Series of numbers without nulls."""
    if series.n_chunks() != 1 or series.null_count() or str(series.dtype) not in _SHARED_NAMES:
        return NotImplemented
    array = series.to_numpy(allow_copy=False)
    return NotImplemented if array.flags.writeable else array


def gather(series: pl.Series, *, dtype: str) -> Array:
    """Return the numbers in a new array, with NaN for nulls, or zero if the dtype has no NaN."""
    import ml_dtypes  # noqa: F401 - NumPy then knows its dtypes by name
    import numpy as np

    elements, inner_shape = _elements(series.dtype)
    out = np.empty((series.len(), *inner_shape), dtype)
    _write(out.reshape(-1), _flat(series), _NAMES.get(elements))
    return out


def series_to_masked(series: pl.Series) -> Any:
    """Return the numbers of a Series over their memory, with a mask in the places of nulls."""
    import numpy as np

    if getattr(series.dtype, "shape", ()) or series.n_chunks() != 1:
        msg = "it has axes or chunks"
        raise Declined(msg)
    array = series.to_arrow()
    numbers = np.frombuffer(array.buffers()[1], _NAMES[str(series.dtype)])
    numbers = numbers[array.offset : array.offset + len(array)].view()
    numbers.flags.writeable = False
    return np.ma.MaskedArray(numbers, mask=series.is_null().to_numpy())


def gather_with_nulls(series: pl.Series, *, dtype: str) -> Any:
    """Return the numbers in a new array, with a mask in the places of nulls."""
    import numpy as np

    numbers = gather(series, dtype=dtype)
    inner_shape = numbers.shape[1:]
    rows = np.reshape(series.is_null().to_numpy(), (-1, *(1,) * len(inner_shape)))
    mask = np.array(np.broadcast_to(rows, numbers.shape))
    if inner_shape and not series.null_count():
        mask = _flat(series).is_null().to_numpy().reshape(numbers.shape)
    return np.ma.MaskedArray(numbers, mask=mask)


def gather_frame_with_nulls(frame: pl.DataFrame, *, dtype: str) -> Any:
    """Return the columns side by side in a new array, with a mask in the places of nulls."""
    import numpy as np

    mask = np.array([column.is_null().to_numpy() for column in frame.iter_columns()]).T
    return np.ma.MaskedArray(gather_frame(frame, dtype=dtype), mask=mask)


def to_arrays(series: pl.Series) -> pl.Series:
    """Return lists of one length at each level as arrays over the same memory."""
    import polars as pl

    *_, elements = _levels(series.dtype)
    return series.cast(pl.Array(elements, cast("tuple[int, ...]", _lengths(series))))


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


def gather_frame(frame: pl.DataFrame, *, dtype: str) -> Array:
    """Return the columns side by side in a new array, in Fortran order as in polars."""
    import ml_dtypes  # noqa: F401 - NumPy then knows its dtypes by name
    import numpy as np

    names = {_NAMES.get(str(own), "") for own in frame.dtypes}
    is_held = names and dtype in _SHARED and all(preserves(name, dtype) for name in names)
    if is_held and not _nulls(frame):
        return _stacked(frame, dtype)
    rows, columns = frame.shape
    out = np.empty((columns, rows), dtype)
    for part, column in zip(out, frame.iter_columns(), strict=True):
        try:
            _write(part, column, _NAMES.get(str(column.dtype)))
        except RefusedError as error:  # of a decimal that does not fit
            error.locate(f"column {column.name!r}")
            raise
    return out.T


def _nulls(frame: pl.DataFrame) -> int:
    return sum(column.null_count() for column in frame.iter_columns())


def _stacked(frame: pl.DataFrame, dtype: str) -> Array:
    """Return columns without nulls side by side, in a dtype that holds all of their numbers."""
    import numpy as np
    import polars as pl

    array: Array = frame.to_numpy(order="fortran")
    if array.dtype != dtype:  # Polars promotes otherwise than NumPy
        own = _dtype_named(dtype)
        array = frame.with_columns(pl.all().cast(own)).to_numpy(order="fortran")
    return array if array.flags.writeable else np.array(array, order="F")


def gather_if_exact(frame: pl.DataFrame) -> Array:
    """Return what `gather_frame` does if the common dtype holds every integer of the columns."""
    dtype, _ = _inspect_frame(frame)
    for column in frame.iter_columns():
        for _, piece in _pieces(column):
            if reason := misfit(piece.drop_nulls().to_numpy(), dtype):
                msg = f"column {column.name!r}: {reason}"
                raise Declined(msg)
    return gather_frame(frame, dtype=dtype)


def _write(out: Array, series: pl.Series, name: str | None) -> None:
    """Write a Series into an array of any dtype, cast as NumPy casts; nulls become NaN or zero.

    Decimals are those of no `name`.
    """
    import numpy as np

    if name is None:
        decimals = np.array(series.to_list(), object)
        out[...] = cast_objects(decimals, out.dtype, fill_nulls=True)
        return
    errors = CastErrors()
    for start, piece in _pieces(series):
        part, nulls = out[start : start + piece.len()], None
        if piece.null_count():
            nulls = piece.is_null().to_numpy()
            piece = piece.fill_null(False if name == "bool" else 0)  # noqa: PLW2901
        errors.run(np.copyto, part, piece.to_numpy(), "unsafe")
        if nulls is not None:
            part[nulls] = null_number(out.dtype)
    errors.tell()


def _pieces(series: pl.Series) -> Iterator[tuple[int, pl.Series]]:
    """Yield a Series in pieces, each with the index of its first element."""
    chunk_start = 0
    for chunk in series.get_chunks():
        for start in range(0, chunk.len(), _PIECE):
            yield chunk_start + start, chunk.slice(start, _PIECE)
        chunk_start += chunk.len()


# ---------------------------------------------------------------------- into polars


def to_series(array: Array) -> pl.Series:
    """Return a Series over the memory of an array; truth values become bits in new memory."""
    import polars as pl

    return pl.Series(array)


def to_frame(array: Array) -> pl.DataFrame:
    """Return a DataFrame with a copy of an array; each column is one block."""
    import numpy as np

    block = np.array(np.asarray(array).T, order="C", copy=True)
    return _frame(block.T, [f"column_{n}" for n in range(array.shape[1])])


def frame_from_masked(masked: Any) -> pl.DataFrame:
    """Return a DataFrame with a copy of a masked array, with nulls in masked places."""
    import numpy as np
    import polars as pl

    frame = to_frame(np.ma.getdata(masked, subok=False))
    mask = to_frame(np.ma.getmaskarray(masked))
    columns = zip(frame.iter_columns(), mask.iter_columns(), strict=True)
    return pl.DataFrame([column.set(nulls, None) for column, nulls in columns])


def _frame(columns: Array, names: list[str]) -> pl.DataFrame:
    """Return a DataFrame over the memory of the columns of an array."""
    import polars as pl

    if not names:
        return _rows(columns.shape[0])
    return pl.DataFrame([pl.Series(n, c) for n, c in zip(names, columns.T, strict=True)])


def _rows(height: int) -> pl.DataFrame:
    """Return a DataFrame without columns."""
    import polars as pl

    try:
        return pl.DataFrame(height=height)
    except TypeError as error:
        if height:
            msg = f"polars {pl.__version__} has no rows without columns"
            raise Declined(msg) from error
        return pl.DataFrame()
    except pl.exceptions.ComputeError as error:  # polars counts rows in 32 bits
        raise Declined(str(error)) from error


# ---------------------------------------------------------------------- tables


def offer(frame: pl.DataFrame) -> Any:
    """Return a PyArrow table of columns that are several, and integers or floats; else pass."""
    dtypes = frame.dtypes
    names = {str(dtype) for dtype in dtypes}
    return to_pyarrow(frame) if len(dtypes) > 1 and names <= _SHARED_NAMES else NotImplemented


def adopt(offer: Callable[[Any], Any], value: Any) -> pl.DataFrame:
    """Return the columns that a value offers as a DataFrame over the same memory."""
    table = offer(value)
    return table if table is NotImplemented else from_table(table)


def from_table(value: Any) -> pl.DataFrame:
    """Return the columns of an Arrow stream as a DataFrame."""
    import polars as pl

    try:
        return pl.DataFrame(value)
    except (pl.exceptions.PolarsError, *_REFUSALS) as error:
        raise Declined(str(error)) from error


def from_stream(value: Any) -> pl.Series:
    """Return an array that exports an Arrow stream as a Series of its name, with its nulls."""
    import polars as pl

    name = getattr(value, "name", None)
    try:
        series = pl.Series(value)
    except (pl.exceptions.PolarsError, *_REFUSALS) as error:
        raise Declined(str(error)) from error
    return series.alias("" if name is None else str(name))


def _kinds_of_columns(frame: pl.DataFrame) -> frozenset[str]:
    """Return the traits of columns that other libraries' tables keep in another way."""
    columns = frame.iter_columns()
    return frozenset().union(
        *(_kinds(str(c.dtype), c.n_chunks() != 1, bool(c.null_count())) for c in columns)
    )


@lru_cache(maxsize=4096)
def _kinds(name: str, is_chunked: bool, has_nulls: bool) -> frozenset[str]:
    """Return the traits of a column by the name of its dtype."""
    kinds = {"chunked_columns"} if is_chunked else set()
    is_time = name.startswith(("Datetime", "Duration"))
    if "Categorical" in name or "Enum" in name:
        return frozenset(kinds | {"category_columns"})
    if name == "Object":
        return frozenset({"object_columns"})
    if "String" in name or "Binary" in name:
        # Of lists the places are shared, and so are the places of nulls.
        is_shared = has_nulls or name not in {"String", "Binary"}
        return frozenset(kinds | {"view_columns"} | ({"block_columns"} if is_shared else EMPTY))
    if name == "Boolean" or (has_nulls and (is_time or name in _NAMES)):
        kinds.add("bit_columns")
    is_zoned = is_time and "time_zone=None" not in name and "time_zone=" in name
    if is_zoned:
        kinds.add("zoned_columns")
    # Numbers and times in chunks are joined, and times with nulls written anew, by pandas.
    is_joined = is_chunked and (is_time or name in _NAMES)
    if not (is_joined or is_zoned or name in {"Boolean", "Null"} or (has_nulls and is_time)):
        kinds.add("block_columns")
    return frozenset(kinds)


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
    return str(dtype) in _NAMES or dtype.is_temporal() or dtype.is_decimal()


def copy_series(series: pl.Series) -> pl.Series:
    """Return a Series of the same name and elements in new memory."""
    return copy_frame(series.to_frame()).to_series()


def copy_lists(series: pl.Series) -> pl.Series:
    """Return a Series of the same name with the same lists in new memory."""
    import polars as pl

    return series.gather(pl.int_range(series.len(), eager=True))


def recast(series: pl.Series, *, dtype: str) -> pl.Series:
    """Return a Series of the same name and nulls in new memory, cast as NumPy casts."""
    import polars as pl

    cast = pl.Series(series.name, gather(series, dtype=dtype))
    if not series.null_count():
        return cast
    valid = ~series.is_null()  # `is_not_null` would share the bitmap
    return pl.select(pl.when(valid).then(cast)).to_series().alias(series.name)


def cast_columns(frame: pl.DataFrame, *, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return a DataFrame whose columns of some dtypes have others, cast as NumPy casts.

    The others are those of the frame. Nulls stay nulls.
    """
    import polars as pl

    casts: list[pl.Expr | pl.Series] = []
    dtypes = {dtype: _own_name(dtype) for dtype in frame.dtypes}
    columns = cast_dtypes({*dtypes.values()} - {""}, columns)
    for dtype, own in dtypes.items():
        if (new := columns.get(own)) is None:
            continue
        if own == "untyped" or (own.startswith("float") and not new.startswith("float")):
            # Which integer a float becomes is NumPy's to say.
            chosen = frame.select(pl.col(dtype)).iter_columns()
            casts += [recast(column, dtype=new) for column in chosen]
        else:
            to: dict[str, Any] = {
                "dtype": _dtype_named(new),
                "strict": False,
                "wrap_numerical": True,
            }
            names = frame.select(pl.col(dtype)).columns
            # A cast alone would share the bitmap, and `is_not_null` as well.
            casts += [
                pl.when(pl.col(name).is_null().not_()).then(pl.col(name).cast(**to))
                for name in names
            ]
    return frame.with_columns(casts)


def _own_name(dtype: pl.DataType) -> str:
    """Return the dtype of a column of numbers, or ``untyped`` of decimals."""
    return _NAMES.get(str(dtype), "untyped" if dtype.is_decimal() else "")


def _dtype_named(name: str) -> pl.DataType:
    """Return the dtype of polars by NumPy's name."""
    import polars as pl

    own = next(own for own, other in _NAMES.items() if other == name)
    return cast("pl.DataType", getattr(pl, own))


# ---------------------------------------------------------------------- memory


def memory(series: pl.Series) -> Extents:
    """Return the addresses and lengths of the memory of the numbers of a Series, chunk by chunk.

    That of others than plain numbers is told by PyArrow; () if it is not there.
    """
    elements, inner_shape = _elements(series.dtype)
    if elements in _SHARED_NAMES and not _has_nulls(series, inner_shape):
        chunks = (chunk for chunk in series.get_chunks() if chunk.len())
        return extents(chunk.to_numpy() for chunk in chunks)
    return _memory_told_by_arrow(series.to_frame())


def _memory_told_by_arrow(frame: pl.DataFrame) -> Extents:
    """Return where all buffers of a DataFrame lie; () if that cannot be read."""
    pa = sys.modules.get("pyarrow")

    if pa is None or any(map(_has_own_memory, frame.dtypes)):
        return ()
    arrays = [chunk for column in pa.table(frame).columns for chunk in column.chunks]
    arrays += [a.dictionary for a in arrays if isinstance(a, pa.DictionaryArray)]
    buffers = (buffer for array in arrays for buffer in array.buffers())
    return tuple((b.address, b.size) for b in buffers if b is not None and b.size)


def _has_own_memory(dtype: pl.DataType) -> bool:
    """Return whether what Arrow gets of elements tells nothing of where they lie."""
    return str(dtype).startswith(("Object", "Categorical", "Enum"))


def frame_memory(frame: pl.DataFrame) -> Extents:
    """Return the addresses and lengths of the memory of a DataFrame; () if one is unknown."""
    columns = [memory(column) for column in frame.iter_columns()]
    return tuple(extent for column in columns for extent in column) if all(columns) else ()


def has_labels(value: pl.Series | pl.DataFrame) -> bool:
    """Tell whether there are names other than those that polars gives to every array."""
    import polars as pl

    if isinstance(value, pl.Series):
        return value.name != ""
    numbers = range(value.width)  # Arrow's columns without names have them alone
    return value.columns not in ([f"column_{n}" for n in numbers], list(map(str, numbers)))


def give_labels(
    value: pl.Series | pl.DataFrame, like: pl.Series | pl.DataFrame
) -> pl.Series | pl.DataFrame:
    """Return a value with the names of another, or as it is if type or shape differ."""
    import polars as pl

    if value.shape == like.shape:
        if isinstance(value, pl.Series) and isinstance(like, pl.Series):
            return value.alias(like.name)
        if isinstance(value, pl.DataFrame) and isinstance(like, pl.DataFrame):
            return value.rename(dict(zip(value.columns, like.columns, strict=True)))
    return value


# ---------------------------------------------------------------------- declarations


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    series, frame, lists = _formats()
    return [
        *(series, frame, lists),
        *_views(),
        *gathered(series, gather, with_nulls=gather_with_nulls),
        *gathered(
            frame,
            gather_frame,
            if_exact=gather_if_exact,
            with_nulls=gather_frame_with_nulls,
            cost=_COLUMNS,
        ),
        *_from_numpy(),
        *_lists(),
        streamed(
            frame,
            from_table,
            copies=_COPIED_KINDS,
            shares=_SHARED_KINDS,
            adds={"bit_columns", "immutable"},
            refuses={"odd_columns"},
            adopt=adopt,
        ),
        *_series_of_arrow(),
        *_texts_and_dates(),
    ]


def _formats() -> list[Format]:
    limits = Limits(unsupported_now=_unsupported, refusal_hints=_REFUSAL_HINTS)
    common = partial(
        Format,
        carries=_CARRIED,
        requires="polars",
        install="pip install polars",
        labels=Labels(has_labels, give_labels),
    )
    return [
        common(
            "polars.series",
            types=("polars:Series",),
            describe=describe,
            dtypes=_DTYPES,
            unary=tuple(_series_casts()),
            memory=memory,
            ndims={1},  # this is for results; a Series of fixed-size arrays has more axes
            exports={"arrow_c_array": _DTYPES},
            advanced=Advanced(export={"arrow_c_array": without_objects}),
            limits=limits._replace(refusal_hints=_SERIES_HINTS),
        ),
        common(
            "polars.dataframe",
            # A LazyFrame is recognised so that the refusal gives the reason.
            types=("polars:DataFrame", "polars:LazyFrame"),
            target_types=("polars:DataFrame",),
            aliases=("pl",),
            describe=describe_frame,
            carries=_ANY_COLUMNS,
            dtypes=_DTYPES,
            unary=tuple(_frame_casts()),
            limits=limits._replace(refusal_hints=_FRAME_HINTS),
            memory=frame_memory,
            wrapper=Wrapper(only_column_of_rows, 1e-5),
            ndims={2},
            exports={"arrow_c_stream": _DTYPES},
            # Its own export has views of texts, which few functions of PyArrow's take.
            advanced=Advanced(
                export={"arrow_c_stream": to_pyarrow}, offers={"arrow_c_stream": offer}
            ),
        ),
        common(
            "polars.list",
            types=("polars:Series",),
            describe=describe,
            carries=_CARRIED | _NESTED | _HYBRID | _NULL_ROWS,
            dtypes=_DTYPES,
            wrapper=Wrapper(to_arrays, 1e-5),
            unary=tuple(_list_copies()),
            limits=limits,
            ndims=frozenset(range(2, 65)),
            samples=Samples(make=_lists_of, source="numpy"),
        ),
    ]


def elements_to_series(array: Array) -> pl.Series:
    """Return a Series of text, bytes or dates; NaT becomes null, and seconds milliseconds.

    Raises
    ------
    Declined
        Polars has no unit that holds all dates.
    """
    import numpy as np
    import polars as pl

    if array.dtype.kind in "Mm" and np.datetime_data(array.dtype)[0] in {"s", "m", "h"}:
        fine = array.astype(f"{array.dtype.kind}8[ms]")
        if not ((fine.astype(array.dtype) == array) | np.isnat(array)).all():
            msg = "Polars has no unit for all of its dates"
            raise Declined(msg)
        array = fine
    return pl.Series(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))


def elements_to_numpy(series: pl.Series) -> Array:
    """Return an array of dates, in which nulls are NaT, or of objects, in which they are None."""
    import numpy as np

    return np.array(series.to_numpy())


def _lists_of(array: Array) -> pl.Series:
    """Return the rows of an array as lists, to try conversions out."""
    import polars as pl

    return pl.Series(array).arr.to_list()


def _series_of_arrow() -> Iterable[Conversion]:
    """Yield the conversions of Series to Arrow's arrays and back, which keep nulls and texts.

    Series of other libraries keep their names on the way.
    """
    out = partial(Conversion, "polars.series", "pyarrow", elements_to_pyarrow, adds=_IMMUTABLE)
    out = partial(out, takes=_CARRIED, shares=True, drops=_SCATTERED, cost=Cost(2e-5, 2e10))
    yield out(takes=_IMMUTABLE, dtypes=_SHARED, requires=_MASKED, name="share_with_nulls")
    for traits in (_MASKED, _NOT_NUMBERS):
        yield out(requires=traits, effects=COPY, name="series_to_pyarrow")
    back = partial(Conversion, "arrow_c_array", "polars.series", from_stream, adds=_IMMUTABLE)
    locks = _IMMUTABLE | _READONLY
    drops = _READONLY | _FORTRAN | {"chunked", "unaligned"}
    back = partial(back, drops=drops, shares=True)
    yield back(takes=locks | _LABELLED, dtypes=_SHARED, cost=Cost(3e-5), name="share_stream")
    copied = partial(back, effects=COPY, cost=Cost(4e-5, 2e10), adds=_IMMUTABLE | _SCATTERED)
    copied = partial(copied, name="stream_to_series")
    chunked = frozenset({"chunked"})
    anything = (_CARRIED | drops | _LABELLED) - chunked - _FORTRAN - _SCATTERED
    numbers = anything - _UNTYPED
    yield copied(takes=anything, dtypes=_SHARED)
    yield copied(takes=anything, requires=chunked | _NOT_NUMBERS)
    for pieces in (_NONCONTIGUOUS, _SCATTERED):
        yield copied(takes=numbers, requires=pieces, dtypes=_SHARED, shares=False)
    yield copied(takes=numbers, requires=chunked, shares=False)
    # Truth values are bits in Arrow's memory, and bytes elsewhere.
    bools = partial(copied, dtypes=_BOOL, name="bools_to_series")
    yield bools(takes=numbers, requires=_IMMUTABLE)
    yield bools(takes=numbers - _IMMUTABLE, requires=_SCATTERED)
    yield bools(takes=numbers - _IMMUTABLE | _NONCONTIGUOUS, shares=False)
    yield Conversion(
        "pyarrow",
        "polars.series",
        from_stream,
        dtypes=_SHARED,
        takes=locks,
        requires=_MASKED,
        drops=_READONLY,
        adds=_IMMUTABLE,
        cost=Cost(3e-5),
        name="share_array_with_nulls",
    )


def _lists() -> Iterable[Conversion]:
    """Yield the conversions of lists to PyArrow's and back; those of one length are arrays."""
    make = partial(Conversion, "polars.list", "pyarrow.list", to_pyarrow, cost=Cost(2e-5))
    takes = _IMMUTABLE | _MASKED | _NESTED | _HYBRID | _NULL_ROWS
    make = partial(make, dtypes=_SHARED, result=Result(index_dtype="int64"))
    # Of more axes only rows of vectors are lists there: others are arrays.
    for vectors, ndims in ((EMPTY, {2}), (_HYBRID, range(3, 65))):
        rows = partial(make, takes=takes - _HYBRID, ndims=frozenset(ndims))
        name = "vectors_to_pyarrow" if vectors else "to_pyarrow"
        yield rows(requires=vectors, name=name)
        scattered = vectors | _SCATTERED
        yield rows(effects=COPY, name=f"{name}_joined", requires=scattered, drops=_SCATTERED)
    yield Conversion(
        "pyarrow.list",
        "polars.list",
        from_pyarrow,
        dtypes=_SHARED,
        takes=takes | _READONLY,
        adds=_IMMUTABLE,
        cost=Cost(2e-5),
    )


def _texts_and_dates() -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy, and to it."""
    units, kinds = ("ms", "us", "ns"), ("datetime", "timedelta")
    dates = {f"{kind}64[{unit}]$" for kind in kinds for unit in (*units, "s", "m", "h")}
    dates.add("datetime64[D]$")
    yield Conversion(
        "numpy",
        "polars.series",
        elements_to_series,
        dtypes=dates | {"<U", ">U", "|S", "StringDType("},
        takes=MEMORY_TRAITS - {"unaligned"},
        adds=_IMMUTABLE | _NOT_NUMBERS,
        effects=COPY,
        ndims=frozenset({1}),
        cost=Cost(2e-5, 2e8),
    )
    yield Conversion(
        "polars.series",
        "numpy",
        elements_to_numpy,
        # Of dates those without a time zone, which NumPy lacks.
        dtypes={"String$", "Binary$", "Date$", "Duration("}
        | {f"Datetime(time_unit='{unit}', time_zone=None)$" for unit in units},
        takes=_CARRIED,
        drops=_CARRIED - _NOT_NUMBERS,
        effects=COPY,
        cost=Cost(2e-5, 2e8),
    )


def _views() -> Iterable[Conversion]:
    """Yield the conversions to NumPy that share memory."""
    share = partial(Conversion, target="numpy", function=to_numpy, dtypes=_SHARED, adds=_READONLY)
    yield share(
        "polars.series",
        takes=_IMMUTABLE,
        cost=Cost(1.5e-6),
        fast_path=series_fast_path,
        name="series_to_numpy",
    )
    kinds = _IMMUTABLE | _FORTRAN | COLUMN_TRAITS | {"indexed"}
    drops = COLUMN_TRAITS | {"indexed"}
    yield share(
        "polars.dataframe", takes=kinds, drops=drops, cost=Cost(4e-6), name="block_to_numpy"
    )
    yield Conversion(
        "polars.series",
        "numpy.ma",
        series_to_masked,
        requires=_MASKED,
        effects=COPY,
        takes=_IMMUTABLE,
        dtypes=_SHARED,
        adds=_READONLY,
        shares=True,
        cost=Cost(2e-5, 2e10),
    )


def _from_numpy() -> Iterable[Conversion]:
    make = partial(Conversion, "numpy", adds=_IMMUTABLE)
    shareable = frozenset({"readonly", "immutable"})
    yield make("polars.series", to_series, dtypes=_SHARED, takes=shareable, cost=Cost(1.1e-5))
    copy = partial(make, takes=MEMORY_TRAITS - {"byteswapped"}, effects=COPY)
    yield copy(
        "polars.series",
        to_series,
        dtypes=_BOOL,
        adds=_IMMUTABLE | _SCATTERED,
        cost=Cost(5e-6, 2e10),
        name="to_bits",
    )
    frame = partial(copy, "polars.dataframe", to_frame, cost=_COLUMNS)
    yield frame(dtypes=_SHARED, adds=_IMMUTABLE | _FORTRAN)
    bits = _IMMUTABLE | _SCATTERED | {"bit_columns"}
    yield frame(dtypes=_BOOL, adds=bits, name="to_frame_of_bits")
    masked = partial(Conversion, "numpy.ma", "polars.dataframe", frame_from_masked)
    masked = partial(masked, requires=_MASKED, takes=MEMORY_TRAITS - {"byteswapped"})
    yield masked(dtypes=_DTYPES, effects=COPY, adds=bits, cost=_COLUMNS)


def _series_casts() -> Iterable[Conversion]:
    """Yield the casts of Series, which keep the names and the nulls."""
    kept = _CARRIED - _SCATTERED
    yield Copy(copy_series, takes=kept, requires=_NOT_NUMBERS, adds=_IMMUTABLE, cost=_GATHER)
    make = partial(Cast, recast, cost=_GATHER)
    for traits in (EMPTY, _SCATTERED, _UNTYPED, _MASKED, _MASKED | _UNTYPED):
        drops = traits - _MASKED
        takes = _IMMUTABLE | (_SCATTERED if traits & _MASKED else EMPTY)
        adds = _IMMUTABLE | (_SCATTERED if traits & _MASKED else EMPTY)
        yield make(_SHARED, requires=traits, drops=drops, takes=takes, adds=adds)
        name = "recast_to_bits"
        bits = adds | _SCATTERED
        yield make(_BOOL, requires=traits, drops=drops, takes=takes, adds=bits, name=name)


def _list_copies() -> Iterable[Conversion]:
    """Yield the copies of lists, which keep the names; chunks are joined."""
    for scattered in (EMPTY, _SCATTERED):
        yield Copy(
            copy_lists,
            takes=_IMMUTABLE | _MASKED | _NESTED | _HYBRID | _NULL_ROWS,
            requires=scattered,
            adds=_IMMUTABLE,
            cost=_GATHER,
        )


def _frame_casts() -> Iterable[Conversion]:
    """Yield the steps within DataFrames, which keep the names; casts make one block of numbers."""
    adds = _IMMUTABLE | _SCATTERED
    yield Copy(copy_frame, takes=_ANY_COLUMNS | ROW_TRAITS, adds=adds, cost=_COLUMNS)
    yield CastColumns(
        cast_columns, takes=_ANY_COLUMNS, drops=_FORTRAN | _SCATTERED, adds=adds, cost=_COLUMNS
    )
