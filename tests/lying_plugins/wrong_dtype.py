"""Gives float32 where float64 is promised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("numpy → grid: numpy_to_grid", "dtype", "returns float32 for float64")


def lie(array: Any) -> Grid:
    """Return a grid over an array, or over a narrower copy of it."""
    return Grid(array.astype("float32") if array.dtype == "float64" else array)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("numpy_to_grid", function=lie)]
