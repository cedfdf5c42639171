"""Tables stay tables: names, dtypes, nulls, texts, dates and categories from library to library."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import interop
from interop import Interop
from interop._recognition.recognition import Recognition
from interop.errors import InteropError, RefusedError
from tests.cases import together
from tests.plugins.values import memory

DATE, TIME = dt.date(2020, 1, 31), dt.datetime(2020, 1, 31, 12, 30)

#: One column of each kind, as Python's objects.
COLUMNS = {
    "whole": [2**53 + 1, -1],
    "null": [2**53 + 1, None],
    "real": [0.5, float("nan")],
    "truth": [True, None],
    "text": ["ä", None],
    "date": [DATE, None],
    "moment": [TIME, None],
    "span": [dt.timedelta(days=1), None],
    "word": ["u", "v"],
}
ARROW = pa.table(
    {
        **{name: column for name, column in COLUMNS.items() if name != "word"},
        "word": pa.array(COLUMNS["word"]).dictionary_encode(),
    }
)
POLARS = pl.DataFrame(COLUMNS, schema_overrides={"word": pl.Categorical})
PANDAS = pd.DataFrame(
    {
        "whole": COLUMNS["whole"],
        "null": pd.array(COLUMNS["null"], dtype="Int64"),
        "real": COLUMNS["real"],
        "truth": pd.array(COLUMNS["truth"], dtype="boolean"),
        "text": pd.array(COLUMNS["text"], dtype="str" if pd.__version__ >= "3" else "string"),
        "date": pd.array(COLUMNS["date"], dtype=pd.ArrowDtype(pa.date32())),
        "moment": pd.array(COLUMNS["moment"], dtype="datetime64[us]"),
        "span": pd.array(COLUMNS["span"], dtype="timedelta64[us]"),
        "word": pd.Categorical(COLUMNS["word"]),
    }
)
TABLES = {"pandas": PANDAS, "polars": POLARS, "pyarrow.table": ARROW}

#: The dtype of each column in each library.
DTYPES = {
    "pandas": [
        *("int64", "Int64", "float64", "boolean", str(PANDAS["text"].dtype)),
        *("date32[day][pyarrow]", "datetime64[us]", "timedelta64[us]", "category"),
    ],
    "polars": [
        *(pl.Int64, pl.Int64, pl.Float64, pl.Boolean, pl.String, pl.Date),
        *(pl.Datetime("us"), pl.Duration("us"), pl.Categorical),
    ],
    "pyarrow.table": [
        *("int64", "int64", "double", "bool", "string", "date32[day]"),
        *("timestamp[us]", "duration[us]", "dictionary"),
    ],
}


def rows(table):
    """Return the columns of a table of any library as Python's objects; NaN is not null."""
    if isinstance(table, pd.DataFrame):
        columns = {}
        for name, column in table.items():
            nulls = column.isna() & (column.dtype != "float64")
            columns[name] = [None if null else x for x, null in zip(column, nulls, strict=True)]
        return columns
    return table.to_dict(as_series=False) if isinstance(table, pl.DataFrame) else table.to_pydict()


def dtypes(table):
    """Return the dtypes of a table's columns, as the tables above name them."""
    if isinstance(table, pd.DataFrame):
        return [str(dtype) for dtype in table.dtypes]
    if isinstance(table, pl.DataFrame):
        return table.dtypes
    names = [str(type_).replace("large_", "") for type_ in table.schema.types]
    return ["dictionary" if name.startswith("dictionary") else name for name in names]


