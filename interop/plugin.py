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

from ._model.conversion import Conversion
from ._model.cost import Cost
from ._model.dtype import DTYPES, itemsize, preserves
from ._model.effect import EFFECTS, Effect
from ._model.extension import Autodiff, Branch, Container, DtypeFamily, Trouble
from ._model.format import Format, Parts, itself
from ._model.quantized import PACKED, QuantizedArray
from ._model.spec import MEMORY_TRAITS, TRAITS, Spec, make_spec
from ._registry.hooks import API_VERSION, hookimpl, hookspec
from ._toolkit.dlpack import ADDRESSES, CheckedProducer, Export, checked_export, export
from ._toolkit.threads import heed, spread
from .errors import Declined

__all__ = [
    "ADDRESSES",
    "API_VERSION",
    "DTYPES",
    "EFFECTS",
    "MEMORY_TRAITS",
    "PACKED",
    "TRAITS",
    "Autodiff",
    "Branch",
    "CheckedProducer",
    "Container",
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
    "Trouble",
    "checked_export",
    "export",
    "heed",
    "hookimpl",
    "hookspec",
    "itemsize",
    "itself",
    "make_spec",
    "preserves",
    "spread",
]
