"""Lets a class of another framework name its format."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "plugin tests.lying_plugins.squats_an_object",
    "loading",
    "the object torch:Tensor is declared by",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(aliases=("torch:Tensor",)), *conversions()]
