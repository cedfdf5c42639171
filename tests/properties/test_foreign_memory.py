"""Foreign memory: malformed capsules and lying interfaces never end the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cases import marked
from tests.properties.effort import SEED, count

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def offer(kind: str, targets: str, usual: int) -> dict[str, int]:
    """Offer things of a kind in a process of their own, and return what has become of them."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "tests.properties.fuzz"),
            *(kind, targets, str(SEED), str(count(usual))),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=count(300),
        check=False,
    )
    assert result.returncode == 0, f"exit {result.returncode} at\n{result.stderr[-3000:]}"
    outcomes: dict[str, int] = json.loads(result.stdout)
    return outcomes


@pytest.mark.parametrize("kind", ["capsules", "interfaces", "answers"])
def test_foreign_memory_is_right_or_refused(kind: str) -> None:
    """NumPy and torch get the true numbers or an error, and each capsule is freed once."""
    outcomes = offer(kind, "numpy,torch", 1500)
    assert outcomes["right"] > 50
    assert outcomes["refused"] > 300


@pytest.mark.parametrize("target", marked(["python", "jax", "mlx", "pyarrow", "tensorflow"]))
def test_no_other_framework_ends_the_process_either(target: str) -> None:
    """Foreign memory is checked before any other framework gets it, too."""
    if target != "python" and find_spec(target) is None:
        pytest.skip(f"{target} is not installed")
    outcomes = offer("capsules", target, 150)
    assert outcomes["right"] > 2  # pyarrow takes one axis, and few of the dtypes
    assert outcomes["refused"] > 10
