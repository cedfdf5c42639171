"""The command ``python -m benchmarks``: what it exits with, and what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import catalogue, command, ratios
from tests.benchmarks.made_up import table

ROOT = Path(__file__).parents[2]


def test_the_command_fails_loudly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` exits with 1 and names the row, and with 0 when nothing got worse."""
    ratios.save({"date": "2026-01-01"}, [table(0.5)], tmp_path / "ratios.json")
    monkeypatch.setattr(command, "load", lambda: ratios.load(tmp_path / "ratios.json"))
    monkeypatch.setattr(command, "_keep", lambda *args: None)
    measured = [table(0.5)]
    monkeypatch.setattr(catalogue, "measure", lambda *args, **keywords: measured)
    assert command.main(["zero_copy", "--check"]) == 0
    measured[:] = [table(0.9)]
    assert command.main(["zero_copy", "--check"]) == 1
    assert "WORSE  zero_copy.convert: torch → numpy | by hand: was 0.50" in capsys.readouterr().err


def test_a_table_that_fails_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that raises is reported, the others are kept, and the exit status is 1."""
    kept_tables: list[Any] = []

    def keep(stored: Any, results: list[Any], *options: Any) -> None:
        kept_tables.extend(results)

    def measure(name: str, **keywords: Any) -> list[Any]:
        if name == "copies":
            raise ValueError("broken")
        return [table()]

    monkeypatch.setattr(command, "_keep", keep)
    monkeypatch.setattr(catalogue, "measure", measure)
    assert command.main(["copies", "zero_copy"]) == 1
    assert [result.key for result in kept_tables] == ["zero_copy.convert"]
    assert "copies FAILED" in capsys.readouterr().out


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is not a table is answered with the names of the tables."""
    assert command.main(["nonsense"]) == 2
    assert "zero_copy" in capsys.readouterr().out


def test_the_command_runs_from_a_shell() -> None:
    """``python -m benchmarks`` lists its tables and flags without measuring anything."""
    line = [sys.executable, "-m", "benchmarks", "--help"]
    output = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert "--check" in output
    assert "sparse_formats" in output
