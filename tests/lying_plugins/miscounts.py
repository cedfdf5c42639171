"""Says that its arrays take fewer bytes than they do."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "bytes of grid")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, with the elements counted for bytes."""
    return describe(grid)._replace(nbytes=grid.numbers.size)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
