"""Ends the program that asks for a copy."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "exited with status 3 when copy")


def lie(grid: Grid) -> Grid:
    """End the program."""
    sys.exit(3)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