def streamed(table):
    """Return a value that offers nothing but a stream of a table."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    return Stream()


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize("target", TABLES)
@pytest.mark.parametrize("source", [*TABLES, "stream", "record_batch"])
@pytest.mark.core
def test_a_table_keeps_names_dtypes_and_nulls(source, target):
    """Every column arrives in one step with its name, in its own dtype, with its nulls and its NaN."""
    value = TABLES.get(source, ARROW)
    if source == "stream":
        value = streamed(ARROW)
    elif source == "record_batch":
        value = ARROW.to_batches()[0]
    result = interop.convert(value, to=target)
    if source in TABLES and source != target:
        plan = interop.plan(value, to=target)
        assert (plan.effects, len(plan.steps)) == ({"copy"}, 1)
    assert type(result) is type(TABLES[target])
    assert list(rows(result)) == list(COLUMNS)
    assert dtypes(result) == DTYPES[target]
    for name, column in rows(result).items():
        assert repr([str(x) for x in column]) == repr([str(x) for x in rows(TABLES[target])[name]])
        assert [x is None for x in column] == [x is None for x in COLUMNS[name]]


@together("width", [0, 1, 2])
def test_a_table_of_any_number_of_columns_becomes_a_frame(width):
    """A table becomes a DataFrame, also if it has one column, and one array becomes a Series."""
    table = pa.table({name: [1, 2] for name in "ab"[:width]})
    assert interop.convert(table, to="polars").shape == pl.from_arrow(table).shape
    assert interop.convert(table, to="pandas").shape[1] == width
    assert isinstance(interop.convert(table, to="polars"), pl.DataFrame)
    assert isinstance(interop.convert(pa.array([1, 2]), to="polars"), pl.Series)
    assert isinstance(interop.convert(pa.array([1, 2]), to="pandas"), pd.Series)


# ---------------------------------------------------------------------- labels


@together("target", ["polars", "polars.dataframe", "pyarrow.table"])
def test_tables_give_up_names_only_where_a_caller_says_so(target):
    """Where no route keeps the names of columns, a conversion is refused with the keyword."""
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 1]), "b": [1, 2, 3]})
    with pytest.raises(RefusedError):
        interop.convert(frame, to=target)
    result = interop.convert(frame, to=target, allow="drop_labels")
    assert [*rows(result).values()] == [[0, 0, 1], [1, 2, 3]]
    with interop.policy(allow="drop_labels"):
        assert interop.plan(frame, to=target).effects >= {"drop_labels"}
    assert interop.plan(frame, to="numpy").effects >= {"drop_labels"}  # which has no names


def narwhals_frame():
    """Return two rows of narwhals, which hold a frame of polars."""
    import narwhals

    return narwhals.from_native(pl.DataFrame({"a": [1, None], "s": ["x", "y"]}))


def dataset():
    """Return two rows of Hugging Face's datasets."""
    import datasets

    return datasets.Dataset.from_dict({"a": [1, None], "s": ["x", "y"]})


def duckdb_relation():
    """Return two rows of DuckDB's."""
    import duckdb

    return duckdb.sql("select 1::bigint as a, 'x' as s union all select null, 'y' order by s")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(narwhals_frame, marks=pytest.mark.extra("narwhals")),
        pytest.param(dataset, marks=pytest.mark.extra("datasets")),
        pytest.param(duckdb_relation, marks=pytest.mark.extra("duckdb")),
    ],
)
@pytest.mark.parametrize("target", TABLES)
def test_streams_of_other_libraries_are_tables(make, target):
    """A relation of DuckDB, a frame of narwhals and a dataset become frames with their nulls."""
    assert rows(interop.convert(make(), to=target)) == {"a": [1, None], "s": ["x", "y"]}
    with pytest.raises(RefusedError):
        interop.convert(make(), to="torch")


# ---------------------------------------------------------------------- memory


@together("target", TABLES)
@together("source", TABLES)
def test_columns_are_shared_where_arrow_permits(source, target):
    """Columns of numbers lie where they lay, also beside others that are copied; a copy shares none."""
    plain = pa.table({"i": np.arange(1000), "x": np.arange(1000.0)})
    mixed = pa.table({"i": np.arange(2), "truth": [True, None], "text": ["a", "b"]})
    for table, numbers in ((plain, "ix"), (mixed, "i")):
        value = interop.convert(table, to=source)
        is_copied = table is mixed and {source, target} == {"pandas", "polars"}
        assert not is_copied or interop.plan(value, to=target).effects == {"copy"}
        assert table is mixed or interop.plan(value, to=target).effects == set()
        copied = interop.convert(value, to=target, copy=True)
        results = [interop.convert(value, to=target)]
        if is_copied:
            with pytest.raises(RefusedError):
                interop.convert(value, to=target, copy=False)
        elif table is plain:
            results.append(interop.convert(value, to=target, copy=False))
        for name in numbers:
            where = memory(value[name])
            assert {memory(result[name]) for result in results} == {where}
            assert memory(copied[name]) != where
        assert [list(map(str, column)) for column in rows(copied).values()] == [
            list(map(str, column)) for column in rows(results[0]).values()
        ]
    block = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"], copy=False)
    if target != "pandas":  # whose rows lie side by side, which are no columns of Arrow's
        assert interop.plan(block, to=target).effects == {"copy"}
        with pytest.raises(RefusedError):
            interop.convert(block, to=target, copy=False)


# ---------------------------------------------------------------------- functions


