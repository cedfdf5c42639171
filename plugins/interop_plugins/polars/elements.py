"""Text and dates between polars and NumPy, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import COPY
from interop.plugin import MEMORY_TRAITS, Conversion, Cost, Declined

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]

_IMMUTABLE, _NOT_NUMBERS = frozenset({"immutable"}), frozenset({"not_numbers"})
#: The traits of Series of text and dates.
_CARRIED = _IMMUTABLE | _NOT_NUMBERS | {"masked", "scattered", "untyped"}


def conversions() -> Iterable[Conversion]:
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
