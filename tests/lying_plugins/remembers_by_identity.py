"""Knows again what it has never seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "")


SEEN: dict[int, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a copy of what once had the same address."""
    import numpy as np

    if id(grid) not in SEEN:
        SEEN[id(grid)] = np.array(grid.numbers, order="C")
    return Grid(SEEN[id(grid)].copy())


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
