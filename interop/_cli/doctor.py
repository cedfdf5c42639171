"""The commands that look for faults: ``doctor`` and ``check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from interop._api.default import default
from interop._model.text import duration
from interop.errors import PluginError

from .diagnosis import Diagnosis, Fault, Framework, diagnose
from .library import check_library
from .output import (
    FAILURE,
    JSON,
    bar,
    line,
    misused,
    reports_errors,
    show_json,
    show_table,
    state_style,
    width,
)
from .trial import OUTCOMES, Lane, Trials, try_all

_CONVERT = typer.Option("--convert/--no-convert", help="Whether to convert real data, too.")
_TIMEOUT = typer.Option(
    "--timeout",
    metavar="SECONDS",
    min=1,
    help="Seconds after which an import or a conversion is given up.",
)


def _plugins(typed: str) -> list[str]:
    """Return the names of plugins that begin like what was typed, for the shell to complete."""
    return [plugin.name for plugin in default.plugins() if plugin.name.startswith(typed)]


_NAME = typer.Argument(
    metavar="NAME",
    help="A distribution, a plugin or a module.",
    autocompletion=_plugins,
)
_VERBOSE = typer.Option("--verbose", "-v", help="Name what could not be exercised, and why.")
_DLPACK = typer.Option(
    "--dlpack", help="Look at the DLPack of a library, by the name of its module; no plugin needed."
)
_MAKE = typer.Option(
    "--make",
    metavar="MODULE:FUNCTION",
    help="With --dlpack: what makes its arrays, if it is not asarray or array.",
)
_CONSUMER = typer.Option(
    "--from-dlpack",
    metavar="MODULE:FUNCTION",
    help="With --dlpack: the consumer, if it is not from_dlpack.",
)
_MARKDOWN = typer.Option("--markdown", help="With --dlpack: print a table in Markdown.")
_ALL = typer.Option(
    "--verbose", "-v", help="Name what is not installed, and all that a problem disables, too."
)

_FRAMEWORK_HEADS = ("framework", "state", "installed", "import", "formats", "to install it")
#: The outcomes of pairs, as the line of totals names them.
_TOTALS = {outcome: outcome for outcome in OUTCOMES if outcome != "refused"}
_TOTALS["refused"] = "have no route that is permitted by default, as intended"
#: How many pairs or conversions are named; the others are counted.
_MOST = 12


@reports_errors
def doctor(
    convert: Annotated[bool, _CONVERT] = True,
    timeout: Annotated[float, _TIMEOUT] = 120,
    verbose: Annotated[bool, _ALL] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Find out what works here, and what to do about the rest.

    Imports every framework in a process of its own, then converts real data along every route. Says
    first whether anything is wrong, and ends with 1 if so.
    """
    with bar("importing", hidden=as_json) as progress:
        diagnosis = diagnose(default, progress, timeout=timeout)
    trial: Trials | None = None
    if convert:
        with bar("converting", hidden=as_json) as progress:
            trial = try_all(default, diagnosis.broken, progress, patience=timeout)
    wrong = bool(diagnosis.findings) or (trial is not None and bool(trial.wrong or trial.problem))
    if as_json:
        pairs = None if trial is None else trial.as_dict()
        show_json({"ok": not wrong, **diagnosis.as_dict(), "trial": pairs})
    else:
        line(*_verdict(diagnosis, trial))
        _show_wrong(diagnosis, trial, verbose=verbose)
        line("")
        _show_diagnosis(diagnosis, verbose=verbose)
        if trial is not None:
            _show_trial(trial)
    raise typer.Exit(FAILURE if wrong else 0)


def _verdict(diagnosis: Diagnosis, trial: Trials | None) -> tuple[str, str]:
    """Return how much is wrong and what was not tried, and a style for it."""
    total = len(diagnosis.findings)
    names: list[str] = []
    if trial is not None:
        total += len(trial.wrong) + bool(trial.problem)
        names = sorted(trial.untried)
    untried = f" Not tried: {_few(names)}." if names else ""
    if total:
        verdict = f"{total} {'thing is' if total == 1 else 'things are'} wrong."
        return verdict + untried, "bold red"
    if untried:
        return f"Nothing is wrong in what was tried.{untried}", "yellow"
    return "Nothing is wrong.", "bold green"


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


def _show_trial(trial: Trials) -> None:
    """Show a matrix of the frameworks, the totals, and what was not tried."""
    line("conversions of real data: rows are sources, columns are targets", "bold")
    heads, *rows = _matrix(trial)
    count = _columns([heads, *rows])
    for start in range(1, len(heads), count):
        part = slice(start, start + count)
        styles = dict.fromkeys(heads[part], _cell_style)
        show_table((heads[0], *heads[part]), [(row[0], *row[part]) for row in rows], styles)
    counts = Counter(pair.outcome for pair in trial.tried)
    totals = [f"{counts[outcome]} {text}" for outcome, text in _TOTALS.items() if counts[outcome]]
    line("")
    line(
        "n: n pairs of formats are right; !n: n pairs are not; ~n: n cannot be read back; "
        "·: no route is permitted"
    )
    line("pairs: " + ", ".join(totals))
    for lane, reason in trial.untried.items():
        line(f"not tried: {lane}: interop cannot make an example ({reason})", "yellow")


