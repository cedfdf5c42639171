"""The benchmarks: that their check finds what got worse, and that caches stay small. No times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from timeit import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from benchmarks import catalogue, command, crowd, ratios, render, rivals, staging, timing, verdict
from benchmarks.table import Cell, Line, Listing, Ratio, Table, duration

ROOT = Path(__file__).parent.parent


def table(
    ratio: float | None = 0.5, spread: float = 1.05, verdict: str = "shares", cell: str = "shares"
) -> Table:
    """Return a table of one ratio."""
    line = Line("torch → numpy", verdict, 1e-6, (Cell("by hand", cell, 2e-6, ratio, spread),))
    return Table("zero_copy.convert", "a title", "a note", (line,), goal=0.9)


def stored(one: Any) -> dict[str, Any]:
    return {one.key: one}


# ------------------------------------------------------------------ the check


def test_a_made_up_regression_is_found() -> None:
    """A ratio that is half as good again as the stored one is a finding that names both."""
    (found,) = ratios.check(stored(table(0.5)), [table(0.75)])
    assert (found.table, found.line) == ("zero_copy.convert", "torch → numpy")
    assert str(found).startswith("zero_copy.convert: torch → numpy | by hand: was 0.50, is 0.75")


@pytest.mark.parametrize("now", [0.2, 0.5, 0.6])
def test_noise_and_gains_are_no_findings(now: float) -> None:
    """A ratio that is better, the same, or worse by less than the tolerance passes."""
    assert ratios.check(stored(table(0.5)), [table(now)]) == []


def test_the_tolerance_follows_the_spread_within_limits() -> None:
    """A noisy row may move further than a quiet one, and no row further than a factor of 3."""
    quiet, noisy, wild = Ratio(1, 1.01), Ratio(1, 1.4), Ratio(1, 9)
    assert ratios.tolerance(quiet, quiet) == 1.3
    assert ratios.tolerance(quiet, noisy) == ratios.tolerance(noisy, quiet) == pytest.approx(1.68)
    assert ratios.tolerance(wild, quiet) == 3


def test_a_result_that_is_worse_is_found_whatever_its_time() -> None:
    """To copy what was shared, or to refuse what was converted, is a finding; the reverse is not."""
    shares, copies = table(), table(verdict="copies")
    refuses = table(None, verdict="refuses", cell="shares")
    assert [f.now for f in ratios.check(stored(shares), [copies])] == ["copies"]
    assert [f.now for f in ratios.check(stored(shares), [refuses])] == ["refuses"]
    assert ratios.check(stored(copies), [shares]) == []
    assert ratios.check(stored(refuses), [shares]) == []


def test_a_pair_that_interop_no_longer_converts_is_found() -> None:
    """A cell that had a ratio and now says that interop refuses is a finding."""
    lost = table(None, verdict="", cell="interop: refuses")
    (found,) = ratios.check(stored(table()), [lost])
    assert found.now == "interop: refuses"


def test_what_is_not_stored_or_not_measured_is_no_finding() -> None:
    """A rival that is missing here, and a table that is new, do not fail the check."""
    empty = table()._replace(lines=())
    assert ratios.check(stored(table()), [empty]) == []
    assert ratios.check({}, [table()]) == []


def test_a_suspect_is_measured_again() -> None:
    """A finding stands only if it is found again each time, and only its lines are measured."""
    before = stored(table(0.5))
    suspects = ratios.check(before, [table(0.9)])
    asked = []

    def again(results: list[float]) -> Any:
        left = iter(results)
        return lambda key, lines: [asked.append((key, lines)), table(next(left))][1:]

    assert ratios.confirmed(suspects, before, again([0.9, 0.5])) == []
    assert len(ratios.confirmed(suspects, before, again([0.9, 0.8]))) == 1
    assert asked[0] == ("zero_copy.convert", {"torch → numpy"})


def test_the_command_fails_loudly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` exits with 1 and names the row, and with 0 when nothing got worse."""
    ratios.save({"date": "2026-01-01"}, [table(0.5)], tmp_path / "ratios.json")
    monkeypatch.setattr(command, "load", lambda: ratios.load(tmp_path / "ratios.json"))
    monkeypatch.setattr(command, "_keep", lambda *args: None)
    measured = [table(0.5)]
    monkeypatch.setattr(catalogue, "measure", lambda *args, **words: measured)
    assert command.main(["zero_copy", "--check"]) == 0
    measured[:] = [table(0.9)]
    assert command.main(["zero_copy", "--check"]) == 1
    assert "WORSE  zero_copy.convert: torch → numpy | by hand: was 0.50" in capsys.readouterr().err


