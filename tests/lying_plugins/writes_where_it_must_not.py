"""Writes into read-only memory."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "source", "argument, grid float32 3x4 (readonly)")


def lie(grid: Grid) -> Grid:
    """Return a copy, and unlock and clear the original if it was locked."""
    result = Grid(grid.numbers.copy(order="C"))
    if not grid.numbers.flags.writeable:
        grid.numbers.flags.writeable = True
        grid.numbers[...] = 0
        grid.numbers.flags.writeable = False
    return result


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
