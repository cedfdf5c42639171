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


def test_a_made_up_regression_is_found() -> None:
    """A ratio that is half as good again as the stored one is a finding that names both."""
    (finding,) = ratios.check(stored(table(0.5)), [table(0.75)])
    assert (finding.table, finding.line) == ("zero_copy.convert", "torch → numpy")
    assert str(finding).startswith("zero_copy.convert: torch → numpy | by hand: was 0.50, is 0.75")


@pytest.mark.parametrize("now", [0.2, 0.5, 0.6])
def test_noise_and_gains_are_not_findings(now: float) -> None:
    """A ratio that is better, the same, or worse by less than the tolerance passes."""
    assert ratios.check(stored(table(0.5)), [table(now)]) == []


def test_the_tolerance_follows_the_spread_within_limits() -> None:
    """A noisy row may move further than a quiet one, and no row further than a factor of 3."""
    quiet, noisy, wild = Ratio(1, 1.01), Ratio(1, 1.4), Ratio(1, 9)
    assert ratios.tolerance(quiet, quiet) == 1.3
    assert ratios.tolerance(quiet, noisy) == ratios.tolerance(noisy, quiet) == pytest.approx(1.68)
    assert ratios.tolerance(wild, quiet) == 3


def test_a_result_that_is_worse_is_found_whatever_its_time() -> None:
    """A copy where memory was shared is a finding, and so is a new refusal; the reverse is not."""
    shares, copies = table(), table(verdict="copies")
    refuses = table(None, verdict="refuses", cell="shares")
    assert [f.now for f in ratios.check(stored(shares), [copies])] == ["copies"]
    assert [f.now for f in ratios.check(stored(shares), [refuses])] == ["refuses"]
    assert ratios.check(stored(copies), [shares]) == []
    assert ratios.check(stored(refuses), [shares]) == []


def test_a_pair_that_interop_no_longer_converts_is_found() -> None:
    """A cell that had a ratio and now says that interop refuses is a finding."""
    lost = table(None, verdict="", cell="interop: refuses")
    (finding,) = ratios.check(stored(table()), [lost])
    assert finding.now == "interop: refuses"


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
