"""Says that it takes a thousandth of the time that it takes."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Cost, Declaration, hookimpl
from tests.lying_plugins.grid import changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("grid → grid: cast", "cost", "times as long as its declared cost")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("cast", cost=Cost(1e-9, 5e12))]
