"""Declares what is no declaration."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("plugin tests.zoo.cannot_be_loaded", "loading", "does not load")


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return [*conversions(), "numpy → grid"]
