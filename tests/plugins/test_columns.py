"""What pandas, Polars and PyArrow share: nulls, memory, refusals, and columns of several dtypes."""

from __future__ import annotations

import datetime as dt
import inspect
import itertools
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError
from interop.kit import INTEGERS
from tests.cases import together
from tests.plugins import values
from tests.plugins.extension import Metres
from tests.plugins.values import distinct as numbers
from tests.plugins.values import memory, same, start

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
    ({"float16", "float64"}, "float64"),
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


@pytest.mark.parametrize("library", LIBRARIES)
@together("rows", [5, 0, 9000])
def test_columns_of_one_dtype_are_an_array(library: str, rows: int) -> None:
    """A table of any length and its slices have the numbers of their columns, in one order of Arrow's."""
    for dtype in NUMBERS[library.partition(".")[0]]:
        array = (np.arange(3 * rows).reshape(rows, 3) % 100).astype(dtype)
        table = LIBRARIES[library]({f"c{n}": array[:, n].copy() for n in range(3)})
        spec = interop.spec(table)
        assert (spec.dtype, spec.shape) == (interop.spec(array).dtype, (rows, 3))
        for part, expected in ((table, array), (table[2:], array[2:])):
            result = interop.convert(part, to="numpy")
            assert np.array_equal(result, expected)
            assert result.dtype == expected.dtype
            assert result.flags.c_contiguous or not library.startswith("pyarrow")
        if dtype != "longdouble":
            assert np.array_equal(interop.convert(table, to="torch").numpy(), array)


@together("library", LIBRARIES)
@pytest.mark.parametrize("beside", [0.5, float("nan"), float("inf"), 1e300])
def test_integers_are_exact_up_to_the_digits_of_floats(library, beside):
    """The least integer that a float rounds is named, whatever lies beside it; others take no permission."""
    for integer in (2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1):
        table = LIBRARIES[library]({"n": np.array([3, integer]), "x": np.array([beside, beside])})
        for target in ("numpy", "torch"):
            if float(integer) == integer:
                assert interop.plan(table, to=target).effects <= {"copy", "drop_labels"}
                result = interop.convert(table, to=target)
                assert interop.spec(result).dtype == "float64"
                assert result[:, 0].tolist() == [3, integer]
                continue
            reason = f"column 'n': {integer} would be rounded in float64"
            with pytest.raises(RefusedError, match=reason) as caught:
                interop.convert(table, to=target)
            assert caught.value.effects == {"narrow"}
        if float(integer) == integer:  # rows are given back under their labels
            sums = interop.accepts("numpy")(lambda x: x.sum(axis=1))(table)
            assert np.array_equal(sums, [3 + beside, integer + beside], equal_nan=True)


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


# ---------------------------------------------------------------------- numbers of one dtype

PLAIN = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()
#: The dtypes of numbers that libraries keep in columns.
NUMBERS = {
    "pandas": [*PLAIN, "complex64", "complex128", "longdouble"],
    "pandas, nullable": [dtype for dtype in PLAIN if dtype != "float16"],
    "pandas over arrow": PLAIN,
    "polars": [dtype for dtype in PLAIN if HAS_FLOAT16 or dtype != "float16"],
    "pyarrow": PLAIN,
    "pyarrow.chunked_array": PLAIN,
}


