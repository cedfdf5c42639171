"""Sets a variable for everybody."""

from __future__ import annotations

import os
from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "state", "changes the environment")


def lie(grid: Grid) -> Grid:
    """Return a copy, and set a variable."""
    import numpy as np

    os.environ["GRID_WAS_HERE"] = "1"
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
