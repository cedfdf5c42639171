"""Gives a value no labels, although it is asked to."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Labels, hookimpl
from tests.lying_plugins.gauges import Gauge, gauge_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "format gauge",
    "wrapper",
    "give of the labels of a value of gauge that is labelled makes gauge float32 3x4 on cpu (of",
)


def _give(gauge: Gauge, like: Gauge) -> Gauge:
    return gauge


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a wrapper that gives no labels."""
    return gauge_format(labels=Labels(lambda gauge: bool(gauge.title), _give))
