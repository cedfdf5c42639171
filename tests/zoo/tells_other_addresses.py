"""Tells an address where its numbers are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "memory", "other addresses every time")


KEPT: list[Any] = []


def lie(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Return the address of a copy."""
    KEPT.append(grid.numbers.copy())
    return ((KEPT[-1].ctypes.data, KEPT[-1].nbytes),)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_(memory=lie)]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
