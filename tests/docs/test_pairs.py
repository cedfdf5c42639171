"""The table of pairs in the reference is what comes out here."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

from docs import pairs

ROOT = Path(__file__).parent.parent


def test_the_table_of_pairs_is_what_comes_out() -> None:
    """Converted anew, there and back, every pair does what the reference says of it."""
    code = "from docs import pairs; print(pairs.table(), end='')"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    stored = pairs.STORED.read_text()
    if ran.stdout != stored:
        lines = difflib.unified_diff(stored.splitlines(), ran.stdout.splitlines(), lineterm="", n=0)
        pytest.fail("python -m docs.pairs --store\n" + "\n".join(lines))


def test_a_wrong_number_is_no_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends with an error where other numbers come out than went in."""
    known = {one.name: one.format for one in pairs.interop.formats()}
    right, seen = pairs.numbers, []

    def wrong_the_second_time(value: object) -> object:
        seen.append(value)
        return right(value) + (len(seen) == 2)

    monkeypatch.setattr(pairs, "numbers", wrong_the_second_time)
    with pytest.raises(AssertionError, match="other numbers came out"):
        list(pairs.pairs([known["numpy"], known["torch"]]))


def test_a_pair_that_is_not_shared_as_planned_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends with an error where memory is not shared as the plan says."""
    known = {one.name: one.format for one in pairs.interop.formats()}
    monkeypatch.setattr(pairs, "shares_memory", lambda *_: False)
    with pytest.raises(AssertionError, match="planned True, False"):
        list(pairs.pairs([known["numpy"], known["torch"]]))
