"""Forgets what a NaN carries."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "or another NaN")


def lie(grid: Grid) -> Grid:
    """Return a copy in which all NaN are alike."""
    import numpy as np

    numbers = grid.numbers.copy(order="C")
    if numbers.dtype.kind == "f":
        numbers[np.isnan(numbers)] = np.nan
    return Grid(numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
