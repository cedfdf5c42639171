"""Forgets to mark its hook."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration
from tests.lying_plugins.grid import conversions, grid_format


def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions, which nobody asks for."""
    return [grid_format(), *conversions()]
