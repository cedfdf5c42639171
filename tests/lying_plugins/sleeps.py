"""Takes its time without doing anything."""

from __future__ import annotations

import time
from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "cost", "times as long as its declared cost")


def lie(grid: Grid) -> Grid:
    """Return a copy, after a nap."""
    import numpy as np

    time.sleep(0.002)
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
