"""Has a mistake in the function that makes its masked grids."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Samples, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "variants", "variants['masked'] fails: AttributeError: 'Grid' object has no")


def lie(grid: Grid) -> Grid:
    """Return a masked grid, if grids had a shape."""
    return Grid(grid.numbers, grid.shape)  # type: ignore[attr-defined]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(samples=Samples(variants={"masked": lie})), *conversions()]
