"""The authors' interface: everything a plugin imports from interop, apart from the errors.

A plugin is a module that implements one hook and returns frozen declarations::

    from interop.plugin import Conversion, Cost, Format, hookimpl

    @hookimpl
    def interop_declarations():
        return [
            Format("mylib", types=("mylib:Array",), describe=describe, dtypes={"float32"}),
            Conversion("mylib", "numpy", to_numpy, cost=Cost(latency=1e-6)),
        ]

and names itself in its distribution's metadata::

    [project.entry-points.interop]
    mylib = "interop_mylib"

The hook runs once, when the plugins are loaded. It and the module must not import the framework:
types are named by string, functions import what they need when they are called.
"""

from __future__ import annotations

from ._model.conversion import Conversion, Result
from ._model.cost import Cost
from ._model.dtype import DTYPES, itemsize, preserves
from ._model.effect import EFFECTS, Effect
from ._model.extension import (
    Autodiff,
    Branch,
    Container,
    Declaration,
    DtypeNames,
    Namespaces,
    NoTrace,
    Problem,
    Problems,
)
from ._model.format import Components, Format, Labels, Limits, Parts, Samples, Wrapper, itself
from ._model.spec import MEMORY_TRAITS, TRAITS, Spec, make_spec
from ._registry.hooks import API_VERSION, hookimpl, hookspec
from ._toolkit.arrays import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    INTEGERS,
    REALS,
    TRANSFER,
    MemoryAt,
    address,
    extent,
    extents,
    memory_traits,
    overlaps,
    stride_traits,
)
from ._toolkit.cast_errors import CastErrors, checked_cast
from ._toolkit.dlpack import ADDRESSES, CheckedProducer, Export, checked_export, export
from ._toolkit.streams import stream_handle
from ._toolkit.threads import limit_threads, parallel_for
from .errors import Declined

__all__ = [
    "ADDRESSES",
    "API_VERSION",
    "COMPLEX",
    "COPY",
    "CPU",
    "DEVICE",
    "DTYPE",
    "DTYPES",
    "EFFECTS",
    "EMPTY",
    "INTEGERS",
    "MEMORY_TRAITS",
    "REALS",
    "TRAITS",
    "TRANSFER",
    "Autodiff",
    "Branch",
    "CastErrors",
    "CheckedProducer",
    "Components",
    "Container",
    "Conversion",
    "Cost",
    "Declaration",
    "Declined",
    "DtypeNames",
    "Effect",
    "Export",
    "Format",
    "Labels",
    "Limits",
    "MemoryAt",
    "Namespaces",
    "NoTrace",
    "Parts",
    "Problem",
    "Problems",
    "Result",
    "Samples",
    "Spec",
    "Wrapper",
    "address",
    "checked_cast",
    "checked_export",
    "export",
    "extent",
    "extents",
    "hookimpl",
    "hookspec",
    "itemsize",
    "itself",
    "limit_threads",
    "make_spec",
    "memory_traits",
    "overlaps",
    "parallel_for",
    "preserves",
    "stream_handle",
    "stride_traits",
]
