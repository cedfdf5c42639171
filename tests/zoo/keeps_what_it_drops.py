"""Says that the graph is gone, and keeps it."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: detach if grad", "traits", "is 'grad', and says that it drops that")


def lie(grid: Grid) -> Grid:
    """Return a grid with the graph behind it that the other had."""
    return Grid(grid.numbers, grid.mask, grad=True)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("detach", function=lie)
