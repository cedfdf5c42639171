"""Arrays of NumPy and Series: what shares memory, and what is written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import arrow_numbers
from interop.plugin import Declined

from .describe import SHARED_NAMES

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]


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
    if series.n_chunks() != 1 or series.null_count() or str(series.dtype) not in SHARED_NAMES:
        return NotImplemented
    array = series.to_numpy(allow_copy=False)
    return NotImplemented if array.flags.writeable else array


def frame_fast_path(frame: pl.DataFrame) -> Any:
    """Return a read-only array over the memory of columns of numbers that are one block."""
    try:
        array = frame.to_numpy(allow_copy=False)
    except (RuntimeError, ValueError):  # old Polars has no array of no columns
        return NotImplemented
    is_plain = array.dtype.kind in "iuf" and array.ndim == 2
    return NotImplemented if array.flags.writeable or not is_plain else array


def series_to_masked(series: pl.Series) -> Any:
    """Return the numbers of a Series over their memory, with a mask in the places of nulls."""
    import numpy as np

    if getattr(series.dtype, "shape", ()) or series.n_chunks() != 1:
        msg = "it has axes or chunks"
        raise Declined(msg)
    return np.ma.MaskedArray(arrow_numbers(series.to_arrow()), mask=series.is_null().to_numpy())


def to_series(array: Array) -> pl.Series:
    """Return a Series over the memory of an array; truth values become bits in new memory."""
    import polars as pl

    return pl.Series(array)


def lists_of(array: Array) -> pl.Series:
    """Return the rows of an array as lists, to try conversions out."""
    import polars as pl

    return pl.Series(array).arr.to_list()
