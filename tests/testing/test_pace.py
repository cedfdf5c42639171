"""The pace: how a declared cost is compared with measurements."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from interop.testing import _pace
from tests.cases import together


class _Machine:
    """The clocks of a machine that gives a program a share of its processor.

    Parameters
    ----------
    share : float
    """

    def __init__(self, share: float) -> None:
        self._share, self._seconds, self._busy = share, 0.0, 0.0

    def work(self, seconds: float) -> None:
        self._busy += seconds
        self._seconds += seconds / self._share

    def wait(self, seconds: float) -> None:
        self._seconds += seconds

    def perf_counter(self) -> float:
        self.work(1e-5)
        return self._seconds

    def thread_time(self) -> float:
        return self._busy


def _machine(monkeypatch: pytest.MonkeyPatch, share: float) -> _Machine:
    """Let the pace be measured by the clocks of a machine that this test alone keeps busy."""
    machine = _Machine(share)
    monkeypatch.setattr(_pace, "perf_counter", machine.perf_counter)
    monkeypatch.setattr(_pace, "thread_time", machine.thread_time)
    monkeypatch.setattr(_pace, "sleep", machine.wait)
    return machine


def test_large_results_are_judged_in_fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each timed call on the largest value, and no other, free memory goes back."""
    events: list[int | str] = []
    monkeypatch.setattr(_pace, "give_back", lambda: events.append("back"))
    machine = _machine(monkeypatch, 1.0)
    largest = _pace._SIDES[-1]

    def call(side: int) -> None:
        events.append(side)
        machine.wait(1e-3)

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


@together(
    "share, work, wait, problem",
    [
        *((share, 5e-3, 0.0, "") for share in (1.0, 0.1)),
        *((share, 0.0, 5e-3, "") for share in (1.0, 0.1)),
        *((share, 0.1, 0.0, "times as long as its declared cost") for share in (1.0, 0.1)),
        (1.0, 0.0, 0.1, "times as long as its declared cost"),
        (0.5, 0.0, 0.1, "times as long as its declared cost"),
        *((share, 0.0, 0.0, "of its declared cost") for share in (1.0, 0.5)),
    ],
)
def test_a_busy_machine_is_no_fault_of_a_step(
    share: float, work: float, wait: float, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that others keep waiting costs what it costs alone; one that lies is found there, too."""
    machine = _machine(monkeypatch, share)

    def call(value: object) -> None:
        machine.work(work)
        machine.wait(wait)

    facts = {"call": call, "seconds": 1e-3, "aliases": False, "writes": True, "before": "it"}
    step: Any = SimpleNamespace(**facts)
    found = _pace.problem_of_cost("copy", lambda shape: (shape, step))
    assert problem in found
    assert bool(problem) == bool(found)
