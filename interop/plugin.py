"""The plugin author's door: everything a plugin imports from interop, apart from the errors.

A plugin is a module that implements some of the hooks below and returns frozen declarations::

    from interop.plugin import Conversion, Cost, Format, hookimpl

    @hookimpl
    def interop_formats():
        return [Format("mylib", types=("mylib:Array",), describe=describe)]

    @hookimpl
    def interop_conversions():
        return [Conversion("mylib", "numpy", to_numpy, cost=Cost(latency=1e-6))]

and names itself in its distribution's metadata::

    [project.entry-points.interop]
    mylib = "interop_mylib"

Hooks run once, when the plugins are loaded. They and the module must not import the framework:
types are named by string, functions import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from ._conversion import Conversion, Cost
from ._dlpack import CheckedProducer, Export, checked_export, export
from ._dtype import DTYPES, itemsize
from ._format import DtypeFamily, Format, Parts, itself
from ._policy import EFFECTS, Effect
from ._quantized import QuantizedArray
from ._spec import MEMORY_TRAITS, TRAITS, Spec, make_spec
from ._threads import heed, spread
from .errors import Declined

__all__ = [
    "API_VERSION",
    "DTYPES",
    "EFFECTS",
    "MEMORY_TRAITS",
    "TRAITS",
    "CheckedProducer",
    "Conversion",
    "Cost",
    "Declined",
    "DtypeFamily",
    "Effect",
    "Export",
    "Format",
    "Parts",
    "QuantizedArray",
    "Spec",
    "checked_export",
    "export",
    "heed",
    "hookimpl",
    "hookspec",
    "itemsize",
    "itself",
    "make_spec",
    "spread",
]

#: The version of this door. A plugin module may set ``INTEROP_API`` to the one it was written for.
API_VERSION = 1

hookspec = pluggy.HookspecMarker("interop")
hookimpl = pluggy.HookimplMarker("interop")


@hookspec
def interop_formats() -> Iterable[Format]:
    """Return the formats this plugin knows."""
    raise NotImplementedError


@hookspec
def interop_conversions() -> Iterable[Conversion]:
    """Return the conversions this plugin offers."""
    raise NotImplementedError


@hookspec
def interop_dtypes() -> Iterable[DtypeFamily]:
    """Return how this plugin's framework names its dtypes."""
    raise NotImplementedError
