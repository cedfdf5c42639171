"""An installable distribution of a third party, reached through its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

PROGRAM = """
import sys
from array import array
import interop
found = {p.name: p for p in interop.plugins()}["example"]
assert (found.distribution, found.version, found.state) == ("interop-example", "1.0", "loaded")
assert "interop_example.plugin" in sys.modules and "torch" not in sys.modules
from interop_example import Track
track = Track(array("d", [1.0, 2.0, 3.0]))
x = interop.convert(track, to="numpy")
assert x.ctypes.data == track.samples.buffer_info()[0]
t = interop.convert(track, to="torch")
assert t.tolist() == [1.0, 2.0, 3.0] and t.data_ptr() == x.ctypes.data
back = interop.convert(t[::2].requires_grad_(), to="example", dtype="float64")
assert back.samples.tolist() == [1.0, 3.0]
route = interop.plan(t, to=Track)
assert route.steps[-1].provenance.distribution == "interop-example"
try:
    interop.convert(track, to="example", copy=False)
    interop.convert(interop.convert(track, to="torch"), to="example", copy=False)
except interop.errors.RefusedError as error:
    print("refused:", error.effects)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example distribution is installed as from an index."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--disable-pip-version-check", "--target", str(target)),
            str(HERE / "example_plugin"),
        ],
        check=True,
        capture_output=True,
    )
    return target


def test_an_installed_plugin_joins_everyones_routes(site: Path) -> None:
    """A class interop has never heard of reaches torch and back without touching the core."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "refused: frozenset({'copy'})"
