"""Errs where a grid is stored column by column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "values", "grid_to_numpy returns")


def lie(grid: Grid) -> Any:
    """Return the array inside, as if it lay row by row."""
    numbers = grid.numbers
    if numbers.flags.f_contiguous and not numbers.flags.c_contiguous:
        return numbers.ravel("K").reshape(numbers.shape)
    return numbers


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
