"""pandas: what is shared, what is copied, and that nulls and numbers are never lost silently."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.values import ARROW, NULLABLE, start
from tests.plugins.values import distinct as numbers

NUMBERS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
).split()
#: Whether pandas copies what several objects share before it writes to it.
COPIES_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3


def labels(value: Any, **request: Any) -> list[str]:
    return [step.label for step in interop.plan(value, **request).steps]


# ------------------------------------------------------------------ out, shared


@pytest.mark.parametrize("dtype", [*NUMBERS, "longdouble"])
def test_series_is_shared_read_only(dtype):
    """A Series of NumPy's numbers is shared, read-only, with its bits and dtype."""
    array = numbers(dtype)
    series = pd.Series(array, copy=False, index=list("abcdef"))
    for _ in range(2):  # the second time by the fast path
        result = interop.convert(series, to="numpy", copy=False)
        assert result.tobytes() == array.tobytes()
        assert (result.dtype, result.flags.writeable) == (array.dtype, False)
        assert start(result) == start(array)
        result = interop.convert(series, to="numpy")
        assert start(result) == start(array)
    copied = interop.convert(series, to="numpy", copy=True)
    assert copied.flags.writeable
    assert not np.shares_memory(copied, array)
    copied[...] = 0
    assert series.to_numpy().tobytes() == array.tobytes() == numbers(dtype).tobytes()


@pytest.mark.parametrize(
    ("view", "traits"),
    [
        (lambda a: a[::2], {"noncontiguous"}),
        (lambda a: a[::-1], {"noncontiguous", "negative_strides"}),
        (lambda a: np.broadcast_to(a[0], (4,)), {"noncontiguous", "broadcast", "readonly"}),
        (lambda a: a.astype(">f8"), {"byteswapped"}),
        (lambda a: a[:0], set()),
    ],
)
def test_odd_memory_is_described_and_kept(view, traits):
    """The spec tells strides and byte order of the memory, and the numbers arrive everywhere."""
    array = view(np.arange(6.0))
    series = pd.Series(array, copy=False)
    assert interop.spec(series).traits == traits
    result = interop.convert(series, to="numpy")
    assert result.strides == array.strides
    assert np.array_equal(result, array)
    assert interop.convert(series, to="torch").tolist() == array.tolist()


def test_read_only_memory_stays_read_only():
    """torch, whose tensors can be written, gets a copy unless the caller permits sharing."""
    series = pd.Series(np.arange(4.0))
    tensor = interop.convert(series, to="torch")
    tensor += 1
    assert series.tolist() == [0, 1, 2, 3]
    with pytest.raises(RefusedError, match=r"share_readonly.*allow="):
        interop.convert(series, to="torch", copy=False)
    shared = interop.convert(series, to="torch", copy=False, allow="share_readonly")
    assert shared.data_ptr() == start(series.to_numpy())


def test_arrays_that_share_with_pandas_are_read_only():
    """No array writes to a Series; pandas copies the Series before it writes itself, from 3 on."""
    series = pd.Series([1, 2, 3])
    other = series.copy(deep=False)
    result = interop.convert(series, to="numpy")
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 9
    series.iloc[0] = 9
    if COPIES_ON_WRITE:
        assert other.tolist() == result.tolist() == [1, 2, 3]
    else:
        assert other.tolist() == result.tolist() == [9, 2, 3]


@pytest.mark.parametrize("name", NULLABLE)
def test_nullable_without_nulls(name):
    """A nullable Series without nulls is shared, read-only although pandas would not lock it."""
    series = pd.Series(numbers(NULLABLE[name]), dtype=name)
    assert interop.spec(series).dtype == NULLABLE[name]
    result = interop.convert(series, to="numpy", copy=False)
    assert result.dtype == NULLABLE[name]
    assert result.tobytes() == numbers(NULLABLE[name]).tobytes()
    assert np.shares_memory(result, series.array._data)
    assert not result.flags.writeable
    assert series.array._data.flags.writeable


