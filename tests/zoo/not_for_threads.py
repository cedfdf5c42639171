"""Keeps its argument where other threads put theirs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
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
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
