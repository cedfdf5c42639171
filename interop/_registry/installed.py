"""Which frameworks are installed, found out without importing them."""

from __future__ import annotations

import sys

__all__ = ["framework_state", "importable"]


def framework_state(module: str) -> str:
    """Tell whether a framework is ``"imported"``, ``"installed"`` or ``"missing"``."""
    if not module or module in sys.modules:
        return "imported"
    return "installed" if importable(module) else "missing"


_found: dict[str, bool] = {}


def importable(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    found = _found.get(module)
    if found is None:
        from importlib.util import find_spec

        try:
            found = find_spec(module) is not None
        except (ImportError, ValueError):
            found = False
        _found[module] = found
    return found
