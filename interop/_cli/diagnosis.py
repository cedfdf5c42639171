"""The diagnosis: which frameworks work, what is wrong, and which command fixes it."""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from interop._model.conversion import Conversion
from interop._model.extension import Problem
from interop._model.provenance import OWN, Provenance, how_to_install, normal, rival
from interop._recognition.installed import how_to_get, importable
from interop._registry.declared import DeclaredFormat
from interop._registry.plugins import blocking_nothing
from interop._version import __version__

from .probe import Probed, probe
from .tool import Tool, ToolFailed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from interop._api.interop import Interop
    from interop._registry.plugins import Plugin

Progress = Callable[[int, int, str], None]
#: For each plugin, the modules of its frameworks, with the formats that require each.
_Modules = dict[Provenance, dict[str, list[DeclaredFormat]]]

_SMI = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
#: Seconds that it may take.
_SMI_PATIENCE = 30
#: How many frameworks are imported at a time.
_AT_ONCE = 2


class Framework(NamedTuple):
    """A framework as it is installed here.

    Parameters
    ----------
    module : str
    plugin : str
        The entry point of the plugin that declares its formats.
    distribution : str
        The distribution that installed it; "" if it is missing.
    version : str
    state : str
        ``"ready"``, ``"degraded"`` (some conversions do not work), ``"broken"`` (it cannot be
        imported) or ``"missing"``.
    seconds : float or None
        How long it took to import it.
    install : str
        The command that installs it.
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
        The program that was asked.
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


class Fault(NamedTuple):
    """Something that is wrong.

    Parameters
    ----------
    about : str
        The framework, plugin or driver.
    problem : str
    fix : str
        The command that fixes it.
    disables : tuple of str
        The conversions that cannot be used because of it, by `Declared.key`.
    """

    about: str
    problem: str
    fix: str
    disables: tuple[str, ...] = ()


class Diagnosis(NamedTuple):
    """The state of everything that is installed.

    Parameters
    ----------
    machine : dict of str to str
    frameworks : tuple of Framework
    plugins : tuple of Plugin
    driver : Driver
    findings : tuple of Fault
    notes : tuple of str
        What plugins say that they replace, and the warnings that frameworks gave on import.
    """

    machine: dict[str, str]
    frameworks: tuple[Framework, ...]
    plugins: tuple[Plugin, ...]
    driver: Driver
    findings: tuple[Fault, ...]
    notes: tuple[str, ...]

    @property
    def broken(self) -> frozenset[str]:
        """The modules that are installed and cannot be imported."""
        return frozenset(
            framework.module for framework in self.frameworks if framework.state == "broken"
        )

    def as_dict(self) -> dict[str, object]:
        """Return it as what JSON can hold."""
        return {
            "machine": self.machine,
            "frameworks": [framework._asdict() for framework in self.frameworks],
            "plugins": [plugin._asdict() for plugin in self.plugins],
            "driver": self.driver._asdict(),
            "findings": [finding._asdict() for finding in self.findings],
            "notes": list(self.notes),
        }


def diagnose(
    interop: Interop, progress: Progress | None = None, *, timeout: float = 120
) -> Diagnosis:
    """Find out what is wrong with what is installed.

    Parameters
    ----------
    interop : Interop
    progress : callable, optional
        ``progress(count, total, name)``, called after each plugin's frameworks.
    timeout : float
        Seconds that importing the frameworks of one plugin may take.

    Returns
    -------
    Diagnosis
    """
    modules_of = _modules(interop)
    probed_of = _probed(modules_of, progress, timeout)
    installed = packages_distributions()
    frameworks: list[Framework] = []
    findings = [*_rivalry(installed), *_unmet(interop), *_plugin_findings(interop)]
    notes = [*_replacements(interop)]
    for origin, modules in modules_of.items():
        probed = probed_of.get(origin, Probed({}, {}, {}))
        of_plugin = [
            _framework(origin, module, formats, probed, installed)
            for module, formats in modules.items()
        ]
        frameworks += of_plugin
        findings += _findings(interop, origin, of_plugin, probed)
        notes += [f"{origin.plugin}: {warning}" for warning in probed.warnings]
    driver = _driver()
    if driver.state == "failed":
        fix = "reload the driver, or reinstall it and restart the machine"
        findings.append(Fault(driver.tool, driver.reason, fix))
    return Diagnosis(
        _machine(), tuple(frameworks), interop.plugins(), driver, tuple(findings), tuple(notes)
    )


def _machine() -> dict[str, str]:
    return {
        "interop": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": sys.executable,
    }


def _modules(interop: Interop) -> _Modules:
    """Return, for each plugin, the modules of its frameworks, with the formats that require them.

    If several plugins declare formats of one module, the module belongs to the plugin of the format
    with the shortest name.
    """
    formats_of: dict[str, list[DeclaredFormat]] = {}
    for declared in interop.formats():
        if declared.format.requires:
            formats_of.setdefault(declared.format.requires, []).append(declared)
    modules_of: _Modules = {}
    for module, formats in formats_of.items():
        formats.sort(key=lambda declared: (len(declared.name), declared.name))
        modules_of.setdefault(formats[0].provenance, {})[module] = formats
    return modules_of


def _probed(
    modules_of: _Modules, progress: Progress | None, timeout: float
) -> dict[Provenance, Probed]:
    """Import what is installed, in a process for each plugin."""
    installed = {
        origin: [module for module in modules if importable(module)]
        for origin, modules in modules_of.items()
    }
    installed = {origin: modules for origin, modules in installed.items() if modules}

    def probe_plugin(origin: Provenance) -> Probed:
        return probe(origin.distribution, origin.plugin, installed[origin], timeout)

    probed_of: dict[Provenance, Probed] = {}
    for origin, probed in _from_threads(probe_plugin, installed):
        probed_of[origin] = probed
        if progress:
            progress(len(probed_of), len(installed), origin.plugin)
    return probed_of


def _from_threads(
    function: Callable[[Provenance], Probed], origins: Iterable[Provenance]
) -> Iterator[tuple[Provenance, Probed]]:
    """Yield what a function returns for each origin, as a few threads call it.

    Nobody waits for the threads if this is interrupted, as leaving a pool would.
    """
    futures: dict[Provenance, Future[Probed]] = {origin: Future() for origin in origins}
    untried: SimpleQueue[Provenance] = SimpleQueue()
    for origin in futures:
        untried.put(origin)

    def work() -> None:
        with suppress(Empty):
            while True:
                origin = untried.get_nowait()
                try:
                    futures[origin].set_result(function(origin))
                except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                    futures[origin].set_exception(error)

    for _ in range(_AT_ONCE):
        threading.Thread(target=work, daemon=True).start()
    for origin, future in futures.items():
        yield origin, future.result()


def _framework(
    origin: Provenance,
    module: str,
    formats: Sequence[DeclaredFormat],
    probed: Probed,
    installed: Mapping[str, list[str]],
) -> Framework:
    top = module.partition(".")[0]
    present = importable(module)
    # Several distributions may share a namespace; any of them will do.
    distribution = min(installed.get(top, ()), default="") if present else ""
    state = "ready" if present else "missing"
    if present and module not in probed.seconds:
        state = "broken"
    elif present and any(problem.formats for problem in probed.problems):
        state = "degraded"
    install = formats[0].format.install or how_to_get(module)
    names = tuple(declared.name for declared in formats)
    number = _version(distribution) or probed.versions.get(module, "")
    seconds = probed.seconds.get(module)
    return Framework(module, origin.plugin, distribution, number, state, seconds, install, names)


def _version(distribution: str) -> str:
    try:
        return version(distribution) if distribution else ""
    except PackageNotFoundError:
        return ""


# ---------------------------------------------------------------------- what is wrong


def _rivalry(installed: Mapping[str, list[str]]) -> Iterator[Fault]:
    """Find another distribution that installs a package of the same name."""
    if text := rival(installed.get("interop", ())):
        problem, _, fix = text.partition("; ")
        yield Fault("interop", problem, fix.removesuffix("."))


def _unmet(interop: Interop) -> Iterator[Fault]:
    """Find what the distributions of the plugins require in any case, and what does not fit it."""
    for distribution in sorted({plugin.distribution for plugin in interop.plugins()}):
        for requirement in _requirements(distribution):
            name, installed = requirement.name, _version(requirement.name)
            if installed:
                yield from _unsupported(distribution, requirement, installed, name)
            else:
                problem = f"{name} is not installed, and {distribution} needs it"
                yield Fault(name, problem, f"pip install '{name}{requirement.specifier}'")


def _plugin_findings(interop: Interop) -> Iterator[Fault]:
    for plugin in interop.plugins():
        if plugin.reason and plugin.state != "blocked":
            remedy = f"pip install --upgrade {plugin.distribution}"
            if plugin.distribution == OWN:
                remedy = how_to_install(anew=True)
            fix = f"{remedy}, or set INTEROP_DISABLE_PLUGINS={plugin.name}"
            part = "is not loaded" if plugin.state == "failed" else "is at fault"
            problem = f"the plugin {plugin.name!r} {part}: {plugin.reason}"
            yield Fault(plugin.distribution, problem, fix)
    yield from _findings_on_blocking(interop)


def _findings_on_blocking(interop: Interop) -> Iterator[Fault]:
    """Yield the names in INTEROP_DISABLE_PLUGINS that belong to no plugin."""
    for problem in blocking_nothing(name for plugin in interop.plugins() for name in plugin[:2]):
        yield Fault("INTEROP_DISABLE_PLUGINS", problem, "correct the name, or leave it out")


def _replacements(interop: Interop) -> Iterator[str]:
    """Yield what plugins say that they replace."""
    for plugin in interop.plugins():
        for place in plugin.replaces:
            yield f"{plugin.name}: {plugin.distribution} replaces {place}"


def _findings(
    interop: Interop, origin: Provenance, frameworks: Iterable[Framework], probed: Probed
) -> Iterator[Fault]:
    for framework in frameworks:
        reason = probed.errors.get(framework.module) or probed.ended
        if framework.state == "broken" and reason:
            text = f"{framework.module} cannot be imported: {reason}"
            fix = how_to_get(framework.module)
            if framework.distribution:
                fix = f"pip install --force-reinstall {framework.distribution}"
            disabled = _disabled(interop, Problem(text, fix, framework.formats))
            yield Fault(framework.module, text, fix, disabled)
        if framework.version and framework.state != "missing":
            yield from _outdated(origin, framework)
    for problem in probed.problems:
        disabled = _disabled(interop, problem)
        speaker = "" if origin.distribution == OWN else f"{origin} says: "
        yield Fault(origin.plugin, f"{speaker}{problem.problem}", problem.fix, disabled)


def _disabled(interop: Interop, problem: Problem) -> tuple[str, ...]:
    return tuple(
        declared.key for declared in interop.conversions() if disables(problem, declared.conversion)
    )


def disables(problem: Problem, conversion: Conversion) -> bool:
    """Return whether a conversion cannot be used because of a problem."""
    ends = conversion.source, conversion.target
    source, target = (_is_among(name, problem.formats) for name in ends)
    concerned = source or target
    if problem.others is not None:
        other_source, other_target = (_is_among(name, problem.others) for name in ends)
        concerned = (source and other_target) or (target and other_source)
    return concerned and (
        problem.devices is None
        or _needs(problem.devices, conversion.devices)
        or _needs(problem.devices, conversion.result.devices)
    )


def _needs(devices: Set[str], possible: Set[str] | None) -> bool:
    """Return whether what runs on the possible devices needs one that has a problem."""
    return bool(possible and devices & possible and "cpu" not in possible)


def _is_among(name: str, formats: tuple[str, ...]) -> bool:
    return any(name == format_ or name.startswith(f"{format_}.") for format_ in formats)


def _outdated(origin: Provenance, framework: Framework) -> Iterator[Fault]:
    """Compare a framework's version with the extra that is named like its plugin or itself."""
    name = normal(framework.distribution)
    for extra in {origin.plugin: None, name: None}:
        for requirement in _requirements(origin.distribution, extra):
            if normal(requirement.name) == name:
                yield from _unsupported(
                    origin.distribution, requirement, framework.version, framework.module
                )
                return


def _unsupported(
    distribution: str, requirement: Requirement, installed: str, about: str
) -> Iterator[Fault]:
    """Compare an installed version with what a distribution requires."""
    name, specifier = requirement.name, requirement.specifier
    if not specifier.contains(installed, prereleases=True):
        problem = f"{distribution} does not support {name} {installed}: it needs {specifier}"
        yield Fault(about, problem, f"pip install '{name}{specifier}'")


def _requirements(distribution: str, extra: str = "") -> Iterator[Requirement]:
    """Yield what a distribution requires in any case, or only with an extra."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:
        return
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        needed = (e for e in ("", extra) if marker is None or marker.evaluate({"extra": e}))
        if next(needed, None) == extra:
            yield requirement


def _driver() -> Driver:
    name, *arguments = _SMI
    tool = Tool.named(name)
    if tool is None:
        return Driver(name, "absent", reason=f"{name} is not on PATH")
    try:
        output = tool.output(arguments, patience=_SMI_PATIENCE)
    except ToolFailed as error:
        return Driver(name, "failed", reason=str(error))
    devices = filter(None, map(str.strip, output.decode(errors="replace").splitlines()))
    return Driver(name, "ready", tuple(devices))
