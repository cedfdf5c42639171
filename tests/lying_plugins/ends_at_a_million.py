"""Makes large numbers smaller."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "other numbers")


def lie(grid: Grid) -> Grid:
    """Return a copy with an upper limit."""
    import numpy as np

    return Grid(np.where(grid.numbers > 1e6, 1e6, grid.numbers).astype(grid.numbers.dtype))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
