"""Text and dates between polars and NumPy, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import COPY, text_elements
from interop.plugin import MEMORY_TRAITS, Conversion, Cost, Declined

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]

_NO_UNIT = "Polars has no unit for all of its dates"

_IMMUTABLE, _NOT_NUMBERS = frozenset({"immutable"}), frozenset({"not_numbers"})
#: The traits of Series of text and dates.
_CARRIED = _IMMUTABLE | _NOT_NUMBERS | {"masked", "scattered", "untyped"}


def conversions() -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy, and to it."""
    units, kinds = ("ms", "us", "ns"), ("datetime", "timedelta")
    dates = {f"{kind}64[{unit}]$" for kind in kinds for unit in (*units, "s", "m", "h")}
    dates.add("datetime64[D]$")
    make = partial(Conversion, "numpy", takes=MEMORY_TRAITS - {"unaligned"}, effects=COPY)
    make = partial(make, dtypes=dates | {"<U", ">U", "|S", "StringDType("}, cost=Cost(2e-5, 2e8))
    adds = _IMMUTABLE | _NOT_NUMBERS
    vector = partial(make, target="polars.series", adds=adds, ndims=frozenset({1}))
    yield vector(function=elements_to_series)
    objects, takes = frozenset({"object$"}), MEMORY_TRAITS | _NOT_NUMBERS
    yield vector(function=objects_to_series, dtypes=objects, takes=takes)
    adds |= {"view_columns", "block_columns"}
    yield make("polars.dataframe", elements_to_frame, adds=adds, ndims=frozenset({2}))
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
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    try:
        series = pl.Series(native)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise Declined(str(error)) from error
    if is_date and series.null_count() != np.count_nonzero(np.isnat(array)):
        raise Declined(_NO_UNIT)  # of days it makes nulls
    return series


def objects_to_series(array: Array) -> pl.Series:
    """Return a Series of text or bytes, with nulls for what is missing."""
    import polars as pl

    return pl.Series(text_elements(array))


def elements_to_frame(array: Array) -> pl.DataFrame:
    """Return a DataFrame of text, bytes or dates, column by column."""
    import polars as pl

    columns = range(array.shape[1])
    return pl.DataFrame({f"column_{n}": elements_to_series(array[:, n].copy()) for n in columns})


def elements_to_numpy(series: pl.Series) -> Array:
    """Return an array of dates, in which nulls are NaT, or of objects, in which they are None."""
    import numpy as np

    return np.array(series.to_numpy())
