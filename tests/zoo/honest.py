"""The plugin as it should be: it keeps every promise."""

from __future__ import annotations

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import conversions, format_


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
