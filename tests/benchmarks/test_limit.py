"""The machine's limit: copies of as many bytes as a conversion, shown beside its alternative."""

from __future__ import annotations

from pathlib import Path
from timeit import Timer

import numpy as np
import pytest

from benchmarks import limit, ratios, render, timing
from benchmarks.table import Ratio, Table, from_rows
from benchmarks.timing import Row


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("read", "written"), [(5_000, 5_000), (900_001, 7), (7, 900_001), (0, 3)])
def test_a_copy_writes_every_byte_once(read: int, written: int, threads: int) -> None:
    """What is read is written as far as there is room, and zeros after it, in fresh memory."""
    copy = limit.Copy(read, written, None, threads)
    first, second = copy(), copy()
    assert first.shape == (written,)
    assert first[:read].all()
    assert not first[read:].any()
    assert not np.shares_memory(first, second)


def test_a_copy_may_write_into_an_array() -> None:
    """An array that is there already is overwritten from end to end."""
    out = np.full(100, 7, np.uint8)
    assert limit.Copy(60, 100, out)() is out
    assert out.tolist() == [1] * 60 + [0] * 40


def test_the_limit_is_of_as_many_bytes_as_the_conversion() -> None:
    """The bytes are those of the value and of what was written, of `out=` in touched memory."""
    value = np.zeros((30, 10), "float32")
    single, *others = limit.limiting(value, {"to": "numpy", "dtype": "float64"})
    assert (single.read, single.written, single.out, single.threads) == (1200, 2400, None, 1)
    assert all(other.threads > 1 for other in others)
    into = limit.limiting(value, {"out": np.empty((30, 10))})[0]
    assert into.out is not None
    assert into.out.nbytes == into.written == 2400


def test_the_limit_stands_beside_the_alternative(tmp_path: Path) -> None:
    """It has columns of its own, is stored as a ratio, and is left out of the mean and its aim."""
    compared = Row("f32", 4.0, 8.0, 0.5, 1.0, Row("f32", 4.0, 2.0, 2.0, 1.5))
    lines = from_rows([compared, compared._replace(name="f64", limit=None)], "recipe", "limit")
    table = Table("copies", "title", "note", lines, goal=0.9, limit="limit")
    assert table.columns == ("recipe",)
    assert table.mean() == 0.5
    assert table.mean("limit") == 2.0
    assert table.ratios()["f32 | limit"] == Ratio(2.0, 1.5)
    heads, rows = table.grid()
    assert heads == ["", "interop", "recipe", "ratio", "limit", "ratio to it"]
    assert rows[0] == ["f32", "4 s", "8 s", "0.50", "2 s", "2.00"]
    assert rows[-1] == ["geometric mean", "", "", "0.50", "", "2.00"]
    assert "Geometric mean of 2 ratios: 0.50" in render.terminal(table)
    ratios.save({}, [table], tmp_path / "ratios.json")
    assert ratios.load(tmp_path / "ratios.json").tables == {"copies": table}


def test_the_fastest_copy_is_the_limit() -> None:
    """Of several copies the one with the least median counts."""
    quick, slow = Timer(lambda: None), Timer(lambda: sum(range(100_000)))
    row = timing.compare("x", quick, quick, rounds=3, budget=0, limits=[slow, quick])
    assert row.limit is not None
    assert row.limit.theirs < min(slow.repeat(3, 1)) / 5
