"""Columns of several dtypes, in whichever library, become an array of the dtype that holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import interop
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.values import distinct as numbers

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
