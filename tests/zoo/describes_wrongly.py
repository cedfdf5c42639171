"""Describes its arrays with their axes in the wrong order."""

from __future__ import annotations

from interop.plugin import Conversion, Format, Spec, hookimpl
from tests.zoo.cage import Grid, conversions, describe, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "describe", "describe of format grid says")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, turned about."""
    spec = describe(grid)
    return spec._replace(shape=spec.shape[::-1])


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_(describe=lie)]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
