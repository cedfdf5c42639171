"""Checks that the index arrays of a value lie inside it, which SciPy's kernels take on trust."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from interop.errors import HandOffError
from interop.plugin.advanced import check_coordinates, check_ends, check_lines

if TYPE_CHECKING:
    from collections.abc import Sized
    from typing import Any, TypeAlias

    #: A ``csr_array``, a ``coo_matrix`` …: SciPy ships no types.
    Sparse: TypeAlias = Any

_COMPRESSED = ("csr", "csc", "bsr")


def checked(value: Sparse) -> Sparse:
    """Return a value as it is, once one pass over its index arrays has found nothing outside.

    Raises
    ------
    HandOffError
        Something is.
    """
    if value.format in _COMPRESSED:
        check_indices(value)
    elif value.format == "coo":
        check_coordinates(_name(value), value.coords, value.shape)
    return value


def check_indices(value: Sparse) -> None:
    """Refuse a compressed value with indices or pointers that lead outside."""
    check_lines(_name(value), value.indices, value.indptr, _sides(value), _stored(value))


def check_ends_of(value: Sparse) -> None:
    """Refuse a compressed value whose pointers do not start at 0, or end beyond its elements."""
    check_ends(_name(value), value.indptr, _sides(value)[0], _stored(value))


def check_lengths(value: Sparse, arrays: tuple[Sized, ...]) -> None:
    """Refuse a coo value without one index for each axis of each element."""
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1 or len(arrays) != 1 + len(value.shape):
        msg = (
            f"{_name(value)} of shape {value.shape} holds arrays of the lengths "
            f"{[len(array) for array in arrays]}; make it anew from arrays of one length."
        )
        raise HandOffError(msg)


def _name(value: Sparse) -> str:
    return f"a {type(value).__name__}"


def _stored(value: Sparse) -> int:
    return min(len(value.indices), len(value.data))


def _sides(value: Sparse) -> tuple[int, int]:
    """Return the number of lines of a compressed value, and their length."""
    shape = value.shape
    if len(shape) == 1:
        return 1, prod(shape)
    if value.format == "bsr":
        height, width = value.data.shape[1:]
        return shape[0] // height, shape[1] // width
    rows, columns = shape
    return (rows, columns) if value.format == "csr" else (columns, rows)
