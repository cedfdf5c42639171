"""Keeps its argument where other threads put theirs."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "threads", "not safe to call from several threads")


STATE: dict[str, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a copy of whichever grid was put down last."""
    STATE["grid"] = grid
    numbers = STATE["grid"].numbers
    return Grid(numbers.copy(order="C"))


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
