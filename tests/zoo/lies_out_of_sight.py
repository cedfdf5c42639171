"""Narrows, in a format that does not tell where its numbers lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Conversion, Cost, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("numpy → grid: numpy_to_grid", "values", "fewer digits")


def lie(array: Any) -> Grid:
    """Return a grid over an array that has been narrower."""
    return Grid(array.astype("float32").astype(array.dtype, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_(memory=None)]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed(
        "numpy_to_grid",
        function=lie,
        effects=frozenset({"copy"}),
        dtypes=frozenset({"float64"}),
        cost=Cost(2e-6, 5e9),
    )
