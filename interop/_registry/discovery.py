"""Plugins: finding, loading, blocking and reporting them.

Plugins are the entry points of the group ``interop``. Each is loaded and asked for its declarations
on its own, so that a broken one disables only itself. Its hook runs once in a process; other
instances of `Interop` get the same declarations. After all plugins have answered, conflicts between
distributions are settled.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from types import ModuleType
from typing import NamedTuple

import pluggy

from interop._model.conversion import Conversion
from interop._model.display import one_line
from interop._model.extension import Declaration, NoTrace, Problem, Problems
from interop._model.foreign import error_text
from interop._model.format import Format
from interop._model.suggestion import suggestion
from interop.errors import PluginError

from . import hooks
from .declared import OWN, Declared, Provenance, normal
from .precedence import Conflict, declared_by, replacements, settle
from .registry import Registry

GROUP = "interop"
_BLOCKING = "INTEROP_DISABLE_PLUGINS"

#: Seconds after which the log says which plugin is still being loaded.
_PATIENCE = 10.0

_log = logging.getLogger("interop")


class _Progress:
    """The plugin that is being loaded now."""

    origin: Provenance | None = None


#: The loading of plugins that is under way in this thread.
_loading: ContextVar[_Progress | None] = ContextVar("loading", default=None)


class _Kept(NamedTuple):
    """The entries of a plugin, the module that made them, and the `sys.path` of that time."""

    module: ModuleType
    path: list[str]
    entries: list[Declared]


#: The plugins that were loaded in this process, by provenance and by what the entry point names.
_kept: dict[tuple[Provenance, str], _Kept] = {}


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


def load(registry: Registry) -> tuple[Plugin, ...]:
    """Load every plugin that is installed, and register what it declares."""
    points = _found()
    if not points:
        msg = (
            "no plugin is installed, not even interop's own: the metadata of the distribution "
            f"{OWN!r} is missing; install it (pip install -e . in a checkout; with PyInstaller, "
            f"--copy-metadata {OWN})."
        )
        raise PluginError(msg)
    # In a context of its own, `_loading` is reset even if the loading is interrupted.
    answers = copy_context().run(_all_declared, points)
    entries, conflicts = settle(
        entry for answer in answers if not isinstance(answer, Plugin) for entry in answer
    )
    registry.replace(entries)
    plugins = tuple(
        answer if isinstance(answer, Plugin) else _loaded(origin, entries, conflicts)
        for (_, origin), answer in zip(points, answers, strict=True)
    )
    disabled = [plugin for plugin in plugins if plugin.state != "loaded"]
    registry.unavailable = {p.name: f"its plugin is not loaded ({p.reason})." for p in disabled}
    if problem := problem_of_blocking(plugins):
        _log.warning("%s", problem)
    return plugins


def _all_declared(points: Iterable[tuple[EntryPoint, Provenance]]) -> list[list[Declared] | Plugin]:
    """Return what each plugin declares, or the plugin itself if it is disabled."""
    with _impatience() as progress:
        _loading.set(progress)
        answers: list[list[Declared] | Plugin] = []
        for point, progress.origin in points:
            answers.append(_declared(point, progress.origin))
        return answers


def _declared(point: EntryPoint, origin: Provenance) -> list[Declared] | Plugin:
    if _blocked() & {normal(point.name), normal(origin.distribution)}:
        return Plugin(*origin, "blocked", f"disabled by {_BLOCKING}")
    kept = _kept.get((origin, point.value))
    if kept and kept.path == sys.path and kept.module is sys.modules.get(point.module):
        return kept.entries
    try:
        entries = declared_by(declarations_of(_module(point), origin), origin)
    except Exception as error:  # noqa: BLE001 - whatever it is disables this plugin alone
        return _disabled(origin, "failed", error_text(error))
    _kept[origin, point.value] = _Kept(sys.modules[point.module], list(sys.path), entries)
    return entries


def _module(point: EntryPoint) -> ModuleType:
    """Return the module that an entry point names, and refuse one that names anything else."""
    name = point.value
    if not re.fullmatch(r"\w+(\.\w+)*", name):
        msg = f"its entry point is {name!r}; name the module with the hook: 'package.module'."
        raise PluginError(msg)
    module = import_module(name)
    file, own = getattr(module, "__file__", None), _own_file(point)
    if file and own and not os.path.samefile(file, own):
        msg = f"its module {name!r} is hidden by another module of that name, {file}."
        raise PluginError(msg)
    return module


def _own_file(point: EntryPoint) -> str | None:
    """Return the file that a plugin's distribution has for its module, if that can be found."""
    if point.dist is None:
        return None
    stem = point.value.replace(".", "/")
    files = (str(point.dist.locate_file(f"{stem}{end}")) for end in (".py", "/__init__.py"))
    return next(filter(os.path.exists, files), None)


