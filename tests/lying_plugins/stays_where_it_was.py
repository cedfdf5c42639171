"""Says that it moves, and does not."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: move", "device", "returns a result on")


def lie(grid: Grid, *, device: str) -> Grid:
    """Return a copy on the device where the original is."""
    return Grid(grid.numbers.copy(), device=grid.device)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("move", function=lie)]
