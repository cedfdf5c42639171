"""Gives the same memory every time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "threads", "changes the result of an earlier one")


SCRATCH: dict[Any, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a grid over memory that the next call will use again."""
    import numpy as np

    numbers = grid.numbers
    scratch = SCRATCH.setdefault(
        (numbers.shape, numbers.dtype), np.empty(numbers.shape, numbers.dtype)
    )
    scratch[...] = numbers
    return Grid(scratch)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
