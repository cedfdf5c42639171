"""polars: Series and DataFrames.

Names of columns are no part of an array: they are dropped when it leaves, and stay from polars to
polars. A Series' memory never changes and is shared, read-only, if it is of numbers in one chunk
without nulls; truth values are bits in polars. An array's memory becomes a Series' if it is one
aligned block. The columns of a DataFrame lie apart from each other, or not, by chance: they are
always copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import UnknownValueError
from interop.plugin import (
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Limits,
    Result,
    Spec,
    hookimpl,
    itemsize,
    preserves,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array = np.ndarray[Any, Any]

__all__ = ["interop_declarations"]

_COPY, _DTYPE = frozenset({"copy"}), frozenset({"dtype"})
_READONLY, _GAPS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_IMMUTABLE, _MASKED = frozenset({"immutable"}), frozenset({"masked"})
_SCATTERED, _OTHER = frozenset({"scattered"}), frozenset({"not_numbers"})
_MIXED = frozenset({"mixed"})

_BOOL = frozenset({"bool"})
_SHARED = frozenset({"float16", "float32", "float64"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_DTYPES = _SHARED | _BOOL

#: polars' names of numbers, which NumPy writes small.
_NAMES = {"Boolean": "bool"} | {
    f"UI{name[2:]}" if name.startswith("u") else name.capitalize(): name for name in _SHARED
}

#: Elements that are written at a time.
_PIECE = 2**18
_GATHER = Cost(2e-5, 8e9)
#: Between those of few long columns and of many short ones, each of which polars has to make.
_COLUMNS = Cost(3e-5, 2e9)

#: The one dtype that has a place for the numbers of columns that have no dtype in common. No array
#: is made of it: it says what would be lost.
_WIDEST = "longdouble"
_LONG = frozenset({_WIDEST})

_OBSTACLES = {
    "not_numbers": "these are not numbers of an array; choose columns that are "
    "(x.select('a', 'b'), x.select(polars.selectors.numeric())), or turn them into numbers in "
    "polars first (x.cast(...), x.to_physical(), x.list.to_array(...)).",
    "mixed": "its columns have several dtypes, and the dtype that NumPy would give them all does "
    "not hold the numbers of each (Int64 and Float64 is the usual pair); choose columns of one "
    "dtype (x.select('a', 'b')), or ask for the dtype of the result with dtype=.",
}


def describe(series: Any) -> Spec:
    """Return the spec of a Series. One of fixed-size arrays has their axes, too."""
    dtype, shape = series.dtype, (series.len(),)
    base, inner = _elements(dtype)
    name = _NAMES.get(str(base))
    if name is None:
        return Spec("polars.series", str(dtype), "cpu", shape, _OTHER | _IMMUTABLE, 8 * shape[0])
    shape += inner
    traits = _IMMUTABLE
    if series.n_chunks() != 1 or name == "bool":
        traits |= _SCATTERED
    if _has_nulls(series, inner):
        traits |= _MASKED
    return Spec("polars.series", name, "cpu", shape, traits, prod(shape) * itemsize(name))


def _elements(dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the dtype of the elements of fixed-size arrays, and the axes of the arrays."""
    inner = getattr(dtype, "shape", ())
    for _ in inner:
        dtype = dtype.inner
    return dtype, inner


def _has_nulls(series: Any, inner: tuple[int, ...]) -> bool:
    """Tell whether there are nulls, in the arrays as well."""
    if series.null_count():
        return True
    return bool(inner) and bool(_flat(series).null_count())


def _flat(series: Any) -> Any:
    return series.reshape((-1,)) if getattr(series.dtype, "shape", ()) else series


def describe_frame(frame: Any) -> Spec:
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
    name, traits = _look(frame)
    shape = frame.shape
    return Spec("polars.dataframe", name, "cpu", shape, traits, prod(shape) * itemsize(name))


def _look(frame: Any) -> tuple[str, frozenset[str]]:
    dtypes = frame.dtypes
    known = {str(dtype) for dtype in dtypes}
    if not known <= _NAMES.keys():
        return _other_columns(frame), _OTHER | _IMMUTABLE
    nulls = any(column.null_count() for column in frame.iter_columns())
    name = _common(frozenset(_NAMES[dtype] for dtype in known))
    traits = _IMMUTABLE | (_MASKED if nulls else frozenset())
    return name or _WIDEST, traits if name else traits | _MIXED


def _other_columns(frame: Any) -> str:
    """Name the columns that are not of numbers, one for each dtype."""
    first: dict[str, str] = {}
    for column, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if str(dtype) not in _NAMES:
            first.setdefault(str(dtype), column)
    return ", ".join(f"{dtype} (column {column!r})" for dtype, column in first.items())


