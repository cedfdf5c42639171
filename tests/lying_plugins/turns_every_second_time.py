"""Turns every second result around."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "another order")


CALLS = count()


def lie(grid: Grid) -> Grid:
    """Return a copy, now and then backwards."""
    import numpy as np

    numbers = np.array(grid.numbers, order="C")
    return Grid(numbers[..., ::-1].copy() if next(CALLS) % 2 and numbers.ndim else numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
