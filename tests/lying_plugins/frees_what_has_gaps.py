"""Frees the memory of what is stored with gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "lifetime", "memory alive")


def lie(grid: Grid) -> Any:
    """Return the numbers of a grid, which nothing keeps alive if they have gaps."""
    import numpy as np

    numbers = grid.numbers
    if numbers.flags.c_contiguous or not numbers.size:
        return numbers
    interface = {**numbers.__array_interface__}
    borrower = type("Borrower", (), {"__array_interface__": interface})()
    return np.asarray(borrower)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
