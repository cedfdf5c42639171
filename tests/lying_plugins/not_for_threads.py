"""Keeps its argument where other threads put theirs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "threads", "not safe to call from several threads")


STATE: dict[str, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a copy of whichever grid was put down last."""
    STATE["grid"] = grid
    numbers = STATE["grid"].numbers
    return Grid(numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
