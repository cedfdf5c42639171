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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._check import check
    from ._libraries import check_dlpack
    from ._promises import CHECKS
    from ._pytest import PluginTests
    from ._report import Finding, Report

__all__ = [
    "CHECKS",
    "Finding",
    "PluginTests",
    "Report",
    "check",
    "check_dlpack",
]

#: The modules of these names. They are imported when a name is used, because other processes, which
#: the command starts as well, import this package for no more than how to answer.
_MODULES = ("_report", "_check", "_promises", "_libraries", "_pytest")


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    from importlib import import_module

    for module in _MODULES if name in __all__ else ():
        names = vars(import_module(f".{module}", __name__))
        if name in names:
            return names[name]
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