def test_a_table_that_fails_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that raises is reported, the others are kept, and the exit status is 1."""
    kept: list[Any] = []
    monkeypatch.setattr(command, "_keep", lambda stored, found, *rest: kept.extend(found))

    def measure(name: str, **words: Any) -> list[Any]:
        if name == "copies":
            raise ValueError("broken")
        return [table()]

    monkeypatch.setattr(catalogue, "measure", measure)
    assert command.main(["copies", "zero_copy"]) == 1
    assert [one.key for one in kept] == ["zero_copy.convert"]
    assert "copies FAILED" in capsys.readouterr().out


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no table is answered with those that there are."""
    assert command.main(["nonsense"]) == 2
    assert "zero_copy" in capsys.readouterr().out


# ------------------------------------------------------------------ what is stored and shown


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    """Tables and listings are the same after they were stored, but for digits."""
    listing = Listing("scale.x", "t", "n", ("a", "b"), (("1", "2"),), {"r | s": Ratio(2.0, 1.1)})
    ratios.save({"date": "today"}, [table(), listing], tmp_path / "r.json")
    found = ratios.load(tmp_path / "r.json")
    assert found.made == {"date": "today"}
    assert found.tables == {"zero_copy.convert": table(), "scale.x": listing}


def test_the_stored_ratios_are_of_tables_that_there_are() -> None:
    """Every stored table belongs to a module of the catalogue and holds positive ratios."""
    found = ratios.load().tables
    assert found
    assert {catalogue.module_of(key) for key in found} <= set(catalogue.MODULES)
    assert all(
        r.value > 0 and r.spread >= 1 for one in found.values() for r in one.ratios().values()
    )


def test_the_page_is_the_stored_run() -> None:
    """The table in the documentation is the one that the stored ratios make."""
    kept = ratios.load()
    page = (ROOT / "docs" / "reference" / "_benchmarks.md").read_text()
    assert page == render.page(kept.made, kept.tables.values())


def test_tables_are_markdown() -> None:
    """A table shows the verdict, the ratio to two digits, the mean and its aim."""
    text = render.terminal(table())
    assert "| torch → numpy  | 1 µs, shares | 2 µs, shares | 0.50  |" in text
    assert (
        "Geometric mean of 1 ratios: 0.50 (2.0 times as fast); the aim of 0.90 is reached." in text
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (5e-10, "0.5 ns"), (1.234e-6, "1.23 µs"), (0.1234, "123 ms"), (2.0, "2 s")],
)
def test_durations(seconds: float | None, text: str) -> None:
    """A time has three digits and the unit that suits it."""
    assert duration(seconds) == text


# ------------------------------------------------------------------ how it is measured


def test_statements_take_their_turn() -> None:
    """Each round times every statement once, and ratios are taken round by round."""
    order: list[str] = []
    timers = {name: Timer(lambda name=name: order.append(name)) for name in ("a", "b")}
    times = timing.interleaved(timers, rounds=3, budget=0)
    assert order[-6:] == ["a", "b"] * 3
    assert {name: len(found) for name, found in times.items()} == {"a": 3, "b": 3}
    row = timing.against("x", [2.0, 4.0, 30.0], [1.0, 2.0, 10.0])
    assert (row.ours, row.theirs, row.ratio) == (4.0, 2.0, 2.0)
    assert row.spread == pytest.approx((3 / 2) ** 0.5)


