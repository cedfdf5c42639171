"""Starts threads that do not end."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import count

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "leaks", "leaves threads behind")


CALLS = count()


def lie(grid: Grid) -> Grid:
    """Return a copy, and leave a thread behind."""
    import numpy as np

    if next(CALLS) < 500:  # the machine is to survive it
        threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()
    return Grid(np.array(grid.numbers, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
