"""Says that it shares memory, but copies."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "sharing", "says that it shares memory, but copies")


def lie(grid: Grid) -> Any:
    """Return a copy of the array inside."""
    return grid.numbers.copy(order="K")


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("grid_to_numpy", function=lie)
