"""The instance whose methods are the functions of the package."""

from __future__ import annotations

from .interop import Interop


class _Default(Interop):
    """The shared instance; every process has one."""

    def __repr__(self) -> str:
        return "interop.default"

    def __reduce__(self) -> str:
        return "default"  # found by this name where it is loaded


default = _Default()

# Worker processes find what they are to call by the name under which it was pickled.
for _name, _place in (("__module__", "interop"), ("__qualname__", "convert")):
    setattr(default.convert, _name, _place)
