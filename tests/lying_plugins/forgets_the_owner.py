"""Gives an array over memory that nobody keeps alive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → numpy: grid_to_numpy", "lifetime", "changes when its source is gone")


def lie(grid: Grid) -> Any:
    """Return an array that knows the address of the numbers, and not their owner."""
    import numpy as np

    class Memory:
        """Memory at an address."""

        def __init__(self, interface: dict[str, Any]) -> None:
            self.__array_interface__ = interface

    return np.asarray(Memory(dict(grid.numbers.__array_interface__)))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("grid_to_numpy", function=lie)]
