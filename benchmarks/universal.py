"""Universal idioms: statements that people write for any value, compared with interop's call."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

import interop

from .rivals import Rival, universal
from .table import Cell, Line, Table
from .timing import against, interleaved, small
from .verdict import outcome
from .zero_copy import pairs

__all__ = ["tables"]

_NOTE = (
    "The pairs of `zero_copy` whose target has such an idiom. A ratio below 1: interop takes less "
    "time. An idiom that raises for a value is shown as `refuses`, and has no ratio."
)


def _numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a small result, to compare the idiom's numbers with."""
    dense = interop.convert(result, to="numpy")
    return np.array(dense)


def _line(name: str, x: Any, to: str, idioms: list[Rival], rounds: int) -> Line:
    ours = interop.convert(x, to=to)
    timers = {"interop": small("convert(x, to=to)", _names(x, to))}
    verdicts = {}
    for idiom in idioms:
        names = {**idiom.names, "x": x}
        statement = idiom.statements[to]
        verdict = outcome(lambda s=statement, n=names: eval(s, n), x, to, _numbers(ours))
        verdicts[idiom.name] = verdict
        if verdict in ("shares", "copies"):
            timers[idiom.name] = small(statement, names)
    times = interleaved(timers, rounds=rounds)
    cells = []
    for column, verdict in verdicts.items():
        if column in times:
            row = against(column, times["interop"], times[column])
            cells.append(Cell(column, verdict, row.theirs, row.ratio, row.spread))
        else:
            cells.append(Cell(column, verdict))
    seconds = against("", times["interop"], times["interop"]).ours
    verdict = outcome(lambda: ours, x, to, _numbers(ours))
    return Line(name, verdict, seconds, tuple(cells))


def _names(x: Any, to: str) -> dict[str, Any]:
    return {"convert": interop.convert, "x": x, "to": to}


def tables(only: Collection[str] | None = None, rounds: int = 21) -> list[Table]:
    """Return the comparison, reduced to the lines in `only` if that is given."""
    lines = []
    for name, x, to, _ in pairs():
        idioms = [idiom for idiom in universal() if to in idiom.statements]
        if idioms and (only is None or name in only):
            lines.append(_line(name, x, to, idioms, rounds))
    title = "small arrays that need no copy, against the universal idioms"
    return [Table("universal", title, _NOTE, tuple(lines))]
