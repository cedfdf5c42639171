"""Says that it moves, and does not."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: move", "device", "gives a result on")


def lie(grid: Grid, *, device: str) -> Grid:
    """Return a copy on the device where the original is."""
    return Grid(grid.numbers.copy(), device=grid.device)


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("move", function=lie)
