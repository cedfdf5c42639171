"""Takes columns for rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "values", "its elements in another order")


def lie(grid: Grid) -> Any:
    """Return an array over the memory, taking it for one block in C's order."""
    import numpy as np

    numbers = grid.numbers
    if not numbers.flags.f_contiguous:
        return numbers
    return np.ndarray(numbers.shape, numbers.dtype, numbers.T)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
