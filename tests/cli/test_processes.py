"""The processes that the command starts: what they import, and that they end when it does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import comes_true, lives, python_path
from tests.strange import FRAMEWORK, HEAVY, PLUGIN, TO_PYTHON, install_plugin

ROOT = Path(__file__).parents[2]

#: What the script runs that an installation makes.
SCRIPT = "from interop._cli.cli import main; main()\n"

#: A module that leaves a mark where it is imported.
MARKING = """
import os
with open(os.environ["MARKS"], "a") as marks:
    marks.write(__name__ + "\\n")
"""

#: Modules of Python, of this package and of frameworks, which a download folder may hold.
NAMES = (
    *("json", "queue", "signal", "tempfile", "threading", "warnings", "importlib"),
    *("interop", "interop_plugins", "pluggy", "numpy", "torch", "odd"),
)

#: A framework that says that it is imported, starts a process of its own, and hangs.
HANGING = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(os.environ["MARKS"], "w") as marks:
    marks.write(f"{os.getpid()} {child.pid}\\n")
time.sleep(600)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The command as it is installed: a script in a folder of its own."""
    path = tmp_path / "bin" / "interop"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return path


def _environment(tmp_path: Path, *folders: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": python_path(*folders),
        "INTEROP_DISABLE_PLUGINS": HEAVY,
        "MARKS": str(tmp_path / "marks"),
    }


def _install_odd(folder: Path, framework: str = FRAMEWORK) -> None:
    install_plugin(folder, "odd", PLUGIN.format(to_python=TO_PYTHON, problems="return []"))
    (folder / "odd.py").write_text(framework)


@pytest.mark.parametrize("words", [("doctor",), ("check", "odd")], ids=" ".join)
def test_nothing_is_imported_from_the_working_directory(
    words: tuple[str, ...], script: Path, tmp_path: Path
) -> None:
    """The installed command and its processes import what is installed, wherever they run."""
    downloads, site = tmp_path / "downloads", tmp_path / "site"
    downloads.mkdir()
    site.mkdir()
    _install_odd(site)
    for name in NAMES:
        (downloads / f"{name}.py").write_text(MARKING)
    for name in ("interop", "torch"):
        (downloads / name).mkdir()
        (downloads / name / "__init__.py").write_text(MARKING)
    process = subprocess.run(
        [sys.executable, str(script), *words, "--json"],
        cwd=downloads,
        env=_environment(tmp_path, site),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not (tmp_path / "marks").exists(), (tmp_path / "marks").read_text().split()
    assert json.loads(process.stdout)["ok"], process.stdout
    assert process.returncode == 0, process.stderr


def test_a_plugin_in_the_working_directory_is_checked_if_python_looks_there(tmp_path: Path) -> None:
    """``python -m interop check`` hands its own path on, which begins with that directory."""
    local = tmp_path / "local"
    local.mkdir()
    _install_odd(local)
    process = subprocess.run(
        [sys.executable, "-m", "interop", "check", "odd", "--json"],
        cwd=local,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert json.loads(process.stdout)["ok"], process.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_processes_end_with_the_command(name: str, script: Path, tmp_path: Path) -> None:
    """A signal to the command alone ends it, what it started, and what that has started."""
    site, marks = tmp_path / "site", tmp_path / "marks"
    site.mkdir()
    _install_odd(site, HANGING)
    with subprocess.Popen(
        [sys.executable, str(script), "doctor"],
        env=_environment(tmp_path, site),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as command:
        assert comes_true(lambda: marks.exists() and marks.read_text().endswith("\n"), 120)
        numbers = [int(number) for number in marks.read_text().split()]
        command.send_signal(signal.Signals[name])
        ended = comes_true(lambda: command.poll() is not None, 20)
        alone = ended and comes_true(lambda: not any(map(lives, numbers)), 20)
        for number in filter(lives, numbers):
            os.kill(number, signal.SIGKILL)
        command.kill()
    assert ended
    assert alone
    expected = {"SIGINT": 130}
    assert command.returncode == expected.get(name, -signal.Signals[name])


def test_processes_are_started_in_one_place() -> None:
    """A worker's, and those that a worker runs for the command; so both end with this process."""
    starts = re.compile(
        r"^\s*(?:import|from) (?:subprocess|multiprocessing)\b|os\.(?:system|spawn)"
    )
    files = [*(ROOT / "interop").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    starting = {
        str(file.relative_to(ROOT))
        for file in files
        if any(map(starts.search, file.read_text("utf-8").splitlines()))
    }
    assert starting == {"interop/testing/_process.py", "interop/_cli/tool.py"}
