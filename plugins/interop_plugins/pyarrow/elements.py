"""Text and dates between Arrow's arrays and NumPy's, by the constructors of both."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial
from typing import TYPE_CHECKING, Any

from interop.errors import Declined
from interop.kit import COPY, text_elements
from interop.plugin import MEMORY_TRAITS, Conversion, Cost

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array = np.ndarray[Any, Any]

_NOT_NUMBERS, _IMMUTABLE = frozenset({"not_numbers"}), frozenset({"immutable"})
_UNITS = ("s", "ms", "us", "ns")
#: The dates of NumPy that Arrow has in the same bits, and those that it has in half of them.
_DATES = frozenset(f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in _UNITS)
_DAYS = frozenset({"datetime64[D]$"})
_TEXTS = frozenset({"<U", "|S", "StringDType("})
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
    import_ = partial(Conversion, "numpy", target="pyarrow", function=from_numpy)
    import_ = partial(import_, adds=_IMMUTABLE | _NOT_NUMBERS)
    locks = frozenset({"readonly", "immutable"})
    yield import_(dtypes=_DATES, takes=locks, cost=Cost(5e-6), name="share_dates", ndims={1})
    copy = partial(import_, effects=COPY, cost=Cost(1e-5, 2e8), ndims={1})
    copy = partial(copy, takes=MEMORY_TRAITS - {"byteswapped", "unaligned"})
    gaps = frozenset({"noncontiguous"})
    yield copy(dtypes=_DATES, requires=gaps, name="join_dates")
    yield copy(dtypes=_DAYS | _TEXTS, name="text_to_arrow")
    objects = partial(copy, function=from_objects, takes=MEMORY_TRAITS | _NOT_NUMBERS)
    yield objects(dtypes=frozenset({"object$"}), name="objects_to_arrow")
    kinds = frozenset({"block_columns", "text_columns", "large_text_columns", "bit_columns"})
    adds = _IMMUTABLE | _NOT_NUMBERS | kinds | {"scattered"}
    table = partial(copy, target="pyarrow.table", function=to_table, adds=adds, ndims={2})
    yield table(dtypes=_DATES | _DAYS | _TEXTS, name="elements_to_table")
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


def from_objects(array: Array) -> pa.Array:
    """Return Arrow's array of text or bytes, with nulls for what is missing."""
    import pyarrow as pa

    return pa.array(text_elements(array))


def to_table(array: Array) -> pa.Table:
    """Return a table of text, bytes or dates, whose columns are named by their numbers."""
    import pyarrow as pa

    columns = {str(n): from_numpy(array[:, n].copy()) for n in range(array.shape[1])}
    return pa.table(columns)


def to_numpy(array: Any) -> Array:
    """Return an array of dates, in which nulls are NaT, or of objects, in which they are None."""
    import numpy as np

    return np.array(array.to_numpy(zero_copy_only=False))