def column(kind: str, *parts: Any) -> Any:
    """Return a column whose chunks are arrays, over their memory where its library permits."""
    match kind:
        case "pandas":
            return pd.Series(*parts, copy=False)
        case "pandas, nullable":
            return pd.Series(pd.array(*parts, copy=False))
        case "pandas over arrow":
            return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(parts)))
        case "polars":
            return pl.concat([pl.Series("s", part) for part in parts], rechunk=False)
        case "pyarrow":
            return pa.array(*parts)
    return pa.chunked_array(parts)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_in_one_chunk_are_shared(kind: str) -> None:
    """They are NumPy's over the same memory, read-only, cold and warm; truth values in bits are copied."""
    for dtype in NUMBERS[kind]:
        array = numbers(dtype)
        before, whole = array.tobytes(), column(kind, array)
        is_bits = dtype == "bool" and kind not in {"pandas", "pandas, nullable"}
        for value, expected in ((whole, array), (whole[3:], array[3:])):
            assert interop.spec(value).dtype == interop.spec(array).dtype
            for keywords in ({}, {}, {"copy": False}):
                if is_bits and keywords:
                    with pytest.raises(RefusedError):
                        interop.convert(value, to="numpy", **keywords)
                    continue
                result = interop.convert(value, to="numpy", **keywords)
                assert same(result, expected)
                assert result.flags.writeable is is_bits
                assert is_bits or start(result) == memory(value)
            plan = interop.plan(value, to="numpy")
            assert plan.effects - {"drop_labels"} == ({"copy"} if is_bits else set())
            copied = interop.convert(value, to="numpy", copy=True)
            copied[...] = 0  # which is seen nowhere else
            if kind == "pandas, nullable":
                assert value.array._data.flags.writeable  # as it was
        assert interop.convert(whole, to="numpy").tobytes() == array.tobytes() == before


@pytest.mark.parametrize("kind", ["pandas over arrow", "polars", "pyarrow.chunked_array"])
def test_chunks_are_put_together(kind: str) -> None:
    """Several chunks become one block that can be written to, once, and stay as they are."""
    for dtype in NUMBERS[kind]:
        array = numbers(dtype)
        value = column(kind, array[:2], array[:0], array[2:5], array[5:])
        assert interop.spec(value).traits & {"scattered", "chunked"}
        for _ in range(2):
            result = interop.convert(value, to="numpy")
            assert same(result, array)
            assert result.flags.writeable
        assert same(interop.convert(value, to="torch").numpy(), array)
        cast = interop.convert(value, to="numpy", dtype="float32")
        assert same(cast, array.astype("float32"))
        for target in ("numpy", "torch", "pyarrow"):
            with pytest.raises(RefusedError):
                interop.convert(value, to=target, copy=False)
        assert interop.convert(value, to="pyarrow").to_pylist() == array.tolist()
        assert interop.spec(value).traits & {"scattered", "chunked"}
        if kind == "pyarrow.chunked_array":
            none = pa.chunked_array([], value.type)
            assert same(interop.convert(none, to="numpy"), array[:0])
            assert interop.convert(none, to="pyarrow").equals(pa.array([], value.type))
    many = np.arange(600_001)
    for array, expected in (
        (pa.array(many), many),
        (pa.array(many, mask=many % 7 == 0), np.where(many % 7, many, 0)),
    ):
        value = column(kind, array[:500_000], array[500_000:])
        assert same(interop.convert(value, to="numpy", allow="drop_mask"), expected)


@together("kind", ["pandas over arrow", "polars", "pyarrow", "pyarrow.chunked_array"])
@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "python"])
def test_bits_become_bytes(target: str, kind: str) -> None:
    """Truth values of a bit each get a byte each, wherever a slice begins."""
    truth = np.random.default_rng(0).random(77) < 0.5
    value = column(kind, truth)
    for rows in (slice(None), slice(3, 40), slice(13, 14), slice(77, None), slice(8, 16)):
        assert np.asarray(interop.convert(value[rows], to=target)).tolist() == truth[rows].tolist()
    with pytest.raises(RefusedError):
        interop.convert(value, to=target, copy=False)


#: Memory of NumPy's by what is odd about it.
ODD: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda a: a.copy(),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype),
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
    "empty": lambda a: a[:0],
    "strided": lambda a: a[::2],
    "reversed": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[1], 4),
    "swapped": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1),
}
#: What of it a library can take, and what it copies.
COPIED = {
    "pandas.series": {"swapped", "unaligned"},
    "pyarrow.tensor": {"reversed", "swapped", "unaligned"},
}


