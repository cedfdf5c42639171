"""Gives float32 where float64 is promised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("numpy → grid: numpy_to_grid", "dtype", "gives float32 for float64")


def lie(array: Any) -> Grid:
    """Return a grid over an array, or over a narrower copy of it."""
    return Grid(array.astype("float32") if array.dtype == "float64" else array)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("numpy_to_grid", function=lie)
