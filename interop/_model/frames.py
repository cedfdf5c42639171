"""The frames that the traceback of an error shows: the caller's, and one of this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from interop.errors import InteropError

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The packages whose frames explain nothing to a caller: a message says all that there is to say.
_OURS = ("interop", "interop_plugins")


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
        try:
            return function(*args, **keywords)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error

    return cast(_Function, called)
