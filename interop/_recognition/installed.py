"""Which frameworks are installed, found out without importing them."""

from __future__ import annotations

import sys
from importlib import invalidate_caches

from interop._model.blame import error_text
from interop._model.format import Format, package

#: Who looks into a framework that is broken.
_LOOK = "`interop doctor` looks into it."


def framework_state(module: str) -> str:
    """Return whether a framework is ``"imported"``, ``"installed"`` or ``"missing"``."""
    if not module or module in sys.modules:
        return "imported"
    return "installed" if importable(module) else "missing"


#: Whether a module can be imported, for the modules that were looked for.
_importable: dict[str, bool] = {}


def importable(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    if sys.modules.get(module) is not None:
        return True
    available = _importable.get(module)
    if available is None:
        from importlib.util import find_spec

        try:
            available = find_spec(module) is not None
        except (ImportError, ValueError):
            available = False
        _importable[module] = available
    return available


def _installed_since(module: str) -> bool:
    """Return whether a module that could not be imported has been installed meanwhile."""
    invalidate_caches()
    _importable.pop(module, None)  # another thread may have asked, too
    return importable(module)


def not_installed(format_: Format) -> str:
    """Say that the framework of a format is not installed, and how to install it; "" if it is."""
    module = format_.requires
    if not module or importable(module) or _installed_since(module):
        return ""
    return _with_advice(module, format_.install)


def absent(error: BaseException) -> str:
    """Say which library an error shows to be missing; "" if it is about anything else."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    module = package(error.name or "")
    if not module or importable(module):
        return ""
    return _with_advice(module)


def import_problem(error: BaseException) -> str:
    """Say which import has failed and raised an error; "" if it is about anything else."""
    from traceback import walk_tb

    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name == "<module>":  # a module is being imported
            module = package(str(frame.f_globals.get("__name__", "")))
            return f"{module} is installed, but importing it fails ({error_text(error)}); {_LOOK}"
    if not isinstance(error, ImportError):
        return ""
    if error.name and not importable(package(error.name)):
        return f"could not import {error.name}; install it."
    return f"could not import what it needs ({error_text(error)}); {_LOOK}"


def how_to_get(module: str) -> str:
    """Return the advice to install a module; its name need not be that of its distribution."""
    return f"install the distribution that has the module {module}"


def _with_advice(module: str, install: str = "") -> str:
    return f"{module} is not installed: {install or how_to_get(module)}"
