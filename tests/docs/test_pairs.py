"""The table of pairs in the reference is what conversions really do."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

import interop
from docs import pairs
from interop._api.inspection import Inspection
from interop.plugin import Format

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_table_of_pairs_is_what_comes_out() -> None:
    """Every pair, converted there and back, does what the reference says."""
    code = "from docs import pairs; print(pairs.table(), end='')"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert process.returncode == 0, process.stderr
    stored = pairs.STORED.read_text()
    table = process.stdout
    if table != stored:
        lines = difflib.unified_diff(stored.splitlines(), table.splitlines(), lineterm="", n=0)
        pytest.fail("python -m docs.pairs --store\n" + "\n".join(lines))


def formats(*names: str) -> list[Format]:
    """Return formats by their names."""
    registered = {declared.name: declared.format for declared in interop.formats()}
    return [registered[name] for name in names]


def test_a_wrong_number_is_no_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends with an error if a conversion changes the numbers."""
    numbers, calls = pairs.numbers, []

    def wrong_the_second_time(value: object) -> object:
        calls.append(value)
        return numbers(value) + (len(calls) == 2)

    monkeypatch.setattr(pairs, "numbers", wrong_the_second_time)
    with pytest.raises(AssertionError, match="the numbers differ"):
        list(pairs.pairs(formats("numpy", "torch")))


def test_a_pair_that_is_not_shared_as_planned_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends with an error if memory is not shared as the plan says."""
    monkeypatch.setattr(Inspection, "shares_memory", lambda *_: False)
    with pytest.raises(AssertionError, match="planned True, False"):
        list(pairs.pairs(formats("numpy", "torch")))
