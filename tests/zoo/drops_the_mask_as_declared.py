"""Says that it drops masks, and does not call that an effect."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: drop_mask if masked", "effects", "without the effect 'drop_mask'")


def lie(grid: Grid) -> Grid:
    """Return the grid without its mask."""
    return Grid(grid.numbers, grad=grid.grad)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("drop_mask", function=lie, effects=frozenset(), name="drop_mask")
