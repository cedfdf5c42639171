"""Text and dates between NumPy, pandas, Polars, Arrow and xarray, and copies of what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import interop
from interop.errors import RefusedError
from tests.cases import marked, together

TEXT, MISSING = np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)

#: Arrays of NumPy's by kind.
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "text": np.array(["a", "bç"]),
    "swapped text": np.array(["a", "bç"], ">U2"),
    "bytes": np.array([b"a", b"bc"]),
    "StringDType": np.array(["a", "bç"], TEXT),
    "StringDType with nulls": np.array(["a", None], MISSING),
    **{
        f"{kind} in {unit}": np.array([3, "NaT", 5], f"{kind}8[{unit}]")
        for kind in "Mm"
        for unit in ("h", "s", "ms", "us", "ns")
    },
    "days": np.array(["2020-01-01", "NaT"], "M8[D]"),
    "reversed dates": np.arange(6).astype("M8[ns]")[::-2],
    "swapped dates": np.array([3, "NaT"], ">M8[ns]"),
    "no dates": np.array([], "M8[us]"),
}
CONSTRUCTORS: dict[str, Callable[[Any], Any]] = {
    "pandas.series": pd.Series,
    "polars.series": pl.Series,
    "pyarrow": pa.array,
    "xarray.dataarray": xr.DataArray,
    "xarray.variable": lambda x: xr.Variable(("dim_0",), x),
}
#: What a library makes otherwise than its constructor: what that refuses, or keeps as NumPy's.
OTHERWISE: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pandas.series", "bytes"): lambda x: pd.Series(x, dtype=object),
    ("pandas.series", "StringDType"): lambda x: pd.Series(x, dtype="str"),
    ("pandas.series", "StringDType with nulls"): lambda x: pd.Series(x, dtype="str"),
    **{
        (target, "swapped dates"): lambda x, make=make: make(x.astype("<M8[ns]"))
        for target, make in CONSTRUCTORS.items()
    },
    ("pyarrow", "swapped text"): lambda x: pa.array(x.astype("<U2")),
    **{
        ("polars.series", f"{kind} in {unit}"): lambda x, kind=kind: pl.Series(
            x.astype(f"{kind}8[ms]")
        )
        for kind in "Mm"
        for unit in ("h", "s")
    },
}
#: What a library does not have in the bits of NumPy's.
REFUSED = {
    ("pyarrow", "M in h"),
    ("pyarrow", "m in h"),
    ("xarray.dataarray", "swapped dates"),
    ("xarray.variable", "swapped dates"),
}


def same(value: Any, other: Any) -> bool:
    """Tell whether two values of a library are equal, nulls included."""
    if isinstance(value, (xr.DataArray, xr.Variable)):
        return bool(value.identical(other))
    if isinstance(value, pl.Series):
        return value.dtype == other.dtype and value.equals(other, null_equal=True)
    if isinstance(value, np.ndarray):
        return value.dtype == other.dtype and bool(np.array_equal(value, other))
    return bool(value.equals(other))


@pytest.mark.parametrize("target", CONSTRUCTORS)
def test_text_and_dates_of_numpy_become_what_the_library_makes_of_them(target: str) -> None:
    """Values, units and nulls are those of the library's own constructor, in plan and call alike."""
    for kind, array in ARRAYS.items():
        if (target, kind) in REFUSED:
            with pytest.raises(RefusedError):
                interop.plan(array, to=target)
            continue
        made = OTHERWISE.get((target, kind), CONSTRUCTORS[target])(array.copy())
        for _ in range(2):
            assert same(interop.convert(array, to=target), made), kind
        copied = interop.convert(array, to=target, copy=True)
        assert same(copied, made), kind
        assert not np.shares_memory(np.asarray(copied), array), kind
        plan = interop.plan(array, to=target)
        if plan.aliases:
            shared = interop.convert(array, to=target, copy=False)
            if isinstance(shared, pa.Array) and array.size:
                assert shared.buffers()[1].address == array.ctypes.data, kind
            else:
                assert np.shares_memory(np.asarray(shared), array) or not array.size, kind
        else:
            with pytest.raises(RefusedError):
                interop.convert(array, to=target, copy=False)


