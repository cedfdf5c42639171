"""Arrays of subclasses: masked ones, and those with attributes that others have added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .dense import cast as cast_numbers
from .dense import copy_to_native

if TYPE_CHECKING:
    import numpy as np

    from .copies import Order
    from .dtypes import Array

    Masked: TypeAlias = np.ma.MaskedArray[Any, Any]


def to_masked(value: Array) -> Masked:
    """Return an array as a masked one over its memory, of which nothing is masked."""
    import numpy as np

    return np.ma.MaskedArray(value, copy=False, subok=False)


def copy(value: Array, *, order: Order = "C") -> Array:
    """Return a writable copy of its class in an order."""
    return _classed(copy_to_native(_numbers(value), order=order), value)


def cast(value: Array, *, dtype: str) -> Array:
    """Return a copy of its class and of another dtype, its numbers cast as NumPy casts."""
    return _classed(cast_numbers(_numbers(value), dtype=dtype), value)


def _numbers(value: Array) -> Array:
    """Return the numbers, also those under a mask."""
    import numpy as np

    return value.view(np.ndarray)


def _classed(numbers: Array, value: Array) -> Array:
    """Return a copy of an array's numbers as NumPy's own ``copy`` and ``astype`` return it.

    The class itself says what its arrays inherit: a copy of the mask, the fill value, a unit.
    """
    classed: Array = numbers.view(type(value))
    classed.__array_finalize__(value)
    return classed
