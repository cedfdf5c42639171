"""Says that it takes a thousand times the time that it takes."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Cost, Declaration, Format, hookimpl
from tests.zoo.cage import changed, format_

#: Who lies, in which check, and how that is said.
LIE = ("grid → grid: copy", "cost", "of its declared cost")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return changed("copy", cost=Cost(5e-4, 1e7))
