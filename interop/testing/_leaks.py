"""Leaks: values, threads and files that are left when the result of a call is gone."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable

from interop._model.typing import Value

from ._sample import NoSample

#: The number of calls; a leak grows by at least as much.
_CALLS = 4


def problem_of_leaks(label: str, make: Callable[[], Value], call: Callable[[Value], Value]) -> str:
    """Say what some calls leave behind; "" if nothing.

    Parameters
    ----------
    label : str
    make : callable
        Returns a new value to convert.
    call : callable

    Raises
    ------
    NoSample
        Making the values leaves something behind by itself.
    """
    call(make())  # the first call may import, and start threads that serve all later ones
    if remnant := _remnant(make, lambda value: value):
        msg = f"{label} is tried with values whose makers leave {remnant} behind"
        raise NoSample(msg)
    remnant = _remnant(make, call)
    return f"{label} leaves {remnant} behind when nobody else holds them" if remnant else ""


def _remnant(make: Callable[[], Value], call: Callable[[Value], Value]) -> str:
    """Return what grows with every call; "" if nothing does."""
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
    gc.collect(1)  # the objects of these calls are young
    for kind, references in (("its sources", values), ("its results", results)):
        if len(references) == _CALLS and all(ref() is not None for ref in references):
            return kind
    growing = (kind for kind, count in _count().items() if count - before[kind] >= _CALLS)
    return next(growing, "")


def _remember(references: list[weakref.ref[Value]], value: Value) -> None:
    try:
        references.append(weakref.ref(value))
    except TypeError:  # some types allow no weak references
        return


def _count() -> dict[str, int]:
    """Return the numbers of threads and, if the system tells, of open files."""
    try:
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        files = 0
    return {"threads": threading.active_count(), "open files": files}
