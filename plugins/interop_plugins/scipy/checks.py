"""Checks that the index arrays of a value lie inside it, which SciPy's kernels take on trust."""

from __future__ import annotations

from math import prod
from operator import eq
from typing import TYPE_CHECKING

from interop.errors import HandOffError
from interop.kit import check_coordinates, check_ends, check_lines

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
    elif value.format == "lil":
        _check_lists(value)
    return value


def check_indices(value: Sparse) -> None:
    """Refuse a compressed value with indices or pointers that lead outside."""
    stored = _stored(value)  # first: the sides of blocks are told by the axes that this checks
    check_lines(_name(value), value.indices, value.indptr, _sides(value), stored)


def check_ends_of(value: Sparse) -> None:
    """Refuse a compressed value whose pointers do not start at 0, or end beyond its elements."""
    stored = _stored(value)  # first, as above
    check_ends(_name(value), value.indptr, _sides(value)[0], stored)


def check_lengths(value: Sparse, arrays: tuple[Sized, ...]) -> None:
    """Refuse a coo value without one index for each axis of each element."""
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1 or len(arrays) != 1 + len(value.shape):
        msg = (
            f"{_name(value)} of shape {value.shape} holds arrays of the lengths "
            f"{[len(array) for array in arrays]}; make it anew from arrays of one length."
        )
        raise HandOffError(msg)


def check_diagonals(value: Sparse) -> None:
    """Refuse a dia value that does not have one offset for each of its diagonals."""
    data, offsets = value.data, value.offsets
    if data.ndim != 2 or offsets.ndim != 1 or len(data) != len(offsets):
        msg = (
            f"{_name(value)} holds diagonals of shape {data.shape} and offsets of shape "
            f"{offsets.shape}; make it anew with one offset for each diagonal."
        )
        raise HandOffError(msg)


def _check_lists(value: Sparse) -> None:
    """Refuse a lil value whose rows do not store a number for each of their indices."""
    rows, data = value.rows, value.data
    try:
        agree = len(rows) == len(data) == value.shape[0] and all(
            map(eq, map(len, rows.tolist()), map(len, data.tolist()))
        )
    except TypeError:  # not all of them are lists
        agree = False
    if not agree:
        msg = f"{_name(value)} does not hold an index for each number; make it anew from its rows."
        raise HandOffError(msg)


def _name(value: Sparse) -> str:
    return f"a {type(value).__name__}"


def _stored(value: Sparse) -> int:
    """Return how many elements, or blocks, have an index and a number."""
    indices, data = value.indices, value.data
    if data.ndim != (3 if value.format == "bsr" else 1):
        msg = f"{_name(value)} holds numbers of shape {data.shape}; make it anew from components."
        raise HandOffError(msg)
    return min(len(indices), len(data))


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
