"""Gives copies that cannot be written."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "readonly", "cannot be written")


def lie(grid: Grid) -> Grid:
    """Return a copy that is locked."""
    numbers = grid.numbers.copy(order="C")
    numbers.flags.writeable = False
    return Grid(numbers)


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
