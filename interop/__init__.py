"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

The functions here are the methods of one `Interop`, which holds all state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import errors
from ._conversion import Conversion, Cost
from ._format import DtypeFamily, Format, Parts
from ._interop import Interop
from ._policy import EFFECTS, policy
from ._quantized import QuantizedArray
from ._route import Route
from ._spec import TRAITS, Spec, make_spec
from ._trace import Receipt, trace
from ._version import __version__
from .errors import InteropError

if TYPE_CHECKING:
    # What each bundled target's name gives is known to the plugins alone.
    from interop_plugins.signatures import Convert, MakeConverter

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
    "conversion",
    "conversions",
    "convert",
    "converter",
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

#: The instance behind the functions below.
default = Interop()

conversion = default.conversion
conversions = default.conversions
convert: Convert = default.convert
converter: MakeConverter = default.converter
formats = default.formats
plan = default.plan
plugins = default.plugins
register = default.register
spec = default.spec
