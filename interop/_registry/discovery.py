"""Plugins: finding, loading, blocking and reporting them.

Plugins are the entry points of the group ``interop``. Each is loaded, registered with pluggy and
asked for its declarations on its own, so that a broken one disables only itself. Its hook runs
here, once, and never again. Once all have answered, disputes between distributions are settled.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, PackageMetadata, entry_points
from types import FunctionType, ModuleType, SimpleNamespace
from typing import NamedTuple

import pluggy

from interop._model.conversion import Conversion
from interop._model.extension import Declaration, NoTrace, Problem, Problems
from interop._model.format import Format
from interop._model.suggestion import suggestion
from interop.errors import PluginError

from . import hooks
from .claims import Claim, Dispute, overriding, settled
from .declared import OWN, Provenance
from .floors import too_old
from .registry import Registry
from .validation import validated

GROUP = "interop"
_BLOCKING = "INTEROP_DISABLE_PLUGINS"

#: Seconds after which it is said which plugin is being waited for.
_PATIENCE = 10.0

_log = logging.getLogger("interop")

#: The `origin` of the plugin that is being loaded in this thread, if any is.
_current = threading.local()


class Plugin(NamedTuple):
    """A plugin that was found, and what became of it.

    Parameters
    ----------
    name : str
        Name of its entry point.
    distribution, version : str
    state : str
        ``"loaded"``, ``"failed"``, ``"blocked"`` or ``"outdated"`` (its framework is too old).
    reason : str
        Why it, or something that it has declared, is left out; "" if nothing is.
    formats, conversions : int
        How many it has declared.
    overrides : tuple of str
        What it has declared with a `priority`, in the place of what others do.
    """

    name: str
    distribution: str
    version: str
    state: str
    reason: str = ""
    formats: int = 0
    conversions: int = 0
    overrides: tuple[str, ...] = ()

    def row(self) -> dict[str, str]:
        """Return its row in a listing."""
        facts = {**self._asdict(), "overrides": ", ".join(self.overrides)}
        return {"plugin": facts.pop("name"), **{key: str(fact) for key, fact in facts.items()}}


def load(registry: Registry) -> tuple[Plugin, ...]:
    """Load every plugin that is installed, and register what it declares.

    Plugins of this distribution come first, then the others by name: the later one is blamed for a
    conflict.
    """
    entries = sorted(_provenances(set(entry_points(group=GROUP))), key=_order)
    if not entries:
        msg = (
            "no plugin is installed, not even interop's own: the metadata of the distribution "
            f"{OWN!r} is missing; install it (pip install -e . in a checkout; with PyInstaller, "
            f"--copy-metadata {OWN})."
        )
        raise PluginError(msg)
    claims, failures = _claims(entries)
    heard, disputes = settled(claims)
    plugins = [
        failures.get(origin) or _registered(origin, heard, disputes, registry)
        for _, origin in entries
    ]
    disabled = [plugin for plugin in plugins if plugin.state != "loaded"]
    registry.unavailable = {p.name: f"its plugin is not loaded ({p.reason})." for p in disabled}
    if problem := problem_of_blocking(plugins):
        _log.warning("%s", problem)
    return tuple(plugins)


def _claims(
    entries: Iterable[tuple[EntryPoint, Provenance]],
) -> tuple[list[Claim], dict[Provenance, Plugin]]:
    """Return what plugins declare, and the plugins that are blocked or have failed."""
    manager = _manager()
    blocked = _blocked()
    failures: dict[Provenance, Plugin] = {}
    claims: list[Claim] = []
    with _impatience():
        for entry, origin in entries:
            _current.origin = origin
            if blocked & {entry.name, origin.distribution}:
                failures[origin] = Plugin(*origin, "blocked", f"disabled by {_BLOCKING}")
                continue
            if reason := too_old(_requirements(entry), entry.name):
                failures[origin] = _disabled(origin, "outdated", reason)
                continue
            try:
                declared = _declared(entry.load(), manager, origin)
                claims += [Claim(validated(item, origin), origin) for item in declared]
            except KeyboardInterrupt:
                raise
            # Whatever else a plugin's module raises disables that module alone: SystemExit, and
            # what test runners derive from BaseException to skip a module.
            except BaseException as error:  # noqa: BLE001
                manager.unregister(name=_name(origin))
                failures[origin] = _failed(origin, error)
    return claims, failures


def _blocked() -> set[str]:
    names = os.environ.get(_BLOCKING, "").split(",")
    return {name.strip() for name in names} - {""}


def problem_of_blocking(plugins: Iterable[Plugin]) -> str:
    """Say which names in INTEROP_DISABLE_PLUGINS are those of no plugin; "" if none is."""
    installed = {name for plugin in plugins for name in (plugin.name, plugin.distribution)}
    unknown = sorted(_blocked() - installed)
    if not unknown:
        return ""
    hint = suggestion(unknown[0], installed, "'interop plugins' lists them.")
    return (
        f"{_BLOCKING} names {', '.join(map(repr, unknown))}, which is neither an installed plugin "
        f"nor a distribution with one; {hint}"
    )


def _failed(origin: Provenance, error: BaseException) -> Plugin:
    return _disabled(origin, "failed", f"{type(error).__name__}: {error}")


def _disabled(origin: Provenance, state: str, reason: str) -> Plugin:
    # A log record and not a warning: under ``-W error`` that would disable the others too.
    _log.warning("plugin %r of %s is disabled (%s)", origin.plugin, origin, reason)
    return Plugin(*origin, state, reason)


def _registered(
    origin: Provenance, heard: list[Claim], disputes: list[Dispute], registry: Registry
) -> Plugin:
    """Register what is heard of a plugin's declarations, and return what becomes of the plugin."""
    claims = [claim for claim in heard if claim.origin == origin]
    try:
        registry.enter([claim.declaration for claim in claims], origin)
    except PluginError as error:
        return _failed(origin, error)
    reasons = [str(dispute) for dispute in disputes if dispute.left_out.origin == origin]
    for reason in reasons:
        _log.warning("plugin %r of %s is left out in part: %s", origin.plugin, origin, reason)
    overrides = () if origin.distribution == OWN else tuple(overriding(claims))
    counts = _counts([claim.declaration for claim in claims])
    return Plugin(*origin, "loaded", " ".join(reasons), *counts, overrides)


