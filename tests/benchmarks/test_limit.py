"""The machine's limit: copies of as many bytes as a conversion, shown beside its alternative."""

from __future__ import annotations

from timeit import Timer

import numpy as np
import pytest

from benchmarks import limit, timing
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


def test_the_limit_is_no_part_of_the_mean() -> None:
    """It has a column of its own, and the mean and its aim are of the alternative alone."""
    compared = Row("f32", 4.0, 8.0, 0.5, 1.0, Row("f32", 4.0, 2.0, 2.0, 1.5))
    lines = from_rows([compared, compared._replace(name="f64", limit=None)], "recipe", "limit")
    table = Table("copies", "title", "note", lines, limit="limit")
    assert (table.mean(), table.mean("limit")) == (0.5, 2.0)
    assert table.ratios()["f32 | limit"] == Ratio(2.0, 1.5)


def test_the_fastest_copy_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several copies the one with the least median counts."""
    made_up = {
        "ours": [4.0] * 3,
        "theirs": [8.0] * 3,
        "slow": [9.0, 1.0, 9.0],
        "quick": [2.0, 2.0, 3.0],
    }
    monkeypatch.setattr(timing, "interleaved", lambda *_, **__: made_up)
    timer = Timer(lambda: None)
    row = timing.compare("x", timer, timer, limits=[timer, timer])
    assert row.limit is not None
    assert row.limit.theirs == 2.0
