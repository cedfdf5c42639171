"""Carries a trait that is misspelt."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import LAYOUT, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "extent", "no sample has 'gard', and nothing else declares it; did you mean")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(carries=LAYOUT | {"masked", "gard"}), *conversions()]