@pytest.mark.parametrize("source", CONSTRUCTORS)
def test_text_and_dates_come_back_to_numpy(source: str) -> None:
    """Dates come back in the unit that the library has, and text as objects."""
    for kind, array in ARRAYS.items():
        if (source, kind) in REFUSED or (source, kind) == ("pandas.series", "bytes"):
            continue
        value = interop.convert(array, to=source)
        back = interop.convert(value, to="numpy")
        if array.dtype.kind in "Mm":
            assert np.array_equal(back, array, equal_nan=True), kind
            assert back.dtype == array.dtype or kind[-1] in "sh", kind  # which become finer ones
        else:
            expected = array.astype(object).tolist()
            assert [None if pd.isna(x) else x for x in back.tolist()] == expected, kind
        assert interop.convert(value, to="numpy", copy=True).flags.writeable


@together(
    "value",
    [
        pd.Series(pd.date_range("2020", periods=2, tz="UTC")),
        pd.Series(["a"], dtype="category"),
        pd.Series(pd.period_range("2020", periods=2)),
        pl.Series([1], dtype=pl.Datetime("us", "UTC")),
        pl.Series(["a"], dtype=pl.Categorical),
        pl.Series([1], dtype=pl.Time),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array(["a"]).dictionary_encode(),
        pa.array([1], pa.time32("s")),
    ],
)
def test_what_numpy_lacks_is_refused_in_plan_and_call(value: Any) -> None:
    """Time zones, categories, periods and times of day are not NumPy's."""
    for function in (interop.plan, interop.convert):
        with pytest.raises(RefusedError):
            function(value, to="numpy")


@together("array", ARRAYS.values())
def test_text_and_dates_are_no_numbers(array: Any) -> None:
    """Libraries of numbers refuse them, with advice."""
    for target in ("torch", "jax", "scipy.csr"):
        with pytest.raises(RefusedError):
            interop.convert(array, to=target)


#: Arrays that are NumPy's already, whatever their elements.
ANYTHING: dict[str, Any] = {
    **ARRAYS,
    "a table of text": np.array([["a", "b"], ["c", "d"]]),
    "objects that are text": np.array(["a", "b"], dtype=object),
    "mixed objects": np.array(["a", 1, None], dtype=object),
    "dicts": np.array([{}, {"a": 1}], dtype=object),
    "objects that are numbers": np.array([1, None], dtype=object),
    "records": np.array([(1, 2.0)], "i4,f4"),
    "raw bytes": np.array([b"ab", b"cd"], "V2"),
    "more raw bytes": np.array([b"abc"], "V3"),
    "masked text": np.ma.array(["a", "b"], mask=[True, False]),
    "masked dates": np.ma.array(ARRAYS["days"], mask=[True, False]),
}


@pytest.mark.parametrize("kind", ANYTHING)
def test_an_array_that_is_numpys_already_is_returned_or_copied(kind: str) -> None:
    """Whatever its elements, no keyword refuses what the array is already."""
    array = ANYTHING[kind]
    target = "numpy.ma" if isinstance(array, np.ma.MaskedArray) else "numpy"
    for keywords in ({}, {"copy": False}, {"copy": "writable"}, {"device": "cpu"}):
        assert interop.convert(array, to=target, **keywords) is array
        assert interop.converter(target, **keywords)(array) is array
    for order in ("C", "F"):
        ordered = interop.convert(array, to=target, order=order)
        assert ordered.flags.c_contiguous if order == "C" else ordered.flags.f_contiguous
        assert ordered.tolist() == array.tolist()
    assert interop.convert(array, like=array) is array
    copied = interop.convert(array, to=target, copy=True)
    assert type(copied) is type(array)
    assert copied.dtype == array.dtype
    assert copied.tolist() == array.tolist()
    assert not np.shares_memory(copied, array)
    assert "copy" in interop.plan(array, to=target, copy=True).effects


def lists_of(values: Any, type_: Any = None) -> Any:
    """Return an Arrow array without what a slice has left out."""
    return pa.array(values, type_)[1:]


def labelled(elements: Any) -> Any:
    """Return elements under names of their own."""
    return xr.DataArray(elements, dims="place", coords={"place": [7, 8]}, attrs={"unit": "m"})