@pytest.mark.parametrize("name", ARROW)
def test_arrow_without_nulls(name):
    """Arrow's numbers in one chunk are shared; bits and several chunks are copied once."""
    dtype = ARROW[name]
    series = pd.Series(numbers(dtype)).astype(name)
    result = interop.convert(series, to="numpy")
    assert result.dtype == dtype
    assert result.tobytes() == numbers(dtype).tobytes()
    route = interop.plan(series, to="numpy")
    assert route.effects == ({"copy"} if dtype == "bool" else set())
    buffer = series.array.__arrow_array__().chunk(0).buffers()[1]
    assert (start(result) == buffer.address) is (dtype != "bool")
    chunks = pa.chunked_array([pa.array(numbers(dtype)[:2]), pa.array(numbers(dtype)[2:])])
    several = pd.Series(pd.arrays.ArrowExtensionArray(chunks))
    assert "scattered" in interop.spec(several).traits
    assert interop.convert(several, to="numpy").tobytes() == numbers(dtype).tobytes()
    with pytest.raises(RefusedError, match="copy"):
        interop.convert(several, to="numpy", copy=False)
    sliced = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(numbers(dtype))))[3:]
    assert interop.convert(sliced, to="numpy").tobytes() == numbers(dtype)[3:].tobytes()


# ------------------------------------------------------------------ nulls


def nulled(name: str, dtype: str) -> pd.Series:
    # By take, for pandas before 3 cannot assign to elements of all these dtypes.
    return (
        pd.Series(numbers(dtype)).astype(name).reindex([0, -1, 2, 3, -1, 5]).reset_index(drop=True)
    )


def test_nulls_inside_arrow_slices():
    """The nulls of a slice are those in its own places, also of bits."""
    for values in ([None, 1, 2, None, 4], [None, True, False, None, True]):
        series = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values)))
        part = series[2:]
        result = interop.convert(part, to="numpy", allow="drop_mask")
        assert result.tolist() == [values[2], 0, values[4]]
        assert interop.convert(series[1:3], to="numpy").tolist() == values[1:3]


# ------------------------------------------------------------------ indexes


def test_indexes():
    """The numbers of an Index are shared, read-only; those of a range are computed."""
    index = pd.Index([3, 1, 2])
    result = interop.convert(index, to="numpy", copy=False)
    assert start(result) == start(index.to_numpy())
    assert not result.flags.writeable
    ranged = pd.RangeIndex(2, 20, 6)
    first, second = (interop.convert(ranged, to="numpy") for _ in range(2))
    assert (first.tolist(), first.flags.writeable) == ([2, 8, 14], True)
    assert not np.shares_memory(first, second)
    assert interop.plan(ranged, to="numpy").effects == {"copy"}
    with pytest.raises(RefusedError, match="not plain numbers"):
        interop.convert(pd.MultiIndex.from_tuples([(1, 2)]), to="numpy")


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (pd.Series(["1", "2"]), pd.to_numeric),
        (pd.Series(["a", "b"], dtype="category"), lambda x: x.cat.codes),
        (pd.Series([20, 10], dtype="category"), lambda x: x.astype(x.cat.categories.dtype)),
        (pd.Series(pd.to_datetime(["2026-01-01"])), lambda x: x.astype("int64")),
        (pd.Index(["1", "2"]), pd.to_numeric),
        (pd.Index(["a"], dtype="category"), lambda x: x.codes),
        (pd.Index([20], dtype="category"), lambda x: x.astype(x.categories.dtype)),
        (pd.Index(pd.to_timedelta([1], "s")), lambda x: x.astype("int64")),
        (pd.array(["a"], dtype="category"), lambda x: x.codes),
    ],
)
def test_the_advice_about_what_is_not_numbers_works(value, numbers):
    """What the refusal of a Series, an Index or an array names makes numbers of it."""
    with pytest.raises(RefusedError, match="is not a dtype of numbers; ") as refused:
        interop.convert(value, to="torch")
    names = ["to_numeric"] if numbers is pd.to_numeric else numbers.__code__.co_names
    assert re.search(r"\W+(x\.)?".join(names), str(refused.value))
    assert interop.convert(numbers(value), to="torch").numel() == len(value)


