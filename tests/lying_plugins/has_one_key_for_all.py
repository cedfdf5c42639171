"""Tells values apart by their dtype alone, whether they are odd or large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from interop.plugin.advanced import Advanced
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "fast_key", "although it is not plain")


def lie(grid: Grid) -> Any:
    """Return the dtype."""
    return grid.numbers.dtype


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(advanced=Advanced(fast_key=lie)), *conversions()]
