"""Says that it copies, but shares memory."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import LAYOUT, Grid, changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "sharing", "says that it copies, but shares memory")


def lie(grid: Grid) -> Grid:
    """Return another grid over the same numbers."""
    return Grid(grid.numbers)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed(
        "copy",
        function=lie,
        takes=LAYOUT - {"noncontiguous", "negative_strides", "broadcast", "readonly"},
    )
