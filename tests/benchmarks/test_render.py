"""The page and the tables that the benchmarks print."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ratios, render
from benchmarks.table import duration
from tests.benchmarks.made_up import table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "_benchmarks.md"


def test_the_page_is_the_stored_run() -> None:
    """The table in the documentation is the one that the stored ratios make."""
    store = ratios.load()
    assert PAGE.read_text() == render.page(store.made, store.tables.values())


def test_tables_are_markdown() -> None:
    """A table shows the verdict, the ratio to two digits, the mean and its aim."""
    text = render.terminal(table())
    assert "| torch → numpy  | 1 µs, shares | 2 µs, shares | 0.50  |" in text
    assert (
        "Geometric mean of 1 ratios: 0.50 (2.0 times as fast); the aim of 0.90 is reached." in text
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (5e-10, "0.5 ns"), (1.234e-6, "1.23 µs"), (0.1234, "123 ms"), (2.0, "2 s")],
)
def test_durations(seconds: float | None, text: str) -> None:
    """A time has three digits and the unit that suits it."""
    assert duration(seconds) == text
