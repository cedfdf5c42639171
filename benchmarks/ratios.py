"""The stored ratios, and the check that none of them has got worse.

Times differ between machines and hours; the ratio of two calls timed in turn differs much less. The
noise that is left shows in the spread of a row over its rounds, and decides how much worse the row
may come out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .table import RIGHT, Ratio, Result, Table, thawed

__all__ = ["STORE", "Finding", "Stored", "check", "confirmed", "load", "save", "tolerance"]

STORE = Path(__file__).with_name("ratios.json")

#: A row may come out worse by its spread and this much, between the two limits. Between two runs of
#: one version on a busy machine of two cores, 99 % of the ratios moved by less than a factor 1.3.
_MARGIN, _LEAST, _MOST = 1.2, 1.3, 3.0
_ORDER = ("shares", "", "copies")


class Stored(NamedTuple):
    """The facts and the tables that the last ``--store`` stored."""

    made: Mapping[str, Any]
    tables: dict[str, Result]


class Finding(NamedTuple):
    """A row that is worse than it was.

    Parameters
    ----------
    table, row : str
    was, now : str
    line : str
        The line to measure again.
    """

    table: str
    row: str
    was: str
    now: str
    line: str

    def __str__(self) -> str:
        return f"{self.table}: {self.row}: was {self.was}, is {self.now}"


def tolerance(was: Ratio, now: Ratio) -> float:
    """Return the factor above which a worse ratio is a regression."""
    return min(_MOST, max(_LEAST, _MARGIN * max(was.spread, now.spread)))


def check(stored: Mapping[str, Result], measured: Iterable[Result]) -> list[Finding]:
    """Return every row that has got worse than it was stored.

    A row that is not stored, or not measured here, is no finding.
    """
    findings = []
    for table in measured:
        before = stored.get(table.key)
        if before is not None:
            findings += [*_slower(before, table), *_lost(before, table), *_judged(before, table)]
    return findings


def _slower(stored: Result, table: Result) -> list[Finding]:
    findings, before = [], stored.ratios()
    for row, now in table.ratios().items():
        was = before.get(row)
        if was is not None and now.value > was.value * tolerance(was, now):
            allowed = f"at most {was.value * tolerance(was, now):.2f} is tolerated"
            text = f"{now.value:.2f} ({allowed})"
            findings.append(Finding(table.key, row, f"{was.value:.2f}", text, _line_of(row)))
    return findings


def _lost(stored: Result, table: Result) -> list[Finding]:
    """Return the rows in which interop gave a right result, but does not any more."""
    if not isinstance(table, Table):
        return []
    before = stored.ratios()
    cells = [
        (f"{line.name} | {cell.column}", cell, line) for line in table.lines for cell in line.cells
    ]
    return [
        Finding(table.key, row, f"{before[row].value:.2f}", cell.verdict, line.name)
        for row, cell, line in cells
        if row in before and cell.ratio is None and cell.verdict.startswith("interop")
    ]


def _judged(stored: Result, table: Result) -> list[Finding]:
    before = stored.verdicts()
    return [
        Finding(table.key, line, before[line], now, line)
        for line, now in table.verdicts().items()
        if line in before and _rank(now) > _rank(before[line])
    ]


def _rank(verdict: str) -> int:
    return _ORDER.index(verdict) if verdict in _ORDER and verdict in RIGHT else len(_ORDER)


def _line_of(row: str) -> str:
    return row.rpartition(" | ")[0]


def confirmed(
    findings: list[Finding],
    stored: Mapping[str, Result],
    again: Callable[[str, set[str]], Iterable[Result]],
    times: int = 2,
) -> list[Finding]:
    """Return the findings that stand when their lines are measured again.

    Parameters
    ----------
    findings : list of Finding
    stored : mapping of str to Result
    again : callable
        ``again(table, lines)`` measures some lines of a table anew.
    times : int
        How often; a row has to be worse every time.
    """
    for _ in range(times):
        worse: list[Finding] = []
        for table in dict.fromkeys(finding.table for finding in findings):
            lines = {finding.line for finding in findings if finding.table == table}
            anew = [result for result in again(table, lines) if result.key == table]
            suspects = {(finding.table, finding.row) for finding in findings}
            worse += [
                finding
                for finding in check(stored, anew)
                if (finding.table, finding.row) in suspects
            ]
        findings = worse
    return findings


def load(path: Path = STORE) -> Stored:
    """Return the stored facts and tables, both empty if nothing is stored."""
    if not path.exists():
        return Stored({}, {})
    content = json.loads(path.read_text())
    return Stored(content["made"], {table["key"]: thawed(table) for table in content["tables"]})


def save(facts: Mapping[str, Any], tables: Iterable[Result], path: Path = STORE) -> None:
    """Store tables as text, one line each for their lines, so that diffs are readable."""
    texts = ",\n".join(_text(_rounded(table._asdict())) for table in tables)
    head = json.dumps(_rounded(facts), ensure_ascii=False, indent=1)
    path.write_text(f'{{"made": {head},\n"tables": [\n{texts}\n]}}\n')


def _text(table: Mapping[str, Any]) -> str:
    fields = []
    for name, value in table.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value and isinstance(value[0], list):
            lines = ",\n  ".join(json.dumps(line, ensure_ascii=False) for line in value)
            text = f"[\n  {lines}]"
        fields.append(f"{json.dumps(name)}: {text}")
    return "{" + ",\n ".join(fields) + "}"


def _rounded(value: Any) -> Any:
    """Return a value with four digits of every float, as lists and dicts."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {name: _rounded(number) for name, number in value.items()}
    return [_rounded(number) for number in value] if isinstance(value, (tuple, list)) else value
