"""Lent memory: an owner that closes, shrinks or moves what it has lent takes it from nobody who still reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.cases import marked
from tests.processes import python_path


def fates_of(lenders: str, targets: str, seconds: float = 0) -> dict[str, Any]:
    """Let owners take their memory back in a process of its own, and return what has become of it."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.properties.lenders", lenders, targets, str(seconds)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, f"exit {result.returncode} at\n{result.stderr[-3000:]}"
    fates: dict[str, Any] = json.loads(result.stdout)
    return fates


def test_memory_stays_lent_as_long_as_a_result_shares_it() -> None:
    """Its owner is told that it is lent, by its own error; once the result is gone, it gets it back."""
    fates = fates_of("plain", "numpy", 0.05)
    shared = {name: fate for name, fate in fates.items() if name.endswith("copy=None")}
    not_lent = [name for name, fate in shared.items() if type(fate) is str and fate != "lent"]
    assert not not_lent
    changed = [fate for fate in fates.values() if type(fate) is dict]
    assert all(fate["right"] and fate["changed"] for fate in changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "targets", marked(["numpy,torch,python,jax,mlx,pyarrow,scipy.coo", "tensorflow"])
)
def test_no_framework_reads_memory_that_its_owner_took_back(targets: str) -> None:
    """Whatever a result is made from, in whichever framework, it has its numbers as long as it lives."""
    installed = [
        name for name in targets.split(",") if name == "python" or find_spec(name.partition(".")[0])
    ]
    if not installed:
        pytest.skip(f"{targets} is not installed")
    fates = fates_of("plain,wrapped", ",".join(installed))
    assert sum(not fate.startswith("refused") for fate in fates.values()) > len(fates) // 2
