"""pandas: what it alone has; what it shares with Polars and PyArrow is tested with the columns."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import interop
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.values import start


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


def test_indexes():
    """The numbers of an Index are shared, read-only; those of a range are computed, and it owns its own."""
    index = pd.Index([3, 1, 2])
    result = interop.convert(index, to="numpy", copy=False)
    assert start(result) == start(index.to_numpy())
    assert not result.flags.writeable
    ranged = pd.RangeIndex(2, 20, 6)
    first, second = (interop.convert(ranged, to="numpy") for _ in range(2))
    assert (first.tolist(), first.flags.writeable) == ([2, 8, 14], True)
    assert not np.shares_memory(first, second)
    assert interop.plan(ranged, to="numpy").effects == {"copy"}
    named = interop.convert(index.rename("i"), to="pandas.index", copy=True)
    assert (named.name, np.shares_memory(named.to_numpy(), index.to_numpy())) == ("i", False)
    array = np.arange(3)
    made = interop.convert(array, to="pandas.index")
    assert (made.tolist(), np.shares_memory(made.to_numpy(), array)) == ([0, 1, 2], False)


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


def test_read_only_memory_stays_read_only():
    """A Series over memory that cannot be written refuses to write there."""
    locked = np.arange(3)
    locked.flags.writeable = False
    shared = interop.convert(locked, to="pandas.series", copy=False)
    with pytest.raises(ValueError, match="read-only"):
        shared.iloc[0] = 5


@together("chunks", [1, 2])
@together(
    "wrap",
    [
        lambda array: array,
        lambda array: pd.Series(array, index=list("abcd"), name="s", copy=False),
        lambda array: pd.Index(array, name="i", copy=False),
        lambda array: pd.DataFrame({"a": array, "b": [1, 2, 3, 4]}, copy=False),
        lambda array: pd.DataFrame({"a": array}, index=list("abcd"), copy=False),
    ],
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


@pytest.mark.slow
@together("index", [[0.5, 1.5], ["a", "b"]])
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
