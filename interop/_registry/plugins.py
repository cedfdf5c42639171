"""Plugins: finding, asking, blocking and reporting them, and which of them wait.

Plugins are the entry points of the group ``interop``. Each is imported and asked for its
declarations on its own, so that a broken one disables only itself. Its hook runs once in a process;
other instances of `Interop` get the same declarations.

Most bundled plugins serve one framework. Such a plugin waits until its framework is imported or a
caller writes its name, so that the first call of a process loads little more than it needs. A
plugin that waits declares no hub and no protocol: no route between other frameworks leads through
it. All plugins are loaded before anything is listed, registered or refused.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from types import ModuleType
from typing import NamedTuple, TypeAlias

import pluggy

from interop._model.blame import error_text, is_signal
from interop._model.conversion import Conversion
from interop._model.extension import Declaration, NoTrace
from interop._model.format import Format, package
from interop._model.log import log
from interop._model.provenance import OWN, Provenance, normal
from interop._model.text import suggestion
from interop._text import excerpt, legible
from interop.errors import PluginError

from . import hooks
from .declared import Declared
from .precedence import Conflict, declared_by, replacements, without_conflicts

GROUP = "interop"
_BLOCKING = "INTEROP_DISABLE_PLUGINS"
_OTHERS = "'interop plugins' lists them."
#: Stands for the name of a distribution that does not tell it.
_UNKNOWN = "an unknown distribution"


#: The plugin that is being loaded in this thread.
_loading: ContextVar[Provenance | None] = ContextVar("loading", default=None)

#: The modules of the plugins that were asked in this process, and what they declare, by provenance
#: and by what the entry point names.
_kept: dict[tuple[Provenance, str], tuple[ModuleType, list[Declared]]] = {}


class Plugin(NamedTuple):
    """A plugin that was found, and what became of it.

    Parameters
    ----------
    name : str
        Name of its entry point.
    distribution, version : str
    state : str
        ``"loaded"``, ``"failed"`` or ``"blocked"``.
    reason : str
        Why it, or something that it has declared, is left out; "" if nothing is.
    formats, conversions : int
        How many it has declared.
    replaces : tuple of str
        The places that it says it replaces others in.
    """

    name: str
    distribution: str
    version: str
    state: str
    reason: str = ""
    formats: int = 0
    conversions: int = 0
    replaces: tuple[str, ...] = ()

    def row(self) -> dict[str, str]:
        """Return its row in a listing."""
        facts = {**self._asdict(), "replaces": ", ".join(self.replaces)}
        return {"plugin": facts.pop("name"), **{key: str(fact) for key, fact in facts.items()}}


#: A plugin that was found.
_Point: TypeAlias = tuple[EntryPoint, Provenance]
#: What a plugin declares, or the plugin itself if it is disabled; None while it waits.
_Answer: TypeAlias = list[Declared] | Plugin | None


def blocked(origin: Provenance) -> Plugin | None:
    """Return a plugin that is blocked, or None if it is not."""
    if blocked_names().isdisjoint({normal(origin.plugin), normal(origin.distribution)}):
        return None
    return Plugin(*origin, "blocked", f"disabled by {_BLOCKING}")


def words_of(point: EntryPoint, origin: Provenance) -> frozenset[str]:
    """Return the words that show the need for a plugin; none for one that cannot wait.

    The package of the bundled plugins has the words of those that can.
    """
    if origin.distribution != OWN:
        return frozenset()
    try:
        on_demand: Mapping[str, Set[str]] = import_module(package(point.value)).ON_DEMAND
    except Exception:  # noqa: BLE001 - it only calls itself that; what is wrong shows when it loads
        return frozenset()
    return frozenset(on_demand.get(point.name, ()))


def declared_in(point: EntryPoint, origin: Provenance) -> list[Declared] | Plugin:
    """Return what a plugin declares, or the plugin itself if it fails."""
    module, entries = _kept.get((origin, point.value), (None, []))
    if module is not None and module is sys.modules.get(point.module):
        return entries
    token = _loading.set(origin)
    try:
        module = import_module(point.value)
        entries = declared_by(declarations_of(module, origin), origin)
    except KeyboardInterrupt as interruption:  # only the user can stop an import that hangs
        remark = f"was still being loaded; to leave it out set {_BLOCKING}={origin.plugin}"
        interruption.add_note(legible(f"{_named(origin)} {remark}"))
        raise
    except BaseException as error:
        if is_signal(error):
            raise
        return _failed(origin, error_text(error))  # whatever it is disables this plugin alone
    finally:
        _loading.reset(token)
    _kept[origin, point.value] = module, entries
    return entries


def blocked_names() -> set[str]:
    """Return the names of plugins and distributions that are blocked."""
    names = os.environ.get(_BLOCKING, "").split(",")
    return {normal(name.strip()) for name in names} - {""}


def blocking_nothing(names: Iterable[str]) -> list[str]:
    """Say of each name in the variable that is none of a plugin or a distribution what was meant.

    Parameters
    ----------
    names : iterable of str
        Of all plugins and their distributions.
    """
    installed = {normal(name): name for name in names}
    return [
        f"{_BLOCKING} names {unknown!r}, which is neither an installed plugin nor a distribution "
        f"with one; {suggestion(unknown, installed, _OTHERS)}"
        for unknown in sorted(blocked_names() - installed.keys())
    ]


@lru_cache(maxsize=64)
def _tell(problem: str) -> None:
    """Write a problem into the log, once in a process."""
    log.warning("%s", problem)


def _failed(origin: Provenance, reason: str) -> Plugin:
    # A log record and not a warning: under ``-W error`` that would disable the others too.
    reason = excerpt(reason)  # which may quote a text of several lines
    hint = f"{_BLOCKING}={origin.plugin} leaves it out"
    log.warning("plugin %r of %s is disabled (%s); %s", origin.plugin, origin, reason, hint)
    return Plugin(*origin, "failed", reason)


def loaded(origin: Provenance, entries: list[Declared], conflicts: list[Conflict]) -> Plugin:
    """Return a loaded plugin, with the reasons why some of its declarations are left out."""
    own = [entry for entry in entries if entry.provenance == origin]
    reasons = [str(conflict) for conflict in conflicts if conflict.loser.provenance == origin]
    kinds = [type(entry.declaration) for entry in own]
    counts = kinds.count(Format), kinds.count(Conversion)
    return Plugin(*origin, "loaded", " ".join(reasons), *counts, tuple(replacements(own)))


def is_loading() -> bool:
    """Return whether a plugin that is being loaded calls, or a module that it imports."""
    return _loading.get() is not None


def check_not_loading() -> None:
    """Refuse calls of interop by a plugin that is being loaded: they would load all plugins."""
    origin = _loading.get()
    if origin is not None:
        msg = (
            f"{_named(origin)} calls interop while it is being loaded; call it in the functions "
            "that convert, and at the top of no module that the plugin's imports, such as the "
            "package that it is in. (Functions can be decorated with accepts there.)"
        )
        raise PluginError(msg)


def _named(origin: Provenance) -> str:
    return f"plugin {origin.plugin!r} of {origin}"


def _order(pair: tuple[EntryPoint, Provenance]) -> tuple[bool, str, str]:
    point, origin = pair
    return origin.distribution != OWN, origin.distribution, point.name


def found() -> list[tuple[EntryPoint, Provenance]]:
    """Return the entry points of all plugins, the bundled ones first.

    They are read again if `sys.path` changed.
    """
    points, broken = _found_by(entry_points, *sys.path)
    if not points:
        msg = (
            "no plugin is installed, not even interop's own: the metadata of the distribution "
            f"{OWN!r} is missing; install it (pip install -e . in a checkout; with PyInstaller, "
            f"--copy-metadata {OWN})."
        )
        raise PluginError(msg)
    origins = (*(origin for _, origin in points), *broken)
    if problems := blocking_nothing(name for origin in origins for name in origin[:2]):
        _tell(" ".join(problems))
    return points


def unread() -> list[Plugin]:
    """Return the distributions whose entry points cannot be read, each as a plugin of its name."""
    broken = _found_by(entry_points, *sys.path)[1]
    return [blocked(origin) or Plugin(*origin, "failed", why) for origin, why in broken.items()]


@lru_cache(maxsize=1)  # reading the files of all distributions takes longer than all the rest
def _found_by(
    find: Callable[..., Iterable[EntryPoint]], *_: object
) -> tuple[list[tuple[EntryPoint, Provenance]], dict[Provenance, str]]:
    """Return the entry points, and why those of some distributions cannot be read."""
    broken: dict[Provenance, str] = {}
    try:
        points = set(find(group=GROUP))
    except Exception:  # noqa: BLE001 - one broken distribution, which is found out below
        points = set(_one_by_one(broken))
    return sorted(((point, provenance_of(point)) for point in points), key=_order), broken


def _one_by_one(broken: dict[Provenance, str]) -> Iterable[EntryPoint]:
    """Yield the entry points of all distributions, and note those that cannot be read.

    Of two distributions of one name the first on the path counts.
    """
    seen: set[str] = set()
    for distribution in distributions():
        facts = _metadata(distribution)
        name = facts["Name"]
        if name != _UNKNOWN and normal(name) in seen:
            continue
        seen.add(normal(name))
        try:
            yield from distribution.entry_points.select(group=GROUP)
        except Exception as error:  # noqa: BLE001 - reported
            origin = Provenance(name, name, facts["Version"])
            broken[origin] = f"its entry_points.txt cannot be read: {error_text(error)}"
            if blocked(origin) is None:
                _failed(origin, broken[origin])


def provenance_of(point: EntryPoint) -> Provenance:
    """Return where a plugin comes from."""
    fields = _metadata(point.dist)
    return Provenance(point.name, fields["Name"], fields["Version"])


@lru_cache(maxsize=64)  # many plugins share a distribution
def _metadata(distribution: Distribution | None) -> dict[str, str]:
    """Return the metadata's fields of one line; to parse it all takes long."""
    text = ""
    if distribution is not None:
        try:
            text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        except UnicodeDecodeError:
            text = ""
    # A distribution that was removed in part may have no metadata left.
    fields: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == name:
            fields.setdefault(name, value.strip())
    return {"Name": _UNKNOWN, "Version": "", **fields}


