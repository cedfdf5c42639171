"""An installable distribution of a third party, reached through its entry point."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.processes import python_path

PROGRAM = """
import sys
import interop
ring = {plugin.name: plugin for plugin in interop.plugins()}["ring"]
assert (ring.distribution, ring.version, ring.state) == ("interop-example", "1.0", "loaded")
assert "interop_example.plugin" in sys.modules
assert not {"torch", "numpy", "interop_example.ring"} & set(sys.modules)
import numpy as np
from interop_example.ring import Ring
ring = Ring(np.array([1.0, 2.0, 3.0]))
x = interop.convert(ring, to="numpy")
assert x.ctypes.data == ring.numbers.ctypes.data
t = interop.convert(ring, to="torch")
assert t.tolist() == [1.0, 2.0, 3.0] and t.data_ptr() == x.ctypes.data
assert t.dtype is sys.modules["torch"].float64
back = interop.convert(t[::2].clone().requires_grad_(), to="ring", dtype="float32")
assert back.numbers.tolist() == [1.0, 3.0] and back.numbers.dtype == "float32"
route = interop.plan(t, to=Ring)
assert route.steps[-1].provenance.distribution == "interop-example"
copied = interop.convert(ring, to="ring", copy=True)
assert copied.numbers.ctypes.data != x.ctypes.data and copied.numbers.flags.writeable
ring.push(4.0)
assert interop.convert(ring, to="torch").tolist() == [2.0, 3.0, 4.0] and ring.oldest == 1
try:
    interop.convert(ring, to="ring", copy=False)
    interop.convert(ring, to="torch", copy=False)
except interop.errors.RefusedError as error:
    print("refused:", sorted(error.effects))
"""

CHECK = """
from interop.testing import check
report = check("interop-example")
assert report.ok, str(report)
names = (f"{finding.check} of {finding.conversion}" for finding in report.not_exercised)
print(sorted(name for name in names if " by dlpack" not in name))
"""


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example distribution is installed as from an index."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def _run(program: str, site: Path) -> str:
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": python_path(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_an_installed_plugin_joins_everyones_routes(site: Path) -> None:
    """A class that the core does not know converts to torch and back."""
    assert _run(PROGRAM, site) == "refused: ['copy']"


def test_the_suite_tries_all_that_an_array_of_one_axis_allows(site: Path) -> None:
    """Only a bare copy stays untried, and the numbers that only one conversion can read."""
    untried = ast.literal_eval(_run(CHECK, site))
    assert set(untried) <= {
        "absence of plugin ring",
        "copy of ring → ring: unroll if rotated",
        "source of ring → ring: unroll if rotated",
        "threads of ring → ring: unroll if rotated",
        "values of ring → ring: unroll if rotated",
    }
