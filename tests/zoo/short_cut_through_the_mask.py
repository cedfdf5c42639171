"""Has a shortcut that does not look for masks."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "shortcut", "for which every route is refused")


def lie(grid: Grid) -> Any:
    """Return the array inside, mask or not."""
    return grid.numbers


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("grid_to_numpy", shortcut=lie)
