"""The diagnosis: which frameworks are here and work, what is wrong, and which line mends it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.extension import Problem
from interop._registry.declared import DeclaredFormat, Provenance
from interop._registry.installed import importable
from interop._version import __version__

from .probe import Probed, probe

if TYPE_CHECKING:
    from interop._api.interop import Interop
    from interop._registry.discovery import Plugin

__all__ = ["Diagnosis", "Driver", "Finding", "Framework", "diagnose"]

Progress = Callable[[int, int, str], None]

_SMI = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
#: How many frameworks are imported at a time.
_AT_ONCE = 2


class Framework(NamedTuple):
    """A framework as it is installed here.

    Parameters
    ----------
    module : str
    plugin : str
        The entry point of the plugin that knows it.
    distribution : str
        What has installed it; "" if it is missing.
    version : str
    state : str
        ``"ready"``, ``"troubled"`` (some conversions do not work), ``"broken"`` (it cannot be
        imported) or ``"missing"``.
    seconds : float or None
        How long it took to import it.
    install : str
        The line that installs it.
    formats : tuple of str
    """

    module: str
    plugin: str
    distribution: str
    version: str
    state: str
    seconds: float | None
    install: str
    formats: tuple[str, ...]


class Driver(NamedTuple):
    """The driver of the accelerators, and what it says.

    Parameters
    ----------
    tool : str
        What was asked.
    state : str
        ``"ready"``, ``"absent"`` or ``"failed"``.
    devices : tuple of str
        The devices, each with the driver's version and its memory.
    reason : str
    """

    tool: str
    state: str
    devices: tuple[str, ...] = ()
    reason: str = ""


class Finding(NamedTuple):
    """Something that is wrong.

    Parameters
    ----------
    about : str
        The framework, plugin or driver.
    problem : str
    fix : str
        The line that mends it.
    disables : tuple of str
        The conversions that cannot be used because of it, by `Declared.key`.
    """

    about: str
    problem: str
    fix: str
    disables: tuple[str, ...] = ()


class Diagnosis(NamedTuple):
    """What was found.

    Parameters
    ----------
    machine : dict of str to str
    frameworks : tuple of Framework
    plugins : tuple of Plugin
    driver : Driver
    findings : tuple of Finding
    notes : tuple of str
        What frameworks have warned of when they were imported.
    """

    machine: dict[str, str]
    frameworks: tuple[Framework, ...]
    plugins: tuple[Plugin, ...]
    driver: Driver
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def broken(self) -> frozenset[str]:
        """The modules that cannot be imported although they are there."""
        return frozenset(one.module for one in self.frameworks if one.state == "broken")

    def as_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {
            "machine": self.machine,
            "frameworks": [one._asdict() for one in self.frameworks],
            "plugins": [one._asdict() for one in self.plugins],
            "driver": self.driver._asdict(),
            "findings": [one._asdict() for one in self.findings],
            "notes": list(self.notes),
        }


def diagnose(face: Interop, progress: Progress | None = None, *, timeout: float = 120) -> Diagnosis:
    """Find out what is wrong with what is installed.

    Parameters
    ----------
    face : Interop
    progress : callable, optional
        ``progress(done, total, what)``, called after each plugin's frameworks.
    timeout : float
        Seconds that the frameworks of one plugin may take to be imported.

    Returns
    -------
    Diagnosis
    """
    known = _modules(face)
    probed = _probed(known, progress, timeout)
    installed = packages_distributions()
    frameworks: list[Framework] = []
    findings = [*_plugin_findings(face)]
    notes: list[str] = []
    for origin, modules in known.items():
        one = probed.get(origin, Probed({}, {}, {}))
        own = [
            _framework(origin, module, formats, one, installed)
            for module, formats in modules.items()
        ]
        frameworks += own
        findings += _findings(face, origin, own, one)
        notes += [f"{origin.plugin}: {said}" for said in one.warnings]
    driver = _driver()
    if driver.state == "failed":
        fix = "load the driver again, or reinstall it and restart the machine"
        findings.append(Finding(driver.tool, driver.reason, fix))
    return Diagnosis(
        _machine(), tuple(frameworks), face.plugins(), driver, tuple(findings), tuple(notes)
    )


def _machine() -> dict[str, str]:
    return {
        "interop": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": sys.executable,
    }


def _modules(face: Interop) -> dict[Provenance, dict[str, list[DeclaredFormat]]]:
    """Return, for each plugin, the modules that it knows, with the formats that require them.

    Of several plugins with formats of one module, that with the shortest name for one is taken to
    know it.
    """
    formats: dict[str, list[DeclaredFormat]] = {}
    for one in face.formats():
        if one.format.requires:
            formats.setdefault(one.format.requires, []).append(one)
    known: dict[Provenance, dict[str, list[DeclaredFormat]]] = {}
    for module, some in formats.items():
        some.sort(key=lambda one: (len(one.name), one.name))
        known.setdefault(some[0].provenance, {})[module] = some
    return known


def _probed(
    known: dict[Provenance, dict[str, list[DeclaredFormat]]],
    progress: Progress | None,
    timeout: float,
) -> dict[Provenance, Probed]:
    """Import what is installed, a process for each plugin."""
    here = {
        origin: [module for module in modules if importable(module)]
        for origin, modules in known.items()
    }
    here = {origin: modules for origin, modules in here.items() if modules}

    def one(origin: Provenance) -> Probed:
        modules = {name: _parts(name, known[origin][name]) for name in here[origin]}
        return probe(origin.distribution, origin.plugin, modules, timeout)

    found: dict[Provenance, Probed] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for origin, answer in zip(here, pool.map(one, here), strict=True):
            found[origin] = answer
            if progress:
                progress(len(found), len(here), origin.plugin)
    return found


def _parts(module: str, formats: Iterable[DeclaredFormat]) -> list[str]:
    """Return the modules of a framework that hold the types of its formats."""
    top = module.partition(".")[0]
    found = (name.partition(":")[0] for one in formats for name in one.format.types)
    return sorted({name for name in found if name.partition(".")[0] == top})


def _framework(
    origin: Provenance,
    module: str,
    formats: list[DeclaredFormat],
    probed: Probed,
    installed: Any,
) -> Framework:
    top = module.partition(".")[0]
    here = importable(module)
    # The first of several distributions that share a namespace tells as much as any.
    distribution = min(installed.get(top, ()), default="") if here else ""
    state = "ready" if here else "missing"
    if here and module not in probed.seconds:
        state = "broken"
    elif here and any(t.formats for t in probed.troubles):
        state = "troubled"
    install = formats[0].format.install or f"pip install {module}"
    names = tuple(one.name for one in formats)
    number = _version(distribution) or probed.versions.get(module, "")
    seconds = probed.seconds.get(module)
    return Framework(module, origin.plugin, distribution, number, state, seconds, install, names)


def _version(distribution: str) -> str:
    try:
        return version(distribution) if distribution else ""
    except PackageNotFoundError:
        return ""


# ---------------------------------------------------------------------- what is wrong


def _plugin_findings(face: Interop) -> Iterator[Finding]:
    for one in face.plugins():
        if one.state == "failed":
            fix = (
                f"pip install --upgrade {one.distribution}, or set "
                f"INTEROP_DISABLE_PLUGINS={one.name}"
            )
            problem = f"the plugin {one.name!r} is not loaded: {one.reason}"
            yield Finding(one.distribution, problem, fix)


def _findings(
    face: Interop, origin: Provenance, frameworks: list[Framework], probed: Probed
) -> Iterator[Finding]:
    for one in frameworks:
        reason = probed.errors.get(one.module) or probed.ended
        if one.state == "broken" and reason:
            problem = f"{one.module} cannot be imported: {reason}"
            fix = f"pip install --force-reinstall {one.distribution or one.module}"
            everything = Problem(problem, fix, one.formats)
            yield Finding(one.module, problem, fix, _disabled(face, everything))
        if one.version and one.state != "missing":
            yield from _outdated(origin, one)
    for trouble in probed.troubles:
        yield Finding(origin.plugin, trouble.problem, trouble.fix, _disabled(face, trouble))


def _disabled(face: Interop, trouble: Problem) -> tuple[str, ...]:
    return tuple(one.key for one in face.conversions() if trouble.disables(one.conversion))


def _outdated(origin: Provenance, one: Framework) -> Iterator[Finding]:
    """Compare a framework's version with what the extra of its plugin's name asks for."""
    for wanted in _wanted(origin.distribution, origin.plugin):
        if _same(wanted.name, one.distribution) and not wanted.specifier.contains(
            one.version, prereleases=True
        ):
            problem = (
                f"{one.distribution} {one.version} is not a version that {origin.distribution} "
                f"is made for ({wanted.specifier})"
            )
            yield Finding(one.module, problem, f"pip install '{wanted.name}{wanted.specifier}'")


def _wanted(distribution: str, extra: str) -> Iterable[Any]:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:
        return
    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            continue
        if wanted.marker.evaluate({"extra": extra}):
            yield wanted


def _same(one: str, other: str) -> bool:
    from packaging.utils import canonicalize_name

    return canonicalize_name(one) == canonicalize_name(other)


def _driver() -> Driver:
    """Ask the tool that comes with the driver."""
    tool = shutil.which(_SMI[0])
    if tool is None:
        return Driver(_SMI[0], "absent", reason="it is not on PATH")
    try:
        done = subprocess.run(
            [tool, *_SMI[1:]], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Driver(_SMI[0], "failed", reason=f"{_SMI[0]} could not be run: {error}")
    if done.returncode:
        said = " ".join((done.stdout or done.stderr).split())
        return Driver(_SMI[0], "failed", reason=f"{_SMI[0]} ended with {done.returncode}: {said}")
    return Driver(_SMI[0], "ready", tuple(filter(None, map(str.strip, done.stdout.splitlines()))))