# ------------------------------------------------------------------ DataFrames


@pytest.mark.parametrize("order", ["C", "F"])
@together("dtype", NUMBERS)
def test_a_frame_of_one_block_is_shared(dtype, order):
    """A DataFrame of one block is shared, read-only, in either order."""
    array = np.array(numbers(dtype).reshape(2, 3), order=order)
    frame = pd.DataFrame(array, copy=False, columns=list("xyz"))
    is_of_columns = order == "F"
    kinds = {"block_columns", "noncontiguous", "fortran"} if is_of_columns else {"strided_columns"}
    if dtype == "bool":
        kinds = kinds - {"block_columns", "strided_columns"} | {"byte_columns"}
    assert interop.spec(frame).traits == {"labelled"} | kinds
    for keywords in ({"copy": False}, {}, {}):  # the last time by the fast path
        result = interop.convert(frame, to="numpy", **keywords)
        assert start(result) == start(array)
        assert (result.dtype, result.strides) == (array.dtype, array.strides)
        assert result.tobytes() == array.tobytes()
        assert not result.flags.writeable
    for other in (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": pd.array([None], dtype="Int64")})):
        with pytest.raises(RefusedError):  # although they are of the same type
            interop.convert(other, to="numpy")


def test_columns_that_lie_apart_are_gathered():
    """Columns of one dtype in several blocks are copied side by side, once."""
    frame = pd.DataFrame({"a": [1, 2, 3]})
    frame["b"] = [4, 5, 2**53 + 1]
    route = interop.plan(frame, to="numpy")
    assert [s.label for s in route.steps] == ["gather_dataframe"]
    assert route.effects == {"copy", "drop_labels"}
    result = interop.convert(frame, to="numpy")
    assert result.tolist() == [[1, 4], [2, 5], [3, 2**53 + 1]]
    assert result.flags.writeable
    assert result.flags.f_contiguous
    with pytest.raises(RefusedError, match="leave out copy=False"):
        interop.convert(frame, to="numpy", copy=False)
    tensor = interop.convert(frame, to="torch")
    assert tensor.tolist() == result.tolist()


def test_a_frame_without_columns_keeps_its_index():
    """The labels of rows stay where there is nothing else."""
    frame = pd.DataFrame(index=list("abc"))
    assert list(interop.convert(frame, to="pandas.dataframe", dtype="int8").index) == list("abc")


def test_columns_of_one_name():
    """Columns are told apart by place, not by name."""
    frame = pd.DataFrame([[1, 2.5]], columns=["a", "a"]).astype({"a": "float32"})
    frame.insert(0, "b", np.int8([7]))
    assert interop.convert(frame, to="numpy").tolist() == [[7, 1, 2.5]]


class Geometry(pd.api.extensions.ExtensionDtype):
    """The dtype of GeoPandas, whose arrays hold objects of Shapely's."""

    name = "geometry"
    type = object

    @classmethod
    def construct_array_type(cls) -> type:
        return Geometries


class Geometries(pd.api.extensions.ExtensionArray):
    """An array of two geometries, which PyArrow does not take, as that of GeoPandas."""

    dtype = Geometry()
    nbytes = 16

    def __len__(self) -> int:
        return 2

    def copy(self) -> Geometries:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        msg = "Did not pass numpy.dtype object"
        raise TypeError(msg)


def test_refusals_of_geometries_name_what_makes_others_of_them():
    """A frame and a Series of geometries say what GeoPandas makes bytes and numbers with."""
    series = pd.Series(Geometries())
    for value in (series, pd.DataFrame({"a": series, "n": [1, 2]})):
        for target in ("polars", "pyarrow" if value is series else "pyarrow.table", "numpy"):
            with pytest.raises(RefusedError, match=r"x\.to_wkb\(\).*get_coordinates"):
                interop.convert(value, to=target)


def test_a_frame_that_is_cast_keeps_its_class():
    """A subclass of pandas' frame, as GeoPandas', stays one, with what it knows of itself."""

    class Frame(pd.DataFrame):
        _metadata: ClassVar[list[str]] = ["crs"]

        @property
        def _constructor(self) -> type:
            return Frame

    frame = Frame({"a": [1, 2], "s": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    frame.crs, frame.attrs = "EPSG:4326", {"unit": "m"}
    for keywords in ({"dtype": "float32"}, {"copy": True}):
        result: Any = interop.convert(frame, to="pandas", **keywords)
        assert (type(result), result.crs, result.attrs) == (Frame, "EPSG:4326", {"unit": "m"})
        assert result["a"].dtype == keywords.get("dtype", "int64")


def test_a_dtype_of_another_library_is_not_taken_for_numbers():
    """An extension dtype that calls itself float64 is not taken for one of pandas' own."""

    class Odd(pd.api.extensions.ExtensionDtype):
        name = "float64"
        type = float
        numpy_dtype = np.dtype("float64")

        @classmethod
        def construct_array_type(cls) -> type:
            return OddArray

    class OddArray(pd.api.extensions.ExtensionArray):
        dtype = Odd()

        def __len__(self) -> int:
            return 2

        @property
        def nbytes(self) -> int:
            return 16

    with pytest.raises(RefusedError, match="extension dtype float64"):
        interop.convert(OddArray(), to="numpy")


# ------------------------------------------------------------------ into pandas


@pytest.mark.parametrize("dtype", NUMBERS)
def test_into_pandas(dtype):
    """Arrays become Series and DataFrames over their own memory, and Indexes over a copy."""
    array = numbers(dtype)
    series = interop.convert(array, to=pd.Series, copy=False)
    assert isinstance(series, pd.Series)
    assert start(series.to_numpy()) == start(array)
    assert (series.dtype, series.tolist()) == (array.dtype, array.tolist())
    plane = array.reshape(2, 3)
    frame = interop.convert(plane, to=pd.DataFrame, copy=False)
    assert start(frame.to_numpy()) == start(array)
    assert frame.to_numpy().tobytes() == array.tobytes()
    for target in ({"to": "pandas.series"}, {"to": "pandas"}):
        copied = interop.convert(array, **target, copy=True)
        assert not np.shares_memory(copied.to_numpy(), array)
        copied.iloc[0] = copied.iloc[1]  # it can be written
    assert array.tobytes() == numbers(dtype).tobytes()
    if dtype != "float16":
        index = interop.convert(array, to="pandas.index")
        assert not np.shares_memory(index.to_numpy(), array)
        assert index.tolist() == array.tolist()


def test_into_pandas_from_others():
    """Every framework reaches pandas through NumPy; read-only memory stays read-only."""
    tensor = torch.arange(6.0)
    series = interop.convert(tensor, to="pandas.series", copy=False)
    assert start(series.to_numpy()) == tensor.data_ptr()
    assert interop.convert(tensor.view(2, 3), to="pandas").shape == (2, 3)
    assert interop.convert(tensor.bfloat16(), to="pandas.series").dtype == "float32"
    locked = np.arange(3)
    locked.flags.writeable = False
    shared = interop.convert(locked, to="pandas.series", copy=False)
    with pytest.raises(ValueError, match="read-only"):
        shared.iloc[0] = 5
    swapped = interop.convert(np.arange(3, dtype=">i4"), to="pandas.series")
    assert (swapped.dtype.isnative, swapped.tolist()) == (True, [0, 1, 2])


def test_axes():
    """A Series has one axis and a DataFrame two; a refusal names what fits instead."""
    with pytest.raises(RefusedError, match=r"1 axis, not of 2; ask for pandas.dataframe"):
        interop.convert(np.ones((2, 2)), to="pandas.series")
    with pytest.raises(RefusedError, match="reshape"):
        interop.convert(np.ones((2, 2, 2)), to="pandas")


def test_labels_stay_within_pandas():
    """From pandas to pandas, copied or cast, labels stay, and nulls with them."""
    series = pd.Series([1, 2], index=["x", "y"], name="s")
    copied = interop.convert(series, to="pandas.series", copy=True)
    assert copied.equals(series)
    assert (copied.name, list(copied.index)) == ("s", ["x", "y"])
    assert not np.shares_memory(copied.to_numpy(), series.to_numpy())
    cast = interop.convert(series, to="pandas.series", dtype="float32")
    assert (cast.dtype, cast.name, list(cast.index)) == ("float32", "s", ["x", "y"])
    nulls = nulled("Int64", "int64")
    again = interop.convert(nulls, to="pandas.series", copy=True)
    assert again.isna().sum() == 2
    assert not np.shares_memory(again.array._data, nulls.array._data)
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1]}, index=["x", "y"])
    assert interop.convert(frame, to="pandas.dataframe", copy=True).equals(frame)
    narrow = interop.convert(frame, to="pandas.dataframe", dtype="float32")
    assert (list(narrow), list(narrow.index)) == (["a", "b"], ["x", "y"])
    assert (narrow.dtypes == "float32").all()
    index = pd.Index([1, 2], name="i")
    assert interop.convert(index, to="pandas.index", copy=True).name == "i"


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda array: array,
        lambda array: pd.Series(array, index=list("abcd"), name="s", copy=False),
        lambda array: pd.Index(array, name="i", copy=False),
        lambda array: pd.DataFrame({"a": array, "b": [1, 2, 3, 4]}, copy=False),
        lambda array: pd.DataFrame({"a": array}, index=list("abcd"), copy=False),
    ],
    ids=["array", "series", "index", "frame", "column"],
)
def test_a_copy_of_what_lies_in_arrows_memory_shares_nothing(wrap, chunks):
    """Later writes to the memory under a value do not show in its copy, which keeps the rest."""
    memory = np.arange(4.0)
    pieces = [pa.array(piece) for piece in np.split(memory, chunks)]
    value = wrap(pd.arrays.ArrowExtensionArray(pa.chunked_array(pieces)))
    with interop.trace() as receipts:
        copied = interop.convert(value, to="pandas", copy=True)
    assert type(copied) is type(value)
    assert receipts[0].aliased is False
    memory[:] = 99
    column = copied["a"] if isinstance(copied, pd.DataFrame) else copied
    assert column.dtype == "double[pyarrow]"
    assert list(column) == [0, 1, 2, 3]
    assert getattr(copied, "name", None) == getattr(value, "name", None)
    if isinstance(value, (pd.Series, pd.DataFrame)):
        assert list(copied.index) == list(value.index)