def test_verdicts() -> None:
    """Sharing, copying, and every way of being wrong are told apart."""
    torch = pytest.importorskip("torch")
    a = np.arange(3.0)
    frozen = a.view()
    frozen.flags.writeable = False

    def judged(call: Any, x: Any = a, to: str = "torch", right: Any = a) -> str:
        return verdict.outcome(lambda: call(x), x, to, right)

    assert judged(torch.from_numpy) == "shares"
    assert judged(torch.tensor) == "copies"
    assert judged(lambda x: torch.tensor(x).float()) == "as float32"
    assert judged(lambda x: -torch.tensor(x)) == "wrong numbers"
    assert judged(lambda x: x) == "gives a ndarray"
    assert judged(lambda x: np.array(None), to="numpy") == "an array of objects"
    assert judged(lambda x: x.nonsense) == "refuses"
    assert judged(torch.tensor, right=None) == "loses the mask"
    assert judged(lambda x: torch.from_numpy(a), x=frozen) == "shares read-only"
    assert judged(lambda x: x, x=frozen, to="numpy") == "shares"


def test_a_rival_that_is_not_installed_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A missing library leaves a line behind, and the idioms stay."""
    pytest.importorskip("torch")
    monkeypatch.setattr(rivals, "_LIBRARIES", {"some lib": ("no_such_module", None)})
    found, missing = rivals.rivals()
    assert [one.name for one in found] == ["universal idiom", "from_dlpack"]
    assert missing == ["some lib is left out: no_such_module is not installed"]


def test_the_command_runs_from_a_shell() -> None:
    """``python -m benchmarks`` lists its tables and flags without measuring anything."""
    line = [sys.executable, "-m", "benchmarks", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "--check" in done.stdout
    assert "sparse_formats" in done.stdout


def test_staged_transfers_move_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staging through two small buffers gives the numbers back, last part included."""
    torch = pytest.importorskip("torch")
    event = SimpleNamespace(synchronize=lambda: None, record=lambda: None)
    empty = torch.empty

    def on_the_host(*size: int, pin_memory: bool = False, device: str = "", **words: Any) -> Any:
        return empty(*size, **words)

    monkeypatch.setattr(staging.torch, "empty", on_the_host)
    monkeypatch.setattr(staging.torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(staging.torch.cuda, "synchronize", lambda: None)
    way = staging.Staging(chunk=16)
    numbers = np.arange(27, dtype="float32").reshape(3, 9)
    there = way.to_device(numbers)
    assert np.array_equal(there.numpy().view("float32"), numbers.ravel())
    back = way.to_host(torch.from_numpy(numbers))
    assert np.array_equal(back.view("float32"), numbers.ravel())


# ------------------------------------------------------------------ scale


def test_the_cache_of_routes_does_not_grow_with_the_shapes(loaded: interop.Interop) -> None:
    """After thousands of distinct shapes the cache holds a route for each class of size."""
    base = np.zeros(40_000, "float32")
    counts = []
    for most in (50, 200):
        for rows in range(1, most):
            for columns in (1, 7, 100, 200):
                view = base[: rows * columns].reshape(rows, columns)
                made = loaded.convert(view, to="numpy", dtype="float64")
                assert made.shape == view.shape
        counts.append(crowd.kept_routes(loaded))
    # Sizes from 4 B to 39 kB are 8 powers of 4, and up to 159 kB they are 9.
    assert counts == [8, 9]


def test_crowds_are_as_large_as_asked_for() -> None:
    """A crowd has so many formats and so many conversions from each, and can be planned over."""
    mine = crowd.crowd(10)
    assert len(mine.formats()) == 10
    assert len(mine.conversions()) == 100
    spec = interop.make_spec("f0", "float32", shape=(4,))
    assert mine.plan(spec, to="f1").result.format == "f1"
    crowd.forget(mine)
    assert crowd.kept_routes(mine) == 0


def test_the_store_is_json_that_diffs_by_line() -> None:
    """Each line of a stored table stands on a line of its own."""
    text = ratios.STORE.read_text()
    lines = [line for one in json.loads(text)["tables"] for line in one.get("lines", ())]
    names = [json.dumps(line[0], ensure_ascii=False) for line in lines]
    starts = [line.strip() for line in text.splitlines()]
    assert all(
        any(start.startswith(("[" + name, "[[" + name)) for start in starts) for name in names
    )
