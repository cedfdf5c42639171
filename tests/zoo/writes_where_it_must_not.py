"""Writes into read-only memory."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "source", "argument, grid float32 3x4 (readonly)")


def lie(grid: Grid) -> Grid:
    """Return a copy, and unlock and clear the original if it was locked."""
    result = Grid(grid.numbers.copy(order="C"))
    if not grid.numbers.flags.writeable:
        grid.numbers.flags.writeable = True
        grid.numbers[...] = 0
        grid.numbers.flags.writeable = False
    return result


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
