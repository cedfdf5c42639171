"""Takes its time to describe a value."""

from __future__ import annotations

import time
from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "takes more than")


def lie(grid: Grid) -> Spec:
    """Describe a grid, after a nap."""
    time.sleep(0.004)
    return describe(grid)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
