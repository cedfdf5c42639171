"""Knows again what it has never seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "")


SEEN: dict[object, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a copy of the first grid that had this shape and dtype.

    A cache by address lies in the same way, but only where an address is used again: its lie comes to light by luck.
    """
    import numpy as np

    key = (grid.numbers.shape, grid.numbers.dtype)
    if key not in SEEN:
        SEEN[key] = np.array(grid.numbers, order="C")
    return Grid(SEEN[key].copy())


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
