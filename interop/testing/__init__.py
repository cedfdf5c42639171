"""The conformance suite: it compares everything that a plugin promises with what it does.

>>> from interop.testing import check
>>> report = check("python")
>>> report.ok
True

The plugin's own declarations say what to try. `check` returns a report, and `PluginTests` is the
same as a class of tests for pytest. Both run conversions in another process, so that a crash is a
finding like any other.

`check_dlpack` looks at a library instead, which needs no plugin: whether its arrays and its
``from_dlpack`` keep what the DLPack standard asks.
"""

from __future__ import annotations

from ._check import check
from ._libraries import LibraryFinding, LibraryReport, check_dlpack
from ._pytest import PluginTests
from ._report import Finding, Report
from ._subject import CHECKS

__all__ = [
    "CHECKS",
    "Finding",
    "LibraryFinding",
    "LibraryReport",
    "PluginTests",
    "Report",
    "check",
    "check_dlpack",
]
