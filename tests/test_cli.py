"""The command: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interop import Cost, Interop
from interop import _costs as kept
from interop._calibration import Calibration

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command in this process, with a measurement that takes no time."""
    from typer.testing import CliRunner

    from interop import _cli, _commands

    def measure(face: Interop, progress: Any, *, budget: float) -> Calibration:
        progress(0, 1, "numpy float32")
        return Calibration({"a → b": Cost(1e-6, 1e9)}, {"c → d": "there was no time left"}, 1.5)

    monkeypatch.setattr(_commands, "measure", measure)
    return lambda *words: CliRunner().invoke(_cli._app(), [*words], prog_name="interop")


def test_the_entry_point_is_declared() -> None:
    """The distribution installs the command, and the extra holds what it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"interop": "interop._cli:main"}
    needs = {line.partition(">")[0] for line in project["optional-dependencies"]["cli"]}
    assert needs == {"typer", "rich", "platformdirs"}


def test_calibrate_stores_what_it_measures(run: Callable[..., Any], tmp_path: Path) -> None:
    """The file holds the costs and how they came about, and the command says where it is."""
    path = tmp_path / "new" / "costs.json"
    done = run("calibrate", "--file", str(path))
    assert done.exit_code == 0, done.output
    assert f"measured 1 costs in 2 s and stored them in {path}" in done.stdout
    assert "1 were left out for want of time; pass a larger --seconds." in done.stdout
    assert kept.decoded(path.read_text("utf-8")) == {"a → b": Cost(1e-6, 1e9)}
    content = json.loads(path.read_text("utf-8"))
    assert content["skipped"] == {"c → d": "there was no time left"}
    assert list(path.parent.iterdir()) == [path]


def test_the_variable_names_the_file(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is where later processes look."""
    monkeypatch.setenv("INTEROP_CALIBRATION", str(tmp_path / "here"))
    assert run("calibrate").exit_code == 0
    assert kept.stored() == {"a → b": Cost(1e-6, 1e9)}


def test_json_is_all_that_is_printed(run: Callable[..., Any], tmp_path: Path) -> None:
    """With ``--json`` the output is one document, for another program to read."""
    done = run("calibrate", "--file", str(tmp_path / "x"), "--json")
    said = json.loads(done.stdout)
    assert said["file"] == str(tmp_path / "x")
    assert said["costs"] == {"a → b": {"latency": 1e-6, "bandwidth": 1e9, "cached": None}}
    assert said["machine"] == kept.machine()


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("calibrate", "--file", "{tmp}"), 1, "is a folder; pass --file with the name of a file"),
        (("calibrate", "--file", "{tmp}/file/x"), 1, "cannot be written"),
        (("calibrate",), 1, "INTEROP_CALIBRATION says that no file is to be used"),
        (("calibrate", "--seconds", "soon"), 2, "Invalid value for '--seconds'"),
        (("nonsense",), 2, "No such command 'nonsense'"),
        (("calibrate", "--nonsense"), 2, "No such option: --nonsense"),
    ],
)
def test_what_goes_wrong_is_a_sentence(
    words: tuple[str, ...], code: int, reason: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    """A refusal is a line on standard error and a code, with no traceback and nothing written."""
    (tmp_path / "file").write_text("a file")
    done = run(*(word.replace("{tmp}", str(tmp_path)) for word in words))
    assert done.exit_code == code, done.output
    assert reason in done.stderr
    assert "Traceback" not in done.output
    assert not done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_cannot_be_written_is_found_out_before_measuring(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody waits for a measurement whose result has no place."""
    from interop import _commands

    def never(*_: Any, **__: Any) -> Calibration:
        raise AssertionError("it has measured")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_commands, "measure", never)
    monkeypatch.setattr(kept, "write", full)
    done = run("calibrate", "--file", str(tmp_path / "x"))
    assert (done.exit_code, "No space left on device" in done.stderr) == (1, True)


def test_help_names_the_commands(run: Callable[..., Any]) -> None:
    """``interop --help`` lists what there is."""
    done = run("--help")
    assert done.exit_code == 0
    assert "calibrate" in done.stdout


@pytest.mark.parametrize("missing", ["typer", "rich", "platformdirs"])
def test_without_the_extra_one_line_says_how_to_get_it(missing: str) -> None:
    """What is not installed is named with the line that installs it, and the code is 2."""
    program = f"import sys; sys.modules[{missing!r}] = None; from interop._cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr.count("\n") == 1
    assert missing in done.stderr
    assert "pip install 'array-interop[cli]'" in done.stderr


def test_the_command_works_in_a_pipe(tmp_path: Path) -> None:
    """Run as a program, for no time at all, it prints plain lines and leaves a valid file."""
    path = tmp_path / "costs.json"
    words = ["calibrate", "--file", str(path), "--seconds", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "interop._cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "INTEROP_DISABLE_PLUGINS": "torch,jax,sparse,cupy"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("measured ")
    assert "\x1b" not in done.stdout
    assert kept.decoded(path.read_text("utf-8"))
