"""The authors' interface: everything that a plugin imports from interop, apart from the errors.

A plugin is a module with one hook, which returns frozen declarations::

    from interop.plugin import Conversion, Cost, Format, hookimpl

    @hookimpl
    def interop_declarations():
        return [
            Format("mylib", types=("mylib:Array",), describe=describe, dtypes={"float32"}),
            Conversion("mylib", "numpy", to_numpy, cost=Cost(latency=1e-6)),
        ]

The metadata of its distribution name it::

    [project.entry-points.interop]
    mylib = "interop_mylib"

The hook runs once, when the plugins are loaded. Neither the hook nor the module may import the
framework: types are named by string, and functions import it when they are called.

:mod:`interop.plugin.advanced` has the part that few plugins need.
"""

from __future__ import annotations

from interop._model.conversion import BUS, Conversion, Cost, Result
from interop._model.dtype import DTYPES, itemsize, preserves
from interop._model.effect import EFFECTS, Effect
from interop._model.extension import (
    Autodiff,
    Branch,
    Container,
    Declaration,
    DtypeNames,
)
from interop._model.format import (
    Components,
    Format,
    Labels,
    Limits,
    Parts,
    Samples,
    Wrapper,
    itself,
)
from interop._model.spec import COLUMN_TRAITS, MEMORY_TRAITS, TRAITS, Spec, make_spec, size_class
from interop._model.unary import Cast, CastColumns, Copy, Drop, Move
from interop._registry.hooks import API_VERSION, hookimpl
from interop.errors import Declined

__all__ = [
    "API_VERSION",
    "BUS",
    "COLUMN_TRAITS",
    "DTYPES",
    "EFFECTS",
    "MEMORY_TRAITS",
    "TRAITS",
    "Autodiff",
    "Branch",
    "Cast",
    "CastColumns",
    "Components",
    "Container",
    "Conversion",
    "Copy",
    "Cost",
    "Declaration",
    "Declined",
    "Drop",
    "DtypeNames",
    "Effect",
    "Format",
    "Labels",
    "Limits",
    "Move",
    "Parts",
    "Result",
    "Samples",
    "Spec",
    "Wrapper",
    "hookimpl",
    "itemsize",
    "itself",
    "make_spec",
    "preserves",
    "size_class",
]