@pytest.mark.parametrize(
    "target", ["pandas.series", "polars.series", "pyarrow", "pyarrow.chunked_array", "pyarrow.tensor"]
)  # fmt: skip
def test_arrays_become_columns(target: str) -> None:
    """They share memory that a library can have, and else are copied, as the plan says."""
    for dtype, odd in itertools.product(
        NUMBERS.get(target.removesuffix(".series"), PLAIN[:-1]), ODD
    ):
        array = ODD[odd](numbers(dtype))
        native = array.astype(array.dtype.newbyteorder("="))
        others = {"strided", "reversed", "broadcast", "swapped", "unaligned"}
        is_bits = dtype == "bool" and target not in {"pandas.series", "pyarrow.tensor"}
        is_copied = is_bits or (
            odd in COPIED.get(target, others)
            and not (array.itemsize == 1 and odd in {"swapped", "unaligned"})
        )
        for keywords in ({}, {}, {"copy": True}, {"copy": False}):
            if keywords.get("copy") is False and is_copied:
                with pytest.raises(RefusedError):
                    interop.convert(array, to=target, **keywords)
                continue
            value = interop.convert(array, to=target, **keywords)
            own = value.to_numpy() if target == "pyarrow.tensor" else np.asarray(value)
            assert same(own, native)
            if len(array) and not is_bits:
                shares = not (is_copied or keywords.get("copy"))
                assert (memory(value) == start(array)) is shares
        if len(array):
            assert interop.plan(array, to=target).aliases is not is_copied


@together("target", ["pandas", "polars", "pyarrow"])
def test_tensors_become_columns(target: str) -> None:
    """Their memory is shared; a dtype that the library lacks is widened where nothing is lost."""
    tensor = torch.arange(6.0)
    assert memory(interop.convert(tensor, to=target, copy=False)) == tensor.data_ptr()
    wide = interop.convert(tensor.bfloat16(), to=target)
    assert interop.spec(wide).dtype == "float32"
    assert [*wide] == [*interop.convert(tensor, to=target)]
    if target != "pyarrow":
        assert interop.convert(tensor.view(2, 3), to=target).shape == (2, 3)


def test_nothing_is_imported_that_a_value_does_not_need(in_subprocess: Any) -> None:
    """What does not lie in Arrow's memory is converted without PyArrow, in both directions."""
    in_subprocess(
        """
        import sys
        sys.modules["pyarrow"] = None  # pandas does without; a second attempt would be an error
        import numpy as np, pandas as pd, polars as pl, interop
        for library in (pd, pl):
            interop.convert(library.Series([1.0, 2.0]), to="numpy")
            interop.convert(library.DataFrame({"a": [1, 2], "b": [True, False]}), to="numpy")
            interop.convert(np.ones((2, 3)), to=library.DataFrame)
            interop.convert(np.ones(3), to=library.Series)
        for nulls in (pd.Series([1, None], dtype="Int64"), pl.Series([1, None])):
            interop.convert(nulls, to="numpy", allow="drop_mask")
        """
    )


#: Values over memory that a write could end the process for, each of the numbers 1 and 2.
LOCKED: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.Series([1.0, 2.0]),
    "polars": lambda: pl.Series([1.0, 2.0]),
    "polars, a frame": lambda: pl.DataFrame({"a": [1.0, 2.0]}),
    "polars, arrays": lambda: pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2)),
    "pyarrow": lambda: pa.Array.from_buffers(
        pa.float64(), 2, [None, pa.py_buffer(np.array([1.0, 2]).tobytes())]
    ),
    "pyarrow.tensor": lambda: pa.array([1.0, 2.0]).to_tensor(),
}
if not hasattr(pa.Array, "to_tensor"):
    del LOCKED["pyarrow.tensor"]


@together("kind", LOCKED)
def test_memory_that_may_be_locked_is_copied_for_torch(kind: str) -> None:
    """No fast path and no detour leads past the lock; only a caller may permit to share it."""
    value = LOCKED[kind]()
    for _ in range(3):
        interop.convert(pa.array([1.0, 2.0]), to="torch")  # whose memory may be written
        tensor = interop.convert(value, to="torch")
        tensor += 1
        assert tensor.reshape(-1).tolist() == [2, 3]
    assert interop.plan(value, to="torch").effects >= {"copy"}
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch", copy=False, forbid="materialize")
    assert caught.value.effects >= {"share_readonly"}
    array = interop.convert(value, to="numpy", copy=False)
    assert (array.reshape(-1).tolist(), array.flags.writeable) == ([1, 2], False)
    assert "readonly" in interop.spec(array).traits
    shared = interop.convert(value, to="torch", copy=False, allow="share_readonly")
    assert shared.data_ptr() == start(array)


