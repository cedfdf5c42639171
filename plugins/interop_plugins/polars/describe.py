"""The specs of polars' Series and DataFrames, and where their memory lies."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Set
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from interop.errors import UnknownValueError
from interop.kit import (
    EMPTY,
    INTEGERS,
    REALS,
    buffer_extents,
    common_dtype,
    describe_columns,
    extents,
    extents_of_all,
    kinds_of_type,
)
from interop.plugin import Spec, itemsize

from . import labels

if TYPE_CHECKING:
    import polars as pl
    from polars.datatypes import DataTypeClass

    Extents: TypeAlias = tuple[tuple[int, int], ...]
    #: The name of a dtype, whether its columns lie in one chunk each and have nulls.
    _Facts: TypeAlias = tuple[str, bool, bool]

_IMMUTABLE, _MASKED = frozenset({"immutable"}), frozenset({"masked"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})
_NULL_ROWS, _NESTED = frozenset({"null_rows"}), frozenset({"nested"})
_HYBRID = frozenset({"hybrid"})
_FORTRAN = frozenset({"noncontiguous", "fortran"})
#: The traits of decimals.
_UNTYPED = _NOT_NUMBERS | {"untyped"}

#: The dtypes whose memory NumPy and polars can share.
SHARED = INTEGERS | REALS
#: NumPy's names of the dtypes of numbers, by polars' names.
NAMES = {"Boolean": "bool"} | {
    f"UI{name[2:]}" if name.startswith("u") else name.capitalize(): name for name in SHARED
}
SHARED_NAMES = NAMES.keys() - {"Boolean"}
#: The beginnings of polars' names of dtypes whose elements have elements.
_NESTED_NAMES = ("List", "Array", "Struct")


# ---------------------------------------------------------------------- specs


def describe(series: pl.Series) -> Spec:
    """Return the spec of a Series; the axes of fixed-size arrays come after its own axis."""
    dtype = series.dtype
    if _holds_lists(dtype) and (spec := _describe_lists(series)) is not None:
        return spec
    shape: tuple[int, ...] = (series.len(),)
    elements, inner_shape = elements_of(dtype)
    name = NAMES.get(elements)
    if name is None:
        traits = _IMMUTABLE | _NOT_NUMBERS
        if dtype.is_decimal():
            traits |= _UNTYPED | _MASKED if series.null_count() else _UNTYPED
        return Spec("polars.series", str(dtype), "cpu", shape, traits, 8 * shape[0])
    shape += inner_shape
    traits = _IMMUTABLE
    if series.n_chunks() != 1 or name == "bool":
        traits |= _SCATTERED
    if has_nulls(series, inner_shape):
        traits |= _MASKED
    return Spec("polars.series", name, "cpu", shape, traits, prod(shape) * itemsize(name))


def _holds_lists(dtype: pl.DataType) -> bool:
    """Tell whether rows are lists of numbers, however deep, whose lengths are not in the type."""
    import polars as pl

    *levels, elements = _levels(dtype)
    return str(elements) in NAMES and any(isinstance(level, pl.List) for level in levels)


def _levels(dtype: pl.DataType) -> Iterator[pl.DataType]:
    """Yield a dtype, then that of the elements of its lists or arrays, down to numbers."""
    import polars as pl

    yield dtype
    while isinstance(dtype, (pl.List, pl.Array)):
        dtype = cast("pl.DataType", dtype.inner)
        yield dtype


def _describe_lists(series: pl.Series) -> Spec | None:
    """Return the spec of a Series of lists, whose second axis is as long as its longest row.

    Lists that have one length at each level are arrays. Of lists of lists that differ in length
    within the rows it returns None.
    """
    import polars as pl

    if _lengths(series) is not None:
        spec = describe(to_arrays(series))
        return spec._replace(format="polars.list", wrapped=spec.format)
    first, *levels, elements = _levels(series.dtype)
    if isinstance(first, pl.Array):
        return None
    name, lengths = NAMES[str(elements)], series.list.len()
    rows = series.filter(lengths > 0).explode()
    if any(isinstance(level, pl.List) for level in levels):
        if _lengths(rows) is None:
            return None
        rows = to_arrays(rows)
    inner = elements_of(rows.dtype)[1]
    longest, stored = cast("int", lengths.max() or 0), int(lengths.sum() or 0)
    nulls = series.null_count() or has_nulls(rows, inner)
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


def elements_of(dtype: pl.DataType) -> tuple[str, tuple[int, ...]]:
    """Return polars' name of the elements' dtype, and the shape of fixed-size arrays."""
    elements: pl.DataType | DataTypeClass = dtype
    shape: tuple[int, ...] = getattr(dtype, "shape", ())
    for _ in shape:
        elements = cast("pl.Array", elements).inner
    return str(elements), shape


def has_nulls(series: pl.Series, inner_shape: tuple[int, ...]) -> bool:
    """Tell whether there are nulls, also inside fixed-size arrays."""
    if series.null_count():
        return True
    return bool(inner_shape) and bool(flat(series).null_count())


def flat(series: pl.Series) -> pl.Series:
    """Return the elements of fixed-size arrays one after another."""
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
    facts = _facts(frame)
    name, traits = _inspect_frame(frame, facts)
    traits = traits.union(*(_kinds(*fact) for fact in facts))
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


def _inspect_frame(frame: pl.DataFrame, facts: Set[_Facts]) -> tuple[str, frozenset[str]]:
    """Return the common dtype of the columns, and their traits."""
    names = {name for name, *_ in facts}
    # Of numbers alone it takes less time to look at each dtype once.
    others = zip(map(name_of, frame.dtypes), frame.columns, strict=True)
    columns = zip(names, names, strict=True) if names <= NAMES.keys() else others
    name, several = describe_columns((NAMES.get(own, own), column) for own, column in columns)
    traits = _IMMUTABLE | several
    nulls = any(has_nulls for *_, has_nulls in facts)
    traits |= _MASKED if nulls else EMPTY
    if "not_numbers" in several:
        return name, traits if "untyped" in several else traits - _MASKED
    if nulls or several or name == "bool" or not _is_one_block(frame):
        traits |= _SCATTERED
    elif min(frame.shape) > 1:
        traits |= _FORTRAN
    return name, traits


def _is_one_block(frame: pl.DataFrame) -> bool:
    """Tell whether the columns lie side by side, as polars itself finds out."""
    try:
        frame.to_numpy(allow_copy=False)
    except RuntimeError:
        return False
    return True


def to_arrays(series: pl.Series) -> pl.Series:
    """Return lists of one length at each level as arrays over the same memory."""
    import polars as pl

    *_, elements = _levels(series.dtype)
    return series.cast(pl.Array(elements, cast("tuple[int, ...]", _lengths(series))))


def frame_fast_key(frame: pl.DataFrame) -> tuple[object, ...] | None:
    """Return what tells one DataFrame from another: all that its spec says, and reads of columns.

    What is in lists is told by others.
    """
    if frame.width < 2:
        return None
    rows, columns = frame.shape
    is_block = rows > 0 and _is_one_block(frame)
    # The columns of a block are like the first, without nulls.
    facts = {(name_of(frame.to_series().dtype), True, False)} if is_block else _facts(frame)
    names = {name for name, *_ in facts}
    others = names - NAMES.keys()
    is_plain = len(names) > 1 or all(name.startswith("Decimal") for name in others)
    if not is_plain or any(name.startswith(_NESTED_NAMES) for name in others):
        return None
    numbers = frozenset([NAMES[name] for name in names - others])
    dtype, _ = common_dtype(numbers, "others" if others else "")
    size = (rows * columns * itemsize(dtype)).bit_length() >> 1  # its `size_class`
    return frozenset(facts), is_block, min(rows, 2), labels.present(frame), size


# ---------------------------------------------------------------------- kinds of columns


def _facts(frame: pl.DataFrame) -> set[_Facts]:
    """Return the dtypes of columns, whether each lies in one chunk, and whether any is null."""
    columns, dtypes = _columns(frame), frame.dtypes
    names = {kind.__name__ for kind in {*map(type, dtypes)}}
    if not names <= NAMES.keys():
        names = {*map(name_of, dtypes)}
    # As nearly always:
    if {c.n_chunks() for c in columns} <= {1} and {c.null_count() for c in columns} <= {0}:
        return {(name, True, False) for name in names}
    return {
        (name_of(dtype), column.n_chunks() == 1, column.null_count() > 0)
        for dtype, column in zip(dtypes, columns, strict=True)
    }


def _columns(frame: pl.DataFrame) -> list[Any]:
    """Return the columns without the Series around each, which takes ten times as long to make."""
    inner = getattr(frame, "_df", None)
    return frame.get_columns() if inner is None else inner.get_columns()


#: The words in Polars' names of dtypes that Arrow's names have others for.
_WORDS = {
    "Categorical": "dictionary",
    "Enum": "dictionary",
    "String": "string_view",
    "Binary": "binary_view",
    "Boolean": "bool",
    "Null": "null",
    "Datetime(": "timestamp(",
    "Duration(": "duration(",
    "time_zone='": "tz='",
}


@lru_cache(maxsize=4096)
def _kinds(name: str, is_one: bool, has_nulls: bool) -> frozenset[str]:
    """Return the traits of a column by the name of its dtype."""
    if name == "Object":
        return frozenset({"object_columns"})
    type_ = NAMES.get(name, name)
    for own, word in _WORDS.items():
        type_ = type_.replace(own, word)
    kinds = kinds_of_type(type_, 1 if is_one else 2, has_nulls)
    # Of texts the views are written anew, but not the places of nulls.
    return kinds - {"block_columns"} if name in {"String", "Binary"} and not has_nulls else kinds


def name_of(dtype: pl.DataType) -> str:
    """Return Polars' name of a dtype; that of numbers is the name of the class, told sooner."""
    name = type(dtype).__name__
    return name if name in NAMES else str(dtype)


