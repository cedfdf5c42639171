"""Does not say that a grid is masked."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "variants", "does not say that a value is 'masked'")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, without a word about a mask."""
    spec = describe(grid)
    return spec._replace(traits=spec.traits - {"masked"})


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
