"""Tables of many columns, of several dtypes and in chunks, against the libraries' own calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch

import interop

from .table import Table, from_rows
from .timing import compare

__all__ = ["tables"]

_ROWS = 1000
_NOTE = (
    "A thousand rows; the columns of several dtypes are float32 and float64 in turn. The time is "
    "that of the clock. By hand NaN becomes null on the way from pandas; here it stays NaN."
)
#: The ways, with the code that a user would write by hand.
_WAYS = {
    "pandas → numpy, several dtypes": ("convert(mixed, to='numpy')", "mixed.to_numpy()"),
    "pandas → torch, several dtypes, float32": (
        "convert(mixed, to='torch', dtype='float32')",
        "torch.from_numpy(mixed.to_numpy('float32'))",
    ),
    "pandas → numpy, one block": ("convert(block, to='numpy')", "block.to_numpy()"),
    "pandas → numpy, one block, its own dtype": (
        "convert(block, to='numpy', dtype='float64')",
        "block.to_numpy('float64')",
    ),
    "pandas → numpy, nullable": ("convert(nullable, to='numpy')", "nullable.to_numpy('int64')"),
    "polars → numpy, several dtypes": ("convert(columns, to='numpy')", "columns.to_numpy()"),
    "polars → numpy, decimals": (
        "convert(decimals, to='numpy', dtype='float64')",
        "decimals.cast(pl.Float64).to_numpy()",
    ),
    "pyarrow → numpy": ("convert(table, to='numpy')", "stack(table)"),
    "pyarrow → numpy, 100 chunks": ("convert(chunks, to='numpy')", "stack(chunks)"),
    "pyarrow → pandas": ("convert(table, to='pandas')", "table.to_pandas()"),
    "polars → pandas": ("convert(columns, to='pandas')", "columns.to_pandas()"),
    "pandas → pyarrow": ("convert(block, to='pyarrow.table')", "pa.Table.from_pandas(block)"),
    "pandas → polars": ("convert(block, to='polars')", "pl.from_pandas(block)"),
}


def tables(only: Collection[str] | None = None, rounds: int = 11) -> Iterator[Table]:
    """Yield the table of conversions of tables of many columns."""
    rows = []
    for count in (10, 50, 500):
        names = environment(count)
        for way, statements in _WAYS.items():
            name = f"{way}, {count} columns"
            if only is None or name in only:
                timers = [Timer(text, timer=perf_counter, globals=names) for text in statements]
                rows.append(compare(name, *timers, rounds=rounds))
    lines = from_rows(rows, "by hand", "")
    if lines:
        yield Table("columns", "tables of many columns", _NOTE, lines, short="many columns")


def environment(count: int) -> dict[str, Any]:
    """Return the names of the statements: tables of so many columns in each library."""
    random = np.random.default_rng(0)
    numbers = {f"c{n}": random.random(_ROWS) for n in range(count)}
    halves = {name: x.astype("f4") if n % 2 else x for n, (name, x) in enumerate(numbers.items())}
    table = pa.table(numbers)
    whole = partial(pd.array, np.arange(_ROWS), dtype="Int64")
    return {
        "convert": interop.convert,
        "pa": pa,
        "pl": pl,
        "torch": torch,
        "stack": _stack,
        "mixed": pd.DataFrame(halves),
        "block": pd.DataFrame(np.column_stack([*numbers.values()]), columns=[*numbers]),
        "nullable": pd.DataFrame({name: whole() for name in numbers}),
        "columns": pl.DataFrame(halves),
        "decimals": pl.DataFrame(numbers).cast(pl.Decimal(20, 4)),
        "table": table,
        "chunks": pa.concat_tables([table] * 100),
    }


def _stack(table: pa.Table) -> np.ndarray[Any, Any]:
    """Return the columns of an Arrow table side by side, as one writes it by hand."""
    return np.column_stack([column.to_numpy() for column in table.columns])
