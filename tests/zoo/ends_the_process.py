"""Reads memory that is not there."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "values", "ended the process with SIGSEGV")


def lie(grid: Grid) -> Grid:
    """Return a copy; of what is not one block, by way of an address that is nobody's."""
    import ctypes

    if not grid.numbers.flags.c_contiguous:
        ctypes.string_at(1, 8)
    return Grid(grid.numbers.copy(order="C"))


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
