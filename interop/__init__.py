"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

The functions here are the methods of one `Interop`, which holds all state. Names are imported when
they are first used (as SPEC 1 of Scientific Python recommends), so that ``import interop`` costs
next to nothing. The stub beside this file is the only list of them.
"""

# ruff: noqa: I002 - under a private name, so that editors do not complete it
from __future__ import annotations as _annotations

import os as _os
import sys as _sys
import time as _time
from _thread import RLock as _RLock  # which is quicker than to import `threading`
from _thread import get_ident as _get_ident

#: Seconds for which a fork waits for other threads that import parts of this package.
_PATIENCE = 10.0

#: Held while a name is imported, and over a fork. No import for a name waits for a thread that
#: could wait for this lock.
_importing = _RLock()
#: The locks that each thread holds over a fork, by its number.
_held_over_fork: dict[int, list[_RLock]] = {}
#: What `_modules` returns, once it was called.
_module_by_name: dict[str, str] = {}


def _modules() -> dict[str, str]:
    """Return the module of each public name in the stub; "." stands for the shared instance."""
    if _module_by_name:
        return _module_by_name
    modules: dict[str, str] = {}
    for line in __loader__.get_data(f"{__file__}i").decode().splitlines():
        match line.split():
            case ["from", ".", "import", name, "as", _]:  # a submodule
                modules[name] = f".{name}"
            case ["from", module, "import", name, "as", _]:
                modules[name] = module
            case [name, "=", _] | ["from", _, "import", name, "as", _, "#", "of", "default"]:
                modules[name] = "."
    _module_by_name.update(modules)  # in one go, because other threads may read it
    return _module_by_name


def __getattr__(name: str) -> object:
    """Import a public name from its module, and keep it."""
    if name == "__all__":
        return sorted(_modules())
    from importlib import import_module  # not above: it would be a quarter of `import interop`

    with _importing:
        source = _modules().get(name)
        if source is None:
            raise AttributeError(_unknown(name))
        if source == ".":
            value = getattr(import_module("._api.default", __name__).default, name)
        else:
            module = import_module(source, __name__)
            value = module if source == f".{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_modules())


def _unknown(name: str) -> str:
    """Say that there is no public name of this kind, and whose it may be."""
    text = f"module {__name__!r} has no attribute {name!r}"
    if name.startswith("_"):  # one of the names that Python and its tools look for in any module
        return text
    from importlib import import_module

    rival = import_module("._registry.installed", __name__).rival(__name__)
    return f"{text}; {rival}" if rival else text


def _before_fork() -> None:
    """Wait until no thread imports or loads a part of this package, and let none begin.

    A fork breaks imports off. Python's lock on each of them stays taken in the child, which would
    wait for ever if it imported the same module.

    `logging` takes its lock over a fork as well. If it was imported after this package, this thread
    holds the lock by now, and an import that asks for a logger could not end. So the lock is given
    back for as long as this waits. If `logging` is imported in the meantime, it releases the lock
    after the fork, and has to find it taken.
    """
    if _hold(0.0):
        return
    _after_fork()
    registered = "logging" in _sys.modules and not _is_being_imported("logging")
    taken = _release(_lock_of_logging())
    end = _time.monotonic() + _PATIENCE
    while not _hold(end) and _time.monotonic() < end:
        _after_fork()
        _time.sleep(0.001)
    lock = _lock_of_logging()
    if lock is not None and (taken or not registered):
        lock.acquire()


def _lock_of_logging() -> _RLock | None:
    return getattr(_sys.modules.get("logging"), "_lock", None)


def _release(lock: _RLock | None) -> bool:
    """Release a lock if this thread holds it, and tell whether it did."""
    try:
        if lock is not None:
            lock.release()
    except RuntimeError:  # another thread holds it, or none
        return False
    return lock is not None


def _hold(end: float) -> bool:
    """Take the locks of loading and importing, and tell whether nothing is under way any more.

    The lock of imports comes last, because a thread that loads plugins may need it for a name.
    """
    locks = _locks_of_loading()
    held = _held_over_fork.setdefault(_get_ident(), [])
    for lock in (*locks, _importing):
        if not lock.acquire(timeout=max(end - _time.monotonic(), 0.0)):
            return False
        held.append(lock)
    if _locks_of_loading() != locks:  # an instance was made in the meantime
        return False
    return not any(map(_is_being_imported, filter(_is_waited_for, list(_sys.modules))))


def _locks_of_loading() -> list[_RLock]:
    """Return the locks that threads hold while they load plugins."""
    instances = _sys.modules.get(f"{__name__}._api.interop")
    locks = getattr(instances, "locks", list)  # there are none before that module is imported
    return locks()


def _after_fork() -> None:
    """Give the locks back."""
    for lock in _held_over_fork.pop(_get_ident(), ()):
        lock.release()


def _after_fork_in_child() -> None:
    """Take a new lock, because the threads that held others did not survive the fork."""
    global _importing  # noqa: PLW0603 - as instances renew theirs
    _importing = _RLock()
    _held_over_fork.clear()


def _is_waited_for(name: str) -> bool:
    """Tell whether a fork waits for a module: this package's, the plugins' beside it, `logging`."""
    return name == "logging" or name.startswith((f"{__name__}.", f"{__name__}_plugins"))


def _is_being_imported(name: str) -> bool:
    return getattr(getattr(_sys.modules.get(name), "__spec__", None), "_initializing", False)


if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
