"""polars: what is shared, what is copied, and that nulls and numbers are never lost silently."""

from __future__ import annotations

import inspect
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
import torch

import interop
from interop.errors import RefusedError, UnknownValueError
from tests.cases import together
from tests.plugins.values import distinct as numbers
from tests.plugins.values import same, start

NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
HAS_FLOAT16 = hasattr(pl, "Float16")  # from 1.36 on
if not HAS_FLOAT16:
    NUMBERS.remove("float16")
HAS_HEIGHT = "height" in inspect.signature(pl.DataFrame).parameters


def nulled(dtype: str) -> pl.Series:
    places = pl.Series([True, False, True, True, False, True])
    return pl.Series("s", numbers(dtype)).zip_with(places, pl.Series([None] * 6))


# ------------------------------------------------------------------ Series


@pytest.mark.parametrize("dtype", NUMBERS)
def test_series_is_shared_both_ways(dtype):
    """Numbers in one chunk are shared with NumPy, read-only, and an array's memory with polars."""
    array = numbers(dtype)
    series = interop.convert(array, to=pl.Series, copy=False)
    assert isinstance(series, pl.Series)
    assert series.to_list() == array.tolist()
    for part, offset in ((series, 0), (series[2:], 2)):
        for _ in range(2):  # the second time by the fast path
            result = interop.convert(part, to="numpy")
            assert start(result) == start(array) + offset * array.itemsize
            assert (result.dtype, result.flags.writeable) == (array.dtype, False)
            assert result.tobytes() == array[offset:].tobytes()
        assert interop.convert(part, to="numpy", copy=False) is not None
    copied = interop.convert(series, to="numpy", copy=True)
    copied[...] = 0
    assert series.to_list() == numbers(dtype).tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[0], (4,)),
        lambda a: a.astype(">f8"),
        lambda a: a[:0],
        lambda a: np.frombuffer(b"x" + a.tobytes(), "u1")[1:].view("f8"),
    ],
)
def test_odd_memory_is_copied(view):
    """What is not one aligned block of native numbers is copied, and the plan says so."""
    array = view(np.arange(6.0))
    route = interop.plan(array, to="polars.series")
    series = interop.convert(array, to="polars.series")
    assert series.to_list() == array.tolist()
    if array.size:
        assert route.effects == {"copy"}
        assert not np.shares_memory(series.to_numpy(), array)
        with pytest.raises(RefusedError, match="copy"):
            interop.convert(array, to="polars.series", copy=False)


def test_read_only_memory_is_shared():
    """polars never writes to a Series, so it can share read-only memory."""
    array = np.arange(4)
    array.flags.writeable = False
    series = interop.convert(array, to="polars.series", copy=False)
    assert start(series.to_numpy()) == start(array)


def test_truth_values_are_bits():
    """Truth values are copied both ways."""
    array = np.array([True, False, True])
    series = interop.convert(array, to="polars.series")
    assert series.dtype == pl.Boolean
    assert interop.plan(array, to="polars.series").effects == {"copy"}
    result = interop.convert(series, to="numpy")
    assert (result.dtype, result.tolist(), result.flags.writeable) == (bool, array.tolist(), True)
    assert interop.plan(series, to="numpy").effects == {"copy"}
    with pytest.raises(RefusedError, match="leave out copy=False"):
        interop.convert(series, to="numpy", copy=False)


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_chunks_are_put_together(dtype):
    """A Series of several chunks is copied once, and does not change."""
    array = numbers(dtype)
    series = pl.concat([pl.Series(array[:2]), pl.Series(array[2:])], rechunk=False)
    assert "scattered" in interop.spec(series).traits
    result = interop.convert(series, to="numpy")
    assert (result.tobytes(), result.dtype) == (array.tobytes(), array.dtype)
    assert result.flags.writeable
    assert series.n_chunks() == 2
    cast = interop.convert(series, to="numpy", dtype="float32")
    assert cast.tobytes() == array.astype("float32").tobytes()


