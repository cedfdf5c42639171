"""Containment: an error that a plugin's function raises names that plugin.

Steps and descriptions are called in few places, which name the plugin if they fail. All other
functions of a declaration get a guard when they are registered.

Bundled plugins get no guard: a fault of theirs is interop's own, and their calls are the warmest.
Nor do the program's own declarations: there is no plugin to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from interop._model.blame import failed, is_signal
from interop._model.conversion import Conversion
from interop._model.extension import Container, DtypeNames, NoTrace
from interop._model.format import Format, itself
from interop._model.provenance import HERE, OWN, Provenance
from interop.errors import InteropError

from .validation import described

_Declaration = TypeVar("_Declaration")

#: For each kind of declaration, the functions that get a guard.
_GUARDED: Mapping[type, tuple[str, ...]] = {
    Format: (
        *("memory", "fill", "fast_path", "wrapper.first", "labels.present", "labels.give"),
        *("limits.unsupported_now", "advanced.fast_key", "advanced.address"),
        *("advanced.unwritable", "advanced.written", "advanced.device_name"),
    ),
    Conversion: ("fast_path",),
    DtypeNames: ("name",),
    Container: ("open",),
    NoTrace: ("mark",),
}


def with_guards(declaration: _Declaration, origin: Provenance) -> _Declaration:
    """Return a declaration whose functions have their guards."""
    if origin == HERE or origin.distribution == OWN:
        return declaration
    # By a TypeError, DtypeNames say that they know no such dtype.
    passes = (InteropError, TypeError) if isinstance(declaration, DtypeNames) else (InteropError,)
    guarded: Any = declaration
    for path in _GUARDED.get(type(declaration), ()):
        owner, _, name = path.rpartition(".")
        holder = getattr(guarded, owner) if owner else guarded
        function = getattr(holder, name, None)
        if function is None or function is itself:
            continue
        call = _guarded(function, f"{path} of {_subject(declaration)}", origin, passes)
        holder = holder._replace(**{name: call})
        guarded = guarded._replace(**{owner: holder}) if owner else holder
    return cast("_Declaration", guarded)


def _subject(declaration: Any) -> str:
    """Return what messages call a declaration: by its name, or by what it is for."""
    if isinstance(declaration, (Format, Conversion)):
        return described(declaration)
    kind, first = type(declaration).__name__, declaration[0]
    return f"the {kind} for {first!r}" if isinstance(first, str) else f"the {kind}"


def _guarded(
    function: Callable[..., Any], what: str, origin: Provenance, passes: tuple[type[Exception], ...]
) -> Callable[..., Any]:
    """Return a function that raises the errors of another, with the name of its plugin."""

    @wraps(function, updated=())
    def guarded(value: Any, *others: Any) -> Any:
        try:
            # Fast paths take one argument, and are called sooner without a sequence of them.
            return function(value, *others) if others else function(value)
        except passes:
            raise
        except BaseException as error:
            if is_signal(error):
                raise
            raise failed(what, origin, error) from error

    return guarded
