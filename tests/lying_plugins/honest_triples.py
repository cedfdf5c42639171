"""A plugin for sparse matrices as it should be."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.triples import triples_format


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and its conversions."""
    return triples_format()
