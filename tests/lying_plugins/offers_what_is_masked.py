"""Offers the numbers of a grid without looking for masks, and adopts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "fast_path", "for which every route is refused")


def lie(grid: Grid) -> Any:
    """Return the array inside, mask or not."""
    return grid.numbers


def adopt(offer: Callable[[Grid], Any], grid: Grid) -> Any:
    """Return what is offered."""
    return offer(grid)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    format_ = grid_format()
    offering = format_.advanced._replace(offers={"grid": lie})
    return [format_._replace(advanced=offering), *changed("grid_to_numpy", adopt=adopt)]
