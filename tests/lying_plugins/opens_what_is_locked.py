"""Lets read-only memory be written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "readonly", "makes read-only memory writable")


def lie(grid: Grid) -> Any:
    """Return the array inside, unlocked."""
    import numpy as np

    class Memory:
        """The same memory, writable."""

        def __init__(self) -> None:
            interface = grid.numbers.__array_interface__
            self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
            self.owner = grid

    return np.asarray(Memory())


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