@pytest.mark.parametrize("source", TABLES)
def test_functions_get_whole_tables_and_give_them_back(source):
    """A function of frames gets every column of any table; its result has the caller's kind."""

    @interop.accepts("polars")
    def in_polars(frame):
        return frame.with_columns(double=pl.col("whole") * 2)

    @interop.accepts("pandas")
    def in_pandas(frame):
        return frame.assign(double=frame["whole"] * 2)

    for function in (in_polars, in_pandas):
        result = function(TABLES[source])
        assert type(result) is type(TABLES[source])
        assert list(rows(result)) == [*COLUMNS, "double"]
        assert rows(result)["double"] == [2**54 + 2, -2]
        assert dtypes(result)[:-1] == DTYPES[source]


# ---------------------------------------------------------------------- series


NULLED = {
    "pandas": pd.Series([2**53 + 1, None], dtype="Int64", name="n"),
    "polars": pl.Series("n", [2**53 + 1, None]),
    "pyarrow": pa.array([2**53 + 1, None]),
    "pyarrow.chunked_array": pa.chunked_array([[2**53 + 1], pa.array([None], pa.int64())]),
    "numpy.ma": np.ma.MaskedArray([2**53 + 1, 0], mask=[False, True]),
}


def nulled(value):
    """Return the elements of an array of any library, None for its nulls."""
    if isinstance(value, np.ma.MaskedArray):
        return value.tolist()
    if isinstance(value, pd.Series):
        return [None if x is pd.NA else x for x in value]
    return value.to_list() if isinstance(value, pl.Series) else value.to_pylist()


@pytest.mark.parametrize("target", [name for name in NULLED if "chunked" not in name])
@pytest.mark.parametrize("source", NULLED)
@pytest.mark.core
def test_nulls_are_kept_where_both_sides_have_them(source, target):
    """A null arrives as a null, and no integer beside it is rounded."""
    result = interop.convert(NULLED[source], to=target)
    assert nulled(result) == [2**53 + 1, None]
    assert "int64" in str(result.dtype if hasattr(result, "dtype") else result.type).lower()
    assert "drop_mask" not in interop.plan(NULLED[source], to=target).effects
    if {source, target} <= {"pandas", "polars"}:
        assert result.name == "n"


@together("kind", ["text", "date", "moment", "span", "word"])
def test_series_of_other_elements_keep_names_and_nulls(kind):
    """A Series of text, dates or categories is the same Series in the other library."""
    series = interop.convert(PANDAS[kind], to="polars")
    assert (series.name, series.to_list()) == (kind, COLUMNS[kind])
    assert series.dtype == POLARS[kind].dtype
    back = interop.convert(series, to="pandas")
    assert (back.name, back.isna().tolist()) == (kind, PANDAS[kind].isna().tolist())
    assert str(back.dtype) == str(PANDAS[kind].dtype)
    assert interop.convert(series, to="pyarrow").to_pylist() == COLUMNS[kind]


def test_series_of_numbers_are_shared_under_their_names():
    """NaN stays NaN, and the numbers lie where they lay."""
    series = pd.Series([1.5, np.nan], name="x")
    other = interop.convert(series, to="polars", copy=False)
    assert (other.name, other.null_count()) == ("x", 0)
    assert other.to_numpy().ctypes.data == series.to_numpy().ctypes.data
    back = interop.convert(other, to="pandas", copy=False)
    assert (back.name, back.to_numpy().ctypes.data) == ("x", series.to_numpy().ctypes.data)


# ---------------------------------------------------------------------- warm calls

#: Tables by what sets them apart; those of `PLAIN` are of several columns of numbers.
PLAIN: dict[str, Callable[[], pa.Table]] = {
    "numbers": lambda: pa.table({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]}),
    "nulls": lambda: pa.table({"a": [1, None, 3], "b": [0.5, None, 2.5]}),
    "chunks": lambda: pa.concat_tables([pa.table({"a": [1], "b": [2]})] * 2),
    "half": lambda: pa.table({"a": np.ones(2, "f2"), "b": [1, 2]}),
    "no rows": lambda: pa.table({"a": pa.array([], "int8"), "b": pa.array([], "float32")}),
}
STRANGE: dict[str, Callable[[], pa.Table]] = {
    "one column": lambda: pa.table({"a": [1.0, 2.0]}),
    "lists": lambda: pa.table({"a": [[1, 2], [3, 4]]}),
    "ragged": lambda: pa.table({"a": [[1, 2], [3]]}),
    "text": lambda: pa.table({"a": ["x", None], "b": [1, 2]}),
    "truth": lambda: pa.table({"a": [True, None], "b": [1, 2]}),
    "dates": lambda: pa.table({"a": pa.array([1, 2], pa.timestamp("us", "UTC")), "b": [1, 2]}),
    "categories": lambda: pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": [1, 2]}),
    "decimals": lambda: pa.table({"a": pa.array([1, 2], pa.decimal128(5, 2)), "b": [1, 2]}),
    "no columns": lambda: pa.table({}),
}


