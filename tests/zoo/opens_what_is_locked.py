"""Lets read-only memory be written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "readonly", "opens read-only memory to writing")


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
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("grid_to_numpy", function=lie)
