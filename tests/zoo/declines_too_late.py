"""Declines after it has written into its argument."""

from __future__ import annotations

from interop.plugin import Conversion, Declined, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "source", "and then declined it")


def lie(grid: Grid) -> Grid:
    """Return a copy of a grid of two axes; find out too late that there are others."""
    numbers = grid.numbers
    if numbers.ndim != 2 and numbers.size > 1:
        numbers[...] = 0
        msg = "it has too many axes, or too few"
        raise Declined(msg)
    return Grid(numbers.copy(order="C"))


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
