"""The programs under examples/, run as a user would."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

#: What the output must say: the facts, not the routes, which follow the table of costs.
OUTPUT = {
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

#: The programs that need Ray, whose own modules warn, and which writes a log.
WITH_RAY = {"ray_data.py"}
NEEDS = {"digits.py": "sklearn", "ray_data.py": "ray"}


def test_every_example_is_tested() -> None:
    """Every example has lines here that say what it prints."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(OUTPUT)


@cache
def run(name: str) -> subprocess.CompletedProcess[str]:
    """Run an example once, with warnings as errors unless Ray makes them."""
    flags = [] if name in WITH_RAY else ["-W", "error"]
    with tempfile.TemporaryDirectory() as scratch:
        return subprocess.run(
            [sys.executable, *flags, str(EXAMPLES / name)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, **_own_cluster(scratch)} if name in WITH_RAY else None,
        )


def _own_cluster(scratch: str) -> dict[str, str]:
    """Return the settings that isolate a Ray cluster: its files, its access and its reports."""
    token = secrets.token_hex(32)
    return {"RAY_TMPDIR": scratch, "RAY_AUTH_TOKEN": token, "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.extra(NEEDS[name])) for name in OUTPUT]
)
def test_an_example_runs_and_warns_of_nothing(name: str) -> None:
    """It succeeds with warnings as errors, and prints its facts in this order."""
    process = run(name)
    assert process.returncode == 0, process.stderr
    assert process.stderr == "" or name in WITH_RAY
    positions = [process.stdout.find(line) for line in OUTPUT[name]]
    assert -1 not in positions, process.stdout
    assert positions == sorted(positions)


@pytest.mark.extra("sklearn")
def test_digits_prints_every_route_and_a_receipt_for_each() -> None:
    """It prints eleven routes with the declarers of their steps, and then twelve receipts."""
    routes, _, receipts = run("digits.py").stdout.partition("receipts of")
    assert routes.count("declared by") == 11
    assert routes.count(" estimated\n") == 11
    assert len(re.findall(r" (?:µs|ms) ", receipts)) == 12
