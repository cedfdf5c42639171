"""Imports a framework when it is imported."""

from __future__ import annotations

from collections.abc import Iterable

import scipy.sparse  # noqa: F401 - the lie

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import conversions, format_

#: Who lies, in which check, and how that is said.
LIE = ("plugin tests.zoo.imports_its_framework", "imports", "scipy")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return [format_()]


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
