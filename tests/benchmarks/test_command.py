"""The command ``python -m benchmarks --check``: it fails where a ratio got worse."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import catalogue, command, ratios
from tests.benchmarks.made_up import table


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
