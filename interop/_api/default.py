"""The instance whose methods are the functions of the package."""

from __future__ import annotations

from .interop import Interop


class _Default(Interop):
    """The instance that all of a process share."""

    def __repr__(self) -> str:
        return "interop.default"

    def __reduce__(self) -> str:
        return "default"  # found by this name where it is loaded


default: Interop = _Default()
