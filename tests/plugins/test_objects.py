"""Arrays and columns of objects: numbers without a dtype, which become what `dtype=` says."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import together

NUMBERS = [1, 2.5, True, Decimal("1.5"), Fraction(1, 4), np.float32(3), np.int8(7), np.True_]
NUMBERS.append(ml_dtypes.bfloat16(2))
EXPECTED = [1, 2.5, 1, 1.5, 0.25, 3, 7, 1, 2]
DECIMALS = pd.ArrowDtype(pa.decimal128(4, 1))


def objects(*elements: Any) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


SOURCES = {
    "array": objects,
    "Series": lambda *elements: pd.Series(elements, dtype=object, index=[*map(str, elements)]),
    "Index": lambda *elements: pd.Index(elements, dtype=object),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@together("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn", "complex64"])
def test_numbers_of_any_type_become_the_dtype(make: Any, dtype: str) -> None:
    """Objects that all are numbers are cast to the dtype that is asked for, in fresh memory."""
    value = make(*NUMBERS)
    route = interop.plan(value, to="numpy", dtype=dtype)
    result = route(value)
    assert (result.dtype.name, result.shape, route.effects - {"drop_labels"}) == (
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
    "dtype, elements, message",
    [
        ("float64", [1, None], "element 1 is None, of type NoneType, which is no real number"),
        ("float64", [1, "2"], "element 1 is '2', of type str"),
        ("float64", [1, pd.NA], "element 1 is <NA>, of type NAType"),
        ("float64", [1, 1j], "element 1 is 1j, of type complex, which is no real number"),
        ("float64", [1, 10**400], "element 1 is 10{36,}, which does not fit in float64"),
        ("int8", [1, 300], "element 1 is 300, which does not fit in int8"),
        ("int8", [1, np.int64(300)], r"element 1 is np.int64\(300\), which does not fit in int8"),
        ("uint8", [1, -1], "element 1 is -1, which does not fit in uint8"),
        ("int4", [1, 8], "element 1 is 8, which does not fit in int4"),
        ("int64", [1, float("nan")], "element 1 is nan, which does not fit in int64"),
    ],
)
def test_the_first_element_that_is_no_such_number_is_named(
    make: Any, dtype: str, elements: list[Any], message: str
) -> None:
    """What is no number, or does not fit, is refused with its place; no effect permits it."""
    value = make(*elements)
    for allow in ((), "narrow"):
        with pytest.raises(RefusedError, match=f"^{message}"):
            interop.convert(value, to="numpy", dtype=dtype, allow=allow)


def test_the_place_of_an_element_has_an_index_for_each_axis() -> None:
    """In an array of two axes the place is a pair, whatever the order in memory."""
    for order in ("C", "F"):
        array = np.array([[1, 2], [None, 3]], dtype=object, order=order)
        with pytest.raises(RefusedError, match=r"^element \(1, 0\) is None"):
            interop.convert(array, to="numpy", dtype="float32")


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_without_a_dtype_objects_are_refused(make: Any) -> None:
    """Nobody has said what the numbers should be; the refusal names the keyword that says it."""
    value = make(1, 2.5)
    for words in ({}, {"allow": "narrow"}):
        with pytest.raises(RefusedError, match=r"dtype='float64' makes numbers of (the )?objects"):
            interop.convert(value, to="torch", **words)
    with pytest.raises(RefusedError, match="leave out forbid='narrow'"):
        interop.convert(value, to="torch", dtype="float32", forbid="narrow")
    with pytest.raises(RefusedError, match="leave out copy=False"):
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
    missing = frame.assign(decimals=pd.array([None, 1], dtype=DECIMALS))
    with pytest.raises(RefusedError, match=r"^column 'decimals': element 0 is <NA>"):
        interop.convert(missing, to="torch", dtype="float32")


def test_nulls_beside_objects_are_refused_as_others_are() -> None:
    """A dtype is no consent to drop the nulls of the other columns."""
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "o": objects(1, 2)})
    with pytest.raises(RefusedError, match="drop_mask"):
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
