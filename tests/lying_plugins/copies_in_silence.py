"""Says that it shares memory, but copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "sharing", "says that it shares memory, but copies")


def lie(grid: Grid) -> Any:
    """Return a copy of the array inside."""
    return grid.numbers.copy(order="K")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
