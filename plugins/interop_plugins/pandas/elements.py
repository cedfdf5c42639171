"""Text and dates between pandas and NumPy, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from interop.errors import Declined
from interop.kit import COPY, text_elements
from interop.plugin import MEMORY_TRAITS, Conversion, Cost

from .describe import LAYOUT

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Array = np.ndarray[Any, Any]

_NOT_NUMBERS = frozenset({"not_numbers"})
#: The units that pandas has, for which it shares NumPy's memory, and those that it multiplies.
_DATES = frozenset(
    f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in ("s", "ms", "us", "ns")
)
_LONG_DATES = frozenset(
    f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in ("m", "h", "D")
)
_TEXTS = frozenset({"<U", ">U", "|S", "StringDType("})


def conversions() -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy and to it."""
    make = partial(Conversion, "numpy", target="pandas.series", function=to_series)
    make = partial(make, adds=_NOT_NUMBERS, ndims={1})
    taken = MEMORY_TRAITS - {"byteswapped", "unaligned"}
    yield make(dtypes=_DATES, takes=taken, cost=Cost(1e-5), name="share_dates")
    copy = partial(make, effects=COPY, takes=MEMORY_TRAITS - {"unaligned"}, cost=Cost(3e-5, 2e8))
    yield copy(dtypes=_LONG_DATES, takes=taken, name="dates_to_series")
    yield copy(dtypes=_TEXTS, name="text_to_series")
    objects = partial(copy, function=objects_to_series, takes=MEMORY_TRAITS | _NOT_NUMBERS)
    yield objects(dtypes=frozenset({"object$"}), name="objects_to_series")
    kinds = frozenset({"block_columns", "second_columns", "large_text_columns", "object_columns"})
    adds = _NOT_NUMBERS | kinds
    frame = partial(copy, target="pandas.dataframe", function=to_frame, adds=adds, ndims={2})
    yield frame(dtypes=_DATES | _LONG_DATES | _TEXTS, name="elements_to_frame")
    for name in ("series", "index", "array"):
        back = partial(Conversion, f"pandas.{name}", "numpy", takes=LAYOUT | _NOT_NUMBERS)
        yield back(
            dates_to_numpy, dtypes=_DATES, adds={"readonly"}, cost=Cost(1e-5), name=f"{name}_dates"
        )
        yield back(
            text_to_numpy,
            dtypes={"str$", "string$", "string["},
            effects=COPY,
            cost=Cost(3e-5, 2e8),
            name=f"{name}_of_text_to_numpy",
        )


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


def objects_to_series(array: Array) -> pd.Series:
    """Return a Series of text or bytes, some of which may be missing."""
    import pandas as pd

    return pd.Series(text_elements(array))


def to_frame(array: Array) -> pd.DataFrame:
    """Return a DataFrame of text, bytes or dates, column by column."""
    import pandas as pd

    columns = range(array.shape[1])
    return pd.DataFrame({n: to_series(array[:, n].copy()) for n in columns}, copy=False)


def dates_to_numpy(vector: Any) -> Array:
    """Return the dates or the spans of a Series, an Index or an array, as NumPy has them."""
    dates: Array = vector.to_numpy().view()
    dates.flags.writeable = False
    return dates


def text_to_numpy(vector: Any) -> Array:
    """Return the texts of a Series, an Index or an array as NumPy's array of objects."""
    import numpy as np

    return np.array(vector.to_numpy(dtype=object))
