"""Says that its arrays take fewer bytes than they do."""

from __future__ import annotations

from interop.plugin import Conversion, Format, Spec, hookimpl
from tests.zoo.cage import Grid, conversions, describe, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "describe", "bytes of grid")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, with the elements counted for bytes."""
    return describe(grid)._replace(nbytes=grid.numbers.size)


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_(describe=lie)]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
