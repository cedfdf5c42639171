"""The page of the benchmarks: it shows what is stored."""

from __future__ import annotations

from pathlib import Path

from benchmarks import ratios, render

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "_benchmarks.md"


def test_the_page_is_the_stored_run() -> None:
    """The table in the documentation is the one that the stored ratios make."""
    store = ratios.load()
    assert PAGE.read_text() == render.page(store.made, store.tables.values())
