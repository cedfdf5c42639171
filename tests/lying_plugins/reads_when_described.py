"""Reads all numbers of a value to describe it."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "reads the numbers of a large value into memory")


def lie(grid: Grid) -> Spec:
    """Describe a grid by a copy of its numbers, as one that is loaded from a file would be."""
    import numpy as np

    np.array(grid.numbers)
    return describe(grid)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
