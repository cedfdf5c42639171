"""Reports memory that begins one byte too late."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format, memory

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "memory", "")


def lie(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Return addresses that are off by one."""
    return tuple((address + 1, length) for address, length in memory(grid))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(memory=lie), *conversions()]
