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

from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from ._autodiff import Autodiff
from ._container import Branch, Container
from ._conversion import Conversion, Cost
from ._dlpack import ADDRESSES, CheckedProducer, Export, checked_export, export
from ._dtype import DTYPES, itemsize, preserves
from ._format import DtypeFamily, Format, Parts, itself
from ._policy import EFFECTS, Effect
from ._quantized import PACKED, QuantizedArray
from ._spec import MEMORY_TRAITS, TRAITS, Spec, make_spec
from ._threads import heed, spread
from ._trouble import Trouble
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
    "convert",
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

#: The version of this door. A plugin module may set ``INTEROP_API`` to the one it was written for.
API_VERSION = 1

hookspec = pluggy.HookspecMarker("interop")
hookimpl = pluggy.HookimplMarker("interop")


def convert(x: Any, /, to: Any = None, **words: Any) -> Any:
    """Do what `interop.convert` does, by the instance behind the package's functions.

    It is for the conversions of lazy frameworks, whose functions convert the parts of a value
    later, and perhaps in other processes: in each, its own instance serves. All others do their
    one step themselves, and leave the rest to the planner.

    Parameters
    ----------
    x : object
    to : str, type, module or sequence of these
    **words
        The keywords of `interop.convert`.

    Returns
    -------
    array
    """
    from ._default import default

    return default.convert(x, to, **words)


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


@hookspec
def interop_containers() -> Iterable[Container]:
    """Return how this plugin's framework opens the containers that are registered with it."""
    raise NotImplementedError


@hookspec
def interop_troubles() -> Iterable[Trouble]:
    """Return what is wrong with this plugin's framework as it is installed here.

    It is asked by ``interop doctor`` alone, in a process of its own, in which the framework has
    been imported.
    """
    raise NotImplementedError


@hookspec
def interop_autodiffs() -> Iterable[Autodiff]:
    """Return how this plugin's framework differentiates, in reverse mode."""
    raise NotImplementedError


@hookspec
def interop_shields() -> Iterable[Callable[[Any], None]]:
    """Return what keeps this plugin's framework from tracing into a function.

    Each is called with every function through which values enter a conversion, and with every
    shortcut that has code, and marks it for the framework's compiler, if it has one. It must not
    import the framework.
    """
    raise NotImplementedError
