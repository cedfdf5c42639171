"""Declines after it has written into its argument."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Declined, Format, hookimpl
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
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
