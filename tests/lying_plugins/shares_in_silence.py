"""Says that it copies, but shares memory."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "sharing", "says that it copies, but shares memory")


def lie(grid: Grid) -> Grid:
    """Return another grid over the same numbers."""
    return Grid(grid.numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(),
        *changed(
            "copy",
            function=lie,
            takes=frozenset(),
        ),
    ]
