"""Says that the graph is gone, and keeps it."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: detach if grad", "traits", "is 'grad', but declares that it drops that")


def lie(grid: Grid) -> Grid:
    """Return a grid with the graph behind it that the other had."""
    return Grid(grid.numbers, grid.mask, grad=True)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("detach", function=lie)]
