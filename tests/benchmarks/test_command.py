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


def test_tables_that_are_measured_alone_say_on_which_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page keeps the machine of the tables that stay, and the others name theirs."""
    old = {"date": "2026-01-01", "command": "", "machine": {"processor": "an old one"}}
    other = table()._replace(key="copies.convert")
    stored = ratios.Stored(old, {other.key: other, table().key: table()})
    kept: list[ratios.Stored] = []
    monkeypatch.setattr(command, "machine", lambda: {"processor": "a new one"})
    monkeypatch.setattr(
        command, "save", lambda made, tables: kept.append(ratios.Stored(made, [*tables]))
    )
    monkeypatch.setattr(command, "load", lambda: None)
    monkeypatch.setattr(command, "_show", lambda stored: None)
    command._keep(stored, [table()], "", store=True)
    command._keep(stored, [table(), other], "", store=True)
    notes = [[t.note.partition(" Measured on ")[2][11:] for t in part.tables] for part in kept]
    assert [part.made["machine"]["processor"] for part in kept] == ["an old one", "a new one"]
    assert notes == [["on another machine: a new one.", ""], ["", ""]]
