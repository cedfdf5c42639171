"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

The functions here are the methods of one `Interop`, which holds all state. Names are imported when
they are first used (as SPEC 1 of Scientific Python has it), so that ``import interop`` costs next
to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for typing's, which is slow to import
if TYPE_CHECKING:
    from . import errors
    from ._conversion import Conversion, Cost
    from ._default import (
        accepts,
        conversion,
        conversions,
        convert,
        convert_tree,
        converter,
        default,
        formats,
        plan,
        plugins,
        register,
        spec,
    )
    from ._format import DtypeFamily, Format, Parts
    from ._interop import Interop
    from ._policy import EFFECTS, policy
    from ._quantized import QuantizedArray
    from ._route import Route
    from ._spec import TRAITS, Spec, make_spec
    from ._trace import Receipt, trace
    from ._version import __version__
    from .errors import InteropError

__all__ = [
    "EFFECTS",
    "TRAITS",
    "Conversion",
    "Cost",
    "DtypeFamily",
    "Format",
    "Interop",
    "InteropError",
    "Parts",
    "QuantizedArray",
    "Receipt",
    "Route",
    "Spec",
    "__version__",
    "accepts",
    "conversion",
    "conversions",
    "convert",
    "convert_tree",
    "converter",
    "default",
    "errors",
    "formats",
    "make_spec",
    "plan",
    "plugins",
    "policy",
    "register",
    "spec",
    "trace",
]

#: The module in which each name lives.
_HOMES = {
    **dict.fromkeys(("Conversion", "Cost"), "_conversion"),
    **dict.fromkeys(("conversion", "conversions", "convert", "convert_tree"), "_default"),
    **dict.fromkeys(("converter", "default", "formats", "plan", "plugins"), "_default"),
    **dict.fromkeys(("accepts", "register", "spec"), "_default"),
    **dict.fromkeys(("DtypeFamily", "Format", "Parts"), "_format"),
    **dict.fromkeys(("EFFECTS", "policy"), "_policy"),
    **dict.fromkeys(("TRAITS", "Spec", "make_spec"), "_spec"),
    **dict.fromkeys(("Receipt", "trace"), "_trace"),
    "Interop": "_interop",
    "InteropError": "errors",
    "QuantizedArray": "_quantized",
    "Route": "_route",
    "__version__": "_version",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module, and keep it."""
    if name == "errors":
        return import_module(".errors", __name__)
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
