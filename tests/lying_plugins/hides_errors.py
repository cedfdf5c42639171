"""Turns off what NumPy says of errors, for everybody."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "state", "changes what NumPy does about errors")


def lie(grid: Grid) -> Grid:
    """Return a copy, and hide all errors from now on."""
    import numpy as np

    np.seterr(all="ignore")
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