@together("order", "CF")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_arrays_become_frames_of_one_block(library: str, order: Any) -> None:
    """pandas shares the array, and Polars copies it; the block that either has is shared again."""
    for dtype in NUMBERS[library]:
        array = np.array(numbers(dtype).reshape(2, 3), order=order)
        frame = interop.convert(array, to=f"{library}.dataframe")
        assert same(frame.to_numpy(), array)
        is_shared, is_block = library == "pandas", library == "pandas" or dtype != "bool"
        assert interop.plan(array, to=f"{library}.dataframe").aliases is is_shared
        for keywords in ({}, {}, *([{"copy": False}] if is_block else [])):
            result = interop.convert(frame, to="numpy", **keywords)
            assert same(result, array)
            assert result.flags.writeable is not is_block
            assert np.shares_memory(result, array) is is_shared
            assert (
                np.shares_memory(result, frame.iloc[:, 0] if is_shared else frame.to_series())
                is is_block
            )
        copied = interop.convert(frame, to="numpy", copy=True)
        copied[...] = 0
        assert same(interop.convert(frame, to="numpy"), array)


# ---------------------------------------------------------------------- rows of one length

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
DEEP = [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [0.5, 1.5, 2.5]]]
REAL, REALS, FLOAT = pa.float64(), pa.list_(pa.float64()), pl.Float64
ARRAYS = [
    (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    for shape in ((3, 2), (2, 3, 2), (3, 0), (0, 2))
    for dtype in ("float32", "int64", "bool")
]
#: Rows in one chunk, with the lists that they are, and whether they lie as an array does.
LISTS: list[tuple[Any, Any, bool]] = [
    *(
        (pd.Series(ROWS, dtype=pd.ArrowDtype(type_)), ROWS, True)
        for type_ in (REALS, pa.large_list(REAL), pa.list_(REAL, 2))
    ),
    (pl.Series(ROWS), ROWS, True),
    (pl.Series(np.array(ROWS)), ROWS, True),
    (pl.DataFrame({"a": ROWS}), ROWS, True),
    (pl.DataFrame({"a": np.array(ROWS)}), ROWS, True),
    *(
        (container, DEEP, True)
        for dtype in (pl.List(pl.List(FLOAT)), pl.List(pl.Array(FLOAT, 3)), pl.Array(pl.List(FLOAT), 2))
        for container in (pl.Series("a", DEEP, dtype=dtype), pl.DataFrame({"a": pl.Series(DEEP, dtype=dtype)}))
    ),
    (pl.Series([DEEP[0], *DEEP])[1:], DEEP, True),
    (pa.array(ROWS), ROWS, True),
    (pa.array(ROWS, pa.large_list(REAL)), ROWS, True),
    (pa.array([[0.0], *ROWS, [7.0]])[1:4], ROWS, True),
    (pa.chunked_array([ROWS]), ROWS, True),
    (pa.table({"a": ROWS}), ROWS, True),
    (pa.record_batch({"a": pa.array(ROWS)}), ROWS, True),
    (pa.array(DEEP), DEEP, True),
    (pa.table({"a": pa.FixedShapeTensorArray.from_numpy_ndarray(np.array(DEEP))}), DEEP, True),
    (pa.record_batch({"a": pa.FixedShapeTensorArray.from_numpy_ndarray(np.array(DEEP))}), DEEP, True),
    *((pl.Series(array), array, array.dtype != "bool" and array.size > 0) for array in ARRAYS),
    (pl.concat([pl.Series(ROWS)] * 2, rechunk=False), ROWS * 2, False),
    (pl.concat([pl.Series(np.array(ROWS))] * 2, rechunk=False), ROWS * 2, False),
    (pl.concat([pl.Series(DEEP)] * 2, rechunk=False), DEEP * 2, False),
    (pl.Series([[True], [False]]), [[True], [False]], False),
    (pl.Series([[], []], dtype=pl.List(FLOAT)), np.empty((2, 0)), False),
    (pl.Series([], dtype=pl.List(pl.List(pl.Int16))), np.empty((0, 0, 0), "i2"), False),
    (pl.Series([[], []], dtype=pl.List(pl.List(pl.Int16))), np.empty((2, 0, 0), "i2"), False),
    (pl.Series([[[], []]], dtype=pl.List(pl.List(pl.Int16))), np.empty((1, 2, 0), "i2"), False),
    (pa.chunked_array([ROWS[:1], [], ROWS[1:]], REALS), ROWS, False),
    (pa.chunked_array([], REALS), np.empty((0, 0)), False),
    (pa.array([], REALS), np.empty((0, 0)), False),
    (pa.array([[], []], REALS), np.empty((2, 0)), False),
    (pa.array([[True, False], [False, True]]), [[True, False], [False, True]], False),
]  # fmt: skip


def first(value: Any) -> int:
    """Return where the first number in the first row lies, as Arrow tells it."""
    if isinstance(value, pd.Series):
        value = value.array.__arrow_array__()
    elif isinstance(value, (pl.Series, pl.DataFrame)):
        value = value.to_arrow()
    if isinstance(value, (pa.Table, pa.RecordBatch)):
        value = value.column(0)
    value = value.chunk(0) if isinstance(value, pa.ChunkedArray) else value
    while not pa.types.is_primitive(value.type):
        value = value.storage if isinstance(value, pa.ExtensionArray) else value.flatten()
    return values.data(value)


@together("value, rows, shared", LISTS)
def test_rows_of_one_length_are_axes(value: Any, rows: Any, shared: bool) -> None:
    """Lists and arrays of one length at each level are one array, over their memory if they lie so."""
    expected = np.array(rows)
    spec = interop.spec(value)
    assert (spec.shape, spec.dtype) == (expected.shape, expected.dtype)
    for keywords in ({}, {}, *([{"copy": False}] if shared else [])):
        result = interop.convert(value, to="numpy", **keywords)
        assert same(result, expected)
        if shared:
            assert (start(result), result.flags.writeable) == (first(value), False)
    assert interop.convert(value, to="torch", dtype="float32").tolist() == expected.tolist()
    assert interop.convert(value, to=spec.format) is value


# ---------------------------------------------------------------------- nulls

#: The libraries' names of dtypes with nulls, and NumPy's of the numbers.
NULLABLE: dict[str, dict[str, str]] = {
    "pandas": {**values.NULLABLE, **values.ARROW},
    "polars": {name: name for name in PLAIN if HAS_FLOAT16 or name != "float16"},
    "pyarrow": {name: name for name in PLAIN},
}


def nulled(library: str, name: str) -> list[Any]:
    """Return a column with nulls in two places, as all that a library keeps one in, and as a slice."""
    array = numbers(NULLABLE[library][name])
    array, places = np.concatenate([array[:3], array]), np.array([1, 0, 1, 0, 1, 0, 0, 1, 0], bool)
    if library == "polars":
        series = pl.Series("s", array).zip_with(pl.Series(~places), pl.Series([None] * 9))[3:]
        parts = pl.concat([series[:2], series[2:]], rechunk=False)
        return [series, parts, series.to_frame()]
    if library == "pyarrow":
        column = pa.array(array, mask=places)[3:]
        parts = pa.chunked_array([column[:2], column[2:]])
        bits = pa.array(array[3:], mask=places[3:]).buffers()[0]
        rubbish = pa.py_buffer(_with_rubbish(array[3:], places[3:]))
        under = pa.Array.from_buffers(column.type, 6, [bits, rubbish])
        return [column, parts, pa.table({"a": parts}), pa.record_batch({"a": column}), under]
    # By take, for pandas before 3 cannot assign to elements of all these dtypes.
    column = pd.Series(array).astype(name).reindex(np.where(places, -1, range(9))).array[3:]
    index = [] if array.dtype == "float16" else [pd.Index(column)]  # which has no half floats
    return [pd.Series(column), column, pd.Series(column).to_frame(), *index]


def _with_rubbish(array: Any, places: Any) -> bytes:
    """Return the memory of an array of Arrow's with anything under its nulls."""
    if array.dtype == "bool":
        return np.packbits(array | places, bitorder="little").tobytes()
    raw = array.copy()
    raw[places] = np.frombuffer(b"\xab" * array.itemsize, array.dtype)
    return raw.tobytes()


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
                    with pytest.raises(RefusedError) as caught:
                        interop.convert(value, to=target, **keywords)
                    assert caught.value.effects == {"drop_mask"}
            result = interop.convert(value, to="numpy", allow={"drop_mask"})
            assert (result.dtype, result.flags.writeable) == (expected.dtype, True)
            assert result.reshape(-1).tobytes() == expected.tobytes()
            tensor = interop.convert(value, to="torch", allow={"drop_mask"})
            assert same(tensor.reshape(-1).numpy(), expected)
            assert "masked" in interop.spec(value).traits
            assert interop.convert(value, to=interop.spec(value).format) is value


@together("value", [make([1.0, float("nan")]) for make in (pd.Series, pl.Series, pa.array)])
def test_nan_is_not_a_null(value: Any) -> None:
    """NaN is a number like any other, and arrives without permission."""
    assert "masked" not in interop.spec(value).traits
    assert np.isnan(interop.convert(value, to="numpy")[1])


@together(
    "value, filled",
    [
        (pl.Series([[1.0, None], [3.0, 4.0]]), [[1, np.nan], [3, 4]]),
        (pa.array([[1.0, None], [3.0, 4.0]]), [[1, np.nan], [3, 4]]),
        (pl.Series([[1, None], [3, 4]], dtype=pl.Array(pl.Int32, 2)), [[1, 0], [3, 4]]),
        (pl.Series([[1, 2], None], dtype=pl.Array(pl.Int32, 2)), [[1, 2], [0, 0]]),
        (pl.Series([[1, None], None], dtype=pl.Array(pl.Int32, 2)), [[1, 0], [0, 0]]),
    ],
)
def test_nulls_within_rows_are_refused_and_filled_on_request(value: Any, filled: Any) -> None:
    """Null elements and null rows of one length are filled as nulls by themselves are."""
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="numpy")
    assert caught.value.effects == {"drop_mask"}
    np.testing.assert_array_equal(interop.convert(value, to="numpy", allow="drop_mask"), filled)


