"""Fails on arrays with no elements."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "fails on grid")


class GridError(Exception):
    """An exception that nobody outside knows."""


def lie(grid: Grid) -> Grid:
    """Return a copy of a grid that has elements."""
    if not grid.numbers.size:
        raise GridError
    return Grid(grid.numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
