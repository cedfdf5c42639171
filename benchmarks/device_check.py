"""The device check: the tables, the tests and the checker of memory, in at most five minutes.

``python -m benchmarks.gpu`` runs it on a machine with a CUDA device. With ``--store`` its tables
and their picture go to the page *On a GPU*, with the card's name, the versions and the date.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .aims import RATES, RATIOS
from .machine import cupy_finds, machine, torch_finds
from .picture import pyplot

__all__ = ["Outcome", "load", "main", "page"]

_ROOT = Path(__file__).parent.parent
STORE = Path(__file__).with_name("device.json")
PAGE = _ROOT / "docs" / "explanation" / "_device.md"
_PICTURE = "device.png"
#: Seconds that each step may take at most, and needs at least.
_STEPS = {"tables": (100, 30), "tests": (150, 40), "memcheck": (80, 45)}


class Outcome(NamedTuple):
    """What one row has shown.

    Parameters
    ----------
    name : str
    value : float or None
        The ratio, or the GB/s; None if the row failed.
    by_hand : float or None
        The seconds, or the GB/s, of the statement by hand, where there is one.
    error : str
    """

    name: str
    value: float | None
    by_hand: float | None = None
    error: str = ""

    @property
    def is_short(self) -> bool:
        """Whether the row has missed its aim, by more than noise."""
        return not self.value or self.part > 1.03

    @property
    def part(self) -> float:
        """The time that it takes, divided by the time that is aimed at."""
        assert self.value
        aim = RATIOS.get(self.name)
        return RATES[self.name] / self.value if aim is None else self.value / aim


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and return its exit status: 1 if something falls short."""
    options = _parser().parse_args(arguments)
    if options.draw:
        _show(load())
        return 0
    end = time.monotonic() + options.limit
    options.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"date": dt.date.today().isoformat(), "machine": machine()}
    reason = torch_finds() or cupy_finds()
    for step in options.only or _STEPS:
        most, least = _STEPS[step]
        seconds = min(most, end - time.monotonic())
        if seconds < least:
            report[step] = {"skipped": f"{max(0, seconds):.0f} s are left, and it needs {least}"}
        elif step == "tests":
            report[step] = _tests(options.out, seconds, options.workers)
        elif reason:
            report[step] = {"skipped": f"there is no CUDA device: {reason}"}
        else:
            report[step] = (_tables if step == "tables" else _memcheck)(options.out, seconds)
        (options.out / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False))
        print(f"{step}: {_summary(report[step])}", flush=True)
    rows = [Outcome(**row) for row in report.get("tables", {}).get("rows", [])]
    for row in rows:
        if row.is_short:
            print(f"  short: {_line(row)}")
    if options.store and rows:
        STORE.write_text(json.dumps(_stored(report, rows), indent=1, ensure_ascii=False) + "\n")
        _show(load())
    failed = any(row.is_short for row in rows) or report.get("tests", {}).get("failures")
    return 1 if failed or report.get("memcheck", {}).get("status") else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*_STEPS], help="a step; all if none")
    parser.add_argument("--store", action="store_true", help="store the tables and the picture")
    parser.add_argument("--draw", action="store_true", help="draw what is stored; run nothing")
    parser.add_argument("--limit", type=float, default=290, help="seconds in all")
    parser.add_argument("--workers", type=int, default=6, help="processes of pytest")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    return parser


# ---------------------------------------------------------------------- the steps


def _tables(out: Path, seconds: float) -> dict[str, Any]:
    """Measure all rows, as long as there is time: nothing else may run beside them."""
    from .gpu import outcomes

    end, rows = time.monotonic() + seconds, []
    for row in outcomes():
        rows.append(row)
        print(f"  {_line(row)}", flush=True)
        if time.monotonic() > end:
            break
    return {"rows": [row._asdict() for row in rows]}


def _tests(out: Path, seconds: float, workers: int) -> dict[str, Any]:
    """Run `tests/gpu`, the probes of former faults included; a crash ends one worker."""
    command = [sys.executable, "-m", "pytest", "-m", "", "-v", "--tb=short", "--maxfail=60"]
    command += ["-p", "no:cacheprovider", "tests/gpu"]
    if workers > 1:
        command += ["-n", str(workers)]
    text, _ = _run(command, out / "tests.txt", seconds)
    # With workers the outcome comes first, and without any the name does.
    lines = re.findall(r"\[ *\d+%\] (PASSED|FAILED|ERROR|SKIPPED) (\S+)", text)
    for name, outcome in re.findall(r"(?m)^(tests/\S+) (PASSED|FAILED|ERROR|SKIPPED)", text):
        lines.append((outcome, name))
    return {
        **Counter(outcome.lower() for outcome, _ in lines),
        "failures": sorted(name for outcome, name in lines if outcome in {"FAILED", "ERROR"}),
        "crashed workers": len(re.findall(r"worker 'gw\d+' crashed", text)),
        "finished": bool(re.search(r"^=+ .*(passed|failed|skipped).* in ", text, re.MULTILINE)),
    }


