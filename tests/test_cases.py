"""Cases that share a test: all of them run, and one that fails is named."""

from __future__ import annotations

import inspect

import pytest

from tests.cases import together


def test_every_case_runs_and_the_one_that_fails_is_named() -> None:
    """The cases are those of `parametrize`, and what is left to pytest are the other arguments."""
    cases = []

    @together("x", [1, 2])
    @together("y, z", [(3, 4), (5, 0)])
    def divide(tmp_path: str, x: int, y: int, z: int) -> None:
        """It fails once."""
        cases.append((x, y, z))
        assert x == 1 or z

    assert list(inspect.signature(divide).parameters) == ["tmp_path"]
    with pytest.raises(AssertionError) as failure:
        divide(tmp_path="")
    assert cases == [(1, 3, 4), (1, 5, 0), (2, 3, 4), (2, 5, 0)]
    assert failure.value.__notes__ == ["The case: {'y': 5, 'z': 0}", "The case: {'x': 2}"]


def test_a_test_without_cases_is_an_error() -> None:
    """A test that would check nothing cannot pass."""
    with pytest.raises(ValueError, match="no cases"):
        together("x", [])
