"""What pandas, Polars and PyArrow share: nulls, memory, refusals, and columns of several dtypes."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable
from decimal import Decimal
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import interop
from interop.errors import RefusedError
from interop.kit import INTEGERS
from tests.cases import together
from tests.plugins import values
from tests.plugins.values import distinct as numbers
from tests.plugins.values import start

HAS_FLOAT16 = hasattr(pl, "Float16")


def _pandas(columns: dict[str, Any]) -> pd.DataFrame:
    """Return a frame of pandas, whose columns with None are nullable."""
    nullable = {name for name, c in columns.items() if isinstance(c, list) and None in c}
    return pd.DataFrame(
        {n: pd.array(c, dtype="Int64") if n in nullable else c for n, c in columns.items()}
    )


LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas.dataframe": _pandas,
    "polars.dataframe": pl.DataFrame,
    "pyarrow.table": pa.table,
    "pyarrow.record_batch": pa.record_batch,
}
#: Dtypes with the common one that holds the numbers of each, and dtypes without any.
EXACT = [
    ({"bool", "int8"}, "int8"),
    ({"int8", "uint8"}, "int16"),
    ({"int32", "float64"}, "float64"),
    ({"float16", "float32"}, "float32"),
    ({"uint32", "int64"}, "int64"),
    ({"int16", "float32"}, "float32"),
    ({"complex64", "float32", "uint8"}, "complex64"),
]
LOSING = [
    {"int64", "float64"},
    {"int64", "uint64"},
    {"uint64", "float32"},
    {"int64", "complex128"},
]


def made(library: str, dtypes: set[str]) -> Any:
    """Return a table with a column of each dtype, in order of their names."""
    if library != "pandas.dataframe" and any(dtype.startswith("complex") for dtype in dtypes):
        pytest.skip("Arrow has no complex numbers")
    if library == "polars.dataframe" and "float16" in dtypes and not HAS_FLOAT16:
        pytest.skip("this polars has no float16")
    return LIBRARIES[library]({dtype: numbers(dtype) for dtype in sorted(dtypes)})


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("dtypes", "common"), EXACT)
def test_columns_of_several_dtypes_if_one_holds_all(library, dtypes, common):
    """Columns are promoted where NumPy's common dtype holds every number of each."""
    result = interop.convert(made(library, dtypes), to="numpy")
    assert result.dtype == common
    for column, name in zip(result.T, sorted(dtypes), strict=True):
        assert column.tobytes() == numbers(name).astype(common).tobytes()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtypes", LOSING)
def test_columns_of_several_dtypes_if_none_holds_all(library, dtypes):
    """Where NumPy's common dtype would lose numbers, the caller has to permit it or name a dtype."""
    table = made(library, dtypes)
    common = np.result_type(*dtypes)
    columns = [numbers(name).astype(common) for name in sorted(dtypes)]
    for to, keywords in (("numpy", {}), ("numpy", {"copy": True}), ("torch", {})):
        with pytest.raises(RefusedError) as caught:
            interop.convert(table, to=to, **keywords)
        assert caught.value.effects == {"narrow"}
        if library != "pyarrow.record_batch":  # whose refusal names the first number that is lost
            assert f"{library} {' / '.join(sorted(dtypes))} " in str(caught.value)
        assert f"pass allow={{'narrow'}} or dtype='{common}'" in str(caught.value)
        result = interop.convert(table, to=to, allow="narrow", **keywords)
        assert np.array_equal(np.asarray(result), np.stack(columns, axis=1))
        assert interop.spec(result).dtype == common
    for dtype in ("complex128", "float32", "int16"):
        result = interop.convert(table, to="numpy", dtype=dtype)
        assert (result.dtype, result.flags.writeable) == (dtype, True)
        for column, name in zip(result.T, sorted(dtypes), strict=True):
            number = numbers(name)
            real = number.real if number.dtype.kind == "c" and dtype != "complex128" else number
            assert column.tobytes() == real.astype(dtype).tobytes()
    assert interop.convert(table, to=type(table)) is table