def own_name(dtype: pl.DataType) -> str:
    """Return the dtype of a column of numbers, or ``untyped`` of decimals."""
    return NAMES.get(str(dtype), "untyped" if dtype.is_decimal() else "")


def polars_dtype(name: str) -> pl.DataType:
    """Return the dtype of polars by NumPy's name."""
    import polars as pl

    own = next(own for own, other in NAMES.items() if other == name)
    return cast("pl.DataType", getattr(pl, own))


# ---------------------------------------------------------------------- memory


def memory(series: pl.Series) -> Extents:
    """Return the addresses and lengths of the memory of the numbers of a Series, chunk by chunk.

    That of others than plain numbers is told by PyArrow; () if it is not there.
    """
    elements, inner_shape = elements_of(series.dtype)
    if elements in SHARED_NAMES and not has_nulls(series, inner_shape):
        chunks = (chunk for chunk in series.get_chunks() if chunk.len())
        return extents(chunk.to_numpy() for chunk in chunks)
    pa = sys.modules.get("pyarrow")
    # Of objects and categories Arrow gets nothing that tells where they lie.
    if pa is None or str(series.dtype).startswith(("Object", "Categorical", "Enum")):
        return ()
    return buffer_extents(pa.table(series.to_frame()).columns)


def frame_memory(frame: pl.DataFrame) -> Extents:
    """Return the addresses and lengths of the memory of a DataFrame; () if one is unknown."""
    return extents_of_all(map(memory, frame.iter_columns()))
