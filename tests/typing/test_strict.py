"""What strict type checkers say where NumPy is the only framework."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.extra("pyright")]

PACKAGES = ("interop", "interop_plugins", "numpy", "ml_dtypes")
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


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter that sees NumPy and this package alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    for name in PACKAGES:
        (file,) = import_module(name).__path__
        (packages / name).symlink_to(file)
    return tmp_path / "venv" / "bin" / "python"


def test_no_type_of_a_call_is_unknown_without_other_frameworks(
    tmp_path: Path, python: Path
) -> None:
    """The results of frameworks that are not installed do not make a function unknown."""
    (tmp_path / "calls.py").write_text(CALLS)
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", str(python), "calls.py"]
    checked = subprocess.run(pyright, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "0 errors, 0 warnings" in checked.stdout, checked.stdout
