"""What the tests share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import interop

# Plans are to be those of the declared costs, whatever was measured on this machine.
os.environ["INTEROP_CALIBRATION"] = "off"


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests and the frameworks, which stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the plugins' template, built as for an index."""
    folder = tmp_path_factory.mktemp("wheels")
    template = Path(__file__).parents[1] / "examples" / "interop-example"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)),
            str(template),
        ],
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


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
