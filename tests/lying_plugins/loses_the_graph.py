"""Drops the graph, and does not say so."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import LAYOUT, Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "traits", "loses 'grad', which it takes")


def lie(grid: Grid) -> Grid:
    """Return a copy with no graph behind it."""
    return Grid(grid.numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie, takes=LAYOUT | {"grad"})]
