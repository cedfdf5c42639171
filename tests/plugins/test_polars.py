"""polars: what is shared, what is copied, and that nulls and numbers are never lost silently."""

from __future__ import annotations

import inspect

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


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
@together("make", [pl.Series, lambda decimals: pl.DataFrame({"a": decimals})])
def test_decimals_are_written_once_on_their_way_out(make, target):
    """The array that is made of them is new, so that no other copy is needed before it is shared."""
    value = make(pl.Series(["1.5", "2.25"]).cast(pl.Decimal(5, 2)))
    plan = interop.plan(value, to=target, dtype="float32")
    copies = [step.label for step in plan.steps if "copy" in step.effects]
    assert len(copies) == (2 if target == "jax" else 1)
    result = np.asarray(interop.convert(value, to=target, dtype="float32"))
    assert result.dtype == np.float32
    assert result.ravel().tolist() == [1.5, 2.25]


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


def test_torch_copies_what_may_be_locked():
    """A tensor is a copy, for Polars does not tell whether a write to its memory would end us."""
    series = pl.Series([1.0, 2.0])
    assert interop.plan(series, to="torch").effects == {"copy"}
    for value in (
        series,
        series.to_frame(),
        pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2)),
    ):
        tensor = interop.convert(value, to="torch")
        tensor += 1
        assert tensor.reshape(-1).tolist() == [2, 3]
        with pytest.raises(RefusedError):
            interop.convert(value, to="torch", copy=False)
    assert series.to_list() == [1, 2]
    shared = interop.convert(series, to="torch", copy=False, allow="share_readonly")
    assert shared.data_ptr() == start(series.to_numpy())


@pytest.mark.parametrize("made", ["pl.from_arrow(table)", "pl.DataFrame({'a': numbers})"])
def test_mapped_files(tmp_path, in_fork, made):
    """What is made of a file that Polars maps can be written to, by any way to it, or is locked."""
    in_fork(
        f"""
        import numpy as np, polars as pl, pyarrow as pa, interop
        from interop.errors import NotInstalledError, RefusedError
        path, plain = {str(tmp_path / "numbers.arrow")!r}, {str(tmp_path / "numbers")!r}
        batch = pa.record_batch({{"a": pa.array(range(1000))}})
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write(batch)
        np.arange(1000).tofile(plain)
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        numbers = np.memmap(plain, "int64", "r")
        frame = {made}
        offsets = pa.array([0, 300, 1000], pa.int64())
        lists = pl.from_arrow(pa.LargeListArray.from_arrays(offsets, table["a"].chunk(0)))
        ways = ["numpy", "pyarrow", "pandas.series", "xarray", "awkward", "dask"]
        for value in (frame["a"], frame.select("a")):
            interop.convert(value, to="torch")[:] = 7
            for way in ways:
                try:
                    between = interop.convert(value, to=way)
                except (NotInstalledError, RefusedError):
                    continue
                interop.convert(between, to="torch")[:] = 7
        interop.convert(lists, to="torch.jagged").values()[:] = 7
        assert frame["a"].to_list() == lists.explode().to_list() == list(range(1000))
        """
    )


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


@together("keywords", [{}, {"copy": True}, {"copy": False}, {"dtype": "float64"}, {"order": "F"}])
def test_warm_calls_tell_frames_of_one_dtype_apart(keywords):
    """A block, columns apart, few rows, chunks and nulls are each what they are, in any order."""
    block = pl.from_numpy(np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    apart = block.select("column_0", "column_2", "column_1")
    chunks = pl.concat([block, block], rechunk=False)
    nulls = block.with_columns(column_1=pl.lit(None, dtype=pl.Float64))
    renamed = block.rename({"column_0": "x"})
    for frame in (block, apart, block[1:3], block[:1], block[:0], chunks, nulls, renamed) * 3:
        try:
            plan = interop.plan(frame, to="numpy", **keywords)
        except RefusedError:
            with pytest.raises(RefusedError):
                interop.convert(frame, to="numpy", **keywords)
            continue
        result = interop.convert(frame, to="numpy", **keywords)
        assert result.tolist() == [[*row] for row in frame.rows()]
        if frame.height:
            assert np.shares_memory(result, frame.to_series().to_numpy()) is plan.aliases


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
        [[[1.0], None]],
        [[["a"]]],
        [["a"], ["b", "c"]],
    ],
)
def test_other_lists_are_refused_as_arrays(rows):
    """Lists in lists of several lengths or with null, and lists of texts, are refused as arrays."""
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


@pytest.mark.skipif(not HAS_HEIGHT, reason="this polars has no rows without columns")
def test_more_rows_than_polars_counts_are_refused_with_its_reason():
    """An array of 2**40 rows and no columns is refused in Polars' words, without a report."""
    rows = np.zeros((2**40, 0))
    with pytest.raises(interop.errors.RefusedError, match=f"declined: .*{2**40} rows"):
        interop.convert(rows, to="polars.dataframe")


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
        # The lock stands for what never changes, for what Polars shares may be mapped memory.
        assert last.after.traits | {"immutable"} == interop.spec(result).traits
    for nulls in (pl.Series([[1.0, 2.0], None, [3.0]]), pl.Series([[1.0, 2.0], [None, 3.0]])):
        result = interop.convert(nulls, to="pyarrow.list", copy=True)
        assert result.to_pylist() == nulls.to_list()
