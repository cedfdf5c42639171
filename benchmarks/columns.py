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
import scipy.sparse
import torch

import interop

from .table import Table, from_rows
from .timing import compare

__all__ = ["tables"]

#: The numbers of rows and columns.
_SIZES = ((3, 10), (1000, 10), (1000, 50), (1000, 500), (100_000, 10))
_NOTE = (
    "A thousand rows where none are named; the columns of several dtypes are float32 and float64 "
    "in turn. The time is that of the clock. By hand NaN becomes null on the way from pandas; here "
    "it stays NaN."
)
#: The keywords of calls on nulls and on sparse arrays.
_FILLED = "dtype='float64', allow='drop_mask'"
_DENSE = "to='numpy', allow='densify', order='F'"
#: The ways, with the code that a user would write by hand.
_WAYS = {
    "pandas → numpy, several dtypes": ("convert(mixed, to='numpy')", "mixed.to_numpy()"),
    "pandas → numpy, several dtypes, order F": (
        "convert(mixed, to='numpy', order='F')",
        "np.asfortranarray(mixed.to_numpy())",
    ),
    "pandas → numpy, several dtypes and an index": (
        "convert(indexed, to='numpy')",
        "indexed.to_numpy()",
    ),
    "pandas → torch, several dtypes, float32": (
        "convert(mixed, to='torch', dtype='float32')",
        "torch.from_numpy(mixed.to_numpy('float32'))",
    ),
    "pandas → numpy, one block": ("convert(block, to='numpy')", "block.to_numpy()"),
    "pandas → numpy, one block, its own dtype": (
        "convert(block, to='numpy', dtype='float64')",
        "block.to_numpy('float64')",
    ),
    "pandas → numpy, one block, copy=True": (
        "convert(block, to='numpy', copy=True)",
        "block.to_numpy(copy=True)",
    ),
    "pandas → torch, one block": (
        "convert(block, to='torch')",
        "torch.from_numpy(block.to_numpy(copy=True))",
    ),
    "pandas → numpy, nullable": ("convert(nullable, to='numpy')", "nullable.to_numpy('int64')"),
    "pandas → numpy, nulls as NaN": (
        f"convert(nulls, to='numpy', {_FILLED})",
        "nulls.to_numpy('float64', na_value=np.nan)",
    ),
    "polars → numpy, several dtypes": ("convert(columns, to='numpy')", "columns.to_numpy()"),
    "polars → numpy, several dtypes, float32": (
        "convert(columns, to='numpy', dtype='float32')",
        "columns.cast(pl.Float32).to_numpy()",
    ),
    "polars → numpy, several dtypes, order C": (
        "convert(columns, to='numpy', order='C')",
        "columns.to_numpy(order='c')",
    ),
    "polars → torch, several dtypes": (
        "convert(columns, to='torch')",
        "torch.from_numpy(columns.to_numpy(writable=True))",
    ),
    "polars → numpy, one block, its own dtype": (
        "convert(side_by_side, to='numpy', dtype='float64')",
        "side_by_side.to_numpy()",
    ),
    "polars → numpy, one block, copy=True": (
        "convert(side_by_side, to='numpy', copy=True)",
        "side_by_side.to_numpy(writable=True)",
    ),
    "polars → numpy, nulls as NaN": (
        f"convert(gaps, to='numpy', {_FILLED})",
        "gaps.cast(pl.Float64).to_numpy()",
    ),
    "polars → numpy, truth values": ("convert(truth, to='numpy')", "truth.to_numpy()"),
    "polars → numpy, decimals": (
        "convert(decimals, to='numpy', dtype='float64')",
        "decimals.cast(pl.Float64).to_numpy()",
    ),
    "pyarrow → numpy": ("convert(table, to='numpy')", "stack(table)"),
    "pyarrow → numpy, order F": ("convert(table, to='numpy', order='F')", "stack(table, axis=0).T"),
    "pyarrow → torch": ("convert(table, to='torch')", "torch.from_numpy(stack(table))"),
    "pyarrow → numpy, nulls as NaN": (
        f"convert(arrow_gaps, to='numpy', {_FILLED})",
        "stack(arrow_gaps)",
    ),
    "pyarrow → numpy, 100 chunks": ("convert(chunks, to='numpy')", "stack(chunks)"),
    "pyarrow → pandas": ("convert(table, to='pandas')", "table.to_pandas()"),
    "polars → pandas": ("convert(columns, to='pandas')", "columns.to_pandas()"),
    "pandas → pyarrow": ("convert(block, to='pyarrow.table')", "pa.Table.from_pandas(block)"),
    "pandas → polars": ("convert(block, to='polars')", "pl.from_pandas(block)"),
    "scipy.csr → numpy, order F": (f"convert(csr, {_DENSE})", "csr.toarray(order='F')"),
    "scipy.csc → numpy, order F": (f"convert(csc, {_DENSE})", "csc.toarray(order='F')"),
}


