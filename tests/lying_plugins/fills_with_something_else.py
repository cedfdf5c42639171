"""Writes other numbers than it was given into out=."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "fill", "writes other numbers")


def lie(out: Grid, grid: Grid) -> None:
    """Write the numbers of a grid into another, backwards."""
    out.numbers[...] = grid.numbers[::-1]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(fill=lie), *conversions()]
