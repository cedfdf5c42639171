"""Tables: every column arrives as the libraries' own calls would have it, and owns what a copy owns.

Libraries, dtypes of columns, layouts and keywords are crossed. Names, values, dtypes, nulls and every buffer of memory
are compared, and the plan and the receipt with what has happened.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import interop
from interop.errors import RefusedError
from tests.cases import together

ROWS = range(64)
TEXTS = [f"a text that no view holds within itself, number {n}" for n in ROWS]
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow.table": pa.Table}


def _nulled(values: list[Any], type_: pa.DataType | None = None) -> pa.Array:
    return pa.array([None, *values[1:]], type_)


class _WellKnownBinary(pa.ExtensionType):
    """Geometries as GeoPandas and GeoArrow keep them: bytes, and a place on Earth beside them."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b'{"crs": "EPSG:4326"}'

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, _serialized: bytes) -> Any:
        return cls()


#: A column of each type that at least two of the libraries have.
COLUMNS: dict[str, pa.Array] = {
    "float64": pa.array([float(n) for n in ROWS]),
    "float64 with nulls": _nulled([float(n) for n in ROWS]),
    "float16": pa.array(np.arange(64, dtype="f2")),
    "int8": pa.array(list(ROWS), pa.int8()),
    "uint64 with nulls": _nulled(list(ROWS), pa.uint64()),
    "bool": pa.array([n % 3 == 0 for n in ROWS]),
    "bool with nulls": _nulled([n % 3 == 0 for n in ROWS]),
    "string": pa.array(TEXTS),
    "string with nulls": _nulled(TEXTS),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "binary": pa.array([text.encode() for text in TEXTS]),
    "date32": pa.array([dt.date(2020, 1, 1 + n % 28) for n in ROWS]),
    **{f"timestamp {unit}": pa.array([1000 * n for n in ROWS], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "timestamp with nulls": _nulled(list(ROWS), pa.timestamp("us")),
    "timestamp of a zone": pa.array(list(ROWS), pa.timestamp("us", "Europe/Paris")),
    "duration s": pa.array(list(ROWS), pa.duration("s")),
    "duration us": pa.array(list(ROWS), pa.duration("us")),
    "time64 ns": pa.array([1000 * n for n in ROWS], pa.time64("ns")),
    "decimal": pa.array([decimal.Decimal(n) for n in ROWS], pa.decimal128(20, 3)),
    "dictionary": pa.array([f"{n % 5}" for n in ROWS]).dictionary_encode(),
    "list": pa.array([[n, n + 1] for n in ROWS]),
    "list with nulls": _nulled([[n] for n in ROWS]),
    "large_list": pa.array([[n] * (n % 3) for n in ROWS], pa.large_list(pa.int64())),
    "lists of lists": pa.array([[[n], [n + 1]] for n in ROWS]),
    "lists of lists of several lengths": pa.array([[[n] * (n % 3)] * (n % 2) for n in ROWS]),
    "lists of lists with nulls": _nulled([[[n], None] for n in ROWS]),
    "geometry": _WellKnownBinary().wrap_array(pa.array([b"\1\1" + bytes(4 + n % 2) for n in ROWS])),
    "list of text": pa.array([[text] for text in TEXTS]),
    "struct": pa.array([{"x": n} for n in ROWS]),
}  # fmt: skip

LAYOUTS: dict[str, Callable[[pa.Array], pa.Table]] = {
    "whole": lambda array: pa.table({"k": array, "n": pa.array(list(range(len(array))))}),
    "alone": lambda array: pa.table({"k": array}),
    "chunks": lambda array: pa.concat_tables([pa.table({"k": array})] * 2),
    "slice": lambda array: pa.table({"k": array, "m": array}).slice(3, 20),
    "no rows": lambda array: pa.table({"k": array, "n": array}).slice(0, 0),
}


def made(source: str, table: pa.Table) -> Any:
    """Return a table of a library, by that library's own call; pandas' in Arrow's memory, too."""
    match source:
        case "pandas":
            return table.to_pandas()
        case "pandas over arrow":
            return table.to_pandas(types_mapper=pd.ArrowDtype)
        case "polars":
            return pl.DataFrame(table)
        case _:
            return table


def elements(table: Any) -> dict[str, list[Any]]:
    """Return the names and the elements of a table, by the library's own call."""
    if isinstance(table, pd.DataFrame):
        columns = {}
        for name, column in table.items():
            is_real = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
            columns[name] = pa.array(
                column.to_numpy() if is_real else column, from_pandas=not is_real
            )
        table = pa.table(columns)
    columns = (
        table.to_dict(as_series=False) if isinstance(table, pl.DataFrame) else table.to_pydict()
    )
    return {name: [*map(_plain, column)] for name, column in columns.items()}


def _plain(element: Any) -> Any:
    """Return an element so that it is equal to that of another library; NaN is itself."""
    if isinstance(element, dt.datetime):
        return pd.Timestamp(element)
    if isinstance(element, dt.timedelta):
        return pd.Timedelta(element)
    return "NaN" if isinstance(element, float) and element != element else element  # noqa: PLR0124


# ---------------------------------------------------------------------- memory


def buffers(table: Any) -> set[tuple[int, int]]:
    """Return the first and the last address of all memory in which a table lies."""
    if isinstance(table, pd.DataFrame):
        return {extent for _, column in table.items() for extent in _of_pandas(column.array)}
    if isinstance(table, pl.DataFrame):
        table = pa.RecordBatchReader.from_stream(table).read_all()
    return {extent for column in table.columns for extent in _of_arrow(column)}


def _of_pandas(array: Any) -> Iterator[tuple[int, int]]:
    if isinstance(array.dtype, pd.CategoricalDtype):
        yield from _of_numpy(array.codes)
        yield from _of_pandas(array.categories.array)
    elif isinstance(array.dtype, pd.ArrowDtype) or getattr(array.dtype, "storage", "") == "pyarrow":
        yield from _of_arrow(array.__arrow_array__())
    elif hasattr(array, "_mask"):
        yield from [*_of_numpy(array._data), *_of_numpy(array._mask)]
    else:
        yield from _of_numpy(getattr(array, "_ndarray", array))


def _of_numpy(array: Any) -> Iterator[tuple[int, int]]:
    if array.size:
        yield np.lib.array_utils.byte_bounds(array)


def _of_arrow(column: pa.Array | pa.ChunkedArray) -> Iterator[tuple[int, int]]:
    for chunk in getattr(column, "chunks", [column]):
        parts = [chunk, *([chunk.dictionary] if pa.types.is_dictionary(chunk.type) else [])]
        for buffer in (buffer for part in parts for buffer in part.buffers()):
            if buffer is not None and buffer.size:
                yield buffer.address, buffer.address + buffer.size


def shared(first: set[tuple[int, int]], second: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of the second that overlap any of the first."""
    return {b for b in second if any(a[0] < b[1] and b[0] < a[1] for a in first)}


def crossed() -> list[tuple[str, str, str, str]]:
    """Return every column from library to library, in layouts that take turns."""
    pairs = list(itertools.product([*TABLES, "pandas over arrow"], TABLES))
    layouts = itertools.cycle(LAYOUTS)
    return [(kind, next(layouts), *pair) for kind in COLUMNS for pair in pairs for _ in range(2)]


@together("kind, layout, source, target", crossed())
def test_columns_arrive_and_plans_and_receipts_say_what_is_shared(kind, layout, source, target):
    """Names and elements stay; a copy owns every buffer, and without one each is shared."""
    value = made(source, LAYOUTS[layout](COLUMNS[kind]))
    before = buffers(value)
    for copy in (None, True, False):
        try:
            plan = interop.plan(value, to=target, copy=copy)
        except RefusedError:
            assert copy is False
            continue
        with interop.trace() as receipts:
            result = interop.convert(value, to=target, copy=copy)
        assert (type(result), elements(result)) == (TABLES[target], elements(value))
        after = buffers(result)
        common = shared(before, after)
        assert receipts[0].aliased in {None, bool(common) or result is value}
        # Polars keeps the texts of categories in one place for the whole process.
        is_global = kind == "dictionary" and source == target == "polars"
        # pandas marks missing times within them, others by bits, which are written.
        is_marked = kind == "timestamp with nulls" and source == "pandas"
        if not is_global:
            assert (plan.aliases and not copy) or not common
            assert "copy" in plan.effects or common == after or is_marked or layout == "no rows"


def test_a_copy_outlives_the_file_that_was_mapped(in_subprocess):
    """Texts, lists and categories of a copy are read after the file has been cut short."""
    in_subprocess(
        """
        import pathlib, tempfile
        import pyarrow as pa, pyarrow.feather
        import interop
        table = pa.table({
            "text": ["a text that is long enough, number %d" % n for n in range(50_000)],
            "list": [[n, n] for n in range(50_000)],
            "word": pa.array(["u", "v"] * 25_000).dictionary_encode(),
            "number": range(50_000),
        })
        path = pathlib.Path(tempfile.mkdtemp()) / "table.feather"
        copies = {}
        pa.feather.write_feather(table, path, compression="uncompressed")
        mapped = pa.feather.read_table(path, memory_map=True)
        for target in ("pandas", "polars", "pyarrow.table"):
            copies[target] = interop.convert(mapped, to=target, copy=True)
        with open(path, "r+b") as file:
            file.truncate(64)
        assert copies["pandas"]["text"].iloc[-1].endswith("49999")
        assert list(copies["pandas"]["list"].iloc[-1]) == [49999, 49999]
        assert copies["polars"]["text"][-1].endswith("49999")
        assert copies["polars"]["list"][-1].to_list() == [49999, 49999]
        assert str(copies["polars"]["word"][-1]) == "v"
        assert copies["pyarrow.table"].slice(49_999).to_pylist()[0]["word"] == "v"
        """
    )


# ---------------------------------------------------------------------- dtypes

NUMBERS = ("int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64", "bool")  # fmt: skip


def numbers(dtype: str) -> np.ndarray[Any, Any]:
    """Return a few numbers of a dtype, among them some that others do not hold exactly."""
    array = np.array([0, 1, 2, 3, 100, 120]).astype(dtype)
    if dtype.startswith("float"):
        array[:2] = -1.5, 0.5
    elif dtype != "bool" and array.itemsize == 8:
        array[1] = 2**40 + 3
    return array


@together("nulls", [False, True])
@together("new", NUMBERS)
@together("own", NUMBERS)
def test_a_dtype_casts_each_column_of_numbers_as_numpy_does(own, new, nulls):
    """Whatever the libraries are, nulls and text stay, and a mapping casts what it names."""
    mask = np.array([False, False, nulls, False, False, False])
    array = numbers(own)
    table = pa.table({"x": pa.array(array, mask=mask), "s": [*"abcdef"], "other": [2**53 + 1] * 6})
    with np.errstate(all="ignore"):
        expected = array.astype(new)
    is_integer = np.dtype(new).kind in "iu"
    is_cut = own.startswith("float") and is_integer
    is_defined = array >= 0 if is_cut else np.ones(6, np.bool_)
    if new in {"int8", "uint8"}:
        is_defined &= array <= np.iinfo(new).max
    turn = NUMBERS.index(own) + NUMBERS.index(new)
    for number, source in enumerate(TABLES):
        value = interop.convert(table, to=source)
        result = interop.convert(value, to=[*TABLES][(number + turn) % 3], dtype={own: new})
        back = interop.convert(result, to="pyarrow.table")
        assert back["s"].to_pylist() == [*"abcdef"]
        assert back["other"].to_pylist() == [np.array(2**53 + 1).astype(new if own == "int64" else "i8").item()] * 6  # fmt: skip
        column = back["x"]
        assert interop.spec(column).dtype == new
        assert [x is None for x in column.to_pylist()] == [*mask]
        for place, other in zip(np.arange(6)[is_defined & ~mask], expected[is_defined & ~mask], strict=True):  # fmt: skip
            assert column[int(place)].as_py() == other.item()


@together("source", TABLES)
@together("target", TABLES)
def test_a_floating_dtype_leaves_ids_alone_in_a_tree(source, target):
    """Columns of another kind than the dtype keep theirs: an id stays what it is."""
    table = pa.table({"id": [16777217, 3], "x": [0.5, 1.5], "ok": [True, False], "s": ["a", "b"]})
    value = interop.convert(table, to=source)
    result = interop.convert_tree({"batch": value}, to=target, dtype="float32")["batch"]
    arrow = interop.convert(result, to="pyarrow.table")
    assert arrow["id"].to_pylist() == [16777217, 3]
    assert [interop.spec(arrow[name]).dtype for name in ("id", "x", "ok")] == ["int64", "float32", "bool"]  # fmt: skip
    whole = interop.convert(interop.convert(value, to=target, dtype="float32"), to="pyarrow.table")
    assert [interop.spec(whole[name]).dtype for name in ("id", "x", "ok")] == ["float32", "float32", "bool"]  # fmt: skip
    with pytest.raises(RefusedError):
        interop.convert(value, to=target, dtype="float32", forbid="narrow")


@together("source", TABLES)
def test_a_dtype_for_a_table_without_numbers_is_refused(source):
    """There is nothing that it could be for, and it is not passed over."""
    value = interop.convert(pa.table({"s": ["a"]}), to=source)
    for target in TABLES:
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, dtype="float32")


# ---------------------------------------------------------------------- labels

INDEXES: dict[str, Any] = {
    "range": pd.RangeIndex(3),
    "text": pd.Index([*"xyz"]),
    "named": pd.Index([9, 8, 7], name="key"),
    "levels": pd.MultiIndex.from_tuples([(1, "x"), (1, "y"), (2, "x")], names=["k", None]),
    "steps": pd.RangeIndex(2, 8, 2),
    "named range": pd.RangeIndex(3, name="key"),
    "dates": pd.date_range("2020", periods=3, tz="Europe/Paris"),
    "categories": pd.CategoricalIndex([*"uvu"]),
    "periods": pd.period_range("2020", periods=3, freq="M"),
    "intervals": pd.interval_range(0, 3),
    "numbers with NaN": pd.Index([0.5, np.nan, 1]),
    "a column's name": pd.Index([4, 5, 6], name="b"),
}
FRAMES: dict[str, Callable[[], pd.DataFrame]] = {
    "one dtype": lambda: pd.DataFrame({"b": [0.5, 1, 2], "a": [3.0, 4, 5]}),
    "one block": lambda: pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["b", "a"]),
    "several": lambda: pd.DataFrame({"b": [1, 2, 3], "a": [0.5, 1, 2], "s": [*"uvw"]}),
    "truth": lambda: pd.DataFrame({"b": [True, False, True], "a": [True, True, False]}),
    "numbered": lambda: pd.DataFrame(np.arange(6).reshape(3, 2)),
    "tuples": lambda: pd.DataFrame({("p", "q"): [1, 2, 3], ("p", "r"): [0.5, 1, 2]}),
    "halves": lambda: pd.DataFrame({"b": np.arange(3, dtype="f2"), "a": np.ones(3, "f2")}),
    "a column": lambda: pd.DataFrame({"b": [3, 1, 2]}),
    "part of a block": lambda: pd.concat([FRAMES["one dtype"]()] * 2).iloc[1:4],
    "every other row": lambda: pd.concat([FRAMES["several"]()] * 2)[::2],
    "sorted": lambda: FRAMES["several"]().sort_values("b", ascending=False),
    "reversed": lambda: pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["b", "a"])[::-1],
    "big-endian": lambda: pd.DataFrame({"b": np.arange(3, dtype=">i4"), "a": [0.5, 1, 2]}),
    "categories": lambda: pd.DataFrame({"b": pd.Categorical([*"uvu"]), "a": [1, 2, 3]}),
}


@together("index", INDEXES)
@together("kind", FRAMES)
def test_names_order_and_index_are_those_of_the_libraries_own_calls(kind, index):
    """Arrow's table is what `pyarrow.Table.from_pandas` makes, and Polars' has its columns."""
    frame = FRAMES[kind]().set_axis(INDEXES[index])
    native = frame.astype({"b": "int32"}) if kind == "big-endian" else frame
    expected = pa.Table.from_pandas(native)
    table = interop.convert(frame, to="pyarrow.table")
    assert table.equals(expected, check_metadata=kind != "big-endian")
    polars = interop.convert(frame, to="polars")
    assert polars.columns == expected.column_names
    assert elements(polars) == expected.to_pydict()
    back = interop.convert(table, to="pandas")
    pd.testing.assert_frame_equal(back, expected.to_pandas())
    # Of a range there is no column, so that one which is not that of every frame is lost in Polars.
    is_lost = index in {"steps", "named range"}
    losses = interop.plan(frame, to="polars").effects & {"drop_labels", "narrow", "drop_mask"}
    assert losses == ({"drop_labels"} if is_lost else set())
    if is_lost:
        with pytest.raises(RefusedError):
            interop.convert(frame, to="polars", forbid="drop_labels")


@together("target", ["polars", "pyarrow.table"])
def test_an_index_of_integers_with_nulls_keeps_every_integer(target):
    """PyArrow makes floats of them, which do not hold all."""
    index = pd.Index(pd.array([2**53 + 1, None], dtype="Int64"))
    frame = pd.DataFrame({"a": [1, 2]}, index=index)
    back = interop.convert(interop.convert(frame, to=target), to="pandas")
    pd.testing.assert_frame_equal(back, frame)


@together("target", ["polars", "pyarrow.table"])
@together("nulls", [[False, False], [False, True]])
def test_nan_in_a_nullable_column_of_pandas_comes_back_as_nan(nulls, target):
    """It is no null, although PyArrow reads it as one where the schema notes pandas' dtype."""
    array = pd.arrays.FloatingArray(np.array([np.nan, 1]), np.array(nulls))
    back = interop.convert(interop.convert(pd.DataFrame({"a": array}), to=target), to="pandas")["a"]
    assert [x is pd.NA for x in back] == nulls
    assert np.isnan(back.iloc[0])


def test_a_copy_keeps_types_that_files_of_arrow_lack():
    """Categories that are periods, and extension types that nobody has registered, stay these."""
    periods = pa.Table.from_pandas(
        pd.DataFrame({"k": pd.Categorical(pd.period_range("2020", periods=3, freq="M"))})
    )
    points = pa.table({"k": COLUMNS["geometry"]})
    for table in (periods, points, pa.concat_tables([periods, periods])):
        copied = interop.convert(table, to="pyarrow.table", copy=True)
        assert copied.schema.equals(table.schema, check_metadata=True)
        assert copied.equals(table)
        assert not shared(buffers(table), buffers(copied))
    inner = pa.table({"k": pa.StructArray.from_arrays([COLUMNS["geometry"]], ["x"])})
    with pytest.raises(RefusedError, match="Arrow's streams have no struct"):
        interop.convert(inner, to="pyarrow.table", copy=True)


#: Columns that pandas alone has, by the libraries' own calls or by none.
OF_PANDAS: dict[str, Any] = {
    "period": pd.period_range("2020", periods=4, freq="M"),
    "period with nulls": pd.array(["2020-01", None, "2020-02", "2020-03"], dtype="period[D]"),
    "interval": pd.interval_range(0, 4),
    "interval of dates": pd.interval_range(pd.Timestamp("2020"), periods=4, closed="left"),
    "interval with nulls": pd.arrays.IntervalArray.from_tuples([(0, 1), None, (2, 3), (3, 4)]),
    "categories of numbers": pd.Categorical([3, 1, None, 1], ordered=True),
    "categories of periods": pd.Categorical(pd.period_range("2020", periods=4, freq="M")),
    "sparse": pd.arrays.SparseArray([0, 0, 1, 0], fill_value=0),
    "sparse with a fill": pd.arrays.SparseArray([5, 5, 1, 5], fill_value=5),
    "sparse bools": pd.arrays.SparseArray([False, True, False, False], fill_value=False),
    "sparse with NaN": pd.arrays.SparseArray([0, np.nan, 1, 0.0], fill_value=0),
    "sparse dates": pd.arrays.SparseArray(pd.to_datetime(["2020", "NaT", "2021", "2022"])),
    "objects": ["a", 1, None, 2.5],
    "complex": np.arange(4) * 1j,
}


@together("beside", [False, True])
@together("kind", OF_PANDAS)
def test_columns_of_pandas_alone_come_back_or_are_refused(kind, beside):
    """Arrow's table is that of PyArrow's call, and what it refuses is refused; names never go."""
    frame = pd.DataFrame({"k": OF_PANDAS[kind], **({"n": [1, 2, 3, 4]} if beside else {})})
    assert interop.convert(frame, to="pandas", copy=True).equals(frame)
    try:
        expected = pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError):
        for target in ("pyarrow.table", "polars"):
            for copy in (None, True, False):
                with pytest.raises(RefusedError):
                    interop.convert(frame, to=target, copy=copy)
        return
    table = interop.convert(frame, to="pyarrow.table")
    assert table.equals(expected, check_metadata=True)
    if kind == "categories of periods":
        with pytest.raises(RefusedError, match="pandas has no elements of dictionary"):
            interop.convert(table, to="pandas")
    else:
        pd.testing.assert_frame_equal(interop.convert(table, to="pandas"), frame)
    polars = interop.convert(frame, to="polars")
    assert polars.columns == expected.column_names
    back = interop.convert(polars, to="pandas")
    if kind.startswith("categories"):  # Polars has categories of text alone
        assert [*back["k"].dropna()] == [*frame["k"].dropna()]
    else:
        pd.testing.assert_frame_equal(back, frame)


def test_attributes_are_kept_where_there_is_a_place_and_told_where_there_is_none():
    """Arrow's metadata has them, and Polars none; an index of a Series has none either."""
    frame = pd.DataFrame({"a": [1, 2]})
    frame.attrs = {"unit": "m"}
    table = interop.convert(frame, to="pyarrow.table", forbid="drop_labels")
    assert interop.convert(table, to="pandas").attrs == {"unit": "m"}
    series = pd.Series([1, 2], index=[*"xy"], name="a")
    for value in (frame, series):
        assert interop.plan(value, to="polars").effects == {"drop_labels"}
        assert interop.convert(value, to="pandas", copy=True).attrs == value.attrs
        with pytest.raises(RefusedError):
            interop.convert(value, to="polars", forbid="drop_labels")
    assert interop.convert(series, to="polars").name == "a"


def test_results_like_an_arrow_table_have_its_names():
    """As those of pandas and Polars, also where a function gives them back."""
    table = pa.table({"x": [1.0, 2], "y": [3.0, 4]})

    @interop.accepts("numpy")
    def doubled(array):
        return array * 2

    assert interop.convert(np.ones((2, 2)), like=table).column_names == ["x", "y"]
    assert interop.convert(np.ones((3, 2)), like=table).column_names == ["0", "1"]
    assert doubled(table).to_pydict() == {"x": [2.0, 4], "y": [6.0, 8]}


# ---------------------------------------------------------------------- what libraries cannot take


@together("target", TABLES)
def test_what_a_library_cannot_take_is_refused_by_us(target):
    """Neither a panic nor an error of theirs: decimals of 256 bits, unions, categories of lists."""
    union = pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    )
    odd = {
        "names twice": pa.table([[1], [2]], names=["a", "a"]),
        "decimal256": pa.table({"a": pa.array([decimal.Decimal(1)], pa.decimal256(50, 3))}),
        "union": pa.table({"a": union, "b": [1]}),
        "no union": pa.table({"a": union}).slice(0, 0),
        "lists of a dictionary": pa.table({"a": pa.DictionaryArray.from_arrays([0], pa.array([[1]]))}),
        "names twice in pandas": pd.DataFrame([[1, 2]], columns=["a", "a"]),
        "objects of Polars": pl.DataFrame({"a": pl.Series([object()]), "b": [1]}),
        "integers of many digits": pd.DataFrame({"a": pd.Series([2**70], dtype=object)}),
        "nulls of a dictionary": pa.table({
            "a": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))
        }),
        "tensors": pa.table({"a": pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((1, 2, 2))), "b": [1]}),
    }  # fmt: skip
    taken = set()
    for name, table in odd.items():
        try:
            result = interop.convert(table, to=target)
        except RefusedError:
            continue
        taken.add(name)
        assert result.shape == table.shape
    kept = {
        "pandas": {"decimal256", "tensors", "integers of many digits", "names twice in pandas"},
        "polars": {
            "nulls of a dictionary",
            "lists of a dictionary",
            "tensors",
            "objects of Polars",
        },
        "pyarrow.table": {*odd}
        - {"integers of many digits", "names twice in pandas", "objects of Polars"},
    }
    assert taken == kept[target]


@together("target", TABLES)
def test_frames_without_columns_keep_their_rows_or_are_refused_by_the_plan(target):
    """Arrow has no rows without columns, of which the plan says the same as the call."""
    for frame in (pd.DataFrame(index=range(3)), pl.DataFrame(height=3)):
        for copy in (None, True):
            try:
                plan = interop.plan(frame, to=target, copy=copy)
            except RefusedError:
                assert target == "pyarrow.table"
                with pytest.raises(RefusedError):
                    interop.convert(frame, to=target, copy=copy)
            else:
                assert plan.result.shape == interop.convert(frame, to=target, copy=copy).shape
    indexed = pd.DataFrame(index=[*"xyz"])
    assert len(interop.convert(indexed, to=target)) == 3
