"""Malformed capsules and lying interfaces: refused, or right; never the end of the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.trust.effort import SEED, count

ROOT = Path(__file__).parent.parent.parent


def offer(kind: str, targets: str, usual: int) -> dict[str, int]:
    """Offer things of a kind in a process of their own, and return what has become of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.fuzz", kind, targets, str(SEED), str(count(usual))],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=count(300),
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode} at\n{done.stderr[-3000:]}"
    outcomes: dict[str, int] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("kind", ["capsules", "interfaces", "answers"])
def test_what_strangers_offer_is_right_or_refused(kind: str) -> None:
    """NumPy and torch get the numbers that are there, or an error; each capsule is freed once."""
    outcomes = offer(kind, "numpy,torch", 1500)
    assert outcomes["right"] > 50
    assert outcomes["refused"] > 300


@pytest.mark.parametrize("target", ["python", "jax", "mlx", "pyarrow", "tensorflow"])
def test_no_other_framework_is_ended_either(target: str) -> None:
    """What other frameworks are given of strangers has been looked at as well."""
    if target != "python" and find_spec(target) is None:
        pytest.skip(f"{target} is not installed")
    outcomes = offer("capsules", target, 150)
    assert outcomes["right"] > 10
    assert outcomes["refused"] > 10
