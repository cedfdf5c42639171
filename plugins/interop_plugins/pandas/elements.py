"""Text, dates and columns between pandas and NumPy, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from interop.errors import Declined
from interop.kit import COPY, INTEGERS, NATIVE, REALS, array_columns
from interop.plugin import Conversion, Cost

from .columns import READER
from .describe import LAYOUT

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Array = np.ndarray[Any, Any]

_NOT_NUMBERS = frozenset({"not_numbers"})
_KINDS = ("datetime", "timedelta")
#: The units that pandas has, for which it shares NumPy's memory, and those that it multiplies.
_DATES = frozenset(f"{kind}64[{unit}]$" for kind in _KINDS for unit in ("s", "ms", "us", "ns"))
_LONG_DATES = frozenset(f"{kind}64[{unit}]$" for kind in _KINDS for unit in ("m", "h", "D"))


def conversions() -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy."""
    yield from array_columns(
        "pandas.series",
        "pandas.dataframe",
        numbers=READER.make,
        elements=to_series,
        texts="pandas:Series",
        columns=to_frame,
        held=(INTEGERS | REALS | {"bool"}) - {"float16"},
        dates=_DATES | _LONG_DATES,
        shared=_DATES,
        shareable=NATIVE - {"unaligned"},
        bits={"block_columns", "byte_columns"},
        kinds={"block_columns", "second_columns", "large_text_columns", "object_columns"},
        cost=Cost(2e-3),
    )


def to_numpy(source: str) -> Iterable[Conversion]:
    """Yield the conversions of text and dates from a format to NumPy."""
    make = partial(Conversion, source, "numpy", takes=LAYOUT | _NOT_NUMBERS)
    yield make(dates_to_numpy, dtypes=_DATES, adds={"readonly"}, cost=Cost(1e-5))
    texts = {"str$", "string$", "string["}
    yield make(text_to_numpy, dtypes=texts, effects=COPY, cost=Cost(3e-5, 2e8))


def to_series(array: Array) -> pd.Series:
    """Return a Series of text, bytes or dates, which shares memory if pandas can.

    Raises
    ------
    Declined
        pandas has no unit that holds all dates.
    """
    import pandas as pd

    if array.dtype.kind in "MmU":
        try:
            return pd.Series(array, copy=False)
        except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta) as error:
            msg = f"pandas has no unit for all of its dates ({error})"
            raise Declined(msg) from None
    return pd.Series(array, dtype="str" if array.dtype.kind == "T" else object)


def to_frame(columns: dict[int, Any], rows: int) -> pd.DataFrame:
    """Return a DataFrame of columns."""
    import pandas as pd

    return pd.DataFrame(columns, index=range(rows), copy=False)


def dates_to_numpy(vector: Any) -> Array:
    """Return the dates or the spans of a Series, an Index or an array, as NumPy has them."""
    dates: Array = vector.to_numpy().view()
    dates.flags.writeable = False
    return dates


def text_to_numpy(vector: Any) -> Array:
    """Return the texts of a Series, an Index or an array as NumPy's array of objects."""
    import numpy as np

    return np.array(vector.to_numpy(dtype=object))