@together("step", [1, -1, 2])
@pytest.mark.parametrize("target", ["pandas", "polars", "pyarrow"])
def test_masks_become_nulls_and_come_back(target: str, step: int) -> None:
    """Masked elements are null, in the array's dtype; numbers in one block are shared both ways."""
    for dtype in PLAIN[:-1] if target != "polars" or HAS_FLOAT16 else NUMBERS["polars"][:-1]:
        array = numbers(dtype)
        value = np.ma.array(array, mask=np.arange(6) % 4 == 2)[::step]
        result = interop.convert(value, to=target)
        is_shared = interop.plan(value, to=target).aliases
        assert is_shared == (target == "pandas" if dtype != "float16" else False) or (
            target == "pyarrow" and step == 1
        )
        assert (memory(result) == start(value.data)) is is_shared
        back = interop.convert(result, to="numpy.ma")
        assert (back.dtype, back.tolist()) == (dtype, value.tolist())
        assert interop.convert(result[1:], to="numpy.ma").tolist() == value[1:].tolist()
        assert (start(back.data) == memory(result)) is not (
            dtype == "float16" and target == "pandas"
        )
        swapped = value.astype(array.dtype.newbyteorder(">"))
        assert (
            interop.convert(interop.convert(swapped, to=target), to="numpy.ma").tolist()
            == value.tolist()
        )
        assert target == "pandas" or not back.data.flags.writeable
        with pytest.raises(RefusedError):
            interop.convert(value, to="torch")
        bare = np.ma.array(array, mask=np.zeros(6, bool))
        assert same(interop.convert(interop.convert(bare, to=target), to="numpy"), array)
        assert interop.convert(bare, to="torch", copy=False).data_ptr() == start(array)
    if target == "pandas":
        table = np.ma.array([[1, 0], [1, 1]], mask=[[0, 1], [0, 0]])
        assert (
            interop.convert(interop.convert(table, to=target), to="numpy.ma").tolist()
            == table.tolist()
        )
    truth = np.ma.array([True, False, True], mask=[False, True, False])
    assert interop.convert(interop.convert(truth, to=target), to="numpy.ma").tolist() == [
        True,
        None,
        True,
    ]


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
        with pytest.raises(RefusedError):
            interop.convert(nulls, to="numpy")


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
    (pl.concat([pl.DataFrame({"a": [1.0, 2.0, 3.0]})] * 2, rechunk=False), False),
    (pl.DataFrame({"a": [True]}), False),
    (pl.DataFrame({"a": [1.0]}).with_columns(b="a"), False),
    (pa.table({"a": pa.chunked_array([[1.0], [2.0]])}), False),
    (pa.table({"a": [True]}), False),
]


