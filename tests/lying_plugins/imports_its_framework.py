"""Imports a framework when it is imported."""

from __future__ import annotations

from collections.abc import Iterable

import scipy.sparse  # noqa: F401 - the lie

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import conversions, grid_format


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *conversions()]
