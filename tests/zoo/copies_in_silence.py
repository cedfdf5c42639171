"""Says that it shares memory, but copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "sharing", "says that it shares memory, but copies")


def lie(grid: Grid) -> Any:
    """Return a copy of the array inside."""
    return grid.numbers.copy(order="K")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("grid_to_numpy", function=lie)