@together("value, shared", RECEIPTS)
def test_plans_and_receipts_know_the_memory(value: Any, shared: bool) -> None:
    """A receipt says that memory is shared exactly where addresses agree, and copy=False refuses the rest."""
    with interop.trace() as receipts:
        result = interop.convert(value, to="numpy")
    assert np.array_equal(result, np.asarray(value))
    if not shared:
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy", copy=False)
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
OF_ARROW: list[pa.Array] = [
    pa.ExtensionArray.from_storage(Metres(), pa.array([1, 2])),
    pa.FixedSizeListArray.from_arrays(
        pa.ExtensionArray.from_storage(Metres(), pa.array([1, 2])), 2
    ),
    pa.array(["a", "b"]),
    pa.array(["a"], pa.string_view()),
    pa.array([b"a"]),
    pa.nulls(3),
    pa.array([1], pa.timestamp("ns")),
    pa.array([1], pa.date32()),
    pa.array([1], pa.time64("us")),
    pa.array([1], pa.duration("s")),
    pa.array([1], pa.decimal128(5, 2)),
    pa.array(["a", "b"]).dictionary_encode(),
    pa.array([{"a": 1}]),
    pa.array([["a"], ["b", "c"]]),
    pa.array([["a"]], pa.large_list(pa.string())),
    pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())),
    pa.array([b"ab"], pa.binary(2)),
    pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
    pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1.0])),
    pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    pa.array([b"0123456789abcdef"], pa.uuid()),
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
]
if hasattr(pa, "decimal32"):  # from Arrow 19 on
    OF_ARROW.append(pa.array([1], pa.decimal32(5, 2)))
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


