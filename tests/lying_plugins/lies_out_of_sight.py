"""Narrows, in a format that does not tell where its numbers lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Cost, Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("numpy → grid: numpy_to_grid", "values", "fewer digits")


def lie(array: Any) -> Grid:
    """Return a grid over an array that has been narrower."""
    return Grid(array.astype("float32").astype(array.dtype, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(memory=None),
        *changed(
            "numpy_to_grid",
            function=lie,
            effects=frozenset({"copy"}),
            dtypes=frozenset({"float64"}),
            cost=Cost(2e-6, 5e9),
        ),
    ]
