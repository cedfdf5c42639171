"""Takes every class that has an attribute, of which Python cannot tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("plugin tests.lying_plugins.types_is_protocol", "loading", "ArrayLike")


class ArrayLike(Protocol):
    """What many classes look like."""

    numbers: Any


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [
        grid_format(types=("tests.lying_plugins.grid:Grid", f"{__name__}:ArrayLike")),
        *conversions(),
    ]
