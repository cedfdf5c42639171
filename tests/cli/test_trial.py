"""The trial: one conversion of real data by each declaration, and what the doctor makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interop.testing import Finding, Report
from interop.testing._calls import OF_A_CALL
from interop.testing._check import try_conversions
from tests.strange import FRAMEWORK, TO_PYTHON, install

OUT, BACK = "odd → numpy: to_python", "numpy → odd: from_python"


@pytest.fixture
def trial_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Report]:
    """Install a strange framework and try every conversion."""

    def run(
        *, patience: float = 60, without: frozenset[str] = frozenset(), **source: str
    ) -> Report:
        install(tmp_path, monkeypatch, **source)
        return try_conversions(patience=patience, without=without)

    return run


def _of(trial: Report, conversion: str) -> list[Finding]:
    return [finding for finding in trial.findings if finding.conversion == conversion]


def test_where_nothing_is_wrong_each_conversion_is_right(trial_of: Callable[..., Report]) -> None:
    """Each is tried once, and all that a call shows is compared."""
    trial = trial_of()
    assert trial.ok
    for conversion in (OUT, BACK):
        assert [finding.check for finding in _of(trial, conversion)] == list(OF_A_CALL)
        outcomes = {finding.check: finding.outcome for finding in _of(trial, conversion)}
        assert outcomes["values"] == outcomes["dtype"] == outcomes["shape"] == "passed"
    assert not any("dpnp" in finding.conversion for finding in trial.findings)  # is not installed


@pytest.mark.parametrize(
    ("to_python", "reason"),
    [
        ("import numpy; return numpy.array([*box.numbers[:-1], 7.0], 'float32')", "returns"),
        ("raise OSError('the wheel is off')", "OSError: the wheel is off"),
        ("import os; os.abort()", "the process died of SIGABRT"),
        pytest.param("import time; time.sleep(600)", "timed out after 6 s", marks=pytest.mark.slow),
    ],
)
def test_a_conversion_that_lies_fails_crashes_or_hangs_is_named_and_outlived(
    trial_of: Callable[..., Report], to_python: str, reason: str
) -> None:
    """The reason names what happened, and the other conversions are tried all the same."""
    trial = trial_of(to_python=to_python, patience=6)
    (wrong, *_) = [finding for finding in trial.failed if finding.conversion == OUT]
    assert reason in wrong.reason
    # What is converted to the framework is read by the same conversion, which is then named. One that
    # hangs is to blame alone.
    others = [finding for finding in trial.failed if finding.conversion != OUT]
    assert all(finding.conversion == BACK for finding in others)
    assert not others or "timed out" not in reason
    named = ("to_python", "process")
    assert all(any(word in f.reason for word in named) for f in others), others
    assert any(finding.plugin == "python" for finding in trial.of("passed"))


def test_conversions_without_values_say_why(trial_of: Callable[..., Report]) -> None:
    """Where no value can be made nothing is wrong with the conversion, and the reason is kept."""
    broken = FRAMEWORK + "\n        raise RuntimeError('no boxes today')\n"
    trial = trial_of(framework=broken, to_python=TO_PYTHON)
    assert {finding.outcome for finding in _of(trial, OUT)} == {"not exercised"}
    assert "no boxes today" in _of(trial, OUT)[0].reason


def test_broken_frameworks_are_left_alone(trial_of: Callable[..., Report]) -> None:
    """What the diagnosis found broken is not imported again."""
    trial = trial_of(framework="import os; os.abort()", without=frozenset({"odd"}))
    assert _of(trial, OUT) == _of(trial, BACK) == []
    assert trial.ok
