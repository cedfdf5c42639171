"""Blame: the caller's line that a warning or an error shows, and the plugin that it names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from interop._text import PART, excerpt, legible
from interop.errors import DoesNotFitError, HandOffError, InteropError, PluginError

from .provenance import Provenance
from .text import listed, resembling

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The packages of this distribution. Their frames explain nothing to a caller: a message says all
#: that there is to say.
_OURS = ("interop", "interop_plugins")


def warn_caller(warning: Warning) -> None:
    """Warn the line outside of this distribution that has asked for a conversion.

    Python's usual filter shows a warning once for each line.
    """
    level, frame = 1, sys._getframe(1)
    # A thread or an exit handler may have called this distribution itself.
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    # The warning itself, if it were raised, would keep what its traceback holds.
    warnings.warn(legible(str(warning)), type(warning), stacklevel=level + 1)


def shortened(error: InteropError) -> InteropError:
    """Return an error without the frames of this package, to be raised by the function called.

    That function adds its own frame again, and hides it from pytest and IPython by its variable
    ``__tracebackhide__``. The frames of other packages stay, and so do those of a cause.
    """
    return error.with_traceback(_others(error.__traceback__))


def _others(trace: TracebackType | None) -> TracebackType | None:
    others = []
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _OURS:
            others.append(trace)
        trace = trace.tb_next
    rest = None
    for trace in reversed(others):  # each links to the next, which is therefore made first
        rest = TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    return rest


def brief(function: _Function) -> _Function:
    """Decorate a function for users, so that its errors show their line and the message."""

    @wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **keywords)
        except InteropError as error:
            raise shortened(error)  # noqa: B904 - it is the same error
        except TypeError as error:
            if not is_misuse(error):
                raise
            raise misuse(function, args, keywords) from None

    return cast(_Function, called)


def is_misuse(error: TypeError) -> bool:
    """Return whether a function called by the one that catches an error does not take the call."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None


def misuse(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, object]
) -> TypeError:
    """Return the error to raise for a call of a public function that does not take its arguments.

    Python's own names the method behind the function, counts the instance among the arguments, and
    suggests no keyword in some versions.
    """
    from inspect import Parameter, signature  # imported for the first mistake

    parameters = list(signature(function).parameters.values())
    if parameters[:1] and parameters[0].name == "self":
        parameters, args = parameters[1:], args[1:]
    owner, _, method = function.__qualname__.rpartition(".")
    name = owner if method == "__init__" else method
    kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    places = [p.name for p in parameters if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    nameless = [p.name for p in parameters if p.kind == Parameter.POSITIONAL_ONLY]
    named = [p.name for p in parameters if p.kind in kinds]
    needed = [p.name for p in parameters if p.name in places and p.default is p.empty]
    call = f"write {name}({', '.join([*needed, '…'])})."
    unnamed = [word for word in nameless if word in keywords]
    unknown = [word for word in keywords if word not in {*named, *nameless}]
    twice = [word for word in places[: len(args)] if word in keywords]
    absent = [word for word in needed[len(args) :] if word not in keywords]
    if unnamed:
        text = f"{name} takes {unnamed[0]} without a keyword; {call}"
    elif unknown and not any(p.kind == Parameter.VAR_KEYWORD for p in parameters):
        text = f"{name} has no keyword {legible(unknown[0], PART)}=; {_meant(unknown[0], named)}"
    elif len(args) > len(places):
        taken = f"only {' and '.join(places)}" if places else "nothing"
        rest = [word for word in named if word not in places]
        move = f"name the others: {_as_keywords(rest)}." if rest else "leave out the rest."
        text = f"{name} takes {taken} without a keyword; {move}"
    elif twice:
        text = f"{name} was given {twice[0]} twice; leave out {twice[0]}=."
    else:
        text = f"{name} was not given {' and '.join(absent)}; {call}"
    return TypeError(text)


def _meant(word: str, named: list[str]) -> str:
    if not named:
        return "leave it out."
    meant = resembling(word, named)
    return f"did you mean {_as_keywords(meant)}?" if meant else f"it has {_as_keywords(named)}."


def _as_keywords(names: list[str]) -> str:
    return listed((f"{name}=" for name in names), len(names))


def is_signal(error: BaseException) -> bool:
    """Return whether an exception says no failure of foreign code, so that it has to pass.

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
