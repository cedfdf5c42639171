"""Gives rows for columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "shape", "returns the shape")


def lie(grid: Grid) -> Any:
    """Return the array inside, the other way round."""
    return grid.numbers.T


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
