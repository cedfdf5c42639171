"""Text, dates and columns between polars and NumPy, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import COPY, array_columns
from interop.plugin import Conversion, Cost, Declined

from .columns import READER
from .describe import SHARED
from .tables import made

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]

_NO_UNIT = "Polars has no unit for all of its dates"

_NOT_NUMBERS = frozenset({"not_numbers"})
#: The traits of Series of text and dates.
_CARRIED = _NOT_NUMBERS | {"immutable", "masked", "scattered", "untyped"}


def conversions() -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy, and to it."""
    units, kinds = ("ms", "us", "ns"), ("datetime", "timedelta")
    dates = {f"{kind}64[{unit}]$" for kind in kinds for unit in (*units, "s", "m", "h")}
    yield from array_columns(
        "polars.series",
        "polars.dataframe",
        numbers=READER.make,
        elements=elements_to_series,
        texts="polars:Series",
        columns=to_frame,
        held=SHARED | {"bool"},
        dates=dates | {"datetime64[D]$"},
        adds={"immutable"},
        layout={"noncontiguous", "fortran"},
        bits={"bit_columns"},
        kinds={"view_columns", "block_columns"},
        cost=Cost(3e-5, 8e8),
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


def elements_to_series(array: Array) -> pl.Series:
    """Return a Series of text, bytes or dates; NaT becomes null, and seconds milliseconds.

    Raises
    ------
    Declined
        Polars has no unit that holds all dates.
    """
    import numpy as np
    import polars as pl

    is_date = array.dtype.kind in "Mm"
    if is_date and np.datetime_data(array.dtype)[0] in {"s", "m", "h"}:
        fine = array.astype(f"{array.dtype.kind}8[ms]")
        if not ((fine.astype(array.dtype) == array) | np.isnat(array)).all():
            raise Declined(_NO_UNIT)
        array = fine
    series = made(pl.Series, array)
    if is_date and series.null_count() != np.count_nonzero(np.isnat(array)):
        raise Declined(_NO_UNIT)  # of days it makes nulls
    return series


def to_frame(columns: dict[int, pl.Series], rows: int) -> pl.DataFrame:
    """Return a DataFrame of columns, or one of rows alone."""
    import polars as pl

    if columns:
        return pl.DataFrame({f"column_{n}": column for n, column in columns.items()})
    try:
        return pl.DataFrame(height=rows)
    except TypeError as error:
        if rows:
            msg = f"polars {pl.__version__} has no rows without columns"
            raise Declined(msg) from error
        return pl.DataFrame()
    except pl.exceptions.ComputeError as error:  # polars counts rows in 32 bits
        raise Declined(str(error)) from error


def elements_to_numpy(series: pl.Series) -> Array:
    """Return an array of dates, in which nulls are NaT, or of objects, in which they are None."""
    import numpy as np

    return np.array(series.to_numpy())
