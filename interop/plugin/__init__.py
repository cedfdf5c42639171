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

from interop._model.conversion import Conversion, Result
from interop._model.cost import BUS, Cost
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
from interop._model.unary import Cast, Copy, Drop, Move, Unary, UnaryStep
from interop._registry.hooks import API_VERSION, hookimpl
from interop._toolkit.arrays import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    INTEGERS,
    REALS,
    MemoryAt,
    address,
    dtype_name,
    extent,
    extents,
    memory_traits,
    null_number,
    overlaps,
    real_part,
    stride_traits,
)
from interop._toolkit.cast_errors import CastErrors, cast_objects, checked_cast, misfit
from interop._toolkit.dense_format import dense_format
from interop._toolkit.dlpack import (
    CapsuleProducer,
    CheckedProducer,
    Export,
    checked_export,
    export,
    plain_array,
)
from interop._toolkit.streams import stream_handle
from interop._toolkit.threads import parallel_for
from interop._toolkit.transfer import transfer
from interop._toolkit.wrapper_format import wrapper_format
from interop.errors import Declined

__all__ = [
    "API_VERSION",
    "BUS",
    "COLUMN_TRAITS",
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
    "Autodiff",
    "Branch",
    "CapsuleProducer",
    "Cast",
    "CastErrors",
    "CheckedProducer",
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
    "Export",
    "Format",
    "Labels",
    "Limits",
    "MemoryAt",
    "Move",
    "Parts",
    "Result",
    "Samples",
    "Spec",
    "Unary",
    "UnaryStep",
    "Wrapper",
    "address",
    "cast_objects",
    "checked_cast",
    "checked_export",
    "dense_format",
    "dtype_name",
    "export",
    "extent",
    "extents",
    "hookimpl",
    "itemsize",
    "itself",
    "make_spec",
    "memory_traits",
    "misfit",
    "null_number",
    "overlaps",
    "parallel_for",
    "plain_array",
    "preserves",
    "real_part",
    "size_class",
    "stream_handle",
    "stride_traits",
    "transfer",
    "wrapper_format",
]
