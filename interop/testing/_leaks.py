"""Leaks: what a call leaves behind in its process when its result is gone."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable

from interop._calibration.sample import NoSample
from interop._model.typing import Value

__all__ = ["problem_of_leaks"]

#: What grows by one with every call grows by as many as there are calls.
_CALLS = 4


def problem_of_leaks(label: str, make: Callable[[], Value], call: Callable[[Value], Value]) -> str:
    """Say what is left of some calls; "" if nothing is.

    Parameters
    ----------
    label : str
    make : callable
        Returns a new value to convert.
    call : callable

    Raises
    ------
    NoSample
        The values that it would be tried with leave something behind themselves.
    """
    call(make())  # the first call may import, and start what serves all later ones
    if remnant := _remnant(make, lambda value: value):
        msg = f"{label} is tried with values whose makers leave {remnant} behind"
        raise NoSample(msg)
    remnant = _remnant(make, call)
    return f"{label} leaves {remnant} behind when nobody else holds them" if remnant else ""


def _remnant(make: Callable[[], Value], call: Callable[[Value], Value]) -> str:
    """Return what there is more of after every call."""
    before = _count()
    values: list[weakref.ref[Value]] = []
    results: list[weakref.ref[Value]] = []
    for _ in range(_CALLS):
        value = make()
        result = call(value)
        _remember(values, value)
        if result is not value:
            _remember(results, result)
        del value, result
    gc.collect(1)  # what these calls have made is young
    for kind, references in (("its sources", values), ("its results", results)):
        if len(references) == _CALLS and all(ref() is not None for ref in references):
            return kind
    growing = (kind for kind, count in _count().items() if count - before[kind] >= _CALLS)
    return next(growing, "")


def _remember(references: list[weakref.ref[Value]], value: Value) -> None:
    try:
        references.append(weakref.ref(value))
    except TypeError:  # values of some types cannot be watched
        return


def _count() -> dict[str, int]:
    """Return how many threads there are, and how many open files where the system tells."""
    try:
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        files = 0
    return {"threads": threading.active_count(), "open files": files}
