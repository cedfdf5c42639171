"""Takes masked grids, and gives their numbers without a word about the mask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import LAYOUT, Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "traits", "loses 'masked', which it takes")


def lie(grid: Grid) -> Any:
    """Return the array inside, mask or not."""
    return grid.numbers


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie, takes=LAYOUT | {"masked"})]
