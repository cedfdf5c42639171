"""Drops the graph, and does not say so."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import LAYOUT, Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "traits", "loses 'grad', which it takes")


def lie(grid: Grid) -> Grid:
    """Return a copy with no graph behind it."""
    return Grid(grid.numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie, takes=LAYOUT | {"grad"})
