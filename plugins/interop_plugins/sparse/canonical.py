"""Checks that coordinates are sorted and distinct, which the library takes on trust."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from interop.errors import HandOffError
from interop.kit import (
    check_coordinates,
    check_ends,
    check_lines,
    inspect_once,
    rising,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    DType: TypeAlias = np.dtype[Any]
    Scalar: TypeAlias = np.generic[Any]
    #: A COO, GCXS or DOK array: the library ships no types.
    Sparse: TypeAlias = Any


#: The last check of each living value, by its id.
_inspected: dict[int, Any] = {}


def shape_of(value: Sparse) -> tuple[int, ...]:
    """Return the shape as Python's integers; the library leaves NumPy's in it, as in a sum's."""
    return tuple(map(index, value.shape))


def check_once(value: Sparse, arrays: tuple[Array, ...], check: Callable[[Sparse], bool]) -> bool:
    """Return whether a value is canonical, checked once for the arrays it has now."""
    return inspect_once(_inspected, value, tuple(map(id, arrays)), lambda: check(value))


def check_lengths(value: Sparse) -> None:
    """Refuse a COO array without one index along each axis for each element."""
    data, coords = value.data, value.coords
    if coords.shape != (len(value.shape), len(data)) or data.ndim != 1:
        msg = (
            f"a sparse.COO of {len(value.shape)} axes holds coordinates of shape {coords.shape} "
            f"and numbers of shape {data.shape}; make it anew from correct arrays."
        )
        raise HandOffError(msg)


def has_canonical_coordinates(value: Sparse) -> bool:
    """Tell whether the coordinates of a COO array are sorted and distinct.

    Raises
    ------
    HandOffError
        Some are outside of its shape.
    """
    check_coordinates("a sparse.COO", value.coords, shape_of(value))
    if not value.shape:
        return len(value.data) <= 1
    return bool(rising(value.coords).all())


def has_canonical_rows(value: Sparse) -> bool:
    """Tell whether the indices of every row of a GCXS array are sorted and distinct.

    Raises
    ------
    HandOffError
        Some indices or pointers lead outside of it.
    """
    check_rows(value)
    indices, pointers = value.indices, value.indptr
    is_after = indices[1:] > indices[:-1]
    starts = pointers[1:-1]
    # The first index of a row may be anything.
    is_after[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(is_after.all())


def is_always_canonical(value: Sparse) -> bool:
    """Return True: the order does not matter, as these arrays are sorted on the way to COO.

    Raises
    ------
    HandOffError
        Some indices or pointers lead outside of the array.
    """
    check_rows(value)
    return True


def check_rows(value: Sparse) -> None:
    """Refuse a GCXS array with indices or pointers that lead outside of it."""
    shape = shape_of(value)
    if len(shape) < 2:  # there are no pointers
        check_coordinates("a sparse.GCXS", (value.indices,) * len(shape), shape)
        return
    sides = _sides(value, shape)
    check_lines("a sparse.GCXS", value.indices, value.indptr, sides, _stored(value))


def check_row_ends(value: Sparse) -> None:
    """Refuse a GCXS array whose pointers do not start at 0, or end beyond its elements."""
    lines, _ = _sides(value, shape_of(value))
    check_ends("a sparse.GCXS", value.indptr, lines, _stored(value))


def _stored(value: Sparse) -> int:
    return min(len(value.indices), len(value.data))


def _sides(value: Sparse, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of lines, each of some axes, and their length."""
    lines = prod(shape[axis] for axis in value.compressed_axes)
    return lines, prod(n for axis, n in enumerate(shape) if axis not in value.compressed_axes)


def sorting_order(coords: Array, shape: tuple[int, ...]) -> Array:
    """Return the order that sorts coordinates, by the flat index of each place where it has one."""
    import numpy as np

    if prod(shape) < 2**63:
        return np.argsort(np.ravel_multi_index(tuple(coords), shape), kind="stable")
    return np.lexsort(coords[::-1])


def is_canonical(value: Sparse) -> bool:
    """Tell whether a COO array, or a GCXS array of two axes, is canonical, checked once."""
    if hasattr(value, "coords"):
        return check_once(value, (value.coords,), has_canonical_coordinates)
    return check_once(value, (value.indices, value.indptr), has_canonical_rows)
