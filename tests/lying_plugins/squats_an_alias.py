"""Calls itself numpy, too."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "plugin tests.lying_plugins.squats_an_alias",
    "loading",
    "the name 'numpy' is declared by array-interop",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(aliases=("numpy", "torch")), *conversions()]