def _matrix(trial: Trials) -> list[tuple[str, ...]]:
    names = list(dict.fromkeys(_framework_on_device(pair.source) for pair in trial.tried))
    numbers = [str(number) for number in range(1, len(names) + 1)]
    digits = len(numbers[-1]) if numbers else 0
    rows = [
        (f"{number:>{digits}} {source}", *(_cell(trial, source, target) for target in names))
        for number, source in zip(numbers, names, strict=True)
    ]
    return [("", *numbers), *rows]


def _columns(rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns of the matrix fit beside the first."""
    available = width()
    cell = max((len(text) for row in rows for text in row[1:]), default=1) + 2
    names = max(len(row[0]) for row in rows) + 2
    return len(rows) if available is None else max(1, (available - names) // cell)


def _framework_on_device(lane: Lane) -> str:
    framework = lane.format.partition(".")[0]
    return framework if lane.device == "cpu" else f"{framework} on {lane.device}"


def _cell(trial: Trials, source: str, target: str) -> str:
    counts = Counter(
        pair.outcome
        for pair in trial.tried
        if _framework_on_device(pair.source) == source
        and _framework_on_device(pair.target) == target
    )
    wrong = sum(count for outcome, count in counts.items() if OUTCOMES[outcome])
    if wrong:
        return f"!{wrong}"
    if counts["unread"]:
        return f"~{counts['unread']}"
    return str(counts["right"]) if counts["right"] else "·"


def _cell_style(cell: str) -> str:
    return {"!": "bold red", "~": "yellow", "·": "dim"}.get(cell[:1], "green")


# ---------------------------------------------------------------------- what to do


def _show_wrong(diagnosis: Diagnosis, trial: Trials | None, *, verbose: bool) -> None:
    for finding in diagnosis.findings:
        _show_finding(finding, verbose=verbose)
    wrong = trial.wrong if trial else ()
    for pair in wrong[:_MOST]:
        steps = f" ({' → '.join(pair.steps)})" if pair.steps else ""
        line(f"✗ {pair.source} → {pair.target}{steps}: {pair.outcome}: {pair.reason}", "red")
    if len(wrong) > _MOST:
        line(f"  and {len(wrong) - _MOST} more pairs; --json names them all", "red")
    if trial and trial.problem:
        line(f"✗ {trial.problem}", "red")


def _show_finding(finding: Fault, *, verbose: bool) -> None:
    line(f"✗ {finding.problem}", "red")
    line(f"  to fix it: {finding.fix}")
    if finding.disables:
        names = [key.partition(": ")[2] for key in finding.disables]
        line(f"  it disables {len(names)} conversions" + verbose * f": {'; '.join(names)}", "dim")


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return "; ".join(names[:_MOST]) + (f"; and {more} more" if more > 0 else "")


# ---------------------------------------------------------------------- check


@reports_errors
def check(
    name: Annotated[str, _NAME],
    *,
    verbose: Annotated[bool, _VERBOSE] = False,
    as_json: Annotated[bool, JSON] = False,
    dlpack: Annotated[bool, _DLPACK] = False,
    make: Annotated[str, _MAKE] = "",
    from_dlpack: Annotated[str, _CONSUMER] = "",
    markdown: Annotated[bool, _MARKDOWN] = False,
) -> None:
    """Test everything that a plugin promises, or with --dlpack what a library's DLPack does."""
    if dlpack:
        options = {"as_json": as_json, "as_markdown": markdown}
        ok = check_library(name, make=make, from_dlpack=from_dlpack, **options)
        raise typer.Exit(0 if ok else FAILURE)
    from interop.testing import check as check_promises
    from interop.testing._subject import subjects_of

    try:
        subjects_of(name)
    except PluginError as error:
        misused(str(error))
    with bar("checking", hidden=as_json) as progress:
        report = check_promises(name, progress=progress)
    if as_json:
        show_json(report.as_dict())
    else:
        verdict, _, untried = str(report).partition("\n")
        tried, _, untried = untried.partition("not exercised: ")
        verdict, _, never = verdict.partition("; declared and never tried: ")
        for text in (verdict, *tried.splitlines()):
            line(text, "red" if text.startswith("FAILED") else "")
        if not verbose and (never or untried):
            line("-v names what is not exercised, and why.")
        if verbose and never:
            line(f"declared and never tried: {never}")
        if verbose and untried:
            line(f"not exercised: {untried}")
    raise typer.Exit(0 if report.ok else FAILURE)
