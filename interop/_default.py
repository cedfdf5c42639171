"""The instance behind the functions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._interop import Interop

if TYPE_CHECKING:
    # What each bundled target's name gives is known to the plugins alone.
    from interop_plugins.signatures import Convert, MakeConverter

__all__ = [
    "accepts",
    "conversion",
    "conversions",
    "convert",
    "convert_tree",
    "converter",
    "default",
    "formats",
    "plan",
    "plugins",
    "register",
    "spec",
]


class _Default(Interop):
    """The one instance of which there is the like in every process."""

    def __reduce__(self) -> str:
        return "default"  # found by this name where it is loaded


default = _Default()

accepts = default.accepts
conversion = default.conversion
conversions = default.conversions
convert: Convert = default.convert
convert_tree = default.convert_tree
converter: MakeConverter = default.converter
formats = default.formats
plan = default.plan
plugins = default.plugins
register = default.register
spec = default.spec

# What worker processes are to call is pickled by the name under which they find it.
for _name, _place in (("__module__", __package__), ("__qualname__", "convert")):
    setattr(convert, _name, _place)
