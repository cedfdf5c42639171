"""The pace: how a declared cost is compared with measurements."""

from __future__ import annotations

from itertools import pairwise
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from interop.testing import _pace


def test_large_results_are_judged_in_fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each timed call on the largest value, and no other, free memory goes back."""
    events: list[int | str] = []
    monkeypatch.setattr(_pace, "give_back", lambda: events.append("back"))
    largest = _pace._SIDES[-1]

    def call(side: int) -> None:
        events.append(side)
        sleep(1e-3)

    def prepared(shape: tuple[int, ...]) -> Any:
        seconds = 1.0 if shape[0] == largest else 1e-3
        facts = {"call": call, "seconds": seconds, "aliases": False, "writes": True, "before": "it"}
        return shape[0], SimpleNamespace(**facts)

    problem = _pace.problem_of_cost("copy", prepared)
    assert "copy takes a" in problem
    assert "of its declared cost" in problem
    sides = [side for event, side in pairwise(events) if event == "back"]
    assert set(sides) == {largest}
    assert len(sides) >= 3 * _pace._ROUNDS
    # The others are the first of each attempt, and that by which the rounds are laid out.
    assert events.count(largest) - len(sides) == 6
