"""Describes its arrays with their axes in the wrong order."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, Spec, hookimpl
from tests.zoo.cage import Grid, conversions, describe, format_

#: Who lies, in which check, and how that is said.
LIE = ("format grid", "describe", "describe of format grid says")


def lie(grid: Grid) -> Spec:
    """Return the spec of a grid, turned about."""
    spec = describe(grid)
    return spec._replace(shape=spec.shape[::-1])


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_(describe=lie)]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
