"""Leaves its argument with other numbers."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "source", "changed the numbers of its argument")


def lie(grid: Grid) -> Grid:
    """Return a copy, and turn the numbers of the original about."""
    result = Grid(grid.numbers.copy(order="C"))
    if grid.numbers.flags.writeable:
        grid.numbers[...] = grid.numbers.ravel()[::-1].reshape(grid.numbers.shape).copy()
    return result


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
