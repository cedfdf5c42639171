"""Makes float64 of float64, by way of float32."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "values", "fewer digits than it was given")


def lie(grid: Grid) -> Grid:
    """Return a copy that has been narrower on the way."""
    numbers = grid.numbers
    narrow = numbers.astype("int32" if numbers.dtype.kind == "i" else "float32")
    return Grid(narrow.astype(numbers.dtype, order="C"))


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
