"""Warns of nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "state", "warns: grids are old")


def lie(grid: Grid) -> Grid:
    """Return a copy, with a warning."""
    import numpy as np

    warnings.warn("grids are old", stacklevel=2)
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
