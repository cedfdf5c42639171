"""Foreign code: the functions of plugins and of values, which may raise anything."""

from __future__ import annotations

import sys

from interop._text import excerpt
from interop.errors import DoesNotFitError, HandOffError, InteropError, PluginError

from .provenance import Provenance


def is_signal(error: BaseException) -> bool:
    """Tell whether an exception does not say that foreign code has failed, so that it has to pass.

    KeyboardInterrupt, SystemExit and their like end a program, a task or a test, and are caught by
    name. One of a module that does not exist is caught by nobody: compiled code panics by it.
    """
    return not isinstance(error, Exception) and type(error).__module__ in sys.modules


def error_text(error: BaseException) -> str:
    """Return an exception as a message names it: its class, and its text if that can be had."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the exception is foreign, too
        text = ""
    return excerpt(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def unreadable(value: object, error: BaseException) -> InteropError:
    """Return the error to raise for one that a value's own code has raised."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    msg = f"{name} raised {error_text(error)} when it was asked for its array"
    if isinstance(error, MemoryError):
        return DoesNotFitError(f"{msg}; convert it in parts.")
    return HandOffError(f"{msg}; open what it reads from, or pass a plain array instead.")


def blame(what: str, origin: Provenance, problem: str, remark: str = "") -> PluginError:
    """Return the error that names the plugin whose function has a problem."""
    return PluginError(f"{what}, declared by {origin}, {problem}{remark}; {origin.remedy}")


def failed(what: str, origin: Provenance, error: BaseException, remark: str = "") -> InteropError:
    """Return the error to raise for one that a plugin's function has raised."""
    problem = f"raised {error_text(error)}"
    if isinstance(error, MemoryError):  # of which no plugin is to blame
        return DoesNotFitError(
            f"{what}, declared by {origin}, {problem}{remark}; convert it in parts."
        )
    return blame(what, origin, problem, remark)
