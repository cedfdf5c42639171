"""Declines after it has written into its argument."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Declined, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "source", "and then declined it")


def lie(grid: Grid) -> Grid:
    """Return a copy of a grid of two axes; find out too late that there are others."""
    numbers = grid.numbers
    if numbers.ndim != 2 and numbers.size > 1:
        numbers[...] = 0
        msg = "it has too many axes, or too few"
        raise Declined(msg)
    return Grid(numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