#: Values of other libraries that hold no numbers, or not as one array.
OTHERS: dict[str, Callable[[], Any]] = {
    "Arrow's lists of text": lambda: lists_of([["x"], ["a", None], None, []]),
    "Arrow's large lists of records": lambda: lists_of(
        [[], [{"a": 1}]], pa.large_list(pa.struct({"a": pa.int8()}))
    ),
    "Arrow's maps": lambda: lists_of([[], [("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "Arrow's lists with null rows": lambda: lists_of([[], [1.0, None], None]),
    "Arrow's lists of lists": lambda: lists_of([[], [[1], [2, 3]]]),
    "a variable of text": lambda: labelled(["a", "b"]).variable,
    "an array of text": lambda: labelled(["a", "b"]),
    "an array of dates": lambda: labelled(np.array(["2020", "NaT"], "M8[ns]")),
    "an array of objects": lambda: labelled(np.array([{}, 1], object)),
    "awkward records": lambda: awkward()([{"x": 1.0}, {"x": 2.0}])[1:],
    "awkward text": lambda: awkward()(["a", "bc"])[1:],
    "awkward options in lists": lambda: awkward()([[1.0, None], []]),
    "awkward dates": lambda: awkward()(np.array(["2020-01-01"], "M8[D]")),
    "tensorflow strings in rows": lambda: pytest.importorskip("tensorflow").ragged.constant(
        [["a"], []]
    ),
    "chunks of text": lambda: pytest.importorskip("dask.array").from_array(np.array(["a", "b"]), 1),
    "chunks of objects": lambda: pytest.importorskip("dask.array").from_array(
        np.array([{}, 1], object), 1
    ),
}


def awkward() -> Any:
    """Return Awkward's constructor of arrays."""
    return pytest.importorskip("awkward").Array


def addresses(value: Any) -> set[int]:
    """Return where the buffers of a value begin, as far as its library tells."""
    if isinstance(value, pa.Array):
        return {buffer.address for buffer in value.buffers() if buffer is not None and buffer.size}
    if isinstance(value, (xr.DataArray, xr.Variable)):
        return {value.values.ctypes.data}
    if type(value).__module__.startswith("awkward"):
        parts = pytest.importorskip("awkward").to_buffers(value)[2].values()
        return {part.ctypes.data for part in parts if part.nbytes}
    return set()


@pytest.mark.parametrize("kind", marked(OTHERS))
def test_what_is_already_in_the_format_is_returned_or_copied(kind: str) -> None:
    """Whatever its elements, and by its own library's copy, labels and nulls included."""
    value = OTHERS[kind]()
    assert interop.convert(value, like=value) is value
    if "tensorflow" in kind:  # it never changes, and nothing copies it
        with pytest.raises(RefusedError):
            interop.convert(value, like=value, copy=True)
        return
    copied = interop.convert(value, like=value, copy=True)
    assert type(copied) is type(value)
    assert interop.plan(value, like=value, copy=True).aliases is False
    if "chunks" in kind:
        assert copied.dtype == value.dtype
        assert copied.compute().tolist() == value.compute().tolist()
        return
    assert not addresses(copied) & addresses(value)
    assert addresses(copied)
    if isinstance(value, (xr.DataArray, xr.Variable)):
        assert copied.identical(value)
    else:
        assert copied.tolist() == value.tolist()
        assert str(copied.type) == str(value.type)


#: Seconds that milliseconds of 64 bits do not hold, as each library has them.
FAR = 2**60
SECONDS = pa.array([0, FAR], pa.timestamp("s"))
FAR_VALUES: dict[str, Any] = {
    "numpy": np.array([0, FAR], "M8[s]"),
    "numpy spans": np.array([0, FAR], "m8[s]"),
    "xarray": xr.DataArray(np.array([0, FAR], "M8[s]")),
    "array": SECONDS,
    "chunks": pa.chunked_array([SECONDS[:1], SECONDS[1:]]),
    "table": pa.table({"a": SECONDS}),
    "batch": pa.record_batch({"a": SECONDS}),
    "spans": pa.table({"a": SECONDS.cast("int64").cast(pa.duration("s"))}),
    "zoned": pa.table({"a": SECONDS.cast("int64").cast(pa.timestamp("s", "UTC"))}),
    "lists": pa.table({"a": pa.array([[0, FAR]], pa.list_(pa.timestamp("s"))), "b": [1]}),
    "records": pa.table({"a": pa.array([{"x": FAR}], pa.struct([("x", pa.timestamp("s"))]))}),
    "dictionary": pa.table({"a": SECONDS.dictionary_encode()}),
    "Series": pd.Series(np.array([0, FAR], "M8[s]"), name="a"),
    "a time of a day's length": pa.array([0, 86_400_000], pa.int32()).view(pa.time32("ms")),
    "a time before midnight": pa.table({"a": pa.array([-1]).view(pa.time64("ns"))}),
    "lists of times": pa.table({"a": pa.array([[86_400]], pa.list_(pa.time32("s")))}),
    "a time in pandas": pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array([86_400 * 10**6]).view(pa.time64("us"))), name="a"
    ),
    "frame": pd.DataFrame({"a": np.array([0, FAR], "m8[s]"), "b": [1, 2]}),
}


@together("name", FAR_VALUES)
def test_times_that_polars_does_not_hold_are_refused(name: str) -> None:
    """It lets seconds wrap around, and makes null of times outside of a day, however they come."""
    with pytest.raises(RefusedError, match="Polars has no"):
        interop.convert(FAR_VALUES[name], to="polars")


def test_the_most_seconds_that_fit_are_kept() -> None:
    """The limit is that of 64 bits, on both sides of 1970, and nulls are none of the seconds."""
    most = (2**63 - 1) // 1000
    seconds = pa.array([most, -most, None], pa.timestamp("s"))
    series: Any = interop.convert(pa.table({"a": seconds}), to="polars")["a"]
    assert series.to_physical().to_list() == [1000 * most, -1000 * most, None]
    with pytest.raises(RefusedError):
        interop.convert(pa.table({"a": pa.array([most + 1], pa.timestamp("s"))}), to="polars")


@pytest.mark.parametrize("target", ["pandas.series", "polars.series", "pyarrow"])
@together("unit", ["D", "h", "m"])
def test_dates_that_a_library_does_not_hold_are_refused(target: str, unit: str) -> None:
    """No date becomes a null, and no error of the library gets out."""
    for kind in "Mm":
        with pytest.raises(RefusedError):
            interop.convert(np.array([0, FAR], f"{kind}8[{unit}]"), to=target)


@together("source", ["pandas.series", "pandas.index", "polars.series", "pyarrow"])
@together("kind", ["text", "M in us", "m in us"])
def test_text_and_dates_become_chunks_of_arrow_and_come_back(kind: str, source: str) -> None:
    """A chunked array is one of Arrow's like any other, whatever its elements."""
    value = interop.convert(ARRAYS[kind], to=source.replace("index", "series"))
    value = pd.Index(value) if source == "pandas.index" else value
    chunks: Any = interop.convert(value, to="pyarrow.chunked_array")
    assert isinstance(chunks, pa.ChunkedArray)
    assert chunks.to_pylist() == interop.convert(value, to="pyarrow").to_pylist()
    back = interop.convert(chunks, to=source.replace("index", "series"))
    assert [*map(str, back)] == [*map(str, value)]


@pytest.mark.parametrize("target", ["pandas.series", "polars.series", "pyarrow"])
def test_objects_that_are_text_become_columns_of_text(target: str) -> None:
    """None is null, bytes are bytes, and other objects are refused."""
    make = {"pandas.series": pd.Series, "polars.series": pl.Series, "pyarrow": pa.array}[target]
    for objects in (["a", None, "bç"], [None, b"a"], ["a"]):
        array = np.array(objects, object)
        result = interop.convert(array[::-1], to=target)
        assert same(result, make(objects[::-1]))
        assert interop.plan(array, to=target).effects == {"copy"}
    missing = interop.convert(np.array(["a", np.nan], object), to=target)
    assert same(missing, make(["a", None]))
    for objects in ([{1}, {2}], ["a", b"b"], ["a", 1]):
        with pytest.raises(RefusedError):
            interop.convert(np.array(objects, object), to=target)


@pytest.mark.parametrize("target", ["pandas.dataframe", "polars.dataframe", "pyarrow.table"])
def test_text_and_dates_of_two_axes_become_tables(target: str) -> None:
    """Each column is what the column of the array becomes by itself."""
    series = {"pandas.dataframe": "pandas.series", "polars.dataframe": "polars.series"}
    for array in (
        np.array([["a", "bç"], ["c", "d"]]),
        np.array([[b"a", b"b"]]),
        np.array([["a", "b"], ["c", "d"]], TEXT),
        np.array([[3, "NaT"], [4, 5]], "M8[us]").T,
        np.array([["2020-01-01", "NaT"]], "M8[D]"),
    ):
        table: Any = interop.convert(array, to=target)
        assert table.shape == array.shape
        assert interop.plan(array, to=target).effects == {"copy"}
        for place, column in enumerate(array.T):
            alone: Any = interop.convert(column, to=series.get(target, "pyarrow"))
            if target == "pandas.dataframe":
                assert same(table[place], alone.rename(place))
            elif target == "polars.dataframe":
                assert same(table.to_series(place), alone.alias(f"column_{place}"))
            else:
                assert same(table.column(place).chunk(0), alone)
        assert "not_numbers" in interop.spec(table).traits
