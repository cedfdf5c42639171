"""Reads memory that is not there."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "the process died of SIGSEGV")


def lie(grid: Grid) -> Grid:
    """Return a copy; of what is not one block, by way of an address that is nobody's."""
    import ctypes

    if not grid.numbers.flags.c_contiguous:
        ctypes.string_at(1, 8)
    return Grid(grid.numbers.copy(order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
