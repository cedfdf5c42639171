"""Takes every class that has a length."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("plugin tests.lying_plugins.types_too_wide", "loading", "the type collections.abc:Sized")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(types=("tests.lying_plugins.grid:Grid", "collections.abc:Sized")),
        *conversions(),
    ]
