"""Columns of polars, which lie in chunks of Arrow's memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import (
    INTEGERS,
    ColumnReader,
    cast_digits,
    cast_objects,
    checked_cast,
    common_dtype,
    dtype_name,
)
from interop.plugin import DTYPES, preserves

from .describe import NAMES, SHARED, elements_of, flat, own_name, polars_dtype

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]

#: The dtypes to which Polars casts; it has got float16 later.
_CAST_TO = SHARED - {"float16"} | {"bool"}
#: How many elements are written at a time.
_PIECE = 2**18


def columns(frame: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
    """Yield the name of each column, and the column."""
    return ((column.name, column) for column in frame.iter_columns())


def chunks(series: pl.Series) -> Iterator[pl.Series]:
    """Yield a Series in pieces that lie in one block each."""
    for chunk in series.get_chunks():
        yield from (chunk.slice(start, _PIECE) for start in range(0, chunk.len() or 1, _PIECE))


def numbers(chunk: pl.Series) -> Array:
    """Return the numbers of a Series of one chunk, with anything in the places of nulls."""
    name, inner_shape = elements_of(chunk.dtype)
    elements = flat(chunk)
    if elements.null_count():
        elements = elements.fill_null(False if name == "Boolean" else 0)
    array: Array = elements.to_numpy()
    return array.reshape(len(chunk), *inner_shape) if inner_shape else array


def nulls(chunk: pl.Series) -> Array | None:
    """Return the places of nulls in a Series of one chunk, also inside fixed-size arrays."""
    inner_shape = elements_of(chunk.dtype)[1]
    elements = flat(chunk)
    if not elements.null_count():
        return None
    places: Array = elements.is_null().to_numpy()
    return places.reshape(len(chunk), *inner_shape) if inner_shape else places


def untyped(series: pl.Series, *, dtype: str) -> Array:
    """Return the numbers of decimals, with NaN or zero for nulls."""
    import numpy as np

    target = np.dtype(dtype)
    numbers = _decimals(series.to_frame(), target)
    if numbers is not None:
        return numbers.reshape(-1)
    objects = np.array(series.to_list(), object)
    column: Array = cast_objects(objects, target, fill_nulls=True)
    return column


def _decimals(frame: pl.DataFrame, dtype: np.dtype[Any]) -> Array | None:
    """Return the numbers of decimals of one scale and few digits side by side; else None."""
    import polars as pl

    scales = {own.scale if isinstance(own, pl.Decimal) else None for own in frame.dtypes}
    scale = scales.pop()
    if scales or scale is None:
        return None
    if not _shows_digits():
        return None
    # polars cannot show NumPy its integers of 128 bits.
    few = frame.select(pl.all().to_physical().cast(pl.Int64, strict=False))
    gaps = _null_count(frame)
    if _null_count(few) != gaps:
        return None
    nulls = None
    if gaps:
        nulls = frame.select(pl.all().is_null()).to_numpy(order="fortran").T.reshape(-1)
        few = few.select(pl.all().fill_null(0))
    digits = few.to_numpy(order="fortran").T.reshape(-1, 1)
    numbers = cast_digits(digits, scale, dtype, nulls)
    return None if numbers is None else numbers.reshape(frame.shape[::-1]).T


@cache
def _shows_digits() -> bool:
    """Return whether the installed polars shows the integers of decimals; before 1.17 none did."""
    import polars as pl

    physical = pl.Series([], dtype=pl.Decimal(1, 0)).to_physical()
    return not isinstance(physical.dtype, pl.Decimal)


def _null_count(frame: pl.DataFrame) -> int:
    return sum(frame.null_count().row(0)) if frame.width else 0


def _is_cast_alike(own: str, dtype: str) -> bool:
    """Return whether polars casts a dtype to another as NumPy does, without errors to tell."""
    return preserves(own, dtype) or (own in INTEGERS and dtype in {"float32", "float64"})


def stack(frame: pl.DataFrame, *, dtype: str | None) -> Any:
    """Return columns side by side, with NaN or zero for nulls, by the calls of polars and NumPy.

    They are those of polars where it casts as NumPy does.
    """
    import numpy as np

    names = {kind.__name__ for kind in {*map(type, frame.dtypes)}}
    if dtype and names and all(name.startswith("Decimal") for name in names):
        numbers = _decimals(frame, np.dtype(dtype))
        return NotImplemented if numbers is None else numbers
    own = frozenset([NAMES.get(name, "") for name in names])
    if not own or "" in own:
        return NotImplemented
    dtype = dtype or common_dtype(own)[0]
    whole = frame.to_numpy(order="fortran")
    if whole.dtype != dtype:
        whole = _cast(frame, whole, own, dtype)
    return whole if whole is NotImplemented or whole.flags.writeable else np.array(whole, order="F")


def _cast(frame: pl.DataFrame, whole: Array, own: frozenset[str], dtype: str) -> Any:
    """Return columns in another dtype than that which polars gives to all of them.

    Parameters
    ----------
    frame : polars.DataFrame
    whole : numpy.ndarray
        Its columns. Polars makes floats of integers with nulls, and objects of bools with nulls.
    own : frozenset of str
        The dtypes of its columns.
    dtype : str
    """
    import polars as pl

    met = dtype_name(whole.dtype)
    is_exact = met in DTYPES and all(preserves(name, met) for name in own)
    are_floats = dtype.startswith("float") and met.startswith("float")
    if is_exact and (are_floats or ({met} == own and not _null_count(frame))):
        return checked_cast(whole, dtype)
    if dtype not in _CAST_TO or not all(_is_cast_alike(name, dtype) for name in own):
        return NotImplemented
    cast = pl.all().cast(polars_dtype(dtype))
    if not dtype.startswith("float"):
        cast = cast.fill_null(False if dtype == "bool" else 0)
    return frame.select(cast).to_numpy(order="fortran")


def mask(frame: pl.DataFrame) -> Array:
    """Return the places of nulls side by side."""
    import polars as pl

    places: Array = frame.select(pl.all().is_null()).to_numpy(order="fortran")
    return places


def make(numbers: Array, nulls: Array | None) -> pl.Series:
    """Return a Series over numbers, with nulls in some places."""
    import polars as pl

    series = pl.Series(numbers)
    return series if nulls is None else series.set(pl.Series(nulls), None)


READER = ColumnReader(
    columns=columns,
    numbers=numbers,
    nulls=nulls,
    chunks=chunks,
    dtype=lambda series: own_name(series.dtype),
    untyped=untyped,
    stack=stack,
    mask=mask,
    make=make,
)
