"""Cast errors: numbers that do not fit, noticed in any thread and told in the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from functools import cache
from threading import get_ident
from types import ModuleType

from interop._model.caller import warn_caller
from interop._model.typing import Value

#: By the name that NumPy gives to an error in a call, that by which `numpy.errstate` knows it.
_STATES = {"overflow": "over", "invalid value": "invalid", "divide by zero": "divide"}
#: What NumPy is to do about errors that are told afterwards.
_NOTING = {"under": "ignore", "over": "call", "invalid": "call", "divide": "call"}

#: By thread, the errors of the call that it is in; empty but for a moment.
_noted: dict[int, dict[str, int]] = {}


class CastErrors:
    """What NumPy notices while numbers are cast: those that overflow, and what is invalid.

    How NumPy treats errors is each thread's own, and a warning given in a thread of a plugin's
    names none of the user's lines. Errors are therefore noted where they occur and told afterwards,
    once, in the way that the caller has set with `numpy.errstate`.

    Parameters
    ----------
    np : module
        NumPy itself, which the core does not import.

    Examples
    --------
    >>> import numpy as np
    >>> errors = CastErrors(np)
    >>> with errors.noted():
    ...     array = np.array([1e300, 1.0]).astype("float32")
    >>> with np.errstate(over="raise"):
    ...     errors.tell()
    Traceback (most recent call last):
        ...
    FloatingPointError: overflow encountered in cast
    """

    __slots__ = ("_kinds", "_np")

    def __init__(self, np: ModuleType) -> None:
        self._np = np
        self._kinds: dict[str, int] = {}

    def noted(self) -> AbstractContextManager[None]:
        """Return a context manager for a thread that casts."""
        noted: AbstractContextManager[None] = self._np.errstate(call=self._note, **_NOTING)
        return noted

    def _note(self, kind: str, flag: int) -> None:
        self._kinds[kind] = flag

    def tell(self) -> None:
        """Tell in the caller's thread what was noted.

        Raises
        ------
        FloatingPointError
            Something was noted that the caller has asked NumPy to raise.
        """
        _tell_all(self._np, self._kinds)


def checked_cast(np: ModuleType, array: Value, dtype: object, order: str = "K") -> Value:
    """Return a copy of a NumPy array in another dtype, and tell of numbers that do not fit.

    It does for one call what `CastErrors` does for blocks and threads, in a quarter of the time.

    Parameters
    ----------
    np : module
        NumPy itself.
    array : numpy.ndarray or numpy.generic
    dtype : numpy.dtype
    order : {"K", "C"}
        The order of the result's elements in memory: as in `array`, or by their indices.

    Returns
    -------
    numpy.ndarray or numpy.generic
        ``array.astype(dtype, order)``.

    Raises
    ------
    FloatingPointError
        A number does not fit, and the caller has asked NumPy to raise.
    """
    try:
        # A context is one thread's at a time, and copied in no time.
        return _noting(np).copy().run(array.astype, dtype, order)
    finally:
        if _noted:
            _tell_all(np, _noted.pop(get_ident(), {}))


@cache
def _noting(np: ModuleType) -> Context:
    """Return a context in which NumPy notes errors, to be copied: a context has one thread."""
    context = Context()
    context.run(np.seterr, **_NOTING)
    context.run(np.seterrcall, _note)
    return context


def _note(kind: str, flag: int) -> None:
    _noted.setdefault(get_ident(), {})[kind] = flag


def _tell_all(np: ModuleType, kinds: Mapping[str, int]) -> None:
    for kind, flag in kinds.items():
        _tell(kind, flag, np.geterr()[_STATES[kind]], np.geterrcall())


def _tell(kind: str, flag: int, mode: str, handler: object) -> None:
    """Tell of an error as NumPy does, whose messages are taken over."""
    text = f"{kind} encountered in cast"
    if mode == "warn":
        warn_caller(RuntimeWarning(text))
    elif mode == "raise":
        raise FloatingPointError(text)
    elif mode == "print":
        print(f"Warning: {text}")
    elif mode == "call" and callable(handler):
        handler(kind, flag)
    elif mode == "log" and handler is not None and hasattr(handler, "write"):
        handler.write(f"Warning: {text}\n")
