"""Describes its arrays with their axes in the wrong order."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "describe of format grid says")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, turned about."""
    spec = describe(grid)
    return spec._replace(shape=spec.shape[::-1])


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
