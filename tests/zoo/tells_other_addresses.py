"""Tells an address where its numbers are not."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import Grid, conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "memory", "other addresses every time")


KEPT: list[Any] = []


def lie(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Return the address of a copy."""
    KEPT.append(grid.numbers.copy())
    return ((KEPT[-1].ctypes.data, KEPT[-1].nbytes),)


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_(memory=lie)]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
