"""Drops the graph, and does not say so."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import LAYOUT, Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "traits", "loses 'grad', which it takes")


def lie(grid: Grid) -> Grid:
    """Return a copy with no graph behind it."""
    return Grid(grid.numbers.copy(order="C"))


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie, takes=LAYOUT | {"grad"})
