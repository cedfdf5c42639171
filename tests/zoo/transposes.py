"""Gives rows for columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "shape", "gives the shape")


def lie(grid: Grid) -> Any:
    """Return the array inside, the other way round."""
    return grid.numbers.T


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("grid_to_numpy", function=lie)
