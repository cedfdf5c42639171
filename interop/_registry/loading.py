"""Loading: which plugins are in a registry, and which wait until something shows a need for them.

Most bundled plugins serve one framework. Such a plugin waits until its framework is imported or a
caller writes its name, so that the first call of a process loads little more than it needs. A
plugin that waits declares no hub and no protocol: no route between other frameworks leads through
it. All plugins are loaded before anything is listed, registered or refused.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, TypeAlias

from interop._model.log import log
from interop._model.provenance import OWN, Provenance

from .declared import Declared
from .precedence import settle

if TYPE_CHECKING:
    from .discovery import Plugin


#: A plugin that was found.
_Point: TypeAlias = tuple[EntryPoint, Provenance]
#: What a plugin declares, or the plugin itself if it is disabled; None while it waits.
_Answer: TypeAlias = "list[Declared] | Plugin | None"


class Loader:
    """Loads the installed plugins into a registry.

    Parameters
    ----------
    replace : callable
        ``replace(declared)`` registers declarations in the place of all that there are.
    has_plugins : bool
        False: there is never anything to load.
    """

    def __init__(self, replace: Callable[[list[Declared]], None], *, has_plugins: bool) -> None:
        self._replace = replace
        #: Held by whoever changes what is declared.
        self.lock = threading.RLock()
        self._answers: dict[_Point, _Answer] = {}
        #: The plugins that wait, and the words that show the need for each.
        self._waiting: dict[_Point, frozenset[str]] = {}
        #: All of these words.
        self._words: frozenset[str] = frozenset()
        #: What the log says of conflicts.
        self._conflicts: set[str] = set()
        #: Called once, after the first plugins are registered.
        self.on_start: Callable[[], None] = lambda: None
        #: Whether no plugin was looked for yet.
        self.has_to_start = has_plugins
        #: All plugins that were found, but for those that wait.
        self.plugins: tuple[Plugin, ...] = ()
        #: The reasons why plugins are not loaded, by their names.
        self.unavailable: dict[str, str] = {}

    def load(self, name: str = "") -> None:
        """Load the plugins for which imported modules, or a name, show the need."""
        if self.has_to_start or _shows(self._words, name):
            self._load(lambda words: _shows(words, name))

    def load_all(self) -> bool:
        """Load all plugins, and tell whether any of them waited."""
        if not (self.has_to_start or self._words):
            return False
        self._load(lambda words: True)
        return True

    def is_loading(self) -> bool:
        """Tell whether a plugin calls while this loader loads it."""
        if not self.has_to_start:
            return False
        from .discovery import is_loading

        return is_loading()

    def _load(self, is_needed: Callable[[frozenset[str]], bool]) -> None:
        from .discovery import check_not_loading, declared_in

        check_not_loading()
        with self.lock:
            is_first = self.has_to_start
            answers, waiting = self._started() if is_first else (self._answers, self._waiting)
            needed = [point for point, words in waiting.items() if is_needed(words)]
            if not (needed or is_first):  # another thread has loaded them meanwhile
                return
            answers = answers | {point: declared_in(*point) for point in needed}
            self._register(answers)
            self._answers = answers
            self._waiting = {point: waiting[point] for point in waiting.keys() - needed}
            self._words = frozenset[str]().union(*self._waiting.values())
            if is_first:
                self.on_start()
                self.has_to_start = False

    @staticmethod
    def _started() -> tuple[dict[_Point, _Answer], dict[_Point, frozenset[str]]]:
        """Return what the plugins answer that cannot wait, and the words of those that can.

        None waits whose words stand in a declaration of another distribution, which may be about
        its formats.
        """
        from .discovery import blocked, declared_in, found, words_of

        answers: dict[_Point, _Answer] = {point: blocked(point[1]) for point in found()}
        waiting = {point: words_of(*point) for point, plugin in answers.items() if plugin is None}
        answers |= {point: declared_in(*point) for point, words in waiting.items() if not words}
        lists = [answer for answer in answers.values() if type(answer) is list]
        foreign = {
            word
            for entry in (entry for entries in lists for entry in entries)
            if entry.provenance.distribution != OWN
            for word in _words_in(entry.declaration)
        }
        needed = [point for point, words in waiting.items() if words and words & foreign]
        answers |= {point: declared_in(*point) for point in needed}
        return answers, {point: words for point, words in waiting.items() if answers[point] is None}

    def _register(self, answers: dict[_Point, _Answer]) -> None:
        """Register all declarations, in an order that does not depend on when they were loaded."""
        from .discovery import Plugin, loaded, unread

        lists = [answer for answer in answers.values() if type(answer) is list]
        entries, conflicts = settle(entry for entries in lists for entry in entries)
        self._replace(entries)
        self.plugins = tuple(
            answer if isinstance(answer, Plugin) else loaded(origin, entries, conflicts)
            for (_, origin), answer in answers.items()
            if answer is not None
        )
        self.plugins += tuple(unread())
        self.unavailable = {
            plugin.name: f"its plugin is not loaded ({plugin.reason})."
            for plugin in self.plugins
            if plugin.state != "loaded"
        }
        for conflict in conflicts:
            if (text := str(conflict)) not in self._conflicts:
                self._conflicts.add(text)
                origin = conflict.loser.provenance
                log.warning("plugin %r of %s is left out in part: %s", origin.plugin, origin, text)


def _shows(words: frozenset[str], name: str) -> bool:
    """Tell whether a name or the name of an imported module is one of some words."""
    return name in words or not sys.modules.keys().isdisjoint(words)


def _words_in(declared: object) -> Iterator[str]:
    """Yield the words that stand in a declaration."""
    if isinstance(declared, str):
        yield from re.findall(r"\w+", declared)
    elif isinstance(declared, Mapping):
        yield from _words_in(tuple(declared.items()))
    elif isinstance(declared, (tuple, Set)):
        for item in declared:
            yield from _words_in(item)
