"""Gives a value the scale of another together with its labels."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Labels, hookimpl
from tests.lying_plugins.gauges import Gauge, gauge_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "format gauge",
    "wrapper",
    "give of the labels of a value of gauge that is labelled changes the numbers",
)


def _give(gauge: Gauge, like: Gauge) -> Gauge:
    return Gauge(gauge.codes, like.scale, like.title)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a wrapper that scales twice."""
    return gauge_format(labels=Labels(lambda gauge: bool(gauge.title), _give))
