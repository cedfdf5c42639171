"""Has a truth of its own."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import NUMBERS, Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "neither 0 nor 1")


def lie(grid: Grid) -> Grid:
    """Return a copy, in which true is stored as two."""
    numbers = grid.numbers.copy(order="C")
    if numbers.dtype == bool:
        numbers = (numbers.view("u1") * 2).view(bool)
    return Grid(numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(dtypes=NUMBERS | {"bool"}), *changed("copy", function=lie)]
