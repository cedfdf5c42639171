"""Describes nothing at all."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "raised KeyError")


def lie(grid: Grid) -> Spec:
    """Fail to describe a grid."""
    raise KeyError(grid.numbers.dtype)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
