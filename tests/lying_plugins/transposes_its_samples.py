"""Makes variants with their axes swapped."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Samples, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "variants", "returned shape 6x4, as describe has it, for a sample of 4x6")


def lie(grid: Grid) -> Grid:
    """Return a grid whose rows are the columns of another."""
    return Grid(grid.numbers.T)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    samples = Samples(variants={"noncontiguous": lie})
    return [grid_format(samples=samples), *conversions()]
