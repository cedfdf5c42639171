"""Ratios: the check finds what got worse, and the store keeps what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import catalogue, ratios
from benchmarks.table import Listing, Ratio, Table
from tests.benchmarks.made_up import table


def stored(result: Table) -> dict[str, Table]:
    """Return a table as the store has it."""
    return {result.key: result}


REFUSES = table(None, verdict="refuses", cell="shares")


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        *((table(0.5), table(ratio), "") for ratio in (0.2, 0.5, 0.6)),
        (table(0.5), table(0.75), "0.75 (at most 0.65"),
        (table(), table(verdict="copies"), "copies"),
        (table(verdict="copies"), table(), ""),
        (table(), REFUSES, "refuses"),
        (REFUSES, table(), ""),
        (table(), table(None, verdict="", cell="interop: refuses"), "interop: refuses"),
    ],
)
def test_what_got_worse_is_found(before: Table, after: Table, now: str) -> None:
    """A ratio half as good again, a copy of what was shared and a new refusal are; the reverse is not."""
    texts = [str(finding) for finding in ratios.check(stored(before), [after])]
    assert len(texts) == bool(now)
    assert all(text.startswith("zero_copy.convert: torch → numpy") for text in texts)
    assert all(f", is {now}" in text for text in texts)


def test_the_tolerance_follows_the_spread_within_limits() -> None:
    """A noisy row may move further than a quiet one, and no row further than a factor of 3."""
    quiet, noisy, wild = Ratio(1, 1.01), Ratio(1, 1.4), Ratio(1, 9)
    assert ratios.tolerance(quiet, quiet) == 1.3
    assert ratios.tolerance(quiet, noisy) == ratios.tolerance(noisy, quiet) == pytest.approx(1.68)
    assert ratios.tolerance(wild, quiet) == 3


def test_a_suspect_is_measured_again() -> None:
    """A finding stands only if it is found again each time, and only its lines are measured."""
    before = stored(table(0.5))
    suspects = ratios.check(before, [table(0.9)])
    requests = []

    def again(results: list[float]) -> Any:
        remaining = iter(results)
        return lambda key, lines: [requests.append((key, lines)), table(next(remaining))][1:]

    assert ratios.confirmed(suspects, before, again([0.9, 0.5])) == []
    assert len(ratios.confirmed(suspects, before, again([0.9, 0.8]))) == 1
    assert requests[0] == ("zero_copy.convert", {"torch → numpy"})


def test_the_store_gives_back_what_was_saved(tmp_path: Path) -> None:
    """Tables and listings are the same after they were stored, but for digits."""
    listing = Listing("scale.x", "t", "n", ("a", "b"), (("1", "2"),), {"r | s": Ratio(2.0, 1.1)})
    ratios.save({"date": "today"}, [table(), listing], tmp_path / "r.json")
    store = ratios.load(tmp_path / "r.json")
    assert store.made == {"date": "today"}
    assert store.tables == {"zero_copy.convert": table(), "scale.x": listing}


def test_every_stored_table_belongs_to_a_module() -> None:
    """Every stored table belongs to a module of the catalogue and holds positive ratios."""
    tables = ratios.load().tables
    assert tables
    assert {catalogue.module_of(key) for key in tables} <= set(catalogue.MODULES)
    stored_ratios = [r for result in tables.values() for r in result.ratios().values()]
    assert all(r.value > 0 and r.spread >= 1 for r in stored_ratios)
