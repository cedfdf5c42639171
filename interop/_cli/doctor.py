"""The command ``doctor``: which frameworks work here, what is wrong, and which command fixes it."""

from __future__ import annotations

import platform
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from interop._api.default import default
from interop._model.conversion import Conversion
from interop._model.extension import Problem
from interop._model.provenance import OWN, Provenance, how_to_install, normal, rival
from interop._model.text import duration
from interop._recognition.installed import how_to_get, importable
from interop._registry.declared import DeclaredFormat
from interop._registry.plugins import blocking_nothing
from interop._version import __version__

from .output import FAILURE, JSON, bar, line, reports_errors, show_json, show_table, state_style
from .probe import Probed, probe
from .tool import Tool, ToolFailed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from interop._api.interop import Interop
    from interop._registry.plugins import Plugin
    from interop.testing import Finding, Report

Progress = Callable[[int, int, str], None]
#: For each plugin, the modules of its frameworks, with the formats that require each.
_Modules = dict[Provenance, dict[str, list[DeclaredFormat]]]

_SMI = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
#: Seconds that it may take.
_SMI_PATIENCE = 30
#: How many frameworks are imported at a time.
_AT_ONCE = 2

_CONVERT = typer.Option("--convert/--no-convert", help="Try every conversion with real data, too.")
_TIMEOUT = typer.Option(
    "--timeout",
    metavar="SECONDS",
    min=1,
    help="Seconds after which an import or a conversion is given up.",
)
_ALL = typer.Option(
    "--verbose", "-v", help="Name what is not installed, and all that a problem disables, too."
)

_FRAMEWORK_HEADS = ("framework", "state", "installed", "import", "formats", "to install it")
#: How many wrong conversions are named; the others are counted.
_MOST = 12


@reports_errors
def doctor(
    convert: Annotated[bool, _CONVERT] = False,
    timeout: Annotated[float, _TIMEOUT] = 120,
    verbose: Annotated[bool, _ALL] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Find out what works here, and what to do about the rest.

    Imports every framework in a process of its own, and with --convert tries every conversion with
    real data. Says first whether anything is wrong, and ends with 1 if so.
    """
    with bar("importing", hidden=as_json) as progress:
        diagnosis = diagnose(default, progress, timeout=timeout)
    trial: Report | None = None
    if convert:
        from interop.testing._check import try_conversions

        with bar("converting", hidden=as_json) as progress:
            trial = try_conversions(without=diagnosis.broken, patience=timeout, progress=progress)
    total = len(diagnosis.findings) + (0 if trial is None or trial.ok else len(_wrong(trial)) or 1)
    if as_json:
        report = None if trial is None else trial.as_dict()
        show_json({"ok": not total, **diagnosis.as_dict(), "trial": report})
    else:
        line(*_verdict(total))
        for fault in diagnosis.findings:
            _show_fault(fault, verbose=verbose)
        if trial is not None:
            _show_wrong(trial)
        line("")
        _show_diagnosis(diagnosis, verbose=verbose)
        if trial is None:
            line("no conversion was tried: 'interop doctor --convert' tries them all")
        else:
            _show_trial(trial, verbose=verbose)
    raise typer.Exit(FAILURE if total else 0)


def _verdict(total: int) -> tuple[str, str]:
    """Return how much is wrong, and a style for it."""
    if total:
        return f"{total} {'thing is' if total == 1 else 'things are'} wrong.", "bold red"
    return "Nothing is wrong.", "bold green"


def _show_fault(fault: Fault, *, verbose: bool) -> None:
    line(f"✗ {fault.problem}", "red")
    line(f"  to fix it: {fault.fix}")
    if fault.disables:
        names = [key.partition(": ")[2] for key in fault.disables]
        line(f"  it disables {len(names)} conversions" + verbose * f": {'; '.join(names)}", "dim")


def _show_diagnosis(diagnosis: Diagnosis, *, verbose: bool) -> None:
    machine = diagnosis.machine
    python = f"Python {machine['python']}, {machine['system']}"
    line(f"interop {machine['interop']} on {python}", "bold")
    driver = diagnosis.driver
    if driver.state == "ready":
        for device in driver.devices:
            line(f"device: {device}", "green")
    else:
        style = "" if driver.state == "absent" else "red"
        line(f"no GPU found ({driver.reason})", style)
    line("")
    missing = sum(framework.state == "missing" for framework in diagnosis.frameworks)
    rows = [_framework_row(f) for f in diagnosis.frameworks if verbose or f.state != "missing"]
    # The number of formats can be spared, because 'interop formats' lists them.
    show_table(_FRAMEWORK_HEADS, rows, {"state": state_style}, spare="formats")
    if missing and not verbose:
        line(f"not installed: {missing} more; -v names them")
    counts = Counter(plugin.state for plugin in diagnosis.plugins)
    line("")
    line("plugins: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    for plugin in diagnosis.plugins:
        if plugin.state == "blocked":
            line(f"  {plugin.name} of {plugin.distribution} is blocked: {plugin.reason}", "dim")
    for note in diagnosis.notes:
        line(f"note: {note}", "yellow")
    line("")


def _framework_row(framework: Framework) -> tuple[str, ...]:
    return (
        framework.module,
        framework.state,
        f"{framework.distribution} {framework.version}".strip() or "—",
        "—" if framework.seconds is None else duration(framework.seconds),
        str(len(framework.formats)),
        framework.install if framework.state == "missing" else "",
    )


# ---------------------------------------------------------------------- what was converted


def _show_wrong(trial: Report) -> None:
    wrong = _wrong(trial)
    for finding in wrong[:_MOST]:
        line(f"✗ {finding.conversion} ({finding.plugin}): {finding.reason}", "red")
    if len(wrong) > _MOST:
        line(f"  and {len(wrong) - _MOST} more conversions; --json names them all", "red")
    if not wrong and not trial.ok:
        reason = next((finding.reason for finding in trial.findings), "there is none")
        line(f"✗ no conversion could be tried: {reason}", "red")


def _wrong(trial: Report) -> list[Finding]:
    """Return what is wrong first with each conversion."""
    return list({(f.plugin, f.conversion): f for f in reversed(trial.failed)}.values())[::-1]


def _show_trial(trial: Report, *, verbose: bool) -> None:
    """Show how many conversions are right, and why others were not tried."""
    passed = {(f.plugin, f.conversion) for f in trial.findings if f.outcome == "passed"}
    reasons = {
        (f.plugin, f.conversion): f.reason
        for f in trial.not_exercised
        if (f.plugin, f.conversion) not in passed
    }
    wrong = {(f.plugin, f.conversion) for f in trial.failed}
    line(
        f"conversions of real data: {len(passed - wrong)} right, {len(wrong)} wrong, "
        f"{len(reasons.keys() - wrong)} not tried, since no such value or device is here"
        + ("" if verbose else "; -v says why")
    )
    for (plugin, conversion), reason in reasons.items() if verbose else ():
        line(f"  not tried: {conversion} ({plugin}): {reason}", "dim")


# ---------------------------------------------------------------------- what is installed


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
        texts = requires(distribution) or []
    except PackageNotFoundError:
        return
    for text in texts:
        try:
            requirement = Requirement(text)
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
