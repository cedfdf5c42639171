"""Side by side: the calls that a user would make instead, on inputs that people really have.

The results are judged first, in a process of their own, because one of the rivals' calls ends its
process. Only statements that give the right numbers are then timed against interop's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import interop

from .inputs import INPUTS, Input, make
from .rivals import Rival, rivals, set_up
from .table import RIGHT, Cell, Line, Table
from .timing import against, interleaved, small
from .verdict import outcome

__all__ = ["tables"]

_OURS = Rival("interop", {"convert": interop.convert}, {})
_BY_HAND = "by hand"
_DIES = "ends the process"
_NOTE = (
    "Each cell: interop's time divided by that call's, and what the call's result is. `shares` and "
    "`copies` are right results in the value's memory or in memory of their own. Anything else is "
    "not what was asked for, and is not timed: `as float32` is another dtype, `shares read-only` "
    "lets memory be written that its owner flagged read-only, — is a target the library does not "
    "have. Refusing is right for the masked array. `by hand` is the best call for that very "
    "value; the other columns are one call for every value."
)


def name_of(input_: Input) -> str:
    """Return the name of an input's line."""
    return f"{input_.name} → {input_.to}"


def statements(input_: Input, others: list[Rival]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the statement of each alternative and the names it uses, interop's first."""
    names = make(input_)
    calls = {"interop": (f"convert(x, to={input_.to!r})", {**names, **_OURS.names})}
    if input_.by_hand:
        calls[_BY_HAND] = (input_.by_hand, names)
    for rival in others:
        if input_.to in rival.statements:
            calls[rival.name] = (rival.statements[input_.to], {**names, **rival.names})
    return calls


# ---------------------------------------------------------------------- judging


def verdicts(only: Collection[str] | None = None) -> dict[tuple[int, str], str]:
    """Return the verdict on every statement, by the input's number and the alternative's name."""
    verdicts: dict[tuple[int, str], str] = {}
    chosen = [i for i, input_ in enumerate(INPUTS) if only is None or name_of(input_) in only]
    while True:
        todo = json.dumps([chosen, [list(key) for key in verdicts]])
        command = [sys.executable, "-m", "benchmarks.instead", todo]
        root = Path(__file__).parent.parent
        process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
        lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("[")]
        verdicts.update({(i, name): verdict for i, name, verdict in lines if verdict is not None})
        if process.returncode == 0:
            return verdicts
        if not lines or lines[-1][2] is not None:
            msg = f"the results could not be judged:\n{process.stderr}"
            raise RuntimeError(msg)
        verdicts[lines[-1][0], lines[-1][1]] = _DIES


def _judge_all(todo: str) -> None:
    """Print the verdict on each statement; a statement may end this process."""
    chosen, finished = json.loads(todo)
    pairs = {(i, name) for i, name in finished}
    others, _ = rivals()
    for i in chosen:
        for name in statements(INPUTS[i], others):
            if (i, name) not in pairs:
                print(json.dumps([i, name, None]), flush=True)
                print(json.dumps([i, name, _verdict(INPUTS[i], name, others)]), flush=True)


def _verdict(input_: Input, name: str, others: list[Rival]) -> str:
    statement, names = statements(input_, others)[name]
    x = names["x"]
    expected = None if input_.expected is None else input_.expected(x)
    return outcome(lambda: eval(statement, names), x, input_.to, expected)


# ---------------------------------------------------------------------- timing


def _line(input_: Input, judged: dict[str, str], others: list[Rival], rounds: int) -> Line:
    timers = {
        name: small(statement, names)
        for name, (statement, names) in statements(input_, others).items()
        if judged[name] in RIGHT
    }
    times = interleaved(timers, rounds=rounds, budget=0.003) if "interop" in timers else {}
    cells = []
    for name, verdict in judged.items():
        if name != "interop" and name in times:
            row = against(name, times["interop"], times[name])
            cells.append(Cell(name, verdict, row.theirs, row.ratio, row.spread))
        elif name != "interop":
            cells.append(Cell(name, verdict))
    ours = against("", times["interop"], times["interop"]).ours if times else None
    return Line(name_of(input_), judged["interop"], ours, tuple(cells))


def tables(only: Collection[str] | None = None, rounds: int = 21) -> list[Table]:
    """Return the comparison, reduced to the lines in `only` if that is given."""
    judged = verdicts(only)
    others, missing = rivals()
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, input_ in enumerate(INPUTS):
            verdicts_of_input = {name: verdict for (j, name), verdict in judged.items() if j == i}
            if verdicts_of_input:
                lines.append(_line(input_, verdicts_of_input, others, rounds))
    note = " ".join([_NOTE, *(f"{line}." for line in missing)])
    title = "small arrays, against what people call instead"
    return [Table("instead", title, note, tuple(lines), pooled=False)]


if __name__ == "__main__":
    set_up()
    warnings.simplefilter("ignore")
    _judge_all(sys.argv[1])
