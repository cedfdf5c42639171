"""The command ``doctor``: what works here, and what to do about the rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from interop._api.default import default
from interop._model.text import duration

from .diagnosis import Diagnosis, Fault, Framework, diagnose
from .output import (
    FAILURE,
    JSON,
    bar,
    line,
    reports_errors,
    show_json,
    show_table,
    state_style,
)

if TYPE_CHECKING:
    from interop.testing import Finding, Report

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
