"""Arrays of NumPy and Series: what shares memory, and what is written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interop.plugin import Declined

from .describe import NAMES, SHARED_NAMES

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


def series_to_masked(series: pl.Series) -> Any:
    """Return the numbers of a Series over their memory, with a mask in the places of nulls."""
    import numpy as np

    if getattr(series.dtype, "shape", ()) or series.n_chunks() != 1:
        msg = "it has axes or chunks"
        raise Declined(msg)
    array = series.to_arrow()
    numbers = np.frombuffer(array.buffers()[1], NAMES[str(series.dtype)])
    numbers = numbers[array.offset : array.offset + len(array)].view()
    numbers.flags.writeable = False
    return np.ma.MaskedArray(numbers, mask=series.is_null().to_numpy())


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


def lists_of(array: Array) -> pl.Series:
    """Return the rows of an array as lists, to try conversions out."""
    import polars as pl

    return pl.Series(array).arr.to_list()
