"""Gives float32 where float64 is promised."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("numpy → grid: numpy_to_grid", "dtype", "gives float32 for float64")


def lie(array: Any) -> Grid:
    """Return a grid over an array, or over a narrower copy of it."""
    return Grid(array.astype("float32") if array.dtype == "float64" else array)


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("numpy_to_grid", function=lie)