def _blocked() -> set[str]:
    names = os.environ.get(_BLOCKING, "").split(",")
    return {normal(name.strip()) for name in names} - {""}


def problem_of_blocking(plugins: Iterable[Plugin]) -> str:
    """Say which names in INTEROP_DISABLE_PLUGINS belong to no plugin; "" if all belong to one."""
    names = [name for plugin in plugins for name in (plugin.name, plugin.distribution)]
    installed = {normal(name): name for name in names}
    unknown = sorted(_blocked() - installed.keys())
    if not unknown:
        return ""
    hint = suggestion(unknown[0], installed, "'interop plugins' lists them.")
    return (
        f"{_BLOCKING} names {', '.join(map(repr, unknown))}, which is neither an installed plugin "
        f"nor a distribution with one; {hint}"
    )


def _disabled(origin: Provenance, state: str, reason: str) -> Plugin:
    # A log record and not a warning: under ``-W error`` that would disable the others too.
    reason = one_line(reason)  # which may quote a text of several lines
    hint = f"; {_BLOCKING}={origin.plugin} leaves it out" if state == "failed" else ""
    _log.warning("plugin %r of %s is disabled (%s)%s", origin.plugin, origin, reason, hint)
    return Plugin(*origin, state, reason)


def _loaded(origin: Provenance, entries: list[Declared], conflicts: list[Conflict]) -> Plugin:
    """Return a loaded plugin, with the reasons why some of its declarations are left out."""
    own = [entry for entry in entries if entry.provenance == origin]
    reasons = [str(conflict) for conflict in conflicts if conflict.loser.provenance == origin]
    for reason in reasons:
        _log.warning("plugin %r of %s is left out in part: %s", origin.plugin, origin, reason)
    kinds = [type(entry.declaration) for entry in own]
    counts = kinds.count(Format), kinds.count(Conversion)
    return Plugin(*origin, "loaded", " ".join(reasons), *counts, tuple(replacements(own)))


def is_loading() -> bool:
    """Tell whether a plugin that is being loaded calls, or a module that it imports."""
    return _loading.get() is not None


def check_not_loading() -> None:
    """Refuse calls of interop by a plugin that is being loaded: they would load all plugins."""
    progress = _loading.get()
    if progress is not None:
        msg = (
            f"{_named(progress)} calls interop while it is being loaded; call it in the functions "
            "that convert, and at the top of no module that the plugin's imports, such as the "
            "package that it is in. (Functions can be decorated with accepts there.)"
        )
        raise PluginError(msg)


def _named(progress: _Progress) -> str:
    origin = progress.origin
    return "no plugin" if origin is None else f"plugin {origin.plugin!r} of {origin}"


@contextmanager
def _impatience() -> Iterator[_Progress]:
    """Say which plugin is being loaded, if that takes long or is interrupted.

    Only the user can stop an import that hangs, so the text says how to leave the plugin out.
    """
    progress = _Progress()

    def text() -> str:
        name = "" if progress.origin is None else progress.origin.plugin
        return f"{_named(progress)} was still being loaded; to leave it out set {_BLOCKING}={name}"

    def warn() -> None:
        if progress.origin is not None:  # else an interruption came before the timer was stopped
            _log.warning("%s", text())

    timer = threading.Timer(_PATIENCE, warn)
    timer.daemon = True
    try:
        with suppress(RuntimeError):  # no thread can be started while Python exits
            timer.start()
        yield progress
    except KeyboardInterrupt as interruption:
        if progress.origin is not None:
            interruption.add_note(text())
        raise
    finally:
        timer.cancel()
        progress.origin = None