def _common(names: frozenset[str]) -> str:
    """Return the dtype that NumPy finds for some; "" if it cannot hold all of each."""
    import numpy as np

    if len(names) < 2:
        return next(iter(names), "float64")
    found: str = np.result_type(*map(np.dtype, names)).name
    return found if all(preserves(one, found) for one in names) else ""


def to_numpy(series: Any) -> Array:
    """Return a read-only array over the memory of a Series."""
    try:
        array: Array = series.to_numpy(allow_copy=False).view()
    except RuntimeError as reason:
        raise Declined(str(reason)) from reason
    array.flags.writeable = False
    return array


def series_fast_path(series: Any) -> Any:
    """Return a read-only array over the memory of a Series of numbers that has no nulls."""
    if series.n_chunks() != 1 or series.null_count() or str(series.dtype) not in _SHARED_NAMES:
        return NotImplemented
    array = series.to_numpy(allow_copy=False)
    return NotImplemented if array.flags.writeable else array


_SHARED_NAMES = _NAMES.keys() - {"Boolean"}


def gather(series: Any, *, dtype: str) -> Array:
    """Return the numbers of a Series in a new array."""
    import numpy as np

    base, inner = _elements(series.dtype)
    out = np.empty((series.len(), *inner), dtype)
    _write(out.reshape(-1), _flat(series), _NAMES[str(base)])
    return out


def fill_nulls(series: Any) -> Array:
    """Return the numbers, with NaN for the nulls of reals, zero or False for others."""
    return gather(series, dtype=_NAMES[str(_elements(series.dtype)[0])])


def gather_frame(frame: Any, *, dtype: str) -> Array:
    """Return the columns side by side in a new array, in polars' order: each is one block."""
    import numpy as np

    rows, columns = frame.shape
    out = np.empty((columns, rows), dtype)
    for part, column in zip(out, frame.iter_columns(), strict=True):
        _write(part, column, _NAMES[str(column.dtype)])
    return out.T


def fill_frame_nulls(frame: Any) -> Array:
    """Return the columns side by side, with NaN for the nulls, or zero if that is no real array."""
    return gather_frame(frame, dtype=_look(frame)[0])


def _write(out: Array, series: Any, name: str) -> None:
    """Write a Series into an array of any dtype, cast as NumPy casts; nulls become NaN or zero."""
    import numpy as np

    with np.errstate(all="ignore"):
        for start, piece in _pieces(series):
            part, nulls = out[start : start + piece.len()], None
            if piece.null_count():
                nulls = piece.is_null().to_numpy()
                piece = piece.fill_null(False if name == "bool" else 0)  # noqa: PLW2901
            part[...] = piece.to_numpy()
            if nulls is not None:
                part[nulls] = float("nan") if out.dtype.kind in "fc" else 0


def _pieces(series: Any) -> Iterator[tuple[int, Any]]:
    done = 0
    for chunk in series.get_chunks():
        for start in range(0, chunk.len(), _PIECE):
            yield done + start, chunk.slice(start, _PIECE)
        done += chunk.len()


def recast(series: Any, *, dtype: str) -> pl.Series:
    """Return a Series of the same name in memory of its own, cast as NumPy casts."""
    import polars as pl

    return pl.Series(series.name, gather(series, dtype=dtype))


def recast_frame(frame: Any, *, dtype: str) -> pl.DataFrame:
    """Return a DataFrame of the same names in memory of its own, cast as NumPy casts."""
    return _frame(gather_frame(frame, dtype=dtype), frame.columns)


def to_series(array: Any) -> pl.Series:
    """Return a Series over the memory of an array; of truth values, with bits of its own."""
    import polars as pl

    return pl.Series(array)


def to_frame(array: Any) -> pl.DataFrame:
    """Return a DataFrame of a copy of an array, each column of which is one block."""
    import numpy as np

    block = np.array(np.asarray(array).T, order="C", copy=True)
    return _frame(block.T, [f"column_{n}" for n in range(array.shape[1])])


def _frame(columns: Array, names: list[str]) -> pl.DataFrame:
    """Return a DataFrame over the memory of the columns of an array."""
    import polars as pl

    if not names:
        return pl.DataFrame(height=columns.shape[0])
    return pl.DataFrame([pl.Series(n, c) for n, c in zip(names, columns.T, strict=True)])