def _memcheck(out: Path, seconds: float) -> dict[str, Any]:
    """Let the checker of memory look at what the tests of streams do."""
    checker = shutil.which("compute-sanitizer")
    if checker is None:
        return {"skipped": "compute-sanitizer is not installed"}
    command = [checker, "--tool", "memcheck", "--error-exitcode", "9", sys.executable, "-m"]
    command += [
        "pytest",
        "-m",
        "",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "tests/gpu/test_streams.py",
    ]
    text, status = _run(command, out / "memcheck.txt", seconds)
    summary = re.findall(r"ERROR SUMMARY.*|\d+ (?:passed|failed).*", text)
    return {"status": status, "summary": summary[-2:]}


def _run(command: Sequence[str], log: Path, seconds: float) -> tuple[str, int]:
    """Return what a command writes, and its status; it is interrupted when its time is over."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(2)  # upon which pytest writes its summary
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
    return log.read_text(errors="replace"), process.returncode


def _summary(step: dict[str, Any]) -> str:
    if "rows" in step:
        short = sum(Outcome(**row).is_short for row in step["rows"])
        return f"{len(step['rows']) - short} of {len(step['rows'])} rows reach their aims"
    return ", ".join(f"{name} {value}" for name, value in step.items())


# ---------------------------------------------------------------------- the page


def load() -> dict[str, Any]:
    """Return what was stored by the last check on a device; nothing if there was none."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def _stored(report: dict[str, Any], rows: Iterable[Outcome]) -> dict[str, Any]:
    facts = report["machine"]
    kept = {name: facts[name] for name in ("CUDA device", "processor", "Python", "packages")}
    return {"date": report["date"], **kept, "rows": [row._asdict() for row in rows]}


def page(stored: dict[str, Any]) -> str:
    """Return the part of the page that has the rows, each with its aim and what it has shown."""
    rows = {row["name"]: Outcome(**row) for row in stored.get("rows", [])}
    if stored:
        machine_ = f"{stored['processor']}; Python {stored['Python']}; {stored['packages']}"
        said = (
            f"Measured on {stored['date']} with one {stored['CUDA device']} ({machine_}).\n\n"
            f"![The rows beside their aims]({_PICTURE})"
        )
    else:
        said = "The code as it is has not been run on a device: no row below has."
    text = [
        "<!-- Written by `python -m benchmarks.gpu --store`; do not edit. -->",
        said,
        _table("hand-offs and small transfers", "÷ by hand", "at most", RATIOS, rows),
        _table("large transfers", "GB/s", "at least", RATES, rows),
    ]
    return "\n\n".join(text) + "\n"


def _table(
    title: str, unit: str, sign: str, aims: dict[str, float], rows: dict[str, Outcome]
) -> str:
    lines = [f"| {title} | {unit} | {sign} |", "| --- | --- | --- |"]
    for name, aim in aims.items():
        row = rows.get(name)
        value = "**not yet run**" if row is None else row.error or f"{row.value:.2f}"
        lines.append(f"| {name} | {value} | {aim:g} |")
    return "\n".join(lines)


def _line(row: Outcome) -> str:
    value = row.error if row.value is None else f"{row.value:.2f}"
    aim = RATIOS.get(row.name) or RATES.get(row.name)
    return f"{row.name:36} {value:>8}  aim {aim}{'  <<<' if row.is_short else ''}"


def _show(stored: dict[str, Any]) -> None:
    PAGE.write_text(page(stored))
    print(f"written: {PAGE.relative_to(_ROOT)}")
    if stored:
        _draw([Outcome(**row) for row in stored["rows"]], PAGE.with_name(_PICTURE))


def _draw(rows: Iterable[Outcome], file: Path) -> None:
    """Draw each row beside its aim: what lies left of the line has reached it."""
    try:
        plt = pyplot()
    except ImportError as error:
        print(f"no picture is drawn: {error}; pip install -e . --group bench")
        return
    parts = {
        row.name: row.value / RATIOS[row.name]
        if row.name in RATIOS
        else RATES[row.name] / row.value
        for row in rows
        if row.value
    }
    with plt.rc_context({"font.size": 8.5}):
        figure, axis = plt.subplots(figsize=(8, 0.2 * len(parts) + 0.8), layout="constrained")
        colours = ["#0072B2" if part <= 1.03 else "#B34700" for part in parts.values()]
        axis.scatter(parts.values(), range(len(parts)), c=colours, zorder=3)
        axis.axvline(1, color="#222222", lw=1)
        axis.set_yticks(range(len(parts)), list(parts))
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.grid(axis="both", color="#dddddd")
        axis.set_xlabel("time ÷ the time that is aimed at (logarithmic)")
        figure.savefig(file, dpi=120, metadata={"Software": None})
        plt.close(figure)
