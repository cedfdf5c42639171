"""Costs: what the numbers mean, and the table that replaces those that are declared."""

from __future__ import annotations

import pytest

import interop
from interop import Conversion, Cost, Interop
from interop._model.conversion import CACHED
from interop.plugin import make_spec
from tests.toys import Box, toy

KEY = "array-interop: numpy → numpy: copy"


def test_the_first_bytes_are_counted_at_the_speed_of_the_caches() -> None:
    """With a second speed the estimate is continuous, and the one of fresh memory counts for the rest."""
    cost = Cost(1e-6, bandwidth=1e9, cached=1e10)
    empty, small, large = (
        make_spec("numpy", "uint8", shape=(n,)) for n in (0, CACHED // 2, 8 * CACHED)
    )
    assert cost.seconds(empty, empty) == 1e-6
    assert cost.seconds(small, small) == pytest.approx(1e-6 + CACHED / 1e10)
    assert cost.seconds(large, empty) == pytest.approx(1e-6 + CACHED / 1e10 + 7 * CACHED / 1e9)


def test_every_conversion_has_a_key_of_its_own() -> None:
    """No two conversions in force would share a row of the table."""
    keys = [declared.key for declared in interop.conversions()]
    assert len(set(keys)) == len(keys)
    assert KEY in keys


def test_a_table_takes_the_place_of_declared_costs() -> None:
    """`costs=` prices conversions; those that it leaves out keep their declared cost."""
    mine = Interop(costs={KEY: Cost(3.0, 7.0)})
    costs = {declared.key: declared.conversion.cost for declared in mine.conversions()}
    declared = {d.key: d.conversion.cost for d in Interop(costs={}).conversions()}
    assert costs[KEY] == Cost(3.0, 7.0)
    assert {k: c for k, c in costs.items() if k != KEY} == {
        k: c for k, c in declared.items() if k != KEY
    }


def test_the_planner_goes_by_the_table(empty: Interop) -> None:
    """The same declarations give another route under other costs, also for what comes later."""
    rivals = [
        Conversion("a", "b", Box, effects={"copy"}, cost=Cost(1e-6), name=name)
        for name in ("one", "other")
    ]
    empty.register(toy("a"), toy("b"), *rivals)
    spec = make_spec("a", "float32", shape=(4,))
    assert [s.label for s in empty.plan(spec, to="b").steps] == ["one"]
    mine = Interop(plugins=False, costs={"run time: a → b: one": Cost(2e-6)})
    mine.register(toy("a"), toy("b"), *rivals)
    assert [s.label for s in mine.plan(spec, to="b").steps] == ["other"]
