"""Ends the program that asks what a value is."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "exited with status 3")


def lie(grid: Grid) -> Spec:
    """End the program."""
    sys.exit(3)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
