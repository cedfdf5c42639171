"""Unwraps what is stored, and not the numbers that it stands for."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.gauges import gauge_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "format gauge",
    "wrapper",
    "unwrap of a value of gauge that is labelled returns other numbers",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a wrapper whose scale is lost on the way out."""
    return gauge_format(unwrap="codes")
