"""Takes columns for rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → numpy: grid_to_numpy", "values", "its elements in another order")


def lie(grid: Grid) -> Any:
    """Return an array over the memory, taking it for one block in C's order."""
    import numpy as np

    numbers = grid.numbers
    if not numbers.flags.f_contiguous:
        return numbers
    return np.ndarray(numbers.shape, numbers.dtype, numbers.T)


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
