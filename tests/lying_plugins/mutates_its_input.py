"""Leaves its argument with other numbers."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "source", "changed the numbers of its argument")


def lie(grid: Grid) -> Grid:
    """Return a copy, and turn the numbers of the original about."""
    result = Grid(grid.numbers.copy(order="C"))
    if grid.numbers.flags.writeable:
        grid.numbers[...] = grid.numbers.ravel()[::-1].reshape(grid.numbers.shape).copy()
    return result


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
