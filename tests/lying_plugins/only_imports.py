"""An honest plugin whose values nobody reads: numbers go in, and none come out."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Cost, Declaration, hookimpl
from tests.lying_plugins.grid import LAYOUT, grid_format, numpy_to_grid


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and its one conversion."""
    cost = Cost(2e-7)
    return [grid_format(), Conversion("numpy", "grid", numpy_to_grid, takes=LAYOUT, cost=cost)]
