"""Surroundings: what the loading of a plugin changes in the process around it.

A plugin declares, and should change nothing for others. If it does, the changes are reported and,
where that can be done, taken back.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from interop._model.extension import Settings
from interop._model.foreign import error_text, is_interruption


class _Part(NamedTuple):
    """A part of the surroundings.

    Parameters
    ----------
    name : str
    read : callable
        ``read() -> object``; it has changed if it no longer equals what it was.
    put_back : callable or None
        ``put_back(before)``.
    """

    name: str
    read: Callable[[], Any]
    put_back: Callable[[Any], object] | None = None


def _attribute(module: Any, name: str) -> _Part:
    read, put_back = partial(getattr, module, name), partial(setattr, module, name)
    return _Part(f"{module.__name__}.{name}", read, put_back)


def _switch_collector(on: bool) -> None:
    (gc.enable if on else gc.disable)()


def _wide_filters() -> list[Any]:
    """Return the filters for all warnings; frameworks add narrower ones when they are imported."""
    return [f for f in warnings.filters if f[1] is None and f[2] is Warning and f[3] is None]


def _remove_filters(before: list[Any]) -> None:
    """Remove the filters for all warnings but those that were there before."""
    added = [f for f in _wide_filters() if f not in before]
    filters: Any = warnings.filters
    filters[:] = [*(f for f in before if f not in filters), *(f for f in filters if f not in added)]
    vars(warnings)["_filters_mutated"]()  # else the warnings that were shown are remembered


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        if signal.getsignal(number) is not handler and handler is not None:
            signal.signal(number, handler)


def _set_environment(before: dict[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


_PARTS = (
    _Part("the garbage collector", gc.isenabled, _switch_collector),
    _Part("the collector's thresholds", gc.get_threshold, lambda sizes: gc.set_threshold(*sizes)),
    _Part("the filters of all warnings", _wide_filters, _remove_filters),
    _Part("the interpreter's switch interval", sys.getswitchinterval, sys.setswitchinterval),
    _Part("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    *(_attribute(sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook")),
    _attribute(threading, "excepthook"),
    _Part("the working directory", os.getcwd, os.chdir),
    _Part("the environment", lambda: dict(os.environ), _set_environment),
    _Part("the handlers of signals", _handlers, _set_handlers),
    _Part("the threads", lambda: {thread.name for thread in threading.enumerate()}),
)


def _part_of(settings: Settings) -> _Part:
    return _Part(f"the settings of {settings.requires}", settings.read, settings.put_back)


@contextmanager
def unchanged(settings: Iterable[Settings]) -> Iterator[list[str]]:
    """Yield a list that is filled, at the end, with what has changed meanwhile.

    Parameters
    ----------
    settings : iterable of Settings
        Those of frameworks; the ones that are imported are compared as well.
    """
    parts = [*_PARTS, *(_part_of(s) for s in settings if s.requires in sys.modules)]
    before = [(part, _read(part)) for part in parts]
    changes: list[str] = []
    try:
        yield changes
    finally:
        changes += [_told(part, value, _read(part)) for part, value in before]
        changes[:] = filter(None, changes)


def _read(part: _Part) -> Any:
    try:
        return part.read()
    # The working directory may be gone, and a framework may be imported in part.
    except BaseException as error:
        if is_interruption(error):
            raise
        return None


def _told(part: _Part, before: Any, after: Any) -> str:
    """Put a part back if it has changed, and say so; "" if it has not."""
    if after == before:
        return ""
    change = f"loading it changed {part.name}{_difference(before, after)}"
    if part.put_back is None:
        return f"{change}."
    try:
        part.put_back(before)
    # Signals can be set in the main thread alone, and a framework may refuse anything.
    except BaseException as error:
        if is_interruption(error):
            raise
        return f"{change}, which could not be put back ({error_text(error)})."
    return f"{change}, which was put back."


def _difference(before: Any, after: Any) -> str:
    """Name what differs, where the parts of something have names."""
    if isinstance(before, dict):
        every = before.keys() | after.keys()
        names = {name for name in every if before.get(name, _Part) != after.get(name, _Part)}
    elif isinstance(before, set):
        names = before ^ after
    else:
        return ""
    return f" ({', '.join(sorted(map(str, names)))})"
