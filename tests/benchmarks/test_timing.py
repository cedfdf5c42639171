"""How the benchmarks measure: turns, verdicts, rivals and staged transfers. No times."""

from __future__ import annotations

from timeit import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import staging, timing, verdict


def test_statements_take_turns() -> None:
    """Each round times every statement once, and ratios are taken round by round."""
    order: list[str] = []
    timers = {name: Timer(lambda name=name: order.append(name)) for name in ("a", "b")}
    times = timing.interleaved(timers, rounds=3, budget=0)
    assert order[-6:] == ["a", "b"] * 3
    assert {name: len(rounds) for name, rounds in times.items()} == {"a": 3, "b": 3}
    row = timing.against("x", [2.0, 4.0, 30.0], [1.0, 2.0, 10.0])
    assert (row.ours, row.theirs, row.ratio) == (4.0, 2.0, 2.0)
    assert row.spread == pytest.approx((3 / 2) ** 0.5)


def test_verdicts() -> None:
    """Sharing, copying, and every way of being wrong are told apart."""
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


def test_staged_transfers_move_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staging through two small buffers gives the numbers back, those of the last part included."""
    event = SimpleNamespace(synchronize=lambda: None, record=lambda: None)
    empty = torch.empty

    def on_the_host(
        *size: int, pin_memory: bool = False, device: str = "", **keywords: Any
    ) -> torch.Tensor:
        return empty(*size, **keywords)

    monkeypatch.setattr(staging.torch, "empty", on_the_host)
    monkeypatch.setattr(staging.torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(staging.torch.cuda, "synchronize", lambda: None)
    way = staging.Staging(chunk=16)
    numbers = np.arange(27, dtype="float32").reshape(3, 9)
    staged = way.to_device(numbers)
    assert np.array_equal(staged.numpy().view("float32"), numbers.ravel())
    back = way.to_host(torch.from_numpy(numbers))
    assert np.array_equal(back.view("float32"), numbers.ravel())