def memory(series: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the numbers of a Series, chunk by chunk.

    Bits, and numbers beside nulls, are in memory that is not shared with anyone.
    """
    import numpy as np

    if str(_elements(series.dtype)[0]) not in _SHARED_NAMES or _has_nulls(
        series, _elements(series.dtype)[1]
    ):
        return ()
    views = (chunk.to_numpy() for chunk in series.get_chunks() if chunk.len())
    bounds = (np.lib.array_utils.byte_bounds(view) for view in views if view.size)
    return tuple((low, high - low) for low, high in bounds)


def frame_memory(frame: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the numbers of a DataFrame."""
    return tuple(extent for column in frame.iter_columns() for extent in memory(column))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the formats of Series and DataFrames."""
    common: dict[str, Any] = {
        "carries": _IMMUTABLE | _MASKED | _SCATTERED | _MIXED | _OTHER,
        "requires": "polars",
        "install": "pip install polars",
        "has_labels": True,
        "transit": False,
    }
    return [
        Format(
            "polars.series",
            types=("polars:Series",),
            describe=describe,
            dtypes=_DTYPES,
            memory=memory,
            ndims=frozenset({1}),  # of those that are made: others are of fixed-size arrays
            limits=Limits(refusal_hints=_OBSTACLES),
            **common,
        ),
        Format(
            "polars.dataframe",
            # A LazyFrame is recognised in order to be refused with the reason.
            types=("polars:DataFrame", "polars:LazyFrame"),
            target_types=("polars:DataFrame",),
            describe=describe_frame,
            dtypes=_DTYPES | _LONG,
            limits=Limits(unsupported={"cpu": _LONG}, refusal_hints=_OBSTACLES),
            memory=frame_memory,
            ndims=frozenset({2}),
            **common,
        ),
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the ways to NumPy and back, and the casts that keep the names."""
    return [*_series(), *_frames(), *_into(), *_within()]


def _series() -> Iterable[Conversion]:
    make = partial(Conversion, "polars.series", "numpy")
    yield make(
        to_numpy,
        dtypes=_SHARED,
        takes=_IMMUTABLE,
        adds=_READONLY,
        cost=Cost(1.5e-6),
        fast_path=series_fast_path,
        name="series_to_numpy",
    )
    written: dict[str, Any] = {"takes": _IMMUTABLE, "cost": _GATHER}
    yield make(
        gather,
        requires=_SCATTERED,
        drops=_SCATTERED,
        changes=_DTYPE,
        result=Result(dtypes=_DTYPES),
        effects=_COPY,
        name="gather_series",
        **written,
    )
    written["takes"] |= _SCATTERED
    yield make(
        fill_nulls,
        requires=_MASKED,
        drops=_MASKED | _SCATTERED,
        effects=_COPY | {"drop_mask"},
        name="fill_series_nulls",
        **written,
    )


def _frames() -> Iterable[Conversion]:
    make = partial(
        Conversion, "polars.dataframe", "numpy", takes=_IMMUTABLE, adds=_GAPS, cost=_COLUMNS
    )
    cast: dict[str, Any] = {"changes": _DTYPE, "result": Result(dtypes=_DTYPES), "effects": _COPY}
    yield make(gather_frame, name="gather_dataframe", **cast)
    yield make(
        gather_frame, requires=_MIXED, drops=_MIXED, dtypes=_LONG, name="gather_mixed", **cast
    )
    cast["effects"] = losing = _COPY | {"drop_mask"}
    yield make(
        fill_frame_nulls,
        requires=_MASKED,
        drops=_MASKED,
        effects=losing,
        name="fill_dataframe_nulls",
    )
    yield make(
        gather_frame,
        requires=_MIXED | _MASKED,
        drops=_MIXED | _MASKED,
        dtypes=_LONG,
        name="fill_mixed_nulls",
        **cast,
    )


def _into() -> Iterable[Conversion]:
    make = partial(Conversion, "numpy", adds=_IMMUTABLE)
    locked = frozenset({"readonly", "immutable", "pinned"})
    yield make("polars.series", to_series, dtypes=_SHARED, takes=locked, cost=Cost(1.1e-5))
    copied: dict[str, Any] = {"takes": MEMORY_TRAITS - {"byteswapped"}, "effects": _COPY}
    bits = partial(make, "polars.series", to_series, adds=_IMMUTABLE | _SCATTERED)
    yield bits(name="to_bits", dtypes=_BOOL, cost=Cost(5e-6, 2e10), **copied)
    yield make("polars.dataframe", to_frame, dtypes=_DTYPES, cost=_COLUMNS, **copied)


def _within() -> Iterable[Conversion]:
    make = partial(Conversion, takes=_IMMUTABLE, changes=_DTYPE, effects=_COPY)
    series = partial(make, "polars.series", "polars.series", recast, cost=_GATHER)
    for requires in (frozenset(), _SCATTERED):
        shared: dict[str, Any] = {"requires": requires, "drops": requires}
        yield series(result=Result(dtypes=_SHARED), adds=_IMMUTABLE, **shared)
        bits = {"adds": _IMMUTABLE | _SCATTERED, "name": "recast_to_bits", **shared}
        yield series(result=Result(dtypes=_BOOL), **bits)
    frame = partial(
        make,
        "polars.dataframe",
        "polars.dataframe",
        recast_frame,
        adds=_IMMUTABLE,
        result=Result(dtypes=_DTYPES),
        cost=_COLUMNS,
    )
    yield frame()
    yield frame(requires=_MIXED, drops=_MIXED, dtypes=_LONG)
