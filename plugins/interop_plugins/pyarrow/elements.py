"""Text, dates and columns between Arrow's arrays and NumPy's, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any

from interop.errors import Declined
from interop.kit import COPY, array_columns
from interop.plugin import Conversion, Cost

from .dense import flat_array
from .dtypes import DTYPES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array = np.ndarray[Any, Any]

_NOT_NUMBERS = frozenset({"not_numbers"})
#: The kinds of columns of text and dates.
_KINDS = frozenset(
    {"block_columns", "text_columns", "large_text_columns", "bit_columns", "scattered"}
)
_UNITS = ("s", "ms", "us", "ns")
#: The dates of NumPy that Arrow has in the same bits; it has days in half of them.
_DATES = frozenset(f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in _UNITS)
#: The types of Arrow that NumPy has, too: dates without a time zone, text and bytes.
_HELD = frozenset(f"{kind}[{unit}]$" for kind in ("timestamp", "duration") for unit in _UNITS)
_HELD |= {"date32[day]$", "date64[ms]$"}
_HELD |= {f"{size}{kind}$" for size in ("", "large_") for kind in ("string", "binary")}
_HELD |= {"string_view$", "binary_view$"}


def conversions(chunks: Set[str]) -> Iterable[Conversion]:
    """Yield the conversions of text and dates from NumPy and to it.

    Parameters
    ----------
    chunks : set of str
        The traits that chunked arrays may have.
    """
    yield from array_columns(
        "pyarrow",
        "pyarrow.table",
        numbers=flat_array,
        elements=from_numpy,
        texts="pyarrow:array",
        columns=to_table,
        held=DTYPES,
        dates=_DATES | {"datetime64[D]$"},
        shared=_DATES,
        shareable={"readonly", "immutable"},
        adds={"immutable"},
        layout={"scattered"},
        bits={"bit_columns"},
        kinds=_KINDS,
        cost=Cost(2e-5, 1e9),
    )
    for name, traits in (
        ("pyarrow", frozenset({"immutable", "masked"})),
        ("pyarrow.chunked_array", chunks),
    ):
        yield Conversion(
            name,
            "numpy",
            to_numpy,
            dtypes=_HELD,
            takes=traits | _NOT_NUMBERS,
            drops=traits,
            effects=COPY,
            cost=Cost(1e-5, 2e8),
            name="elements_to_numpy",
        )


def from_numpy(array: Array) -> pa.Array:
    """Return Arrow's array of text, bytes or dates; NaT becomes null.

    Raises
    ------
    Declined
        Days do not fit Arrow's 32 bits, which would wrap around.
    """
    import numpy as np
    import pyarrow as pa

    if array.dtype == "M8[D]":
        days = array.view(np.int64)
        if (days.astype(np.int32) != days)[~np.isnat(array)].any():
            msg = "Arrow has no unit for all of its dates"
            raise Declined(msg)
    return pa.array(array)


def to_table(columns: dict[int, pa.Array], _rows: int) -> pa.Table:
    """Return a table of columns, which are named by their numbers."""
    import pyarrow as pa

    if not columns:
        msg = "a table without columns has no rows and no dtype"
        raise Declined(msg)
    return pa.table([*columns.values()], names=[*map(str, columns)])


def to_numpy(array: Any) -> Array:
    """Return an array of dates, in which nulls are NaT, or of objects, in which they are None."""
    import numpy as np

    return np.array(array.to_numpy(zero_copy_only=False))