def tables(only: Collection[str] | None = None, rounds: int = 11) -> Iterator[Table]:
    """Yield the table of conversions of tables of many columns."""
    rows = []
    for length, count in _SIZES:
        names = environment(length, count)
        size = f"{count} columns" if length == 1000 else f"{count} columns of {length:,} rows"
        for way, statements in _WAYS.items():
            name = f"{way}, {size}"
            if only is None or name in only:
                timers = [Timer(text, timer=perf_counter, globals=names) for text in statements]
                rows.append(compare(name, *timers, rounds=rounds))
    lines = from_rows(rows, "by hand", "")
    if lines:
        yield Table("columns", "tables of many columns", _NOTE, lines, short="many columns")


def environment(length: int, count: int) -> dict[str, Any]:
    """Return the names of the statements: tables of so many rows and columns in each library."""
    random = np.random.default_rng(0)
    numbers = {f"c{n}": random.random(length) for n in range(count)}
    halves = {name: x.astype("f4") if n % 2 else x for n, (name, x) in enumerate(numbers.items())}
    table, missing = pa.table(numbers), np.arange(length) % 7 == 1
    block = np.asfortranarray(np.column_stack([*numbers.values()]))
    gaps = pa.table({name: pa.array(np.arange(length), mask=missing) for name in numbers})
    nulls = partial(pd.arrays.IntegerArray, np.arange(length))
    step = max(length // 100, 1)
    chunks = [table.slice(start, step) for start in range(0, length, step)]
    whole = partial(pd.array, np.arange(length), dtype="Int64")
    sparse = scipy.sparse.random(length, count, 0.1, random_state=random)
    return {
        "convert": interop.convert,
        "np": np,
        "pa": pa,
        "pl": pl,
        "torch": torch,
        "stack": _stack,
        "mixed": pd.DataFrame(halves),
        "indexed": pd.DataFrame(halves, index=[f"row {n}" for n in range(length)]),
        "block": pd.DataFrame(block, columns=[*numbers]),
        "nullable": pd.DataFrame({name: whole() for name in numbers}),
        "nulls": pd.DataFrame({name: nulls(missing.copy()) for name in numbers}),
        "columns": pl.DataFrame(halves),
        "side_by_side": pl.DataFrame(block, schema=[*numbers]),
        "gaps": pl.DataFrame(gaps),
        "truth": pl.DataFrame({name: x > 0.5 for name, x in numbers.items()}),
        "decimals": pl.DataFrame(numbers).cast(pl.Decimal(20, 4)),
        "table": table,
        "arrow_gaps": gaps,
        "chunks": pa.concat_tables(chunks),
        "csr": sparse.tocsr(),
        "csc": sparse.tocsc(),
    }


def _stack(table: pa.Table, axis: int = 1) -> np.ndarray[Any, Any]:
    """Return the columns of an Arrow table side by side, as one writes it by hand."""
    return np.stack([column.to_numpy() for column in table.columns], axis=axis)
