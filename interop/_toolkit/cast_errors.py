"""Cast errors: numbers that do not fit, noticed in any thread and told in the caller's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType

from interop._model.caller import warn_caller

__all__ = ["CastErrors"]

#: By the name that NumPy gives to an error in a call, that by which `numpy.errstate` knows it.
_STATES = {"overflow": "over", "invalid value": "invalid", "divide by zero": "divide"}


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
        states = dict.fromkeys(_STATES.values(), "call")
        noted: AbstractContextManager[None] = self._np.errstate(
            under="ignore", call=self._note, **states
        )
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
        for kind, flag in self._kinds.items():
            mode = self._np.geterr()[_STATES[kind]]
            _tell(kind, flag, mode, self._np.geterrcall())


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