def _order(pair: tuple[EntryPoint, Provenance]) -> tuple[bool, str, str]:
    point, origin = pair
    return origin.distribution != OWN, origin.distribution, point.name


def _found() -> list[tuple[EntryPoint, Provenance]]:
    """Return the entry points of all plugins, the bundled ones first.

    They are read again if `sys.path` or a folder on it changed. As in `importlib.metadata`, a
    folder changes when something is added to it or removed.
    """
    finders = [id(finder) for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return _found_by(entry_points, *finders, *map(_state, sys.path))


@lru_cache(maxsize=1)  # reading the files of all distributions takes longer than all the rest
def _found_by(
    find: Callable[..., Iterable[EntryPoint]], *_: object
) -> list[tuple[EntryPoint, Provenance]]:
    points = set(find(group=GROUP))
    return sorted(((point, provenance_of(point)) for point in points), key=_order)


def _state(folder: str) -> tuple[str, int, int] | None:
    try:
        status = os.stat(folder or os.curdir)
    except (OSError, ValueError):
        return None
    return os.path.abspath(folder), status.st_ino, status.st_mtime_ns


def provenance_of(point: EntryPoint) -> Provenance:
    """Return where a plugin comes from."""
    fields = {"Name": "", "Version": ""}
    if point.dist is not None:
        # A distribution that was removed in part may have no metadata left.
        fields.update(_metadata(point.dist))
    name = fields["Name"] or "an unknown distribution"
    return Provenance(point.name, name, fields["Version"])


@lru_cache(maxsize=64)  # many plugins share a distribution
def _metadata(distribution: Distribution) -> dict[str, str]:
    """Return the metadata's fields of one line; to parse it all takes long."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == name:
            fields.setdefault(name, value.strip())
    return fields


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
    declarations = [declaration for answer in answers for declaration in _iterable(answer)]
    for declaration in declarations:
        if isinstance(declaration, NoTrace):
            declaration.mark(lambda: None)  # if this fails, the plugin is disabled, and not later
    return declarations


def _iterable(answer: object) -> Iterable[Declaration]:
    if not isinstance(answer, Iterable):
        msg = f"its hook returned {answer!r}; return a list of declarations."
        raise PluginError(msg)
    return answer


def _check_version(module: ModuleType) -> None:
    written_for = getattr(module, "INTEROP_API", hooks.API_VERSION)
    if type(written_for) is not int:
        msg = f"INTEROP_API must be a number, such as {hooks.API_VERSION}, got {written_for!r}."
        raise PluginError(msg)
    if written_for != hooks.API_VERSION:
        msg = (
            f"it was written for version {written_for!r} of interop.plugin, but this is version "
            f"{hooks.API_VERSION!r}; install a release of the plugin for version "
            f"{hooks.API_VERSION!r}."
        )
        raise PluginError(msg)


def problems(distribution: str, name: str) -> list[Problem]:
    """Load one plugin, and return what it says is wrong with its framework."""
    for point, origin in _found():
        if (origin.distribution, origin.plugin) == (distribution, name):
            declared = declarations_of(_module(point), origin)
            finders = [finder for finder in declared if isinstance(finder, Problems)]
            return [problem for finder in finders for problem in _found_by_plugin(finder, origin)]
    return []


def _found_by_plugin(finder: Problems, origin: Provenance) -> list[Problem]:
    """Return what a plugin says is wrong with its framework, or that it cannot tell."""
    try:
        answers = list(finder.find())
        if others := [answer for answer in answers if not isinstance(answer, Problem)]:
            msg = f"it answered {others[0]!r}, which is no Problem"
            raise TypeError(msg)
        return answers
    except Exception as error:  # noqa: BLE001
        text = f"the Problems of plugin {origin.plugin!r} cannot tell: {error_text(error)}"
        return [Problem(text, f"report it to {origin.distribution}", ())]