def test_nothing_is_imported_that_the_value_does_not_need(in_subprocess):
    """A Series that does not lie in Arrow's memory is converted without pyarrow."""
    in_subprocess(
        """
        import sys
        sys.modules["pyarrow"] = None  # pandas does without; a second attempt would be an error
        import numpy as np, pandas as pd, interop
        interop.convert(pd.Series([1.0, 2.0]), to="numpy")
        interop.convert(pd.DataFrame({"a": [1, 2], "b": [True, False]}), to="numpy")
        interop.convert(pd.Series([1, None], dtype="Int64"), to="numpy", allow="drop_mask")
        interop.convert(np.ones(3), to="pandas.series")
        """
    )


@pytest.mark.parametrize("index", [[0.5, 1.5], ["a", "b"]], ids=["numbers", "text"])
def test_no_array_has_a_column_of_labels(index: list[Any]) -> None:
    """Labels of rows that other tables have as a column are in no array, whatever its format."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [True, False]}, index)
    targets = [declared.format for declared in interop.formats() if not declared.format.is_table]
    reached = []
    for target in targets:
        try:
            result = interop.convert(frame, to=target.name, allow={"densify", "narrow"})
        except interop.errors.InteropError:
            continue  # its library is missing, or it holds no two columns
        reached.append(target.name)
        numbers = interop.convert(result, to="numpy", allow={"densify", "drop_labels"})
        assert numbers.tolist() == [[1.0, 1.0], [2.0, 0.0]], target.name
    assert {"numpy", "torch", "pyarrow.fixed_size_list", "pyarrow.list"} <= {*reached}
