"""Warm calls on tables: each fact that sets one table apart from another counts, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from interop import Interop
from interop._recognition.recognition import Recognition
from interop.errors import InteropError
from tests.cases import together
from tests.inside import forget
from tests.plugins.extension import Metres

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS = np.arange(6.0).reshape(3, 2)
INTEGERS = {"a": [1, 2, 3], "b": [4, 5, 6]}
MIXED = {"a": np.arange(3), "b": np.arange(3.0)}
NULLS = {"a": [1, None, 3], "b": [4, 5, 6]}


class Child(pd.DataFrame):
    """A frame of a class of its own."""

    @property
    def _constructor(self) -> Any:
        return Child


def frame(array: Any = ROWS, **fields: Any) -> Any:
    """Return a DataFrame of pandas over an array."""
    return pd.DataFrame(array, **{"columns": ["a", "b"], **fields})


def with_attributes(**fields: Any) -> Any:
    """Return a DataFrame of pandas that has an attribute."""
    labelled = frame(**fields)
    labelled.attrs["unit"] = "m"
    return labelled


def locked() -> Any:
    """Return an array that must not be written to."""
    array = ROWS.copy()
    array.flags.writeable = False
    return array


def pieces(make: Callable[[Any], Any], join: Callable[[Any], Any]) -> Any:
    """Return a table in two chunks."""
    return join([make({"a": [1, 2], "b": [4, 5]}), make({"a": [3], "b": [6]})])


def cast(table: Any, column: str, dtype: Any) -> Any:
    """Return a DataFrame of Polars, of which one column has another dtype."""
    return table.with_columns(pl.col(column).cast(dtype))


#: What sets a table apart, and how to make one that has nothing of it and one that has it.
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "pandas: dtype": (frame, lambda: frame(ROWS.astype("f4"))),
    "pandas: dtype of one column": (lambda: pd.DataFrame(MIXED), lambda: frame(ROWS.astype(int))),
    "pandas: order in memory": (frame, lambda: frame(np.asfortranarray(ROWS))),
    "pandas: gaps in memory": (frame, lambda: frame(np.repeat(ROWS, 2, 0)[::2])),
    "pandas: blocks": (frame, lambda: pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]})),
    "pandas: lock": (frame, lambda: frame(locked())),
    "pandas: bytes": (frame, lambda: frame(ROWS.astype(">f8"))),
    "pandas: index": (frame, lambda: frame(index=[*"xyz"])),
    "pandas: range": (frame, lambda: frame(index=range(5, 8))),
    "pandas: name of index": (frame, lambda: frame(index=pd.RangeIndex(3, name="x"))),
    "pandas: index of mixed": (
        lambda: pd.DataFrame(MIXED),
        lambda: pd.DataFrame(MIXED, index=[*"xyz"]),
    ),
    "pandas: names": (frame, lambda: frame(columns=range(2))),
    "pandas: names of numbers": (frame, lambda: frame(columns=["0", "1"])),
    "pandas: attributes": (frame, with_attributes),
    "pandas: attributes beside an index": (
        lambda: frame(index=[*"xyz"]),
        lambda: with_attributes(index=[*"xyz"]),
    ),
    "pandas: range or index": (
        lambda: frame(index=range(5, 8)),
        lambda: frame(index=[*"xyz"]),
    ),
    "pandas: class": (frame, lambda: Child(frame())),
    "pandas: rows": (frame, lambda: frame(ROWS[:1])),
    "pandas: one row of as many bytes": (frame, lambda: pd.DataFrame(np.ones((1, 6)))),
    "pandas: no rows": (frame, lambda: frame(ROWS[:0])),
    "pandas: columns": (frame, lambda: frame(ROWS[:, :1], columns=["a"])),
    "pandas: size": (frame, lambda: frame(np.tile(ROWS, (99, 1)))),
    "pandas: nulls": (
        lambda: pd.DataFrame(INTEGERS, dtype="Int64"),
        lambda: pd.DataFrame(NULLS, dtype="Int64"),
    ),
    "pandas: nullable": (
        lambda: pd.DataFrame(INTEGERS),
        lambda: pd.DataFrame(INTEGERS, dtype="Int64"),
    ),
    "pandas: sparse": (frame, lambda: frame().astype(pd.SparseDtype(float, 0))),
    "pandas: large integers": (
        lambda: pd.DataFrame(MIXED),
        lambda: pd.DataFrame(MIXED | {"a": [2**53 + 1, 2, 3]}),
    ),
    "polars: dtype": (lambda: pl.DataFrame(MIXED), lambda: cast(pl.DataFrame(MIXED), "b", pl.Int8)),
    "polars: truth": (
        lambda: pl.DataFrame(INTEGERS),
        lambda: cast(pl.DataFrame(INTEGERS), "b", pl.Boolean),
    ),
    "polars: nulls": (lambda: pl.DataFrame(INTEGERS), lambda: pl.DataFrame(NULLS)),
    "polars: nulls in mixed": (
        lambda: pl.DataFrame(MIXED),
        lambda: pl.DataFrame(MIXED | {"a": [1, None, 3]}),
    ),
    "polars: nulls in floats": (
        lambda: pl.DataFrame({"a": [1.0, 2.0], "b": [0.5, 1.5]}),
        lambda: pl.DataFrame({"a": [1.0, None], "b": [0.5, 1.5]}),
    ),
    "polars: chunks": (
        lambda: pl.DataFrame(INTEGERS),
        lambda: pieces(pl.DataFrame, lambda parts: pl.concat(parts, rechunk=False)),
    ),
    "polars: block": (
        lambda: pl.DataFrame(np.asfortranarray(ROWS)),
        lambda: pl.DataFrame({"column_0": ROWS[:, 0].copy(), "column_1": ROWS[:, 1].copy()}),
    ),
    "polars: names": (
        lambda: pl.DataFrame(INTEGERS),
        lambda: pl.DataFrame(INTEGERS).rename({"a": "column_0", "b": "column_1"}),
    ),
    "polars: rows": (lambda: pl.DataFrame(INTEGERS), lambda: pl.DataFrame(INTEGERS)[:1]),
    "polars: one row of as many bytes": (
        lambda: pl.DataFrame(INTEGERS),
        lambda: pl.DataFrame({name: [1] for name in "abcdef"}),
    ),
    "polars: no rows": (lambda: pl.DataFrame(MIXED), lambda: pl.DataFrame(MIXED)[:0]),
    "polars: columns": (lambda: pl.DataFrame(INTEGERS), lambda: pl.DataFrame(INTEGERS)[:, :1]),
    "polars: decimals": (
        lambda: pl.DataFrame(INTEGERS),
        lambda: pl.DataFrame(INTEGERS).cast(pl.Decimal(20, 1)),
    ),
    "polars: scale": (
        lambda: pl.DataFrame(INTEGERS).cast(pl.Decimal(20, 1)),
        lambda: pl.DataFrame(INTEGERS).cast(pl.Decimal(20, 2)),
    ),
    "polars: text": (lambda: pl.DataFrame(INTEGERS), lambda: pl.DataFrame(INTEGERS | {"b": "x"})),
    "polars: large integers": (
        lambda: pl.DataFrame(MIXED),
        lambda: pl.DataFrame(MIXED | {"a": [2**53 + 1, 2, 3]}),
    ),
    "pyarrow: dtype": (lambda: pa.table(INTEGERS), lambda: pa.table(MIXED)),
    "pyarrow: nulls": (lambda: pa.table(INTEGERS), lambda: pa.table(NULLS)),
    "pyarrow: nulls in mixed": (
        lambda: pa.table(MIXED),
        lambda: pa.table(MIXED | {"a": pa.array([1, None, 3])}),
    ),
    "pyarrow: truth": (
        lambda: pa.table(INTEGERS),
        lambda: pa.table(INTEGERS | {"b": [True, False, True]}),
    ),
    "pyarrow: chunks": (lambda: pa.table(INTEGERS), lambda: pieces(pa.table, pa.concat_tables)),
    "pyarrow: slice": (
        lambda: pa.table(INTEGERS),
        lambda: pa.table({name: [0, *column] for name, column in INTEGERS.items()}).slice(1),
    ),
    "pyarrow: names": (
        lambda: pa.table(INTEGERS),
        lambda: pa.table(INTEGERS).rename_columns(["0", "1"]),
    ),
    "pyarrow: metadata": (
        lambda: pa.table(INTEGERS).rename_columns(["0", "1"]),
        lambda: pa.table(INTEGERS).rename_columns(["0", "1"]).replace_schema_metadata({"x": "y"}),
    ),
    "pyarrow: class": (lambda: pa.table(INTEGERS), lambda: pa.table(INTEGERS).to_batches()[0]),
    "pyarrow: rows": (lambda: pa.table(INTEGERS), lambda: pa.table(INTEGERS).slice(0, 1)),
    "pyarrow: one row of as many bytes": (
        lambda: pa.table(INTEGERS),
        lambda: pa.table({name: [1] for name in "abcdef"}),
    ),
    "pyarrow: an extension": (
        lambda: pa.table(INTEGERS),
        lambda: pa.table(
            INTEGERS | {"b": pa.ExtensionArray.from_storage(Metres(), pa.array([4, 5, 6]))}
        ),
    ),
    "pyarrow: columns": (lambda: pa.table(INTEGERS), lambda: pa.table(INTEGERS).select(["a"])),
    "pyarrow: large integers": (
        lambda: pa.table(MIXED),
        lambda: pa.table(MIXED | {"a": [2**53 + 1, 2, 3]}),
    ),
}

#: Pairs of which one table is not copied within its library.
NOT_COPIED = {"pandas: bytes", "pyarrow: class"}
#: Requests of all the ways in which a warm call is found.
REQUESTS: list[dict[str, Any]] = [
    {},
    {"dtype": "float64"},
    {"dtype": "float32"},
    {"copy": True},
    {"copy": False},
    {"order": "C"},
    {"order": "F"},
    {"dtype": "float64", "allow": "drop_mask"},
    {"dtype": "int64", "allow": {"drop_mask", "narrow"}},
    {"forbid": {"drop_labels"}},
    *(
        {"to": to, **words}
        for to in ("pandas.dataframe", "polars.dataframe", "pyarrow.table")
        for words in ({}, {"copy": False}, {"forbid": {"drop_labels"}})
    ),
]


def outcome(mine: Interop, value: Any, request: dict[str, Any]) -> tuple[Any, ...]:
    """Return the numbers, the dtype and the memory of a result, or what refuses it."""
    try:
        array = mine.convert(value, **{"to": "numpy", **request})
    except InteropError as error:
        return type(error), str(error)
    except (RuntimeWarning, ValueError) as error:
        return (type(error),)
    if not isinstance(array, np.ndarray):
        return type(array), str(mine.spec(array)), repr(array)
    flags = array.flags
    return repr(array.tolist()), array.dtype, array.strides, flags.writeable, flags.f_contiguous


#: Two instances whose calls are the first, and two whose later calls are warm.
COLD, WARM = [(Interop(), Interop()) for _ in range(2)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@together("pair", PAIRS)
def test_a_warm_call_tells_two_tables_apart(pair: str) -> None:
    """What one table has taught is not taken for another that differs from it in one fact."""
    tables = [make() for make in PAIRS[pair]]
    # Each sees the other table first.
    cold, warm = [[*map(forget, instances)] for instances in (COLD, WARM)]
    for keywords in REQUESTS:
        expected = [
            outcome(mine, table, keywords) for mine, table in zip(cold, tables, strict=True)
        ]
        for first, mine in enumerate(warm):
            for place in (first, first, first, 1 - first, 1 - first, first, 1 - first):
                assert outcome(mine, tables[place], keywords) == expected[place], keywords


@together("pair", PAIRS)
def test_a_copy_within_a_library_tells_two_tables_apart(pair: str) -> None:
    """Copies keep what each table has, in whichever order they are made."""
    tables = [make() for make in PAIRS[pair]]
    if pair in NOT_COPIED:
        return
    for first, mine in enumerate(map(forget, WARM)):
        for place in (first, first, first, 1 - first, 1 - first, first):
            copied = mine.convert(tables[place], to=mine.spec(tables[place]).format, copy=True)
            assert copied.equals(tables[place])
            assert type(copied) is type(tables[place])
            assert getattr(copied, "attrs", None) == getattr(tables[place], "attrs", None)


#: Tables that are converted without a description once a call is warm, whatever is asked for.
KEYED: dict[str, Callable[[], Any]] = {
    "pandas: block": frame,
    "pandas: mixed": lambda: pd.DataFrame(MIXED),
    "polars: block": lambda: pl.DataFrame(np.asfortranarray(ROWS)),
    "polars: apart": lambda: pl.DataFrame(INTEGERS),
    "polars: mixed": lambda: pl.DataFrame(MIXED),
    "pyarrow: mixed": lambda: pa.table(MIXED),
}


@together("table", KEYED)
def test_a_warm_call_describes_no_table_of_numbers(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dtype, even that of the table, a copy and an order each find what was learnt."""
    mine = Interop()
    requests = [{"dtype": "float64"}, {"copy": True}, {"order": "C"}, {"order": "F"}, {}]
    arrays = [mine.convert(KEYED[table](), to="numpy", **request) for request in requests]

    def describe(*_: Any) -> None:
        pytest.fail("a warm call describes its value")

    with monkeypatch.context() as patched:
        patched.setattr(Recognition, "describe", describe)
        for request, array in zip(requests, arrays, strict=True):
            warm = mine.convert(KEYED[table](), to="numpy", **request)
            assert (warm.dtype, warm.strides) == (array.dtype, array.strides)
            assert np.array_equal(warm, array)