def declarations_of(module: ModuleType, origin: Provenance) -> list[Declaration]:
    """Return what a plugin's module declares."""
    if origin.distribution == OWN:  # no need to look for the hook, which takes pluggy long
        return list(module.interop_declarations())
    _check_version(module)
    # With a manager for each plugin, one that is broken breaks no other.
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hooks)
    manager.register(module)
    manager.check_pending()
    hook = manager.hook.interop_declarations
    if not hook.get_hookimpls() and hasattr(module, "interop_declarations"):
        msg = "its interop_declarations is not marked with @hookimpl."
        raise PluginError(msg)
    answers = hook() or [None] * len(hook.get_hookimpls())  # pluggy leaves out answers of None
    declarations = [declaration for answer in answers for declaration in answer]
    for declaration in declarations:
        if isinstance(declaration, NoTrace):
            declaration.mark(lambda: None)  # if this fails, the plugin is disabled, and not later
    return declarations


def _check_version(module: ModuleType) -> None:
    written_for = getattr(module, "INTEROP_API", hooks.API_VERSION)
    if written_for != hooks.API_VERSION:
        msg = (
            f"it was written for version {written_for!r} of interop.plugin, but this is version "
            f"{hooks.API_VERSION!r}; install a release of the plugin for version "
            f"{hooks.API_VERSION!r}."
        )
        raise PluginError(msg)


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
        """Return whether a plugin calls while this loader loads it."""
        if not self.has_to_start:
            return False
        return is_loading()

    def _load(self, is_needed: Callable[[frozenset[str]], bool]) -> None:
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
        lists = [answer for answer in answers.values() if type(answer) is list]
        entries, conflicts = without_conflicts(entry for entries in lists for entry in entries)
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
    """Return whether a name or the name of an imported module is one of some words."""
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