def _counts(declarations: Iterable[Declaration]) -> tuple[int, int]:
    """Return how many formats and conversions are declared."""
    kinds = [type(declaration) for declaration in declarations]
    return kinds.count(Format), kinds.count(Conversion)


def check_not_loading() -> None:
    """Refuse a call of interop by a plugin being loaded, which would load all plugins anew."""
    # A flag outside the stack could survive an interruption.
    frame = sys._getframe()
    while frame is not None and frame.f_code is not _claims.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:
        origin = frame.f_locals["origin"]
        msg = (
            f"plugin {origin.plugin!r} of {origin} calls interop while it is being loaded; call it "
            "in the functions that convert."
        )
        raise PluginError(msg)


@contextmanager
def _impatience() -> Iterator[None]:
    """Say which plugin is being waited for, after a while or when the waiting is interrupted.

    An import cannot be stopped from outside.
    """
    loading = vars(_current)  # of this thread, for the one that waits

    def text() -> str:
        origin = loading["origin"]
        return (
            f"plugin {origin.plugin!r} of {origin} was still being loaded; to leave it out set "
            f"{_BLOCKING}={origin.plugin}"
        )

    def warn() -> None:
        if loading:  # an interruption may have left nothing but the timer
            _log.warning("%s", text())

    timer = threading.Timer(_PATIENCE, warn)
    timer.daemon = True
    try:
        with suppress(RuntimeError):  # no thread can be started while Python exits
            timer.start()
        yield
    except KeyboardInterrupt as interruption:
        if loading:
            interruption.add_note(text())
        raise
    finally:
        timer.cancel()
        loading.clear()


