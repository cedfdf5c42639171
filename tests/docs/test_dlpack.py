"""The table of producers and consumers is what the libraries do."""

from __future__ import annotations

import re

import pytest

from docs import dlpack


def _cells(heading: str) -> dict[tuple[str, str], str]:
    """Return the stored cells below a heading, by producer and consumer."""
    text = dlpack.STORED.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    heads, _, *rows = [line.strip("| ").split(" | ") for line in text.split("\n") if "|" in line]
    return {
        (row[0], consumer): cell
        for row in rows
        for consumer, cell in zip(heads[1:], row[1:], strict=True)
    }


def test_the_table_has_ten_producers_and_ten_consumers() -> None:
    """All parties but those that are named as missing stand in the stored table."""
    cells = _cells("By the consumer's `from_dlpack`")
    assert len({producer for producer, _ in cells}) >= 10
    assert len({consumer for _, consumer in cells}) >= 10
    head = dlpack.STORED.read_text("utf-8").partition("\n")[0]
    assert re.match(r"Tried on \d{4}-\d\d-\d\d with Python ", head)
    missing = head.partition("Not installed there: ")[2].rstrip(".").split(", ")
    assert {name for pair in cells for name in pair} | set(missing) >= set(dlpack.PARTIES)


def test_interop_is_right_or_refuses() -> None:
    """No cell of interop's own table is wrong or ends the process."""
    cells = _cells("By `interop.convert`")
    assert [pair for pair, cell in cells.items() if "wrong" in cell or "ends" in cell] == []


@pytest.mark.slow
def test_a_producer_does_what_its_row_says() -> None:
    """NumPy's arrays, tried again, fill the row that is stored."""
    stored = _cells("By the consumer's `from_dlpack`"), _cells("By `interop.convert`")
    for pair in dlpack.pairs("NumPy"):
        cells = stored[pair.by == "interop"]
        assert pair.cell() == cells["NumPy", pair.consumer], (pair.consumer, pair.outcomes)
