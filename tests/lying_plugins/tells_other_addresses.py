"""Tells an address where its numbers are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "memory", "other addresses every time")


KEPT: list[Any] = []


def lie(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Return the address of a copy."""
    KEPT.append(grid.numbers.copy())
    return ((KEPT[-1].ctypes.data, KEPT[-1].nbytes),)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(memory=lie), *conversions()]
