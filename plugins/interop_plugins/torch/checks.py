"""Checks that the indices of a sparse tensor lie inside it, which torch's kernels take on trust.

Indices on a device are not looked at: that would wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from interop.errors import HandOffError
from interop.kit import check_coordinates, check_ends, check_lines

from .describe import components

if TYPE_CHECKING:
    from torch import Tensor

#: The layouts that are compressed by columns.
_BY_COLUMNS = frozenset({"torch.sparse_csc", "torch.sparse_bsc"})
_BLOCKED = frozenset({"torch.sparse_bsr", "torch.sparse_bsc"})


def checked(value: Tensor) -> Tensor:
    """Return a tensor as it is, once one pass over its indices has found nothing outside.

    Raises
    ------
    HandOffError
        Something is.
    """
    layout = str(value.layout)
    if not value.is_cpu or not layout.startswith("torch.sparse"):
        return value
    values, *places = components(value.detach())
    if len(places) == 1:
        sides = tuple(value.shape[: value.sparse_dim()])
        check_coordinates(_name(value), places[0].numpy(), sides)
        return value
    sides = _sides(value, values)
    indices, pointers = (
        part.flatten(0, -2).numpy() if part.dim() > 1 else part.numpy()[None] for part in places
    )
    for row, starts in zip(indices, pointers, strict=True):
        check_lines(_name(value), row, starts, sides, len(row), exact=True)
    return value


def check_ends_of(value: Tensor, pointers: Tensor, stored: int) -> None:
    """Refuse a compressed tensor whose pointers start elsewhere than at 0, or end elsewhere."""
    if value.is_cpu and pointers.dim() == 1:
        lines, _ = _sides(value, value.detach().values())
        check_ends(_name(value), pointers.numpy(), lines, stored, exact=True)


def check_size(shape: Sequence[int]) -> None:
    """Refuse a shape with more elements than torch counts, though few are stored."""
    if prod(shape) >= 2**63:
        msg = f"torch counts elements in 64 bits, too few for {tuple(shape)}; convert it in parts."
        raise HandOffError(msg)


def _name(value: Tensor) -> str:
    return f"a {value.layout} tensor"


def _sides(value: Tensor, values: Tensor) -> tuple[int, int]:
    """Return the number of lines of each matrix, and their length, both in blocks if it has any."""
    layout, batches = str(value.layout), value.dim() - value.dense_dim() - 2
    rows, columns = value.shape[batches : batches + 2]
    if layout in _BLOCKED:
        height, width = values.shape[batches + 1 : batches + 3]
        rows, columns = rows // height, columns // width
    return (columns, rows) if layout in _BY_COLUMNS else (rows, columns)
