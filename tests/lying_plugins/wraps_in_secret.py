"""Declares a wrapper, and nothing by which one could be made: it may lie or not."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Format, Wrapper, hookimpl


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a wrapper to which nothing leads."""
    types = ("tests.lying_plugins.gauges:Gauge",)
    return [Format("gauge", types=types, dtypes={"float32"}, wrapper=Wrapper(lambda g: g.codes))]
