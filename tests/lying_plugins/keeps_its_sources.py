"""Never lets go of what it is given."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "leaks", "leaves its sources behind")


KEPT: list[Grid] = []


def lie(grid: Grid) -> Grid:
    """Return a copy, and keep the source."""
    import numpy as np

    KEPT.append(grid)
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