def _extremes(dtype: str) -> np.ndarray[Any, Any]:
    """Return numbers of a dtype with the least and the greatest, and some that others round."""
    if dtype == "bool":
        return np.array([True, False, True, True, False])
    if dtype.startswith("float"):
        return np.array([0.1, -2.5, 3.0, 1e4, -0.0], dtype)
    limits = np.iinfo(dtype)
    return np.array([limits.max, limits.min, limits.max // 3, 7, limits.max - 1], dtype)


@together("library", LIBRARIES)
@pytest.mark.parametrize("target", [None, "float64", "float32", "int16"])
def test_columns_side_by_side_are_what_numpy_makes_of_them(library, target):
    """Whichever call of a library writes them, columns are cast and promoted as NumPy does."""
    for pair in combinations_with_replacement(sorted({"bool", *INTEGERS, "float32", "float64"}), 2):
        columns = {str(n): _extremes(dtype) for n, dtype in enumerate((*pair, pair[0]))}
        table = LIBRARIES[library](columns)[1:]
        arrays = [column[1:] for column in columns.values()]
        dtype = target or np.result_type(*arrays)
        result = interop.convert(table, to="numpy", dtype=target, allow="narrow")
        assert result.dtype == dtype
        assert result.tobytes() == np.stack([a.astype(dtype) for a in arrays], axis=1).tobytes()


@together("library", LIBRARIES)
@pytest.mark.parametrize("beside", [0.5, float("nan"), float("inf"), 1e300])
def test_integers_are_exact_up_to_the_digits_of_floats(library, beside):
    """The least integer that a float rounds is found, whatever lies beside it and whatever nulls."""
    for integer in (2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1):
        table = LIBRARIES[library]({"n": np.array([3, integer]), "x": np.array([beside, beside])})
        if float(integer) == integer:
            assert interop.convert(table, to="numpy")[:, 0].tolist() == [3, integer]
        else:
            with pytest.raises(RefusedError, match=f"column 'n': {integer} would be rounded"):
                interop.convert(table, to="numpy")


@together("library", LIBRARIES)
def test_integers_beside_reals_if_every_one_of_them_is_exact(library):
    """A column of integers joins one of floats; the first integer that would be rounded is named."""
    make = LIBRARIES[library]
    table = make({"n": [1, -(2**53), 2**60], "x": [0.5, 1.5, 2.5]})
    for to in ("numpy", "torch"):
        assert interop.plan(table, to=to).effects <= {"copy", "drop_labels"}
        result = interop.convert(table, to=to)
        assert interop.spec(result).dtype == "float64"
        assert result.tolist() == [[1.0, 0.5], [-(2.0**53), 1.5], [2.0**60, 2.5]]
    sums = interop.accepts("numpy")(lambda x: x.sum(axis=1))(table)
    assert np.asarray(sums).tolist() == [1.5, 1.5 - 2.0**53, 2.5 + 2.0**60]
    large = make({"n": [1, 2**53 + 1, 2**53 + 3], "x": [0.5, 1.5, 2.5]})
    reason = "column 'n': 9007199254740993 would be rounded in float64"
    for to in ("numpy", "torch"):
        with pytest.raises(RefusedError, match=reason) as caught:
            interop.convert(large, to=to)
        assert caught.value.effects == {"narrow"}
    assert interop.convert(large, to="numpy", dtype="float64")[1, 0] == 2.0**53


@together("library", LIBRARIES)
def test_nulls_beside_reals_are_permitted_alone_if_the_integers_are_exact(library):
    """`drop_mask` makes nulls NaN in the common dtype; an integer that is no null stays exact."""
    make = LIBRARIES[library]
    table = make({"n": [1, None, 2**60], "x": [0.5, 1.5, 2.5]})
    result = interop.convert(table, to="numpy", allow="drop_mask")
    np.testing.assert_array_equal(result, [[1.0, 0.5], [np.nan, 1.5], [2.0**60, 2.5]])
    large = make({"n": [None, 2**53 + 1, 3], "x": [0.5, 1.5, 2.5]})
    reason = "column 'n': 9007199254740993 would be rounded in float64"
    with pytest.raises(RefusedError, match=reason):
        interop.convert(large, to="numpy", allow="drop_mask")


@together("library", LIBRARIES)
def test_nulls_beside_columns_without_a_common_dtype(library):
    """Two reasons to refuse need two permissions."""
    table = LIBRARIES[library]({"a": [2**60 + 1, None], "b": [0.5, 1.5]})
    for keywords in ({"allow": "drop_mask"}, {"allow": "narrow"}, {"dtype": "float64"}):
        with pytest.raises(RefusedError) as caught:
            interop.convert(table, to="numpy", **keywords)
        missing = {"drop_mask": "narrow"}.get(keywords.get("allow", ""), "drop_mask")
        assert caught.value.effects == {missing}
    for permitted in (
        {"allow": {"drop_mask", "narrow"}},
        {"dtype": "float64", "allow": "drop_mask"},
    ):
        result = interop.convert(table, to="numpy", **permitted)
        np.testing.assert_array_equal(result, [[2.0**60, 0.5], [np.nan, 1.5]])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("forbid", ["drop_labels", {"drop_labels"}], ids=["name", "set"])
def test_a_warm_call_refuses_to_drop_names(library: str, forbid: Any) -> None:
    """Tables without names of their own do not teach a call to take those that have some."""
    mine, columns = interop.Interop(), {"a": np.arange(2.0), "b": np.arange(2)}
    named = LIBRARIES[library](columns)
    default = range(2) if library == "pandas.dataframe" else ("column_0", "column_1")
    unnamed = LIBRARIES[library](dict(zip(default, columns.values(), strict=True)))
    for _ in range(4):
        assert mine.convert(unnamed, "numpy", forbid=forbid).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(RefusedError):
        mine.convert(named, "numpy", forbid=forbid)


# ---------------------------------------------------------------------- nulls

PLAIN = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()
#: The libraries' names of dtypes with nulls, and NumPy's of the numbers.
NULLABLE: dict[str, dict[str, str]] = {
    "pandas": {**values.NULLABLE, **values.ARROW},
    "polars": {name: name for name in PLAIN if HAS_FLOAT16 or name != "float16"},
    "pyarrow": {name: name for name in PLAIN},
}


def nulled(library: str, name: str) -> list[Any]:
    """Return a column with nulls in two places, as all that a library keeps one in."""
    array, places = numbers(NULLABLE[library][name]), np.array([0, 1, 0, 0, 1, 0], bool)
    if library == "polars":
        series = pl.Series("s", array).zip_with(pl.Series(~places), pl.Series([None] * 6))
        return [series, series.to_frame()]
    if library == "pyarrow":
        column = pa.array(array, mask=places)
        parts = pa.chunked_array([column[:2], column[2:]])
        return [column, parts, pa.table({"a": parts}), pa.record_batch({"a": column})]
    # By take, for pandas before 3 cannot assign to elements of all these dtypes.
    column = pd.Series(array).astype(name).reindex([0, -1, 2, 3, -1, 5]).array
    index = [] if array.dtype == "float16" else [pd.Index(column)]  # which has no half floats
    return [pd.Series(column), column, pd.Series(column).to_frame(), *index]


@pytest.mark.parametrize("library", NULLABLE)
@together("number", range(12))
def test_nulls_are_refused_and_filled_on_request(library: str, number: int) -> None:
    """Nulls are refused; if permitted, they become NaN, 0 or False in a copy that is exact."""
    for name in [*NULLABLE[library]][number : number + 1]:
        expected = numbers(NULLABLE[library][name])
        expected[[1, 4]] = np.nan if expected.dtype.kind == "f" else 0
        for value in nulled(library, name):
            for target in ("numpy", "torch", "python"):
                for keywords in ({}, {"copy": True}, {"dtype": "float64"}, {"allow": "narrow"}):
                    match = r"drop_mask.*\n.*pass allow=\{'drop_mask'\}"
                    with pytest.raises(RefusedError, match=match):
                        interop.convert(value, to=target, **keywords)
            result = interop.convert(value, to="numpy", allow={"drop_mask"})
            assert (result.dtype, result.flags.writeable) == (expected.dtype, True)
            assert result.reshape(-1).tobytes() == expected.tobytes()
            assert "masked" in interop.spec(value).traits
            assert interop.convert(value, to=interop.spec(value).format) is value


@together("value", [make([1.0, float("nan")]) for make in (pd.Series, pl.Series, pa.array)])
def test_nan_is_not_a_null(value: Any) -> None:
    """NaN is a number like any other, and arrives without permission."""
    assert "masked" not in interop.spec(value).traits
    assert np.isnan(interop.convert(value, to="numpy")[1])


@together("make", [pl.Series, pa.array])
def test_nulls_in_lists_are_not_lost(make: Callable[..., Any]) -> None:
    """Null elements are filled only if that is permitted, and null rows are refused."""
    value = make([[1.0, None], [3.0, 4.0]])
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(value, to="numpy")
    filled = interop.convert(value, to="numpy", allow="drop_mask")
    assert np.array_equal(filled, [[1, np.nan], [3, 4]], equal_nan=True)
    with pytest.raises(RefusedError, match=r"some of its rows are null.*drop_null"):
        interop.convert(make([[1.0], None]), to="numpy", allow=("drop_mask", "pad"))


# ---------------------------------------------------------------------- memory

#: An only column in one block, as a table and by itself.
ONLY: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    **{
        f"pandas, {dtype}": lambda numbers, dtype=dtype: (
            frame := pd.DataFrame({"a": pd.array(numbers, dtype=dtype)}, copy=False),
            frame["a"],
        )
        for dtype in ("int64", "Int64", "Float32", "int64[pyarrow]", "double[pyarrow]")
    },
    "polars": lambda numbers: (frame := pl.DataFrame({"a": numbers}), frame["a"]),
    "polars, slice": lambda numbers: (frame := pl.DataFrame({"a": [0, *numbers]})[1:], frame["a"]),
    "pyarrow.table": lambda numbers: (table := pa.table({"a": numbers}), table["a"]),
    "pyarrow.record_batch": lambda numbers: (batch := pa.record_batch({"a": pa.array(numbers)}), batch["a"]),
}  # fmt: skip


@together("kind", ONLY)
def test_an_only_column_is_shared_like_one_by_itself(kind: str) -> None:
    """A table of one column in one block is a matrix over its memory; a copy owns its own."""
    table, column = ONLY[kind]([1, 2, 3])
    result = interop.convert(table, to="numpy", copy=False)
    assert (result.tolist(), result.flags.writeable) == ([[1], [2], [3]], False)
    assert start(result) == start(interop.convert(column, to="numpy", copy=False))
    assert interop.plan(table, to="numpy").aliases
    for keywords in ({"copy": True}, {"dtype": "int16"}):
        copied = interop.convert(table, to="numpy", **keywords)
        assert (copied.tolist(), copied.flags.writeable) == (result.tolist(), True)
        assert not np.shares_memory(copied, result)
    if "Int" not in kind and "Float" not in kind and kind != "pandas, int64":
        nulls, _ = ONLY[kind]([1, None, 3])
        with pytest.raises(RefusedError, match="drop_mask"):
            interop.convert(nulls, to="numpy")


#: Columns that lie in no one block.
APART = {
    "chunks": pl.concat([pl.DataFrame({"a": [1.0, 2.0, 3.0]})] * 2, rechunk=False),
    "bits": pl.DataFrame({"a": [True]}),
    "a column twice": pl.DataFrame({"a": [1.0]}).with_columns(b="a"),
    "chunks of Arrow": pa.table({"a": pa.chunked_array([[1.0], [2.0]])}),
    "bits of Arrow": pa.table({"a": [True]}),
}


@together("kind", APART)
def test_columns_apart_are_copied(kind: str) -> None:
    """They are refused where nothing may be copied, and else are the numbers of the columns."""
    with pytest.raises(RefusedError, match="leave out copy=False"):
        interop.convert(APART[kind], to="numpy", copy=False)
    table = APART[kind].to_arrow() if isinstance(APART[kind], pl.DataFrame) else APART[kind]
    expected = np.column_stack([column.to_numpy() for column in table.columns])
    assert interop.convert(APART[kind], to="numpy").tolist() == expected.tolist()


PAIR = pl.Series([2.0, 1.0])  # columns of separate Series may lie side by side by chance
RECEIPTS: list[tuple[Any, bool]] = [
    (pd.Series([1.0, 2.0]), True),
    (pd.Series([1, 2], dtype="Int64"), True),
    (pd.Series([1, 2], dtype="int64[pyarrow]"), True),
    (pd.Series([True], dtype="bool[pyarrow]"), False),
    (pd.DataFrame(np.ones((2, 3))), True),
    (pd.DataFrame({"a": [1.0], "b": np.float32([1])}), False),
    (pd.RangeIndex(4), False),
    (pd.array([1, 2]), True),
    (pl.Series([1.0, 2.0]), True),
    (pl.Series([True]), False),
    (pl.concat([pl.Series([1.0]), pl.Series([2.0])], rechunk=False), False),
    (pl.Series(np.ones((2, 3))), True),
    (pl.DataFrame({"a": PAIR[:1], "b": PAIR[1:]}), True),
    (pl.DataFrame({"a": PAIR[1:], "b": PAIR[:1]}), False),
    (pa.table({"a": [1.0]}), True),
    (pa.table({"a": [1.0], "b": [2.0]}), False),
    (pa.chunked_array([[1.0], [2.0]]), False),
]


@together("value, shared", RECEIPTS)
def test_receipts_know_the_memory(value: Any, shared: bool) -> None:
    """A receipt says that memory is shared exactly where the addresses agree."""
    with interop.trace() as receipts:
        interop.convert(value, to="numpy")
    has_memory = not isinstance(value, pd.RangeIndex)  # whose numbers are computed
    assert receipts[0].aliased is (shared if has_memory else None)
    assert interop.plan(value, to="numpy").aliases is shared


@together("library", ["pandas.dataframe", "polars.dataframe"])
@together("shape", [(0, 0), (3, 0), (0, 2)])
def test_frames_without_columns_or_rows(shape: tuple[int, int], library: str) -> None:
    """Empty DataFrames keep their shape, both ways; without columns they have any dtype."""
    if shape == (3, 0) and "height" not in inspect.signature(pl.DataFrame).parameters:
        pytest.skip("this polars has no rows without columns")
    frame = interop.convert(np.ones(shape, "f4"), to=library)
    assert frame.shape == shape
    for keywords in ({}, {"copy": True}):
        for other in ("pandas", "polars"):
            assert interop.convert(frame, to=other, **keywords).shape == shape
    dtype = "float32" if shape[1] else "float64"
    for to in ("numpy", library, "torch"):
        for keywords in ({}, {"copy": True}, {"dtype": "int16"}, {"dtype": "int16", "copy": True}):
            route = interop.plan(frame, to=to, **keywords)
            spec = interop.spec(interop.convert(frame, to=to, **keywords))
            wanted = dtype if to == library and not shape[1] else keywords.get("dtype", dtype)
            assert (route.result.dtype, spec.shape) == (wanted, shape)
            assert spec.dtype == route.result.dtype or "unknown_dtype" in spec.traits


# ---------------------------------------------------------------------- what is not numbers

DATES = [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]
#: Columns by the word that names them in refusals.
OF_PANDAS: dict[str, Any] = {
    str(pd.Series(["a"]).dtype): ["a", "b"],  # str, and object before pandas 3
    "object": [object(), 1],
    "datetime64": pd.to_datetime(DATES),
    "timedelta64": pd.to_timedelta([1, 2]),
    "category": pd.Categorical([1, 2]),
    "period": pd.period_range("2020", periods=2, freq="M"),
    "interval": pd.interval_range(0, 2),
    "UTC": pd.date_range("2020", periods=2, tz="UTC"),
    "string": pd.array(["a", None], dtype="string"),
    "timestamp": pd.array(pd.to_datetime(DATES)).astype("timestamp[us][pyarrow]"),
    "decimal": pd.array([1, 2], dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
}
OF_POLARS: dict[str, Any] = {
    "String": ["a", "b"],
    "Date": pl.Series(DATES).dt.date(),
    "Datetime": pl.Series(DATES),
    "Decimal": [Decimal("1.5"), Decimal(2)],
    "List": [["a"], ["b", "c"]],
    "Categorical": pl.Series(["a", "b"], dtype=pl.Categorical),
    "Enum": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
    "Struct": [{"a": 1}, {"a": 2}],
    "Null": [None, None],
    "Object": pl.Series([object(), object()]),
    "Array": pl.Series([["a"], ["b"]], dtype=pl.Array(pl.String, 1)),
}
if hasattr(pl, "Int128"):  # since 1.18
    OF_POLARS["Int128"] = pl.Series([1, 2], dtype=pl.Int128)
OTHERS = [(pd, word, column) for word, column in OF_PANDAS.items()]
OTHERS += [(pl, word, column) for word, column in OF_POLARS.items()]
#: Those that NumPy has, too.
HELD = {"str", "string", "datetime64", "timedelta64", "String", "Date", "Datetime"}


@together("library, word, column", OTHERS)
def test_refusals_of_what_is_not_numbers_name_it(library: Any, word: str, column: Any) -> None:
    """A refusal of texts, times, categories and the like names them, and says what to do."""
    series, frame = library.Series(column), library.DataFrame({"n": [1, 2], "other": column})
    name = library.__name__
    advice = {pd: r"x\.astype|to_numeric|\.left", pl: r"in polars first|x\.\w+"}[library]
    for target in ("jax" if word in HELD else "numpy", "torch", "python"):
        with pytest.raises(RefusedError, match=rf"{word}.*({advice})"):
            interop.convert(series, to=target)
    with pytest.raises(RefusedError, match=rf"{word}.*\(column 'other'\).*select(_dtypes)?\("):
        interop.convert(frame, to="numpy")
    assert interop.convert(series, to=f"{name}.series") is series
    assert interop.convert(frame, to=f"{name}.dataframe") is frame


_LISTS: dict[str, list[Any]] = {
    "lengths differ": [[1, 2], [3], [4, 5, 6]],
    "rows without elements": [[1], [], [2, 3]],
    "a row is null": [[1, 2], None, [3, 4]],
    "an element is null": [[1, 2], [3, None]],
    "both, and lengths differ": [[1, None], None, [3]],
    "no rows of several": [None, [1, 2]],
}


def _series(library: str, rows: list[Any], dtype: str, kind: str) -> Any:
    """Return a Series of lists by the name of x, in one chunk, in two, as a slice, or of objects."""
    numbers = [row and [None if n is None else _number(n, dtype) for n in row] for row in rows]
    if kind == "objects":
        return pd.Series(numbers, name="x")
    type_ = pa.large_list(pa.type_for_alias(dtype))
    parts = {"chunks": [numbers[:1], numbers[1:]], "a slice": [[[], *numbers]]}.get(kind, [numbers])
    chunked = pa.chunked_array(parts, type_)
    series = pl.Series("x", chunked) if library == "polars" else None
    if series is None:
        series = pd.Series(chunked.to_pandas(types_mapper=pd.ArrowDtype), name="x")
    return series[1:] if kind == "a slice" else series


def _number(number: int, dtype: str) -> Any:
    return bool(number % 2) if dtype == "bool" else float(number) if "float" in dtype else number


@pytest.mark.parametrize("kind", ["one chunk", "chunks", "a slice", "objects"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
@together("rows", _LISTS.values())
def test_lists_go_between_series_with_names_and_nulls(kind, dtype, rows):
    """Lists of numbers that are no array become a Series of lists of its name, with all nulls."""
    series = _series("polars", rows, dtype, kind if kind != "objects" else "one chunk")
    source = _series("pandas", rows, dtype, kind)
    numbers = [row and [n and _number(n, dtype) for n in row] for row in rows]
    result = interop.convert(source, to="polars")
    assert (type(result), result.name, result.to_list()) == (pl.Series, "x", numbers)
    assert result.dtype == series.dtype
    result = interop.convert(series, to="pandas")
    assert (type(result), result.name) == (pd.Series, "x")
    assert pl.from_pandas(result).to_list() == numbers
    assert interop.convert(result, to="polars").to_list() == numbers


@together(
    "rows", [[[1.0, 2.0], None], [[1.0, None], [2.0]], [[1.0, None], [2.0, 3.0]], [[True], None]]
)
def test_objects_that_are_lists_with_gaps_are_copied(rows):
    """No plan calls memory that is written from Python's objects shared, and copy=False refuses."""
    series = pd.Series(rows)
    for target, to_list in (("polars", pl.Series.to_list), ("pyarrow.list", pa.Array.to_pylist)):
        plan = interop.plan(series, to=target)
        assert (plan.aliases, plan.effects) == (False, {"copy"})
        assert to_list(interop.convert(series, to=target)) == rows
        with pytest.raises(RefusedError):
            interop.convert(series, to=target, copy=False)
    if len({len(row or ()) for row in rows}) == 1:
        masked = interop.convert(series, to="numpy.ma")
        assert masked.tolist() == rows
        filled = interop.convert(series, to="numpy", allow="drop_mask")
        assert str(filled.tolist()) == str(rows).replace("None", "nan")


def test_nan_in_a_list_beside_nulls_is_a_number():
    """NaN in the rows of a Series of objects stays NaN, and None becomes null."""
    series = pd.Series([[1.0, float("nan")], None, [None, 2.0]])
    result = interop.convert(series, to="polars").to_list()
    assert str(result) == "[[1.0, nan], None, [None, 2.0]]"


def test_lists_of_text_go_between_series():
    """Lists of anything else go by the same protocol, whichever library has them."""
    for rows in ([["a"], [], ["b", "c"]], [[[1], [2, 3]], [[4]]]):
        there = interop.convert(pd.Series(rows, name="x"), to="polars")
        assert (there.name, there.to_list()) == ("x", rows)
        back = interop.convert(there, to="pandas")
        assert (back.name, pl.from_pandas(back).to_list()) == ("x", rows)


@together("library", ["pandas.dataframe", "pyarrow.table"])
def test_a_column_without_a_name_keeps_none(library):
    """Polars, whose own call numbers columns by the name of "", gets their names."""
    table = LIBRARIES[library]({"a": [1, 2], "": [3, 4]})
    result = interop.convert(table, to="polars")
    assert result.to_dict(as_series=False) == {"a": [1, 2], "": [3, 4]}
    assert interop.convert(result, to=type(table)).shape == (2, 2)


def test_metadata_of_a_schema_is_told_where_there_is_no_place_for_it():
    """What only Arrow's schema says of a table counts as labels; pandas' note does not."""
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    noted = pa.Table.from_pandas(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    for to in ("polars", "pandas"):
        for plain in (table, noted):
            assert "drop_labels" not in interop.plan(plain, to=to).effects
        marked = noted.replace_schema_metadata({**noted.schema.metadata, b"unit": b"m"})
        assert "drop_labels" in interop.plan(marked, to=to).effects
        with pytest.raises(RefusedError, match="drop_labels"):
            interop.convert(marked, to=to, forbid="drop_labels")
        assert interop.convert(marked, to=to).shape == (2, 2)
    kept = interop.convert(marked, to="pyarrow.table", copy=True, forbid="drop_labels")
    assert kept.schema.metadata == marked.schema.metadata
