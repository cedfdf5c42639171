"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

The functions here are the methods of one `Interop`, which holds all state. Names are imported when
they are first used (as SPEC 1 of Scientific Python has it), so that ``import interop`` costs next
to nothing. They stand once, in the stub beside this file.
"""

from __future__ import annotations

import logging  # noqa: F401  # before `_before_fork` is registered, which says why
import os
import sys
from _thread import RLock, get_ident  # which is quicker than to import `threading`
from functools import cache
from importlib import import_module
from time import monotonic, sleep

#: Seconds for which a fork waits for other threads that import parts of this package.
_PATIENCE = 10.0

#: Held while a name is imported, and over a fork. What is imported for a name waits for no thread
#: that could wait for this.
_importing = RLock()
#: The locks that each thread holds over a fork, by its number.
_held_over_fork: dict[int, list[RLock]] = {}


@cache
def _homes() -> dict[str, str]:
    """Return, for each public name of the stub, its module; that of the instance for its methods.

    A submodule is its own home.
    """
    import ast

    homes: dict[str, str] = {}
    for statement in ast.parse(__loader__.get_data(f"{__file__}i")).body:
        match statement:
            case ast.ImportFrom(module=module, level=level, names=names):
                # "import X as X" is how a stub says that it exports X.
                exported = (alias.name for alias in names if alias.asname)
                homes |= {name: f"{'.' * level}{module or name}" for name in exported}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                homes[name] = "."
    return homes


def __getattr__(name: str) -> object:
    """Import a public name from its module, and keep it."""
    if name == "__all__":
        return sorted(_homes())
    with _importing:
        home = _homes().get(name)
        if home is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        if home == ".":
            value = getattr(import_module("._api.default", __name__).default, name)
        else:
            module = import_module(home, __name__)
            value = module if home == f".{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes())


def _before_fork() -> None:
    """Wait for what other threads import and load of this package, and let none begin anew.

    A fork breaks imports off, and Python's lock on each stays taken in the child, which would wait
    for ever when it imports the same. What is registered last runs first: were `logging` imported
    later, its lock would be taken by now, and an import that asks for a logger could not end.
    """
    end = monotonic() + _PATIENCE
    while not _hold(end) and monotonic() < end:
        _after_fork()
        sleep(0.001)


def _hold(end: float) -> bool:
    """Take the locks of loading and importing, and tell whether nothing is under way any more.

    Whoever loads plugins may need a name, and so the lock of imports; therefore that comes last.
    """
    locks = _locks_of_loading()
    held = _held_over_fork.setdefault(get_ident(), [])
    for lock in (*locks, _importing):
        if not lock.acquire(timeout=max(end - monotonic(), 0.0)):
            return False
        held.append(lock)
    if _locks_of_loading() != locks:  # an instance was made in the meantime
        return False
    return not any(_is_being_imported(name) for name in list(sys.modules))


def _locks_of_loading() -> list[RLock]:
    """Return the locks that threads hold while they load plugins."""
    instances = sys.modules.get(f"{__name__}._api.interop")
    locks = getattr(instances, "locks", list)  # none before that module is imported whole
    return locks()


def _after_fork() -> None:
    """Give the locks back."""
    for lock in _held_over_fork.pop(get_ident(), ()):
        lock.release()


def _after_fork_in_child() -> None:
    """Take a new lock, because the threads that held others did not survive the fork."""
    global _importing  # noqa: PLW0603 - as instances renew theirs
    _importing = RLock()
    _held_over_fork.clear()


def _is_being_imported(name: str) -> bool:
    """Tell whether a module of this package, or of the plugins beside it, is being imported."""
    if not name.startswith((f"{__name__}.", f"{__name__}_plugins")):
        return False
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
