"""The commands that find out what is wrong: ``doctor`` and ``check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

import typer

from interop._api.default import default
from interop._model.display import duration

from .diagnosis import Diagnosis, Finding, diagnose
from .output import FOUND, JSON, bar, line, show_json, show_table, told
from .trial import OUTCOMES, Lane, Trial, try_all

__all__ = ["check", "doctor"]

_CONVERT = typer.Option("--convert/--no-convert", help="Whether to convert real data, too.")
_TIMEOUT = typer.Option(
    "--timeout", min=1, help="Seconds after which an import or a conversion is given up."
)
_NAME = typer.Argument(metavar="NAME", help="A distribution, a plugin or a module.")

_STYLES = {"ready": "green", "troubled": "red", "broken": "red", "missing": "dim"}
#: How many pairs, or conversions, are named before the rest is counted.
_MOST = 12


@told
def doctor(
    convert: Annotated[bool, _CONVERT] = True,
    timeout: Annotated[float, _TIMEOUT] = 120,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Find out what works here, what does not, and what to do about it.

    Imports every framework in a process of its own, then converts real data along every route. Ends
    with 1 if anything is wrong.
    """
    with bar("importing", hidden=as_json) as progress:
        found = diagnose(default, progress, timeout=timeout)
    if not as_json:
        _show_diagnosis(found)
    trial: Trial | None = None
    if convert:
        with bar("converting", hidden=as_json) as progress:
            trial = try_all(default, found.broken, progress, patience=timeout)
    wrong = bool(found.findings) or (trial is not None and bool(trial.wrong))
    if as_json:
        tried = None if trial is None else trial.as_dict()
        show_json({"ok": not wrong, **found.as_dict(), "trial": tried})
    else:
        if trial is not None:
            _show_trial(trial)
        _show_verdict(found, trial)
    raise typer.Exit(FOUND if wrong else 0)


def _show_diagnosis(found: Diagnosis) -> None:
    machine = found.machine
    made = f"interop {machine['interop']} ({machine['front']})"
    line(f"{made} on Python {machine['python']}, {machine['system']}", "bold")
    driver = found.driver
    if driver.state == "ready":
        for device in driver.devices:
            line(f"device: {device}", "green")
    else:
        line(
            f"no device: {driver.tool}: {driver.reason}", "" if driver.state == "absent" else "red"
        )
    line("")
    rows = [
        (
            one.module,
            one.state,
            f"{one.distribution} {one.version}".strip() or "—",
            "—" if one.seconds is None else duration(one.seconds),
            str(len(one.formats)),
            one.install if one.state == "missing" else "",
        )
        for one in found.frameworks
    ]
    heads = ("framework", "state", "installed", "import", "formats", "to install it")
    show_table(heads, rows, lambda column, cell: _STYLES.get(cell, "") if column == 1 else "")
    counts = Counter(one.state for one in found.plugins)
    line("")
    line("plugins: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    for one in found.plugins:
        if one.state == "blocked":
            line(f"  {one.name} of {one.distribution} is blocked: {one.reason}", "dim")
    for note in found.notes:
        line(f"note: {note}", "yellow")
    line("")


# ---------------------------------------------------------------------- what was converted


def _show_trial(trial: Trial) -> None:
    """Show a matrix of the frameworks, and what is wrong in words."""
    lanes = list(dict.fromkeys(_family(one.source) for one in trial.tried))
    cells = {(a, b): _cell(trial, a, b) for a in lanes for b in lanes}
    width = len(str(len(lanes)))
    rows = [(f"{n:>{width}} {a}", *(cells[a, b] for b in lanes)) for n, a in enumerate(lanes, 1)]
    line("conversions of real data: rows are where from, columns where to", "bold")
    show_table(("", *map(str, range(1, len(lanes) + 1))), rows, _cell_style)
    counts = Counter(one.outcome for one in trial.tried)
    said = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
    line("")
    line(
        "n: n pairs of formats come out right; !n: n pairs do not; ~n: n cannot be read back; "
        "·: no route is permitted"
    )
    line("pairs: " + ", ".join(said))
    for lane, reason in trial.left_out.items():
        if " on " not in lane:  # of devices that are not there, nothing is expected
            line(f"not tried: {lane} ({reason})", "yellow")
    line("")


def _family(lane: Lane) -> str:
    framework = lane.format.partition(".")[0]
    return framework if lane.device == "cpu" else f"{framework} on {lane.device}"


def _cell(trial: Trial, source: str, target: str) -> str:
    counts = Counter(
        one.outcome
        for one in trial.tried
        if _family(one.source) == source and _family(one.target) == target
    )
    wrong = sum(count for outcome, count in counts.items() if OUTCOMES[outcome])
    if wrong:
        return f"!{wrong}"
    if counts["unread"]:
        return f"~{counts['unread']}"
    return str(counts["right"]) if counts["right"] else "·"


def _cell_style(column: int, cell: str) -> str:
    if not column:
        return ""
    return {"!": "bold red", "~": "yellow", "·": "dim"}.get(cell[:1], "green")


# ---------------------------------------------------------------------- what to do


def _show_verdict(found: Diagnosis, trial: Trial | None) -> None:
    for finding in found.findings:
        _show_finding(finding)
    wrong = trial.wrong if trial else ()
    for one in wrong[:_MOST]:
        way = f" ({' → '.join(one.steps)})" if one.steps else ""
        line(f"✗ {one.source} → {one.target}{way}: {one.outcome}: {one.reason}", "red")
    if len(wrong) > _MOST:
        line(f"  and {len(wrong) - _MOST} more pairs; --json names them all", "red")
    total = len(found.findings) + len(wrong)
    if total:
        line(f"{total} {'thing is' if total == 1 else 'things are'} wrong.", "bold red")
    else:
        line("Nothing is wrong.", "bold green")


def _show_finding(finding: Finding) -> None:
    line(f"✗ {finding.problem}", "red")
    line(f"  to mend it: {finding.fix}")
    if finding.disables:
        line(f"  it disables {len(finding.disables)} conversions: {_few(finding.disables)}", "dim")


def _few(names: Iterable[str]) -> str:
    names = [name.partition(": ")[2] for name in names]
    more = len(names) - _MOST
    return "; ".join(names[:_MOST]) + (f"; and {more} more" if more > 0 else "")


# ---------------------------------------------------------------------- check


@told
def check(
    name: Annotated[str, _NAME],
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Try everything that a plugin promises against reality."""
    from interop.testing import check as try_promises

    with bar("checking", hidden=as_json) as progress:
        report = try_promises(name, progress=progress)
    if as_json:
        show_json(report.as_dict())
    else:
        for text in str(report).splitlines():
            line(text, "red" if text.startswith("FAILED") else "")
    raise typer.Exit(0 if report.ok else FOUND)
