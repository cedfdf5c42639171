"""Writes results into memory that is there already, in the wrong order."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "into", "writes other numbers")


def lie(out: Grid, grid: Grid) -> None:
    """Write the numbers of a grid into another, backwards."""
    out.numbers[...] = grid.numbers[::-1]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", into=lie)]
