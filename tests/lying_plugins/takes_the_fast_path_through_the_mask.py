"""Has a fast path that does not look for masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "fast_path", "for which every route is refused")


def lie(grid: Grid) -> Any:
    """Return the array inside, mask or not."""
    return grid.numbers


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", fast_path=lie)]
