"""Takes a subclass of a class that is another distribution's."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("plugin tests.lying_plugins.steals_a_subclass", "loading", "the type numpy.ma:MaskedArray")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(types=("tests.lying_plugins.grid:Grid", "numpy.ma:MaskedArray")),
        *conversions(),
    ]