def test_many_elements():
    """What is written piece by piece is complete."""
    array = np.arange(600_001)
    series = pl.concat([pl.Series(array[:500_000]), pl.Series(array[500_000:])], rechunk=False)
    assert np.array_equal(interop.convert(series, to="numpy"), array)
    nulls = pl.select(pl.when(pl.lit(series) % 7 != 0).then(pl.lit(series))).to_series()
    filled = interop.convert(nulls, to="numpy", allow="drop_mask")
    assert np.array_equal(filled, np.where(array % 7, array, 0))


def test_torch_shares_what_never_changes():
    """Memory that never changes is shared with torch under the effect of that name."""
    series = pl.Series([1.0, 2.0])
    assert interop.plan(series, to="torch").effects == {"alias_immutable"}
    tensor = interop.convert(series, to="torch")
    assert tensor.data_ptr() == start(series.to_numpy())
    fresh = interop.convert(series, to="torch", forbid="alias_immutable")
    fresh += 1
    assert series.to_list() == [1, 2]


# ------------------------------------------------------------------ nulls


@together("dtype", [*NUMBERS, "bool"])
@pytest.mark.parametrize("kind", ["series", "dataframe"])
def test_nulls_are_refused_and_filled_on_request(dtype, kind):
    """Nulls are refused; if permitted, they become NaN, 0 or False in a copy that is exact."""
    series = nulled(dtype)
    value = series if kind == "series" else series.to_frame()
    for target in ("numpy", "torch", "python"):
        for keywords in ({}, {"copy": True}, {"dtype": "float64"}, {"allow": "narrow"}):
            with pytest.raises(RefusedError, match=r"drop_mask.*\n.*pass allow=\{'drop_mask'\}"):
                interop.convert(value, to=target, **keywords)
    result = interop.convert(value, to="numpy", allow={"drop_mask"})
    expected = numbers(dtype)
    expected[[1, 4]] = np.nan if dtype.startswith("float") else 0
    assert (result.dtype, result.flags.writeable) == (dtype, True)
    assert result.reshape(-1).tobytes() == expected.tobytes()
    assert series.null_count() == 2
    assert interop.convert(value, to=type(value)) is value


def test_nan_is_not_a_null():
    """NaN is a number like any other; null is not."""
    assert interop.spec(pl.Series([1.0, float("nan")])).traits == {"immutable"}
    assert interop.spec(pl.Series([1.0, None])).traits == {"immutable", "masked"}


