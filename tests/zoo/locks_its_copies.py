"""Gives copies that cannot be written."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "readonly", "cannot be written")


def lie(grid: Grid) -> Grid:
    """Return a copy that is locked."""
    numbers = grid.numbers.copy(order="C")
    numbers.flags.writeable = False
    return Grid(numbers)


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
