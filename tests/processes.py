"""Processes: whether one lives, and waiting until something is true of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def comes_true(condition: Callable[[], bool], patience: float) -> bool:
    """Wait for a condition, and tell whether it came true."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def lives(number: int) -> bool:
    """Tell whether a process runs; one that has ended and that nobody has asked after does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{number}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
