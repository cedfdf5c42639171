"""An honest plugin whose format can be read and not made: a sample says how to make values."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Cost, Declaration, Samples, hookimpl
from tests.lying_plugins.grid import LAYOUT, grid_format, grid_to_numpy, numpy_to_grid


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and its one conversion."""
    return [
        grid_format(
            devices=("cpu",), carries=LAYOUT, fill=None, samples=Samples(make=numpy_to_grid)
        ),
        Conversion("grid", "numpy", grid_to_numpy, takes=LAYOUT, cost=Cost(2e-7)),
    ]
