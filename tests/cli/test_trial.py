"""The trial: real conversions, of which the wrong, the failing and the fatal are told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interop import Interop
from interop._cli.trial import Lane, Trial, Tried, try_all
from tests.strange import FRAMEWORK, TO_PYTHON, install

ODD, NUMPY = Lane("odd", "cpu"), Lane("numpy", "cpu")


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a strange framework and try everything."""

    def run(*, patience: float = 60, **words: str) -> Trial:
        install(tmp_path, monkeypatch, **words)
        return try_all(Interop(costs={}), patience=patience)

    return run


def _of(trial: Trial, source: Lane, target: Lane) -> Tried:
    return next(one for one in trial.tried if (one.source, one.target) == (source, target))


def test_where_nothing_is_wrong_all_pairs_are_right(tried: Any) -> None:
    """Every pair of lanes is there once, and a right one has its steps."""
    trial = tried()
    lanes = {one.source for one in trial.tried}
    assert {ODD, NUMPY} <= lanes
    assert len(trial.tried) == len(lanes) ** 2
    assert trial.wrong == ()
    assert _of(trial, ODD, NUMPY)[2:] == ("right", ("to_python",), "")
    assert _of(trial, NUMPY, ODD).outcome == "right"
    assert json.loads(json.dumps(trial.as_dict()))["pairs"][0]["source"]


def test_other_numbers_are_wrong(tried: Any) -> None:
    """A conversion that changes one number is caught by what comes out."""
    trial = tried(to_python="import numpy; return numpy.array([*box.numbers[:-1], 7.0], 'float32')")
    one = _of(trial, ODD, NUMPY)
    assert one.outcome == "wrong"
    assert one.reason.endswith("7.0] came out")
    assert {(one.source, one.outcome) for one in trial.wrong} == {(ODD, "wrong")}
    back = _of(trial, NUMPY, ODD)
    assert back.outcome == "unread"
    assert "odd cannot be read back" in back.reason


def test_an_error_is_a_failure_with_its_words(tried: Any) -> None:
    """What a step raises is passed on with the pair."""
    one = _of(tried(to_python="raise OSError('the wheel is off')"), ODD, NUMPY)
    assert one.outcome == "failed"
    assert "OSError: the wheel is off" in one.reason


@pytest.mark.parametrize(
    ("to_python", "reason"),
    [
        ("import os; os.abort()", "it ended the process with SIGABRT"),
        ("import time; time.sleep(600)", "it did not come to an end in 6 s"),
    ],
)
def test_what_ends_or_hangs_is_outlived(tried: Any, to_python: str, reason: str) -> None:
    """The pair at which the process ended is named, and those behind it are tried all the same."""
    trial = tried(to_python=to_python, patience=6)
    assert _of(trial, ODD, NUMPY)[2:] == ("failed", (), reason)
    last = trial.tried[-1]
    assert trial.tried.index(_of(trial, ODD, NUMPY)) < len(trial.tried) - 1
    lanes = {one.source for one in trial.tried}
    assert len(trial.tried) == len(lanes) ** 2
    assert last.outcome in ("right", "refused", "failed")
    assert _of(trial, NUMPY, NUMPY).outcome == "right"


def test_what_cannot_be_made_is_left_out_with_the_reason(tried: Any) -> None:
    """A format of which there is no value is in no pair."""
    broken = FRAMEWORK + "\n        raise RuntimeError('no boxes today')\n"
    trial = tried(framework=broken, to_python=TO_PYTHON)
    assert ODD not in {one.source for one in trial.tried}
    assert "no boxes today" in trial.left_out["odd"]
    assert trial.wrong == ()


def test_broken_frameworks_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the diagnosis found broken is not imported again."""
    install(tmp_path, monkeypatch, framework="import os; os.abort()")
    seen: list[tuple[int, int, str]] = []
    trial = try_all(
        Interop(costs={}), frozenset({"odd"}), lambda *news: seen.append(news), patience=60
    )
    assert ODD not in {one.source for one in trial.tried}
    assert "odd" not in trial.left_out
    assert trial.wrong == ()
    assert seen[-1][:2] == (len(trial.tried) - 1, len(trial.tried))


def test_a_device_has_a_lane_of_its_own() -> None:
    """A lane is named with its device where that is not the host."""
    assert [str(Lane("odd", "cpu")), str(Lane("odd", "cuda"))] == ["odd", "odd on cuda"]
