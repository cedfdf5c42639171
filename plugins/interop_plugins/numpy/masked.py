"""Masked arrays: numbers with a mask beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .dense import cast as cast_numbers
from .dense import copy_to_native

if TYPE_CHECKING:
    import numpy as np

    from .dtypes import Array

    Masked: TypeAlias = np.ma.MaskedArray[Any, Any]


def to_masked(value: Array) -> Masked:
    """Return an array as a masked one over its memory, of which nothing is masked."""
    import numpy as np

    return np.ma.MaskedArray(value, copy=False, subok=False)


def copy(value: Masked) -> Masked:
    """Return a C-ordered, writable copy with a mask of its own."""
    return _with_mask(value, copy_to_native(_numbers(value)))


def copy_to_fortran(value: Masked) -> Masked:
    """Return a writable copy in Fortran order with a mask of its own, which lies likewise."""
    return copy(value.T).T


def cast(value: Masked, *, dtype: str) -> Masked:
    """Return a copy of another dtype with a mask of its own, its numbers cast as NumPy casts."""
    return _with_mask(value, cast_numbers(_numbers(value), dtype=dtype))


def _numbers(value: Masked) -> Array:
    """Return the numbers, also those under the mask."""
    import numpy as np

    numbers: Array = np.ma.getdata(value, subok=False)
    return numbers.view(np.ndarray)


def _with_mask(value: Masked, numbers: Array) -> Masked:
    import numpy as np

    mask = np.ma.getmask(value)
    return np.ma.MaskedArray(numbers, mask=mask if mask is np.ma.nomask else mask.copy())
