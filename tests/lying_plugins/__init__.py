"""Tables of lying plugins by classes: each is a few lines, one declaration with one lie.

`table` makes a module of each liar, so that other processes can import it by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NamedTuple

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
    """

    promise: str
    check: str
    text: str


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
    declarations: Callable[[], Iterable[Declaration]]


def table(module: str, *liars: Liar) -> dict[str, Liar]:
    """Return liars by the names of the modules that they become.

    Parameters
    ----------
    module : str
        The name of the module with the table.
    *liars : Liar
    """
    plugins: dict[str, Liar] = {}
    for liar in liars:
        name = f"{module}.{liar.name}"
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
