"""Tables of 10 columns and a million rows, against the libraries' own conversions by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import interop

from .table import Table, from_rows
from .timing import compare

__all__ = ["tables"]

_ROWS = 10**6
_NOTE = (
    "Ten columns of a million rows: eight of numbers, and two more of numbers or one of truth "
    "values and one of text. The time is that of the clock, since PyArrow and Polars work in "
    "threads. By hand NaN becomes null on the way from pandas; here it stays NaN."
)
#: The ways, with the code that a user would write by hand.
_WAYS = {
    "pyarrow → polars": ("convert(table, to='polars')", "pl.from_arrow(table)"),
    "pyarrow → pandas": ("convert(table, to='pandas')", "table.to_pandas()"),
    "pandas → pyarrow": ("convert(frame, to='pyarrow.table')", "pa.Table.from_pandas(frame)"),
    "pandas → polars": ("convert(frame, to='polars')", "pl.from_pandas(frame)"),
    "polars → pyarrow": ("convert(columns, to='pyarrow.table')", "columns.to_arrow()"),
    "polars → pandas": ("convert(columns, to='pandas')", "columns.to_pandas()"),
}


def tables(only: Collection[str] | None = None, rounds: int = 21) -> Iterator[Table]:
    """Yield the table of conversions of whole tables."""
    rows = []
    for kind, make in _TABLES.items():
        names = environment(make())
        for way, (ours, by_hand) in _WAYS.items():
            name = f"{way}, {kind}"
            if only is None or name in only:
                timers = [
                    Timer(text, timer=perf_counter, globals=names) for text in (ours, by_hand)
                ]
                rows.append(compare(name, *timers, rounds=rounds))
    lines = from_rows(rows, "by hand", "")
    if lines:
        yield Table("frames", "tables of 10 columns and 10^6 rows", _NOTE, lines, short="tables")


def environment(table: pa.Table) -> dict[str, Any]:
    """Return the names of the statements: one table in each library."""
    return {
        "convert": interop.convert,
        "pa": pa,
        "pl": pl,
        "table": table,
        "frame": interop.convert(table, to="pandas", copy=True),
        "columns": pl.from_arrow(table),
    }


def _numbers(count: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    halves = {f"real {n}": random.random(_ROWS) for n in range(count // 2)}
    return halves | {f"whole {n}": random.integers(0, 9, _ROWS) for n in range(count // 2)}


def _mixed() -> pa.Table:
    truth = np.arange(_ROWS) % 3 == 0
    text = pa.array([f"name {n % 1000}" for n in range(_ROWS)], pa.large_string())
    return pa.table({**_numbers(8), "truth": truth, "text": text})


_TABLES: dict[str, Callable[[], pa.Table]] = {
    "numbers": lambda: pa.table(_numbers(10)),
    "truth and text, too": _mixed,
}