# ------------------------------------------------------------------ arrays in Series


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 2), (3, 0), (0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_series_of_arrays(dtype, shape):
    """A Series of fixed-size arrays has their axes, and is shared if it is of numbers."""
    array = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    series = pl.Series(array)
    spec = interop.spec(series)
    assert (spec.shape, spec.dtype) == (shape, dtype)
    result = interop.convert(series, to="numpy")
    assert (result.shape, result.dtype) == (shape, dtype)
    assert np.array_equal(result, array)
    if array.size:
        assert np.shares_memory(result, array) is (dtype != "bool")
    several = pl.concat([series, series], rechunk=False)
    assert np.array_equal(interop.convert(several, to="numpy"), np.concatenate([array, array]))


def test_nulls_inside_arrays():
    """Null arrays and nulls inside arrays are both refused, and filled if permitted."""
    kind = pl.Array(pl.Int32, 2)
    for rows in ([[1, None], [3, 4]], [[1, 2], None], [[1, None], None]):
        series = pl.Series(rows, dtype=kind)
        with pytest.raises(RefusedError, match="drop_mask"):
            interop.convert(series, to="numpy")
        filled = [[n or 0 for n in row or [0, 0]] for row in rows]
        assert interop.convert(series, to="numpy", allow="drop_mask").tolist() == filled


# ------------------------------------------------------------------ DataFrames


@together("dtype", [*NUMBERS, "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_frames(dtype, order):
    """An array is copied into a DataFrame, whose one block of numbers is then shared."""
    array = np.array(numbers(dtype).reshape(2, 3), order=order)
    frame = interop.convert(array, to=pl.DataFrame)
    assert isinstance(frame, pl.DataFrame)
    assert frame.rows() == [tuple(row) for row in array.tolist()]
    assert interop.plan(array, to="polars.dataframe").effects == {"copy"}
    assert not any(np.shares_memory(column.to_numpy(), array) for column in frame)
    is_shared = dtype != "bool"
    result = interop.convert(frame, to="numpy")
    assert (result.dtype, result.flags.writeable) == (dtype, not is_shared)
    assert result.tobytes() == array.tobytes()
    assert all(np.shares_memory(c.to_numpy(), result) == is_shared for c in frame)
    copied = interop.convert(frame, to="numpy", copy=True)
    assert copied.flags.writeable
    assert copied.tobytes() == array.tobytes()
    assert not any(np.shares_memory(column.to_numpy(), copied) for column in frame)


def test_a_frame_of_one_block_is_shared():
    """Columns side by side, as of a Fortran-ordered array, are shared, and others are copied."""
    array = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    frame = pl.from_numpy(array)
    result = interop.convert(frame, to="numpy", copy=False)
    assert result.__array_interface__["data"] == (array.__array_interface__["data"][0], True)
    assert (result.strides, result.tolist()) == (array.strides, array.tolist())
    assert (
        interop.convert(frame, to="torch", allow="share_readonly").data_ptr() == array.ctypes.data
    )
    for other in (frame[1:3], frame.select(pl.col("column_0"), pl.col("column_2"))):
        with pytest.raises(RefusedError, match="leave out copy=False"):
            interop.convert(other, to="numpy", copy=False)
        assert interop.convert(other, to="numpy").tolist() == other.to_numpy().tolist()
    recast = interop.convert(frame, to="polars", dtype="float32")
    assert interop.convert(recast, to="numpy").tolist() == array.tolist()


# ---------------------------------------------------------------------- lists


@together("values", [[[1.0, 2.0], [3.0, 4.0]], [[], []], [[True], [False]], [[1.0], [2.0], [3.0]]])
def test_lists_of_one_length_are_two_axes(values):
    """A Series of lists of one length is an array of two axes, which is shared but for bits."""
    series = pl.Series(values, dtype=None if values[0] else pl.List(pl.Float64))
    result = interop.convert(series, to="numpy")
    expected = series.list.to_array(len(values[0])).to_numpy()
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tolist() == values
    if result.size and result.dtype != bool:
        assert np.shares_memory(result, expected)
    both = pl.concat([series, series], rechunk=False)
    assert interop.convert(both, to="numpy").tolist() == 2 * values


DEEP = [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [0.5, 1.5, 2.5]]]
FLOAT = pl.Float64


@pytest.mark.parametrize(
    "dtype", [pl.List(pl.List(FLOAT)), pl.List(pl.Array(FLOAT, 3)), pl.Array(pl.List(FLOAT), 2)]
)
def test_lists_of_lists_of_one_length_are_three_axes(dtype):
    """Lists of lists that have one length at each level are an array, over the same memory."""
    series = pl.Series(DEEP, dtype=dtype)
    for value in (series, pl.DataFrame([series])):
        result = interop.convert(value, to="numpy", copy=False)
        assert same(result, np.array(DEEP))
        assert start(result) == series.to_arrow().flatten().flatten().buffers()[1].address
    assert same(interop.convert(series[1:], to="numpy", copy=False), np.array(DEEP[1:]))
    both = pl.concat([series, series], rechunk=False)
    assert interop.convert(both, to="torch").tolist() == 2 * DEEP


@together("rows, shape", [([], (0, 0, 0)), ([[], []], (2, 0, 0)), ([[[], []]], (1, 2, 0))])
def test_empty_lists_of_lists_have_their_axes(rows, shape):
    """Lists of lists without elements are an array without elements."""
    series = pl.Series(rows, dtype=pl.List(pl.List(pl.Int16)))
    result = interop.convert(series, to="numpy")
    assert (result.dtype, result.shape) == (np.int16, shape)


@together(
    "rows",
    [
        [[[1.0], [2.0, 3.0]]],
        [[[1.0]], [[2.0], [3.0]]],
        [[[1.0], None]],
        [[[1.0]], None],
        [[["a"]]],
        [["a"], ["b", "c"]],
    ],
)
def test_other_lists_are_refused_as_arrays(rows):
    """Lists of lists of several lengths or with null, and lists of texts, are refused as arrays."""
    series = pl.Series(rows)
    with pytest.raises(RefusedError, match=r"x\.explode\(\)"):
        interop.convert(series, to="numpy")
    with pytest.raises(RefusedError, match=r"x\.to_arrow\(\) keeps them"):
        interop.convert(series, to="pyarrow")
    assert interop.convert(series, to="pandas.series").array._pa_array.to_pylist() == rows


@together("target", ["pyarrow", "pandas.series", "pyarrow.table", "pandas.dataframe"])
def test_python_objects_are_refused(target):
    """Objects, of which Arrow would get the addresses as bytes, are refused."""
    frame = pl.DataFrame({"a": pl.Series([object(), object()]), "b": [1, 2]})
    value = frame if target in {"pyarrow.table", "pandas.dataframe"} else frame["a"]
    with pytest.raises(RefusedError, match=r"addresses of its Python objects; x\.to_pandas\(\)"):
        interop.convert(value, to=target)
    assert value.to_pandas().to_numpy().ravel()[0] is frame["a"][0]


def test_nulls_in_lists_are_not_lost():
    """Null elements are filled only if that is permitted, and null rows are refused."""
    series = pl.Series([[1.0, None], [3.0, 4.0]])
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(series, to="numpy")
    filled = interop.convert(series, to="numpy", allow="drop_mask")
    assert np.isnan(filled[0, 1])
    assert filled[1].tolist() == [3, 4]
    with pytest.raises(RefusedError, match="some of its rows are null"):
        interop.convert(pl.Series([[1.0], None]), to="numpy", allow=("drop_mask", "pad"))


@pytest.mark.parametrize("copy", [False, True])
def test_ragged_lists_are_pyarrows_and_back(copy):
    """Lists of several lengths share their values with PyArrow's, unless a copy is asked for."""
    series = pl.Series("a", [[1.0, 2.0], [], [3.0]])
    lists = interop.convert(series, to="pyarrow.list", copy=copy)
    values = series.to_arrow().values.buffers()[1].address
    assert lists.to_pylist() == series.to_list()
    assert (lists.values.buffers()[1].address == values) is not copy
    back = interop.convert(lists, to="polars.list", copy=copy)
    assert back.to_list() == series.to_list()
    assert (back.to_arrow().values.buffers()[1].address == values) is not copy
    assert interop.convert(series, to="polars.list", copy=True).name == "a"
    padded = interop.convert(series, to="numpy", allow="pad")
    assert padded.tolist() == [[1, 2], [0, 0], [3, 0]]
    with pytest.raises(RefusedError, match="pad"):
        interop.convert(series, to="numpy")


def test_an_only_column_of_arrays_or_lists_is_all_of_its_frame():
    """A frame of one column of arrays or lists has the axes of that column, and shares its memory."""
    lists = pl.Series("a", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    arrays = pl.Series("a", np.arange(12.0).reshape(3, 2, 2))
    for column in (lists, arrays, lists.list.to_array(2)):
        frame = pl.DataFrame([column])
        assert interop.spec(frame).shape == interop.spec(column).shape
        result = interop.convert(frame, to="numpy", copy=False)
        assert same(result, np.array(column.to_list()))
        assert start(result) == start(interop.convert(column, to="numpy", copy=False))
        assert interop.convert(frame, to="polars.dataframe") is frame
    ragged = pl.DataFrame({"a": [[1.0], [2.0, 3.0]]})
    assert interop.convert(ragged, to="numpy", allow="pad").tolist() == [[1, 0], [2, 3]]
    for other in ([["a"]], [[[1.0], [2.0, 3.0]]]):
        with pytest.raises(RefusedError, match="these are not numbers"):
            interop.convert(pl.DataFrame({"a": other}), to="numpy")


def test_one_column_is_shared_like_a_series():
    """The only column of a DataFrame is shared if it lies in one block, and else copied."""
    column = pl.Series("a", [1.5, 2.5, 3.5])
    for frame in (pl.DataFrame([column]), pl.DataFrame([column])[1:]):
        result = interop.convert(frame, to="numpy", copy=False)
        assert (result.dtype, result.tolist()) == ("float64", frame.to_numpy().tolist())
        assert (start(result), result.flags.writeable) == (start(frame["a"].to_numpy()), False)
        for keywords in ({"copy": True}, {"dtype": "float32"}):
            copied = interop.convert(frame, to="numpy", **keywords)
            assert copied.tolist() == result.tolist()
            assert copied.flags.writeable
            assert not np.shares_memory(copied, result)
    chunks = pl.concat([pl.DataFrame([column])] * 2, rechunk=False)
    twice = pl.DataFrame([column, column.alias("b")])  # two buffers could lie side by side
    for frame in (chunks, pl.DataFrame({"a": [True]}), twice):
        with pytest.raises(RefusedError, match="leave out copy=False"):
            interop.convert(frame, to="numpy", copy=False)
        assert interop.convert(frame, to="numpy").tolist() == frame.to_numpy().tolist()
    nulls = pl.DataFrame({"a": [1.0, None]})
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(nulls, to="numpy")
    filled = interop.convert(nulls, to="numpy", allow="drop_mask")
    assert np.array_equal(filled, [[1.0], [np.nan]], equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
def test_frames_without_columns_or_rows(shape):
    """Empty DataFrames keep their shape, both ways; without columns they have any dtype."""
    if shape == (3, 0) and not HAS_HEIGHT:
        pytest.skip("this polars has no rows without columns")
    frame = interop.convert(np.ones(shape, "f4"), to="polars.dataframe")
    assert frame.shape == shape
    for keywords in ({}, {"copy": True}):
        table = interop.convert(frame, to="pandas", **keywords)
        assert table.shape == interop.convert(table, to="polars", **keywords).shape == shape
    dtype = "float32" if shape[1] else "float64"
    for to in ("numpy", "polars.dataframe", "torch"):
        for keywords in ({}, {"dtype": "int16"}, {"dtype": "int16", "copy": True}):
            route = interop.plan(frame, to=to, **keywords)
            spec = interop.spec(interop.convert(frame, to=to, **keywords))
            wanted = dtype if "dataframe" in to and not shape[1] else keywords.get("dtype", dtype)
            assert (route.result.dtype, spec.shape) == (wanted, shape)
            assert spec.dtype == route.result.dtype or "unknown_dtype" in spec.traits


@pytest.mark.skipif(not HAS_HEIGHT, reason="this polars has no rows without columns")
def test_more_rows_than_polars_counts_are_refused_with_its_reason():
    """An array of 2**40 rows and no columns is refused in Polars' words, without a report."""
    rows = np.zeros((2**40, 0))
    with pytest.raises(interop.errors.RefusedError, match=f"declined: .*{2**40} rows"):
        interop.convert(rows, to="polars.dataframe")


OTHERS = {
    "String": ["a", "b"],
    "Date": pl.Series(["2020-01-01"] * 2).str.to_date(),
    "Datetime": pl.Series(["2020-01-01"] * 2).str.to_datetime("%Y-%m-%d"),
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
    OTHERS["Int128"] = pl.Series([1, 2], dtype=pl.Int128)


@pytest.mark.parametrize("word", OTHERS)
def test_refusals_of_texts_times_and_lists_name_them(word):
    """A refusal of texts, times, lists and the like names them, and says what to do."""
    series = pl.Series(OTHERS[word])
    frame = pl.DataFrame({"n": [1, 2], "other": OTHERS[word]})
    held = word in {"String", "Date", "Datetime"}  # by NumPy, too
    for target in ("jax" if held else "numpy", "torch", "python"):
        with pytest.raises(RefusedError, match=rf"{word}.*(in polars first|x\.\w+)"):
            interop.convert(series, to=target)
    with pytest.raises(RefusedError, match=rf"{word}.*\(column 'other'\).*select\("):
        interop.convert(frame, to="numpy")
    assert interop.convert(series, to="polars.series") is series
    assert interop.convert(frame, to="polars.dataframe") is frame


def test_lazy_frames():
    """A LazyFrame, whose length is not known, is refused, and the refusal says what to do."""
    lazy = pl.DataFrame({"a": [1]}).lazy()
    with pytest.raises(UnknownValueError, match=r"collect\(\)"):
        interop.convert(lazy, to="numpy")
    assert interop.convert(lazy.collect(), to="numpy").tolist() == [[1]]


# ------------------------------------------------------------------ into polars, and within


def test_into_polars():
    """The number of axes chooses the target; dtypes that polars lacks are widened or refused."""
    assert interop.convert(np.ones(3), to="polars").dtype == pl.Float64
    assert interop.convert(torch.ones(2, 3), to="polars").shape == (2, 3)
    assert interop.convert(torch.ones(3).bfloat16(), to="polars.series").dtype == pl.Float32
    with pytest.raises(RefusedError, match=r"ask for polars\.dataframe"):
        interop.convert(np.ones((2, 2)), to="polars.series")
    with pytest.raises(RefusedError, match="reshape"):
        interop.convert(np.ones(()), to="polars")
    with pytest.raises(RefusedError, match=r"does not hold complex64; ask for"):
        interop.convert(np.ones(2, "c8"), to="polars.series")
    with pytest.raises(RefusedError, match="narrow"):
        interop.convert(np.ones((2, 2), "g"), to="polars.dataframe")


def test_names_stay_within_polars():
    """From polars to polars, copied or cast, names stay."""
    series = pl.Series("s", [1, 2, 300])
    copied = interop.convert(series, to="polars.series", copy=True)
    assert (copied.name, copied.to_list()) == ("s", [1, 2, 300])
    assert not np.shares_memory(copied.to_numpy(), series.to_numpy())
    cast = interop.convert(series, to="polars.series", dtype="uint8")
    assert (cast.name, cast.dtype, cast.to_list()) == ("s", pl.UInt8, [1, 2, 44])
    chunks = pl.concat([series, series], rechunk=False)
    assert interop.convert(chunks, to="polars.series", dtype="float32").name == "s"
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, 1]})
    cast = interop.convert(frame, to="polars.dataframe", dtype="float32")
    assert cast.schema == {"a": pl.Float32, "b": pl.Float32}


def test_receipts_know_the_memory():
    """A receipt says that memory is shared exactly where the addresses agree."""
    pair = pl.Series([2.0, 1.0])  # columns of separate Series may lie side by side by chance
    cases = [
        (pl.Series([1.0, 2.0]), True),
        (pl.Series([True]), False),
        (pl.concat([pl.Series([1.0]), pl.Series([2.0])], rechunk=False), False),
        (pl.Series(np.ones((2, 3))), True),
        (pl.DataFrame({"a": pair[:1], "b": pair[1:]}), True),
        (pl.DataFrame({"a": pair[1:], "b": pair[:1]}), False),
    ]
    for value, shared in cases:
        with interop.trace() as receipts:
            interop.convert(value, to="numpy")
        assert receipts[0].aliased is shared
        assert interop.plan(value, to="numpy").aliases is shared


def test_pyarrow_is_not_imported(in_subprocess):
    """polars needs no pyarrow, in neither direction."""
    in_subprocess(
        """
        import sys
        sys.modules["pyarrow"] = None
        import numpy as np, polars as pl, interop
        interop.convert(pl.Series([1.0, 2.0]), to="numpy")
        interop.convert(pl.DataFrame({"a": [1, 2], "b": [True, False]}), to="numpy")
        interop.convert(pl.Series([1, None]), to="numpy", allow="drop_mask")
        interop.convert(np.ones((2, 3)), to="polars.dataframe")
        """
    )


def test_ragged_lists_are_copied_and_cast_to_lists_of_arrow() -> None:
    """No route leads through a Series that was made on the way, as if its rows had one length."""
    ragged = pl.Series([[1.0, 2.0], [3.0]])
    for keywords in ({"dtype": "float32"}, {"copy": True}):
        result = interop.convert(ragged, to="pyarrow.list", **keywords)
        assert result.to_pylist() == [[1, 2], [3]]
        (*_, last) = interop.plan(ragged, to="pyarrow.list", **keywords).steps
        assert last.after.traits == interop.spec(result).traits
    for nulls in (pl.Series([[1.0, 2.0], None, [3.0]]), pl.Series([[1.0, 2.0], [None, 3.0]])):
        result = interop.convert(nulls, to="pyarrow.list", copy=True)
        assert result.to_pylist() == nulls.to_list()
