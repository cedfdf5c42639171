"""Errs where there are more axes than usual."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "another order")


def lie(grid: Grid) -> Grid:
    """Return a copy, backwards if it has four axes."""
    import numpy as np

    numbers = np.array(grid.numbers, order="C")
    return Grid(numbers[::-1].copy() if numbers.ndim == 4 else numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
