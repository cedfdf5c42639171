"""Leaves its argument with other numbers."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
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
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
