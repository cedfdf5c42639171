"""Sequences of rows of several lengths: lists of numbers or of arrays, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import interop
from interop.kit import numpy_dtype
from interop.plugin import Declined, Parts

from . import numbers
from .numbers import SEQUENCES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Rows = Sequence[Any]


def lengths_of(value: Rows) -> list[int] | None:
    """Return the lengths of the rows of a sequence; None if an element is no row."""
    lengths = []
    for row in value:
        if isinstance(row, SEQUENCES):
            lengths.append(len(row))
        else:
            shape = getattr(row, "shape", None)
            if not shape:
                return None
            lengths.append(int(shape[0]))
    return lengths


def chained(value: Rows) -> list[Any] | None:
    """Return what rows hold, one after the other; None if some are arrays."""
    if all(isinstance(row, SEQUENCES) for row in value):
        return list(chain.from_iterable(value))
    return None


def unpack(value: Rows) -> Parts:
    """Return the values of all rows in new memory, and the offsets of the rows."""
    spec = interop.spec(value)
    return Parts(
        spec.shape, {"values": _values(value, str(spec.dtype)), "offsets": _offsets(value)}
    )


def _values(value: Rows, dtype: str) -> Array:
    import numpy as np

    target, elements = numpy_dtype(dtype), chained(value)
    if elements is not None:
        array: Array = interop.convert(elements, "numpy", dtype=target)
        return array
    rows = [
        row
        if type(row) is np.ndarray and row.dtype == target
        else interop.convert(row, "numpy", dtype=target)
        for row in value
    ]
    return np.concatenate(rows)


def _offsets(value: Rows) -> Array:
    import numpy as np

    lengths = lengths_of(value) or []
    return np.cumsum([0, *lengths], dtype=index_dtype(sum(lengths)))


def index_dtype(stored: int) -> str:
    """Return the dtype of the offsets of so many numbers, which is that of Arrow's lists."""
    return "int32" if stored < 2**31 else "int64"


def pack(parts: Parts) -> list[Array]:
    """Return a list of the rows, over the memory of the values."""
    return split(parts.arrays["values"], parts.arrays["offsets"])


def split(values: Array, offsets: Array) -> list[Array]:
    """Return the rows between offsets."""
    return [values[start:end] for start, end in pairwise(offsets.tolist())]


def padded(value: Rows) -> Array:
    """Return the rows one below the other in a new array, with zeros after the shorter ones."""
    import numpy as np

    parts = unpack(value)
    values, offsets = parts.arrays["values"], parts.arrays["offsets"]
    out = np.zeros(parts.shape, values.dtype)
    out[np.arange(parts.shape[1]) < np.diff(offsets)[:, np.newaxis]] = values
    return out


def detached(value: Rows) -> list[Any]:
    """Return rows without their history, over the same memory where NumPy can have it."""
    return [interop.convert(row, "numpy") for row in value]


def cast(value: Rows, *, dtype: str) -> list[Array]:
    """Return rows of several dtypes as arrays of one."""
    target = numpy_dtype(dtype)
    return [interop.convert(row, "numpy", dtype=target) for row in value]


def cast_to_common(value: Rows) -> list[Array]:
    """Return rows of several dtypes as arrays of the dtype that NumPy gives to them together."""
    return cast(value, dtype=str(interop.spec(value).dtype))


def to_arrays(value: Rows) -> list[Array]:
    """Return rows of Python's numbers as arrays that hold every number exactly."""
    return split(numbers.to_numpy(chained(value) or []), _offsets(value))


def to_dtype(value: Rows, *, dtype: str) -> list[Array]:
    """Return rows of Python's numbers as arrays of a dtype that was asked for."""
    return _with(numbers.to_dtype, value, dtype)


def to_default(value: Rows, *, dtype: str) -> list[Array]:
    """Return rows of Python's numbers as arrays of the dtype that a framework gives them."""
    return _with(numbers.to_default, value, dtype)


def _with(read: Callable[..., Array], value: Rows, dtype: str) -> list[Array]:
    return split(read(chained(value), dtype=dtype), _offsets(value))


def sample(value: np.ndarray[Any, Any]) -> list[Any]:
    """Return the rows of an array in a list, of which the first lacks its last element."""
    if value.ndim < 2 or len(value) < 2 or not value.shape[1]:
        msg = "rows differ in length only if there are two, and one is not empty"
        raise Declined(msg)
    return [value[0, :-1], *value[1:]]
