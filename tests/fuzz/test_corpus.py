"""The corpus of the fuzzing: whatever has once failed, and what led to every branch, is tried each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import python_path

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", sorted(path.name for path in CORPUS.iterdir()))
def test_what_others_wrote_is_right_or_refused(target: str) -> None:
    """Capsules, interfaces, names and files of Arrow's, sound and spoilt, never end the process nor come out wrong."""
    if target == "arrow":
        pytest.importorskip("pyarrow")
    result = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", target, "replay"],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, f"exit {result.returncode} at\n{result.stderr[-3000:]}"
    assert len(result.stderr.splitlines()) >= len(list((CORPUS / target).iterdir()))
