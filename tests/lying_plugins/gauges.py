"""A small wrapper class for lying plugins, and an honest plugin for it: codes under a scale."""

from __future__ import annotations

from typing import Any

from interop.kit import wrapper_format
from interop.plugin import Declaration, Samples


class Gauge:
    """Numbers that are stored divided by a scale, under a title."""

    def __init__(self, codes: Any, scale: float = 1.0, title: str = "") -> None:
        self.codes = codes
        self.scale = scale
        self.title = title


def numbers_of(gauge: Gauge) -> Any:
    """Return the numbers that a gauge stands for."""
    return gauge.codes if gauge.scale == 1 else gauge.codes * gauge.codes.dtype.type(gauge.scale)


def scaled(gauge: Gauge) -> Gauge:
    """Return a gauge of the same numbers, stored as their halves."""
    return Gauge(gauge.codes / gauge.codes.dtype.type(2), 2.0, "pressure")


def gauge_format(**changes: Any) -> list[Declaration]:
    """Return the honest declarations, with some keywords changed."""
    keywords = {
        "name": "gauge",
        "unwrap": numbers_of,
        "rewrap": lambda array, like: Gauge(array, title=like.title),
        "labelled": "title",
        "wraps": {"numpy"},
        "dtypes": {"float32", "float64"},
        "samples": Samples(variants={"labelled": scaled}),
    }
    return wrapper_format("tests.lying_plugins.gauges:Gauge", **{**keywords, **changes})
