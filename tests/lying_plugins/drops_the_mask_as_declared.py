"""Says that it drops masks, and does not call that an effect."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: drop_mask if masked", "effects", "without the effect 'drop_mask'")


def lie(grid: Grid) -> Grid:
    """Return the grid without its mask."""
    return Grid(grid.numbers, grad=grid.grad)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(),
        *changed("drop_mask", function=lie, effects=frozenset(), name="drop_mask"),
    ]
