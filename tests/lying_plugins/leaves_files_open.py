"""Opens files and does not close them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "leaks", "leaves open files behind")


FILES: list[int] = []


def lie(grid: Grid) -> Grid:
    """Return a copy, and leave a file open."""
    import numpy as np

    FILES.append(os.open(os.devnull, os.O_RDONLY))
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
