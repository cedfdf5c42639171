"""Declares what is no declaration."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("plugin tests.zoo.cannot_be_loaded", "loading", "does not load")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return [*conversions(), "numpy → grid"]
