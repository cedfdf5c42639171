"""Tables of lying plugins: each liar is a few lines, one honest declaration with one lie.

A decorator makes a liar of the function that lies: its name is the liar's, its docstring is the lie.
`table` makes a module of each liar, so that other processes can import it by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from interop.plugin import Declaration, hookimpl

__all__ = ["Caught", "Contained", "Liar", "Told", "Unseen", "table"]


class Caught(NamedTuple):
    """What the suite finds.

    Parameters
    ----------
    promise, check : str
        Who is blamed, and for what.
    text : str
        Part of the reason.
    blamed : str
        What findings on others say of the liar, if not the name of its declaration.
    """

    promise: str
    check: str
    text: str
    blamed: str = ""


class Told(NamedTuple):
    """What the suite says that it has not tried.

    Parameters
    ----------
    promise, check : str
    text : str
        Part of the reason.
    """

    promise: str
    check: str
    text: str


class Contained(NamedTuple):
    """What a user meets who has the plugin: an error that names it, and nothing worse.

    Parameters
    ----------
    use : callable
        ``use(interop)``, where the plugin is registered.
    text : str
        Part of the error.
    """

    use: Callable[..., object]
    text: str


class Unseen(NamedTuple):
    """The lie passes.

    Parameters
    ----------
    limit : str
        Which limit the page names among those that the suite cannot see.
    """

    limit: str


class Liar(NamedTuple):
    """A plugin with one lie.

    Parameters
    ----------
    name : str
    lie : str
        The lie in a sentence.
    fate : Caught or Told or Contained or Unseen
    declarations : callable
        Returns what the plugin declares.
    """

    name: str
    lie: str
    fate: Caught | Told | Contained | Unseen
    declarations: Callable[[], Iterable[Any]]

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        fate: Caught | Told | Contained | Unseen,
        declarations: Callable[[], Iterable[Any]],
    ) -> Liar:
        """Return a liar that is named as a function is, and whose lie is its docstring."""
        return cls(function.__name__, function.__doc__ or "", fate, declarations)


def table(module: dict[str, Any], *others: Liar) -> dict[str, Liar]:
    """Return the liars of a module by the names of the modules that they become.

    Parameters
    ----------
    module : dict
        The globals of the module whose liars these are.
    *others : Liar
        Those that no function of the module lies for.
    """
    liars = [value for value in module.values() if isinstance(value, Liar)]
    plugins: dict[str, Liar] = {}
    module["__path__"] = []
    for liar in (*liars, *others):
        name = f"{module['__name__']}.{liar.name}"
        plugin = ModuleType(name, liar.lie)
        plugin.__spec__ = ModuleSpec(name, None)
        vars(plugin)["interop_declarations"] = _hook(liar.declarations)
        sys.modules[name] = plugin
        plugins[name] = liar
    return plugins


def _hook(declarations: Callable[[], Iterable[Declaration]]) -> Callable[..., object]:
    @hookimpl
    def interop_declarations() -> Iterable[Declaration]:
        return list(declarations())

    return interop_declarations


class _Finder:
    """Finds the modules that tables have made, for those who ask whether there is one."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        is_liar = name.startswith(f"{__name__}.") and name in sys.modules
        return sys.modules[name].__spec__ if is_liar else None


sys.meta_path.append(_Finder)
