"""Gives copies that cannot be written."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "readonly", "cannot be written")


def lie(grid: Grid) -> Grid:
    """Return a copy that is locked."""
    numbers = grid.numbers.copy(order="C")
    numbers.flags.writeable = False
    return Grid(numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
