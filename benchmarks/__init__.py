"""Benchmarks: ratios between interop and what people write by hand, within one run."""

from __future__ import annotations
