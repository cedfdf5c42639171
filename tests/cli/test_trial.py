"""The trial: real conversions, of which the wrong, the failing and the fatal are told apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from interop import Interop
from interop._cli import trial
from interop._cli.trial import Lane, Trials, Tried, try_all
from tests.strange import FRAMEWORK, TO_PYTHON, install
from tests.toys import toy

ODD, NUMPY = Lane("odd", "cpu"), Lane("numpy", "cpu")


@pytest.fixture
def trial_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Trials]:
    """Install a strange framework and try everything."""

    def run(*, patience: float = 60, **source: str) -> Trials:
        install(tmp_path, monkeypatch, **source)
        return try_all(Interop(costs={}), patience=patience)

    return run


def _pair(trial: Trials, source: Lane, target: Lane) -> Tried:
    return next(pair for pair in trial.tried if (pair.source, pair.target) == (source, target))


def _sources(trial: Trials) -> set[Lane]:
    return {pair.source for pair in trial.tried}


def test_where_nothing_is_wrong_all_pairs_are_right(trial_of: Callable[..., Trials]) -> None:
    """Every pair of lanes is there once, and a right one has its steps."""
    trial = trial_of()
    lanes = _sources(trial)
    assert {ODD, NUMPY} <= lanes
    assert len(trial.tried) == len(lanes) ** 2
    assert trial.wrong == ()
    assert _pair(trial, ODD, NUMPY)[2:] == ("right", ("to_python",), "")
    assert _pair(trial, NUMPY, ODD).outcome == "right"
    assert json.loads(json.dumps(trial.as_dict()))["pairs"][0]["source"]


def test_values_that_can_be_read_only_once_are_made_for_every_pair(
    trial_of: Callable[..., Trials],
) -> None:
    """A value that hands its numbers over does so for every pair."""
    once = "import numpy; numbers, box.numbers = box.numbers, (); "
    trial = trial_of(to_python=once + "return numpy.array(numbers, 'float32')")
    assert {pair.outcome for pair in trial.tried if pair.source == ODD} == {"right", "refused"}
    assert trial.wrong == ()


def test_other_numbers_are_wrong(trial_of: Callable[..., Trials]) -> None:
    """A conversion that changes one number is caught by what comes out."""
    to_python = "import numpy; return numpy.array([*box.numbers[:-1], 7.0], 'float32')"
    trial = trial_of(to_python=to_python)
    pair = _pair(trial, ODD, NUMPY)
    assert pair.outcome == "wrong"
    assert pair.reason.endswith("7.0] came out")
    assert {(wrong.source, wrong.outcome) for wrong in trial.wrong} == {(ODD, "wrong")}
    back = _pair(trial, NUMPY, ODD)
    assert back.outcome == "unread"
    assert "odd cannot be read back" in back.reason


def test_an_error_is_a_failure_with_its_words(trial_of: Callable[..., Trials]) -> None:
    """What a step raises is passed on with the pair."""
    pair = _pair(trial_of(to_python="raise OSError('the wheel is off')"), ODD, NUMPY)
    assert pair.outcome == "failed"
    assert "OSError: the wheel is off" in pair.reason


@pytest.mark.parametrize(
    ("to_python", "reason"),
    [
        ("import os; os.abort()", "the process died of SIGABRT"),
        pytest.param("import time; time.sleep(600)", "timed out after 6 s", marks=pytest.mark.slow),
    ],
)
def test_a_pair_that_crashes_or_hangs_is_named_and_outlived(
    trial_of: Callable[..., Trials], to_python: str, reason: str
) -> None:
    """The pair at which the process ended is named, and the following ones are tried all the same."""
    trial = trial_of(to_python=to_python, patience=6)
    assert _pair(trial, ODD, NUMPY)[2:] == ("failed", (), reason)
    last = trial.tried[-1]
    assert trial.tried.index(_pair(trial, ODD, NUMPY)) < len(trial.tried) - 1
    assert len(trial.tried) == len(_sources(trial)) ** 2
    assert last.outcome in ("right", "refused", "failed")
    assert _pair(trial, NUMPY, NUMPY).outcome == "right"


def test_formats_without_values_are_left_out_with_the_reason(
    trial_of: Callable[..., Trials],
) -> None:
    """A format of which there is no value is in no pair."""
    broken = FRAMEWORK + "\n        raise RuntimeError('no boxes today')\n"
    trial = trial_of(framework=broken, to_python=TO_PYTHON)
    assert ODD not in _sources(trial)
    assert "RuntimeError: no boxes today" in trial.left_out["odd"]
    assert "could not be made" not in trial.left_out["odd"]
    assert trial.wrong == ()


def test_formats_to_which_nothing_leads_are_left_out_in_plain_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A format to which no conversion leads is not explained by an attempt at one."""
    mine = Interop(costs={})
    mine.register(toy("lone"))
    monkeypatch.setattr(trial, "_bench", lambda: trial._Bench(mine))
    answers: list[object] = []
    trial.answer((["lone", "cpu"], None), answers.append)
    assert answers == [("refused", [], "no conversion makes one from plain numbers")]


def test_broken_frameworks_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the diagnosis found broken is not imported again."""
    install(tmp_path, monkeypatch, framework="import os; os.abort()")
    calls: list[tuple[int, int, str]] = []
    trial = try_all(
        Interop(costs={}), frozenset({"odd"}), lambda *call: calls.append(call), patience=60
    )
    assert ODD not in _sources(trial)
    assert "odd" not in trial.left_out
    assert trial.wrong == ()
    assert calls[-1][:2] == (len(trial.tried) - 1, len(trial.tried))


def test_a_device_has_a_lane_of_its_own() -> None:
    """A lane is named with its device where that is not the host."""
    assert [str(Lane("odd", "cpu")), str(Lane("odd", "cuda"))] == ["odd", "odd on cuda"]
