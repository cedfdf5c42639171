"""Polars: what it alone has; what it shares with pandas and PyArrow is tested with the columns."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import interop
from interop.errors import ConversionError, RefusedError
from tests.cases import together

HAS_HEIGHT = "height" in inspect.signature(pl.DataFrame).parameters


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


def test_mapped_files(tmp_path, in_fork):
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
        offsets = pa.array([0, 300, 1000], pa.int64())
        lists = pl.from_arrow(pa.LargeListArray.from_arrays(offsets, table["a"].chunk(0)))
        ways = ["numpy", "pyarrow", "pandas.series", "xarray", "awkward", "dask"]
        for frame in (pl.from_arrow(table), pl.DataFrame({{"a": numbers}})):
            for value in (frame["a"], frame.select("a")):
                interop.convert(value, to="torch")[:] = 7
                for way in ways:
                    try:
                        between = interop.convert(value, to=way)
                    except (NotInstalledError, RefusedError):
                        continue
                    interop.convert(between, to="torch")[:] = 7
            assert frame["a"].to_list() == list(range(1000))
        interop.convert(lists, to="torch.jagged").values()[:] = 7
        assert lists.explode().to_list() == list(range(1000))
        """
    )


@together("keywords", [{}, {"copy": True}, {"copy": False}, {"dtype": "float64"}, {"order": "F"}])
def test_warm_calls_tell_frames_of_one_dtype_apart(keywords):
    """A block, columns apart, few rows, chunks and nulls are each what they are, in any order."""
    block = pl.from_numpy(np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    apart = block.select("column_0", "column_2", "column_1")
    chunks = pl.concat([block, block], rechunk=False)
    nulls = block.with_columns(column_1=pl.lit(None, dtype=pl.Float64))
    renamed = block.rename({"column_0": "x"})
    row = pl.from_numpy(np.arange(3.0)[np.newaxis])
    few = (block[1:3], block[:1], row, block[:0])
    for frame in (block, apart, *few, chunks, nulls, renamed) * 3:
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


@together("rows", [[[1, 2], [3, None]], [[1, 2], None]])
def test_nulls_of_arrays_and_inside_them_stay_in_a_masked_array(rows):
    """A row that is null is masked as a whole, in one chunk and in two."""
    series = pl.Series(rows, dtype=pl.Array(pl.Int64, 2))
    for value in (series, pl.concat([series, series], rechunk=False)):
        result = interop.convert(value, to="numpy.ma")
        expected = [row or [None, None] for row in value.to_list()]
        assert (result.dtype, result.tolist()) == ("int64", expected)


@pytest.mark.skipif(not HAS_HEIGHT, reason="this polars has no rows without columns")
def test_more_rows_than_polars_counts_are_refused_with_its_reason():
    """An array of 2**40 rows and no columns is refused in Polars' words, without a report."""
    rows = np.zeros((2**40, 0))
    with pytest.raises(interop.errors.RefusedError, match=f"declined: .*{2**40} rows"):
        interop.convert(rows, to="polars.dataframe")


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


def test_casts_of_frames_leave_columns_of_arrays_as_they_are():
    """A dtype counts for columns of numbers alone: those of arrays stay, with all their nulls."""
    rows = pl.Series("rows", [[1, None], None], dtype=pl.Array(pl.Int64, 2))
    frame = interop.convert(
        pl.DataFrame([rows, pl.Series("k", [1, 2])]), to="polars", dtype="float32"
    )
    assert frame.schema == {"rows": rows.dtype, "k": pl.Float32}
    assert frame["rows"].to_list() == [[1, None], None]


@pytest.mark.skipif(pl.__version__.startswith("1."), reason="this polars may look at it later")
def test_an_index_of_a_dictionary_that_is_wrong_is_an_error() -> None:
    """Polars panics at it; what arrives is a ConversionError, as of any other step that fails."""
    index = pa.array([0, 99], "int32")
    wrong = pa.DictionaryArray.from_arrays(index, ["a", "b"], safe=False)
    table = pa.table({"text": wrong})
    table.validate()
    with pytest.raises(pa.ArrowInvalid):
        table.validate(full=True)
    with pytest.raises(ConversionError):
        interop.convert(table, to=pl.DataFrame)
