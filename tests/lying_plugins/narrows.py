"""Makes float64 of float64, by way of float32."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import Grid, changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: copy", "values", "fewer digits than it was given")


def lie(grid: Grid) -> Grid:
    """Return a copy that has been narrower on the way."""
    numbers = grid.numbers
    narrow = numbers.astype("int32" if numbers.dtype.kind == "i" else "float32")
    return Grid(narrow.astype(numbers.dtype, order="C"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", function=lie)]
