"""The load: threads, registrations, forks and tasks at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import python_path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_under_load_nothing_fails_is_wrong_or_grows() -> None:
    """A short run of it; `python -m benchmarks.load 60` is a long one."""
    root = str(Path(__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", "4"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path(root)},
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "8 threads" in result.stdout
    assert "none hung, none wrong" in result.stdout
