"""What tests share: cases in one test, and programs in processes of their own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import interop
import interop_plugins
from tests.cases import together
from tests.processes import python_path

TESTS = """
import pytest
from tests.cases import together

ran = []

@together("x", [1, 2])
@together("y, z", [(3, 4), (5, 0), (6, None)])
def test_division(tmp_path, x, y, z):
    ran.append((x, y, z))
    if z is None:
        pytest.skip("nothing to divide by")
    assert x == 1 or y / z

@together("x", [1, 2])
def test_that_passes(x):
    assert x

def test_all_cases_ran():
    assert ran == [(1, 3, 4), (1, 5, 0), (1, 6, None), (2, 3, 4), (2, 5, 0), (2, 6, None)]
"""


def test_every_case_runs_and_those_that_fail_are_named(tmp_path: Path) -> None:
    """The cases are those of `parametrize`; one that fails or is skipped hides none of the rest."""
    (tmp_path / "test_them.py").write_text(TESTS)
    arguments = ["-q", "-rA", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    output = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    ).stdout
    failed = [line for line in output.splitlines() if line.startswith("SUBFAILED")]
    assert len(failed) == 1, output
    assert "(x=2, y=5, z=0)" in failed[0]
    assert "ZeroDivisionError" in output
    skipped = [line for line in output.splitlines() if line.startswith("SUBSKIPPED")]
    assert "nothing to divide by" in "".join(skipped), output
    passed = {line.rpartition("::")[2] for line in output.splitlines() if line.startswith("PASSED")}
    assert passed == {"test_that_passes", "test_all_cases_ran"}


def test_what_is_left_to_pytest_are_the_other_arguments() -> None:
    """Fixtures are asked for as without cases, and marks between the cases count."""

    @together("x", [1])
    @pytest.mark.slow
    @together("y, z", [(3, 4)])
    def test(tmp_path: str, x: int, y: int, z: int) -> None:
        """It passes."""

    assert list(inspect.signature(test).parameters) == ["tmp_path", "subtests"]
    assert [mark.name for mark in test.pytestmark] == ["slow"]  # type: ignore[attr-defined]


def test_a_test_without_cases_is_an_error() -> None:
    """A test that would check nothing cannot pass."""
    with pytest.raises(ValueError, match="no cases"):
        together("x", [])


@pytest.mark.parametrize("run", ["in_subprocess", "in_fork"])
def test_a_program_that_dies_fails_its_test(run: str, request: pytest.FixtureRequest) -> None:
    """A signal, an exception and a warning end it with the reason; what it prints is returned."""
    program = request.getfixturevalue(run)
    assert program("import sys; print('interop' in sys.modules)") == "False\n"
    for code, reason in (
        ("import os; os.abort()", "exit -6"),
        ("raise ValueError('spoilt')", "ValueError: spoilt"),
        ("import warnings; warnings.warn('old')", "UserWarning: old"),
    ):
        with pytest.raises(AssertionError, match=reason):
            program(code)


def test_processes_import_the_code_that_is_tested_here(
    in_subprocess: Callable[..., str], tmp_path: Path
) -> None:
    """A program imports both packages from where the tests do, whatever it has beside them."""
    program = "import interop, interop_plugins as p; print(interop.__file__, *p.__path__)"
    places = [interop.__file__, *interop_plugins.__path__]
    for environment in ({}, {"PYTHONPATH": python_path(tmp_path)}):
        assert in_subprocess(program, **environment).split() == places
    (tmp_path / "beside.py").touch()
    with_folder = {"PYTHONPATH": python_path(tmp_path)}
    assert in_subprocess("import beside; print(beside.__file__)", **with_folder).strip() == str(
        tmp_path / "beside.py"
    )