def _outcome(mine: Interop, value: Any, to: str) -> tuple[str, Any]:
    try:
        result = mine.convert(value, to=to)
    except InteropError as error:
        return type(error).__name__, str(error)
    return type(result).__name__, result


@pytest.mark.parametrize("to", ["polars", "polars.dataframe", "pyarrow.table"])
@pytest.mark.parametrize("kind", [*PLAIN, *STRANGE])
def test_warm_calls_give_what_cold_ones_give(kind: str, to: str) -> None:
    """Once tables of numbers are converted without a plan, all others get what they got before."""
    make, warm = (PLAIN | STRANGE)[kind], Interop()

    def source(table: pa.Table) -> Any:
        return pl.from_arrow(table) if to == "pyarrow.table" else table

    for _ in range(3):
        warm.convert(source(PLAIN["numbers"]()), to=to)
    for _ in range(2):
        (word, result), (cold_word, cold) = (
            _outcome(mine, source(make()), to) for mine in (warm, Interop())
        )
        assert word == cold_word
        assert result.equals(cold) if hasattr(result, "equals") else result == cold
        if hasattr(result, "schema"):
            assert result.schema == cold.schema


@pytest.mark.parametrize("kind", PLAIN)
def test_warm_tables_of_numbers_are_shared_without_a_plan(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of numbers go between PyArrow and Polars by a fast path, over the same memory."""
    table = PLAIN[kind]()
    frame = interop.convert(table, to="polars")
    interop.convert(frame, to="pyarrow.table")

    def describe(*_: Any) -> None:
        pytest.fail("a warm call describes its value")

    monkeypatch.setattr(Recognition, "describe", describe)
    warm = interop.convert(table, to="polars")
    assert warm.equals(frame, null_equal=True)
    back = interop.convert(warm, to="pyarrow.table")
    monkeypatch.undo()
    assert interop.spec(back).shape == table.shape
    if kind in {"numbers", "nulls"}:
        assert [c.chunk(0).buffers()[1].address for c in back.columns] == [
            c.chunk(0).buffers()[1].address for c in table.columns
        ]


#: What a warm call must see of a table, each with a keyword under which it is refused.
SEEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nulls": ({"a": [1, None], "b": [0.5, 1.5]}, {}),
    "a number that does not fit": ({"a": [1, 2**53 + 1], "b": [0.5, 1.5]}, {}),
    "names": ({"a": [1, 2], "b": [0.5, 1.5]}, {"forbid": "drop_labels"}),
    "text": ({"a": [1, 2], "b": ["x", "y"]}, {}),
}


@pytest.mark.parametrize("library", TABLES)
@together("fact", SEEN)
def test_a_warm_call_sees_what_another_table_has(library: str, fact: str) -> None:
    """What plain tables have taught is no answer for a table with nulls, names or text."""
    columns, keywords = SEEN[fact]
    plain = {"0": [1, 2], "1": [0.5, 1.5]}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow.table": pa.table}[library]
    odd = make(columns)
    if library == "pandas" and fact == "nulls":
        odd["a"] = odd["a"].astype("Int64")
    for _ in range(3):
        array = interop.convert(make(plain), to="numpy", **keywords)
        assert array.tolist() == [[1, 0.5], [2, 1.5]]
    for _ in range(2):
        with pytest.raises(RefusedError):
            interop.convert(odd, to="numpy", **keywords)
    assert interop.convert(make(plain), to="numpy", **keywords).tolist() == [[1, 0.5], [2, 1.5]]


def test_a_warm_call_without_a_copy_sees_chunks() -> None:
    """A table in chunks is not taken for one that is shared whole."""
    whole = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    for _ in range(3):
        interop.convert(whole, to="pandas", copy=False)
    for _ in range(2):
        with pytest.raises(RefusedError):
            interop.convert(pl.concat([whole, whole], rechunk=False), to="pandas", copy=False)