def _order(pair: tuple[EntryPoint, Provenance]) -> tuple[bool, str, str]:
    entry, origin = pair
    return origin.distribution != OWN, origin.distribution, entry.name


def _provenances(entries: Iterable[EntryPoint]) -> Iterator[tuple[EntryPoint, Provenance]]:
    """Yield entry points with where they come from."""
    for entry in entries:
        release = ("an unknown distribution", "")
        if entry.dist is not None:
            metadata = _metadata(entry.dist)
            release = metadata["Name"], metadata["Version"]
        yield entry, Provenance(entry.name, *release)


@lru_cache(maxsize=64)  # to read metadata is to parse them, and a distribution has many plugins
def _metadata(distribution: Distribution) -> PackageMetadata:
    return distribution.metadata


def _requirements(entry: EntryPoint) -> list[str]:
    """Return what the distribution of a plugin requires, for its extras too."""
    lines = None if entry.dist is None else _metadata(entry.dist).get_all("Requires-Dist")
    return lines or []


def enlist(module: ModuleType, origin: Provenance, registry: Registry) -> tuple[int, int]:
    """Register what a module declares; return how many formats and conversions that is."""
    manager = _manager()
    declarations = _declared(module, manager, origin)
    registry.add(declarations, origin)
    return _counts(declarations)


def _manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hooks)
    return manager


def _name(origin: Provenance) -> str:
    return f"{origin.distribution}:{origin.plugin}"


def _declared(
    module: ModuleType, manager: pluggy.PluginManager, origin: Provenance
) -> list[Declaration]:
    """Return what a module declares."""
    _check_version(module)
    hooks_alone = _hooks(module)
    manager.register(hooks_alone, name=_name(origin))
    manager.check_pending()
    if not vars(hooks_alone) and hasattr(module, "interop_declarations"):
        msg = "its interop_declarations is not marked with @hookimpl."
        raise PluginError(msg)
    declarations = _collect(manager, hooks_alone)
    for declaration in declarations:
        if isinstance(declaration, NoTrace):
            declaration.mark(lambda: None)  # if it cannot do this, it must not be let near more
    return declarations


def _check_version(module: ModuleType) -> None:
    written_for = getattr(module, "INTEROP_API", hooks.API_VERSION)
    if not isinstance(written_for, int):
        msg = f"INTEROP_API must be a number, such as {hooks.API_VERSION}, got {written_for!r}."
        raise PluginError(msg)
    if written_for != hooks.API_VERSION:
        msg = (
            f"it was written for version {written_for!r} of interop.plugin, but this is version "
            f"{hooks.API_VERSION!r}; install a release of the plugin for version "
            f"{hooks.API_VERSION!r}."
        )
        raise PluginError(msg)


def _hooks(module: ModuleType) -> SimpleNamespace:
    """Return the functions of a module that are marked; pluggy looks long at each of the others."""
    marked = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and hasattr(value, "interop_impl")
    }
    return SimpleNamespace(**marked)


def _collect(manager: pluggy.PluginManager, plugin: object) -> list[Declaration]:
    """Return what one plugin's implementation of the hook declares."""
    implementations = manager.hook.interop_declarations.get_hookimpls()
    hooks_of_plugin = [impl.function for impl in implementations if impl.plugin is plugin]
    return [declaration for hook in hooks_of_plugin for declaration in _declarations(hook)]


def _declarations(hook: Callable[[], object]) -> Iterable[Declaration]:
    declarations = hook()
    if not isinstance(declarations, Iterable):
        msg = f"its hook returned {declarations!r}; return a list of declarations."
        raise PluginError(msg)
    return declarations


def problems(distribution: str, name: str) -> list[Problem]:
    """Load one plugin, and return what it says is wrong with its framework."""
    for entry, origin in _provenances(set(entry_points(group=GROUP, name=name))):
        if origin.distribution == distribution:
            declared = _declared(entry.load(), _manager(), origin)
            finders = [finder for finder in declared if isinstance(finder, Problems)]
            return [problem for finder in finders for problem in finder.find()]
    return []
