"""Errs at the end of what is large."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "other numbers")


def lie(grid: Grid) -> Grid:
    """Return a copy, of which the last number is wrong if it is large."""
    import numpy as np

    numbers = np.array(grid.numbers, order="C")
    if numbers.size > 100_000:
        numbers[-1, -1] = 0
    return Grid(numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
