"""What type checkers say where NumPy is the only framework, as it is for many authors of libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.extra("pyright")]

ROOT = Path(__file__).parents[2]
CALLS = """\
# pyright: strict
import numpy as np
import interop
from interop import accepts, convert

array = interop.convert(np.ones(2), to="numpy", dtype="float32")
array = convert([1.0], np, copy=True)
array = convert([1.0], np.ndarray)
array = interop.plan(array, to="numpy", allow={"copy"})(array)
array = interop.converter("numpy")(array)
tree = interop.convert_tree({"a": array}, to="numpy")
spec = interop.make_spec("torch", "bfloat16", device="cuda:0", traits={"readonly"})


@accepts("numpy")
def mean(x: object) -> float:
    return float(np.asarray(x).mean())


print(mean(array), tree, spec)
"""
#: Each line but the imports has one word that names no format.
MISSPELT = """\
from typing import Any
import interop
interop.convert([1], to="torhc")
interop.convert([1], to=["numpy", "torhc"])
interop.convert([1], "nunpy")
interop.convert_tree([1], to="numpyy")
interop.plan([1], to="torhc")
interop.converter("torhc")
interop.make_spec("torhc", "float32")
function: Any = interop.accepts("nunpy")
"""
WRONG_LINES = {*range(3, 11)}


@pytest.mark.parametrize(
    "checker",
    [("mypy", "--strict", "--no-incremental", "--python-executable"), ("pyright", "--pythonpath")],
    ids=["mypy", "pyright"],
)
def test_each_misspelt_target_is_flagged_without_other_frameworks(
    tmp_path: Path, numpy_alone: Path, checker: tuple[str, ...]
) -> None:
    """The class of a framework that is not installed does not let every word pass."""
    (tmp_path / "calls.py").write_text(MISSPELT)
    command = [sys.executable, "-m", *checker, str(numpy_alone), "calls.py"]
    output = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    errors = re.findall(r"calls\.py:(\d+)(?::\d+)?(?::| -) error", output)
    assert set(map(int, errors)) == WRONG_LINES, output


def test_nearly_all_public_types_are_complete(tmp_path: Path, numpy_alone: Path) -> None:
    """Unknown are only the results of frameworks that are not installed, as README's badge says."""
    output = subprocess.run(
        [sys.executable, "-m", "pyright", "--verifytypes", "interop", "--ignoreexternal"],
        cwd=tmp_path,
        # Here it takes the interpreter from PATH, whatever the option says.
        env={**os.environ, "PATH": f"{numpy_alone.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    errors = [line for line in output.splitlines() if "error:" in line]
    assert all("signatures.pyi" in line and "Return type is" in line for line in errors), output
    (score,) = re.findall(r"Type completeness score: ([\d.]+)%", output)
    (badge,) = re.findall(r"Types: (\d+) % complete", (ROOT / "README.md").read_text("utf-8"))
    assert float(score) >= int(badge)


def test_no_type_of_a_call_is_unknown_without_other_frameworks(
    tmp_path: Path, numpy_alone: Path
) -> None:
    """The results of frameworks that are not installed do not make a function unknown."""
    (tmp_path / "calls.py").write_text(CALLS)
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", str(numpy_alone), "calls.py"]
    checked = subprocess.run(pyright, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "0 errors, 0 warnings" in checked.stdout, checked.stdout
