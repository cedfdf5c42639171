"""Requires a trait that no value has."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "grid → grid: drop_mask if maksed",
    "extent",
    "no sample has 'maksed', and nothing else declares it; did you mean 'masked'?",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("drop_mask", requires={"maksed"})]
