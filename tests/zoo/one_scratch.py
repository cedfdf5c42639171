"""Gives the same memory every time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "threads", "changes the result of an earlier one")


SCRATCH: dict[Any, Any] = {}


def lie(grid: Grid) -> Grid:
    """Return a grid over memory that the next call will use again."""
    import numpy as np

    numbers = grid.numbers
    scratch = SCRATCH.setdefault(
        (numbers.shape, numbers.dtype), np.empty(numbers.shape, numbers.dtype)
    )
    scratch[...] = numbers
    return Grid(scratch)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", function=lie)