@together("value", OF_ARROW)
def test_refusals_of_other_arrow_types_name_them(value: Any) -> None:
    """As an array, in chunks, in a table and one by one; such a value stays what it is."""
    assert interop.convert(value, to=interop.spec(value).format) is value
    dtype = interop.spec(value).dtype
    containers = {"": value, "chunks": pa.chunked_array([value]), "table": pa.table({"a": value})}
    for kind, container in containers.items():
        spec, column = interop.spec(container), " (column 'a')" if kind == "table" else ""
        assert (spec.dtype, spec.shape[0]) == (dtype + column, len(value))
        for target in ("torch", "python"):
            match = rf"{re.escape(str(value.type))}.*not (a dtype of )?numbers"
            with pytest.raises(RefusedError, match=match):
                interop.convert(container, to=target, allow="drop_mask")
            with pytest.raises(RefusedError, match="is not a dtype of numbers"):
                interop.convert(value[0], to=target, allow="drop_mask")


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
    "rows",
    [
        [[1.0, 2.0], None],
        [[1.0, None], [2.0]],
        [[1.0, None], [2.0, 3.0]],
        [[True], None],
        [[1.0, float("nan")], None, [None, 2.0]],
    ],
)
def test_objects_that_are_lists_with_gaps_are_copied(rows):
    """No plan calls memory that is written from Python's objects shared; NaN in them is a number."""
    series = pd.Series(rows)
    for target, to_list in (("polars", pl.Series.to_list), ("pyarrow.list", pa.Array.to_pylist)):
        plan = interop.plan(series, to=target)
        assert (plan.aliases, plan.effects) == (False, {"copy"})
        assert str(to_list(interop.convert(series, to=target))) == str(rows)
        with pytest.raises(RefusedError):
            interop.convert(series, to=target, copy=False)
    if len({len(row or ()) for row in rows}) == 1:
        masked = interop.convert(series, to="numpy.ma")
        assert masked.tolist() == rows
        filled = interop.convert(series, to="numpy", allow="drop_mask")
        assert str(filled.tolist()) == str(rows).replace("None", "nan")


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
        with pytest.raises(RefusedError):
            interop.convert(marked, to=to, forbid="drop_labels")
        assert interop.convert(marked, to=to).shape == (2, 2)
    kept = interop.convert(marked, to="pyarrow.table", copy=True, forbid="drop_labels")
    assert kept.schema.metadata == marked.schema.metadata


