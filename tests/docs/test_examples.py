"""The programs under examples/, run as a user would."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

#: What must stand in the output: the facts, not the routes, which follow the table of costs.
SAID = {
    "digits.py": (
        "1797 digits of 8x8 pixels, float64",
        "a tensor that requires grad: shared, values equal",
        "bfloat16: shared both ways, bits equal",
        "sparse: 51% of the pixels stored, three arrays shared, values equal",
        "quantized: codes shared both ways, numbers equal",
        "refused, as it should be:",
        "leave out copy=False.",
        "receipts of 12 conversions:",
    ),
    "ray_data.py": (
        "6000 rows through torch in Ray's workers, the lengths are NumPy's",
        "read-only batches were copied, the others shared",
    ),
}

#: What needs Ray, whose own modules warn, and which logs what it does.
WITH_RAY = {"ray_data.py"}


def test_every_example_is_tested() -> None:
    """There is no example without a line here that says what it prints."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAID)


@cache
def run(name: str) -> subprocess.CompletedProcess[str]:
    """Run an example once, with warnings as errors if they are not another's."""
    flags = [] if name in WITH_RAY else ["-W", "error"]
    with tempfile.TemporaryDirectory() as scratch:
        return subprocess.run(
            [sys.executable, *flags, str(EXAMPLES / name)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, **_alone(scratch)} if name in WITH_RAY else None,
        )


def _alone(scratch: str) -> dict[str, str]:
    """Return what keeps a cluster of Ray's to itself: its files, its door, and what it tells."""
    token = secrets.token_hex(32)
    return {"RAY_TMPDIR": scratch, "RAY_AUTH_TOKEN": token, "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_and_warns_of_nothing(name: str) -> None:
    """It ends well with warnings as errors, and says what it found, in this order."""
    if name in WITH_RAY and find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or name in WITH_RAY
    at = [done.stdout.find(line) for line in SAID[name]]
    assert -1 not in at, done.stdout
    assert at == sorted(at)


def test_digits_prints_every_route_and_a_receipt_for_each() -> None:
    """Eleven routes are printed with who declared their steps, and twelve receipts follow."""
    routes, _, receipts = run("digits.py").stdout.partition("receipts of")
    assert routes.count("declared by") == 11
    assert routes.count(" estimated\n") == 11
    assert len(re.findall(r" (?:µs|ms) ", receipts)) == 12
