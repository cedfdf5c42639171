"""Starts from a format that nobody declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("plugin tests.lying_plugins.comes_from_nowhere", "loading", "starts from 'gird'")


def lie(grid: Grid) -> Any:
    """Return what nobody knows."""
    return grid


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), Conversion("gird", "grid", lie), *conversions()]
