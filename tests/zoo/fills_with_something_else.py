"""Writes other numbers than it was given into out=."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "fill", "writes other numbers")


def lie(out: Grid, grid: Grid) -> None:
    """Write the numbers of a grid into another, backwards."""
    out.numbers[...] = grid.numbers[::-1]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_(fill=lie)]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
