"""Imports a framework when it is imported."""

from __future__ import annotations

import scipy.sparse  # noqa: F401 - the lie

from interop.plugin import Conversion, Format, hookimpl
from tests.zoo.cage import conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("plugin tests.zoo.imports_its_framework", "imports", "scipy")


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
