"""Containment: what the functions of a plugin raise stays with that plugin.

Steps and descriptions are called in few places, which name the plugin if they fail. All other
functions of a declaration get a guard when they are registered. Some then answer as if the plugin
had said nothing, and the log and the plugin's state tell why: those that are called on behalf of
others, and those that only save time. The others raise an error that names the plugin.

Bundled plugins get no guard: a fault of theirs is interop's own, and their calls are the warmest.
Nor does what the program itself registers: there is nobody else to name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from interop._model.conversion import Conversion
from interop._model.extension import Branch, Container, DtypeNames, Namespaces, NoTrace
from interop._model.foreign import error_text
from interop._model.format import Format, itself
from interop.errors import InteropError, PluginError

from .declared import HERE, OWN, Provenance
from .validation import described

_Declaration = TypeVar("_Declaration")

#: ``tell(function, problem, origin)`` takes note of what a plugin's function has raised.
Tell = Callable[[str, str, Provenance], None]


class _Guard(NamedTuple):
    """What becomes of a function's errors and answers.

    Parameters
    ----------
    instead : callable or None
        ``instead(declaration)`` is the answer in the place of an error; None: an error is raised.
    passes : tuple of type
        Errors that are raised as they are.
    sound : callable or None
        ``sound(answer)`` returns an answer, or raises an error if it is of no use.
    """

    instead: Callable[[Any], Any] | None = None
    passes: tuple[type[BaseException], ...] = (InteropError,)
    sound: Callable[[Any], Any] | None = None


def _hashable(key: object) -> object:
    hash(key)
    return key


def _branch(answer: object) -> object:
    if not isinstance(answer, Branch | None):
        msg = f"it answered {answer!r}, which is no Branch"
        raise TypeError(msg)
    return answer


_LOUD = _Guard()
_NO_PATH = _Guard(lambda _: NotImplemented)

#: For each kind of declaration, the functions that get a guard.
_GUARDS: Mapping[type, Mapping[str, _Guard]] = {
    Format: {
        "memory": _LOUD,
        "fill": _LOUD,
        "fast_path": _NO_PATH,
        "wrapper.first": _LOUD,
        "labels.present": _LOUD,
        "labels.give": _LOUD,
        # What may not be held is not handed over.
        "limits.unsupported_now": _Guard(lambda format_: format_.dtypes, sound=frozenset),
        "advanced.fast_key": _Guard(lambda _: None, sound=_hashable),
        "advanced.address": _LOUD,
        "advanced.unwritable": _LOUD,
        "advanced.written": _LOUD,
        "advanced.device_name": _LOUD,
    },
    Conversion: {"fast_path": _NO_PATH},
    # By a TypeError it says that it knows no such dtype.
    DtypeNames: {"name": _Guard(passes=(InteropError, TypeError))},
    Container: {"open": _Guard(lambda _: None, sound=_branch)},
    NoTrace: {"mark": _Guard(lambda _: None)},
    Namespaces: {"declare": _Guard(sound=list)},
}


def blame(what: str, origin: Provenance, problem: str, remark: str = "") -> PluginError:
    """Return the error that names the plugin whose function has a problem."""
    return PluginError(f"{what}, declared by {origin}, {problem}{remark}; {origin.remedy}")


def contained(declaration: _Declaration, origin: Provenance, tell: Tell) -> _Declaration:
    """Return a declaration whose functions have their guards."""
    if origin == HERE or origin.distribution == OWN:
        return declaration
    guarded: Any = declaration
    for path, guard in _GUARDS.get(type(declaration), {}).items():
        owner, _, name = path.rpartition(".")
        holder = getattr(guarded, owner) if owner else guarded
        function = getattr(holder, name, None)
        if function is None or function is itself:
            continue
        call = _guarded(function, guard, path, declaration, origin, tell)
        holder = holder._replace(**{name: call})
        guarded = guarded._replace(**{owner: holder}) if owner else holder
    return cast("_Declaration", guarded)


def _subject(declaration: Any) -> str:
    """Return what messages call a declaration: by its name, or by what it is for."""
    if isinstance(declaration, (Format, Conversion)):
        return described(declaration)
    kind, first = type(declaration).__name__, declaration[0]
    return f"the {kind} for {first!r}" if isinstance(first, str) else f"the {kind}"


def _guarded(  # noqa: PLR0917 - called in one place
    function: Callable[..., Any],
    guard: _Guard,
    path: str,
    declaration: Any,
    origin: Provenance,
    tell: Tell,
) -> Callable[..., Any]:
    """Return the function that a path leads to in a declaration, behind its guard."""
    instead, passes, sound = guard

    @wraps(function, updated=())
    def guarded(value: Any, *others: Any) -> Any:
        try:
            # Fast paths take one argument, and are called sooner without a sequence of them.
            answer = function(value, *others) if others else function(value)
            return answer if sound is None else sound(answer)
        except passes:
            raise
        except Exception as error:
            what, problem = f"{path} of {_subject(declaration)}", f"raised {error_text(error)}"
            if instead is None:
                raise blame(what, origin, problem) from error
            tell(what, problem, origin)
            return instead(declaration)

    return guarded
