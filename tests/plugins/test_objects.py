"""Objects and decimals: numbers without a dtype, which become what `dtype=` says."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import BadRequestError, RefusedError
from tests.cases import together
from tests.plugins.values import objects

NUMBERS = [1, 2.5, True, Decimal("1.5"), Fraction(1, 4), np.float32(3), np.int8(7), np.True_]
NUMBERS.append(ml_dtypes.bfloat16(2))
EXPECTED = [1, 2.5, 1, 1.5, 0.25, 3, 7, 1, 2]
DECIMALS = pd.ArrowDtype(pa.decimal128(4, 1))


SOURCES = {
    "array": objects,
    "Series": lambda *elements: pd.Series(
        elements, dtype=object, index=[*"abcdefghi"][: len(elements)]
    ),
    "Index": lambda *elements: pd.Index(elements, dtype=object),
}
#: What has decimals of its own, with nulls among them: makers of one column of five digits.
_ARROW = pa.decimal128(5, 2)
_WIDE = pa.decimal256(5, 2)
COLUMNS = {
    "Arrow": lambda *elements: pa.array(elements, _ARROW),
    "wide": lambda *elements: pa.array(elements, _WIDE),
    "slice": lambda *elements: pa.array([9, *elements, 9], _ARROW)[1:-1],
    "chunks": lambda *elements: pa.chunked_array([[e] for e in elements], _ARROW),
    "one chunk": lambda *elements: pa.chunked_array([elements], _ARROW),
    "no chunks": lambda *elements: pa.chunked_array([elements] if elements else [], _ARROW),
    "polars": lambda *elements: pl.Series(elements, dtype=pl.Decimal(5, 2)),
    "polars chunks": lambda *elements: pl.concat(
        [pl.Series(dtype=pl.Decimal(5, 2))]
        + [pl.Series([e], dtype=pl.Decimal(5, 2)) for e in elements],
        rechunk=False,
    ),
    "Series": lambda *elements: pd.Series(elements, dtype=pd.ArrowDtype(_ARROW)),
    "extension array": lambda *elements: pd.array(elements, dtype=pd.ArrowDtype(_ARROW)),
}
#: Makers of frames of one such column and one of integers.
FRAMES = {
    "Table": lambda column: pa.table({"price": pa.array(column, _ARROW), "n": range(len(column))}),
    "RecordBatch": lambda column: pa.record_batch(
        {"price": pa.array(column, _ARROW), "n": pa.array(range(len(column)))}
    ),
    "polars": lambda column: pl.DataFrame(
        {"price": pl.Series(column, dtype=pl.Decimal(5, 2)), "n": range(len(column))}
    ),
    "pandas": lambda column: pd.DataFrame(
        {"price": pd.array(column, dtype=pd.ArrowDtype(_ARROW)), "n": range(len(column))}
    ),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@together("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn", "complex64", "longdouble"])
def test_numbers_of_any_type_become_the_dtype(make: Any, dtype: str) -> None:
    """Objects that all are numbers are cast to the dtype that is asked for, in fresh memory."""
    value = make(*NUMBERS)
    route = interop.plan(value, to="numpy", dtype=dtype)
    result = route(value)
    assert (interop.spec(result).dtype, result.shape, route.effects - {"drop_labels"}) == (
        dtype,
        (len(NUMBERS),),
        {"copy"},
    )
    assert result.astype("complex128").tolist() == EXPECTED
    assert result.flags.writeable
    assert list(value) == NUMBERS


@together("order", ["C", "F"])
def test_objects_keep_their_shape(order: Any) -> None:
    """Axes, none of them included, are those of the array, whatever its order in memory."""
    array = np.array([[1, 2], [3, Decimal(4)]], dtype=object, order=order)
    result = interop.convert(array, to="torch", dtype="int32")
    assert (result.dtype, result.tolist()) == (torch.int32, [[1, 2], [3, 4]])
    assert interop.convert(array[:, ::-1], to="torch", dtype="int32").tolist() == [[2, 1], [4, 3]]
    alone = interop.convert(np.array(Fraction(1, 2), object), to="torch", dtype="float32")
    assert (alone.shape, alone.item()) == ((), 0.5)
    assert interop.convert(np.empty((0, 3), object), to="torch", dtype="int8").shape == (0, 3)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@together(
    "dtype, elements",
    [
        ("float64", [1, None]),
        ("float64", [1, "2"]),
        ("float64", [1, pd.NA]),
        ("float64", [1, 1j]),
        ("float64", [1, 10**400]),
        ("int8", [1, 300]),
        ("int8", [1, np.int64(300)]),
        ("uint8", [1, -1]),
        ("int4", [1, 8]),
        ("float64", [1, 10**5000]),
        ("longdouble", [1, 10**5000]),
        ("int64", [1, float("nan")]),
    ],
)
def test_an_element_that_is_no_such_number_is_refused(
    make: Any, dtype: str, elements: list[Any]
) -> None:
    """What is no number, or does not fit, is refused; no effect permits it."""
    value = make(*elements)
    for allow in ((), "narrow"):
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy", dtype=dtype, allow=allow)


def test_the_place_of_an_element_has_an_index_for_each_axis() -> None:
    """In an array of two axes the place is a pair, whatever the order in memory."""
    for order in ("C", "F"):
        array = np.array([[1, 2], [None, 3]], dtype=object, order=order)
        with pytest.raises(RefusedError):
            interop.convert(array, to="numpy", dtype="float32")


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_without_a_dtype_objects_are_refused(make: Any) -> None:
    """Nobody has said what the numbers should be; the refusal names the keyword that says it."""
    value = make(1, 2.5)
    for words in ({}, {"allow": "narrow"}):
        with pytest.raises(RefusedError):
            interop.convert(value, to="torch", **words)
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch", dtype="float32", forbid="narrow")
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch", dtype="float32", copy=False)
    assert interop.convert(value, to=interop.spec(value).format) is value


def test_columns_of_objects_join_columns_of_numbers() -> None:
    """A frame may have columns of objects and of decimals; its labels stay within pandas."""
    frame = pd.DataFrame(
        {
            "a": [1, 2],
            "objects": objects(Decimal("1.5"), True),
            "decimals": pd.array([Decimal("0.5"), 4], dtype=DECIMALS),
        },
        index=["x", "y"],
    )
    result = interop.convert(frame, to="torch", dtype="float32")
    assert (result.dtype, result.tolist()) == (torch.float32, [[1, 1.5, 0.5], [2, 1, 4]])
    cast = interop.convert(frame, to="pandas.dataframe", dtype="float32")
    assert (list(cast.index), list(cast.columns)) == (list(frame.index), list(frame.columns))
    assert cast.to_numpy().tolist() == result.tolist()
    with pytest.raises(RefusedError, match=r"^column 'objects': element 1 is None"):
        interop.convert(frame.assign(objects=objects(1, None)), to="torch", dtype="float32")


def test_nulls_beside_objects_are_refused_as_others_are() -> None:
    """A dtype is no consent to drop the nulls of the other columns."""
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "o": objects(1, 2)})
    with pytest.raises(RefusedError):
        interop.convert(frame, to="numpy", dtype="float64")
    result = interop.convert(frame, to="numpy", dtype="float64", allow="drop_mask")
    assert np.array_equal(result, [[1, 1], [np.nan, 2]], equal_nan=True)


@together("cast_all", [False, True])
def test_objects_in_a_tree_pass_whatever_the_dtype_is(cast_all: bool) -> None:
    """The dtype of a tree is for its arrays of numbers; names stay among them."""
    tree = {"x": np.ones(2), "names": objects("a", "b"), "ids": objects(1, 2)}
    result = interop.convert_tree(tree, to="torch", dtype="float32", cast_all=cast_all)
    assert result["x"].dtype is torch.float32
    assert result["names"] is tree["names"]
    assert result["ids"] is tree["ids"]


@pytest.mark.parametrize("make", [*COLUMNS.values(), *FRAMES.values()], ids=[*COLUMNS, *FRAMES])
def test_decimals_in_a_tree_pass_as_objects_do(make: Any) -> None:
    """The dtype of a tree is for its arrays of numbers; a tree of nothing but a frame is refused."""
    value = make([Decimal(1)]) if make in FRAMES.values() else make(Decimal(1))
    for words in ({"dtype": "float32"}, {"dtype": "float32", "cast_all": True}, {}):
        result = interop.convert_tree({"x": np.ones(2), "other": value}, to="torch", **words)
        assert isinstance(result["x"], torch.Tensor)
        assert result["other"] is value
    with pytest.raises(RefusedError):
        interop.convert_tree({"x": value}, to="torch", others="refuse", dtype="float32")
    if make in FRAMES.values():
        with pytest.raises(RefusedError):
            interop.convert_tree([value], to="torch")


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
@together("dtype", ["float64", "float16", "bfloat16", "complex64", "clongdouble", "int32"])
def test_decimals_become_the_dtype_as_objects_do(make: Any, dtype: str) -> None:
    """Decimals of Arrow and Polars are cast as an array of the same decimals is."""
    decimals = [Decimal("1.25"), Decimal(-3), Decimal("999.99")]
    value = make(*decimals)
    assert "untyped" in interop.spec(value).traits
    route = interop.plan(value, to="numpy", dtype=dtype)
    result = route(value)
    expected = interop.convert(objects(*decimals), to="numpy", dtype=dtype)
    assert (result.dtype, route.effects) == (expected.dtype, {"copy"})
    assert result.tolist() == expected.tolist()
    assert result.flags.writeable
    assert interop.convert(make(), to="numpy", dtype=dtype).shape == (0,)


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_nulls_among_decimals_are_nulls_as_others_are(make: Any) -> None:
    """A dtype is no consent to drop nulls; who gives it gets NaN, or 0 in integers."""
    value = make(None, Decimal("1.5"), None)
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch", dtype="float32")
    reals = interop.convert(value, to="torch", dtype="float32", allow="drop_mask")
    assert np.array_equal(reals, [np.nan, 1.5, np.nan], equal_nan=True)
    whole = interop.convert(value, to="numpy", dtype="int8", allow="drop_mask")
    assert (whole.dtype, whole.tolist()) == (np.dtype("int8"), [0, 1, 0])


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_decimals_are_refused_without_a_dtype_or_where_they_do_not_fit(make: Any) -> None:
    """The refusal names the keyword, or the first decimal that is out of range."""
    value = make(1, 300)
    for target in ("numpy", "torch", "python"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, allow="drop_mask")
    with pytest.raises(RefusedError, match=r"^element 1 is Decimal\('300.00'\).* int8"):
        interop.convert(value, to="numpy", dtype="int8")
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", dtype="float64", copy=False)
    assert interop.convert(value, to=interop.spec(value).format) is value


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_decimals_beside_numbers_join_them(make: Any) -> None:
    """Columns of decimals and of integers become one array; an error names the column."""
    value = make([Decimal("1.25"), Decimal(300)])
    result = interop.convert(value, to="torch", dtype="float32")
    assert (result.dtype, result.tolist()) == (torch.float32, [[1.25, 0], [300, 1]])
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch")
    with pytest.raises(RefusedError, match=r"^column 'price': element 1 is Decimal\('300.00'\)"):
        interop.convert(value, to="torch", dtype="int8")
    missing = make([None, Decimal(2)])
    with pytest.raises(RefusedError):
        interop.convert(missing, to="numpy", dtype="float64")
    filled = interop.convert(missing, to="numpy", dtype="float64", allow="drop_mask")
    assert np.array_equal(filled, [[np.nan, 0], [2, 1]], equal_nan=True)


def test_casts_within_a_library_keep_what_is_not_numbers() -> None:
    """Names stay with Series and frames of Polars, and nulls with arrays of Arrow."""
    series = pl.Series("price", [1, 2], dtype=pl.Decimal(5, 2))
    cast = interop.convert(series, to="polars", dtype="float32")
    assert (cast.name, cast.dtype, cast.to_list()) == ("price", pl.Float32, [1, 2])
    frame = interop.convert(series.to_frame(), to="polars.dataframe", dtype="float32")
    assert frame.to_dict(as_series=False) == {"price": [1, 2]}
    missing = pa.array([None, Decimal("1.5")], _ARROW)
    kept = interop.convert(missing, to="pyarrow", dtype="float32")
    assert (kept.type, kept.to_pylist()) == (pa.float32(), [None, 1.5])


def test_text_beside_decimals_stays_refused() -> None:
    """Columns of decimals do not make numbers of a column of text."""
    frames = {"price": [Decimal("1.5")], "name": ["a"]}
    for value in (pa.table(frames), pl.DataFrame(frames)):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="numpy", dtype="float64")
        assert "dtype='float64' makes" not in str(caught.value)
        assert "untyped" not in interop.spec(value).traits


def test_a_scalar_of_arrow_is_a_decimal_of_no_axes() -> None:
    """A decimal alone becomes an array of no axes, and a null NaN."""
    alone = interop.convert(pa.scalar(Decimal("1.5")), to="numpy", dtype="float32")
    assert (alone.shape, alone.dtype, alone.item()) == ((), np.float32, 1.5)
    null = pa.scalar(None, _ARROW)
    filled = interop.convert(null, to="numpy", dtype="float32", allow="drop_mask")
    assert np.isnan(filled)


@together(
    "value, expected",
    [
        ([Decimal(1), 2**64], [1, 2.0**64]),
        ([0.5, Fraction(1, 3)], [0.5, 1 / 3]),
        ([[Decimal("0.1")], (Fraction(-1, 4),)], [[0.1], [-0.25]]),
        ([Decimal("0.1"), np.float32(2)], [0.1, 2]),
    ],
)
def test_lists_of_decimals_and_fractions_become_the_dtype(value: Any, expected: Any) -> None:
    """Numbers of the standard library in lists become what `dtype=` says, and nothing without."""
    result = interop.convert(value, to="numpy", dtype="float64")
    assert (result.dtype, result.tolist()) == (np.float64, expected)
    assert interop.convert(value, to="torch", dtype="bfloat16").dtype is torch.bfloat16
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")
    with pytest.raises(RefusedError):
        interop.convert([Decimal(1), float("inf")], to="numpy", dtype="int8")


@together("name", ["__array__", "__array_interface__", "__dlpack__"])
def test_an_object_that_is_read_by_a_protocol_is_no_out(name: str) -> None:
    """What it gives may be a copy, so it is refused before anything is converted."""
    array = np.zeros(2)

    class Readable:
        def __getattr__(self, attribute: str) -> Any:
            if attribute in {name, name.replace("k__", "k_device__")}:
                return getattr(array, attribute)
            raise AttributeError(attribute)

    for value in (np.ones(2), torch.ones(2)):
        with pytest.raises(BadRequestError):
            interop.convert(value, out=Readable())
    assert array.tolist() == [0, 0]


@pytest.mark.parametrize("gives", [6, 1])
@pytest.mark.parametrize("out", [np.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.float16)])
def test_an_object_that_misstates_its_shape_is_not_written_into_an_out(
    gives: int, out: Any
) -> None:
    """What an object gives counts: an out of the shape that it states is neither filled nor broadcast."""

    class Misstated:
        shape, dtype = (3,), np.dtype("f8")

        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            return np.ones(gives)

    with pytest.raises(BadRequestError, match=rf"states that shape, gives \({gives},\)"):
        interop.convert(Misstated(), out=out)
    assert not out.any()


class _Failing:
    """The part of a class of numbers that cannot be read."""

    def __float__(self) -> float:
        msg = "the sensor is off"
        raise OSError(msg)


_PLACES = {
    "list": lambda number: [1.0, number],
    "nested list": lambda number: [[1.0], [number]],
    "number": lambda number: number,
    "array": lambda number: objects(1.0, number),
    "Series": lambda number: pd.Series([1.0, number], dtype=object),
}


@together("place", _PLACES)
@together("base", [float, Decimal, Fraction])
def test_a_number_that_cannot_be_read_is_the_callers(place: str, base: type) -> None:
    """What a number's own class raises is the cause of an error that blames no plugin."""
    if place == "number" and base is not float:  # not an array type
        return
    number = type("Sensor", (_Failing, base), {})(2)
    with pytest.raises((BadRequestError, RefusedError), match="the sensor is off") as caught:
        interop.convert(_PLACES[place](number), to="torch", dtype="float32")
    assert isinstance(caught.value.__cause__, OSError)
    assert "put a number in" in str(caught.value)
