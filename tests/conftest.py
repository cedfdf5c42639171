"""What the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import interop

# Plans are to be those of the declared costs, whatever was measured on this machine.
os.environ["INTEROP_CALIBRATION"] = "off"


@pytest.fixture
def empty() -> interop.Interop:
    """An instance with nothing registered."""
    return interop.Interop(plugins=False)


@pytest.fixture
def loaded() -> interop.Interop:
    """An instance of its own with the installed plugins."""
    return interop.Interop()


@pytest.fixture
def in_subprocess() -> Callable[[str], str]:
    """Run a program in a process of its own and return what it printed, failing if it died."""

    def run(program: str, **environment: str) -> str:
        process = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=120,
            check=False,
        )
        assert process.returncode == 0, (
            f"exit {process.returncode}\n{process.stdout}\n{process.stderr}"
        )
        return process.stdout

    return run