# ---------------------------------------------------------------------- side by side

#: Numbers of each dtype, among them those that others do not hold.
EXTREMES: dict[str, list[Any]] = {
    "bool": [True, False, True],
    "int8": [-128, 0, 127],
    "uint8": [0, 7, 255],
    "int32": [-(2**31), 16777217, 5],
    "int64": [-(2**63), 2**53 + 1, 2**63 - 1],
    "uint64": [0, 2**53 + 1, 2**64 - 1],
    "float32": [-0.0, 1.5, float("inf")],
    "float64": [16777217.0, -2.5, float("nan")],
}
#: Makes a table of arrays and of the places of nulls in each.
OF_MASKS: dict[str, Callable[[list[Any], list[Any]], Any]] = {
    "pandas": lambda columns, nulls: pd.DataFrame(
        {n: _nullable(x, mask) for n, (x, mask) in enumerate(zip(columns, nulls, strict=True))}
    ),
    "polars": lambda columns, nulls: pl.DataFrame(OF_MASKS["pyarrow"](columns, nulls)),
    "pyarrow": lambda columns, nulls: pa.table(
        {
            str(n): pa.array(x, mask=mask)
            for n, (x, mask) in enumerate(zip(columns, nulls, strict=True))
        }
    ),
}


def _nullable(numbers: Any, mask: Any) -> Any:
    if numbers.dtype == bool:
        return pd.arrays.BooleanArray(numbers, mask)
    kind = {"i": pd.arrays.IntegerArray, "u": pd.arrays.IntegerArray, "f": pd.arrays.FloatingArray}
    return kind[numbers.dtype.kind](numbers, mask)


@pytest.mark.parametrize("library", OF_MASKS)
@together("order, places", [("C", ()), ("F", (0,)), ("C", (0, 1))])
@together("target", [*EXTREMES, "float16"])
def test_columns_are_cast_as_numpy_casts_each(
    target: str, places: tuple[int, ...], order: Any, library: str
) -> None:
    """One call of a library's for all columns gives the numbers that NumPy gives for each one."""
    for names in combinations(EXTREMES, 2):
        columns = [np.array(EXTREMES[name], name) for name in names]
        nulls = [np.array([False, place in places, False]) for place in (0, 1)]
        with np.errstate(all="ignore"):
            expected = np.stack([column.astype(target) for column in columns], 1)
            for place in places:
                expected[1, place] = np.nan if target.startswith("float") else 0
            table = OF_MASKS[library](columns, nulls)
            result = interop.convert(
                table, to="numpy", dtype=target, order=order, allow={"drop_mask", "narrow"}
            )
        assert result.flags.c_contiguous if order == "C" else result.flags.f_contiguous
        np.testing.assert_array_equal(result, expected, strict=True)
