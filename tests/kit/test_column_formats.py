"""Tables by the short form: names, dtypes, nulls, chunks and decimals of a toy library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from interop import Interop
from interop._api.inspection import Inspection
from interop.errors import RefusedError
from interop.kit import ColumnReader, cast_digits, column_formats


class Column:
    """Numbers in chunks, some of which may be missing."""

    def __init__(self, numbers: Any, missing: Any = None) -> None:
        self.numbers, self.missing = numbers, missing

    def __len__(self) -> int:
        return len(self.numbers)

    def chunks(self) -> list[Column]:
        """Return parts of two elements."""
        parts = [slice(n, n + 2) for n in range(0, len(self), 2)]
        missing = self.missing
        return [Column(self.numbers[p], None if missing is None else missing[p]) for p in parts]


class Sheet:
    """Columns under names."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)
        self.shape = max(map(len, self.columns.values()), default=0), len(self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        columns = {name: pa.array(c.numbers, mask=c.missing) for name, c in self.columns.items()}
        return pa.table(columns).__arrow_c_stream__(requested_schema)


def from_arrow(stream: Any) -> Sheet:
    """Return the columns of a stream, over its memory where none is null."""
    columns = {}
    for name, column in zip((table := pa.table(stream)).column_names, table.columns, strict=True):
        missing = column.is_null().to_numpy() if column.null_count else None
        numbers = column.fill_null(0) if column.null_count else column
        columns[name] = Column(numbers.to_numpy(), missing)
    return Sheet(columns)


READING: dict[str, Any] = {
    "columns": lambda sheet: sheet.columns.items(),
    "numbers": "numbers",
    "nulls": "missing",
}


@pytest.fixture
def mine(loaded: Interop) -> Interop:
    """An instance to which the library is declared."""
    return _declared(loaded, **READING)


def _declared(instance: Interop, **reading: Any) -> Interop:
    declarations = column_formats(
        f"{__name__}:Sheet",
        name="sheets",
        series=f"{__name__}:Column",
        make_table=Sheet,
        make_series=Column,
        from_arrow=from_arrow,
        requires="",
        **reading,
    )
    instance.register(*declarations)
    return instance


def _sheet() -> Sheet:
    missing = np.array([False, True, False])
    return Sheet({"a": Column(np.array([1, 2, 2**53 + 1])), "b": Column(np.arange(3.0), missing)})


@pytest.mark.parametrize("target", ["pandas", "polars", "pyarrow.table"])
def test_names_dtypes_and_nulls_go_there_and_back(mine: Interop, target: str) -> None:
    """Every column arrives as it is in another library, and comes back as it was."""
    table: Any = mine.convert(_sheet(), to=target)
    rows = [pl.DataFrame(table).to_dict(as_series=False)]
    assert rows == [{"a": [1, 2, 2**53 + 1], "b": [0.0, None, 2.0]}]
    back: Any = mine.convert(table, to=Sheet)
    assert list(back.columns) == ["a", "b"]
    assert [column.numbers.dtype.name for column in back.columns.values()] == ["int64", "float64"]
    assert back.columns["a"].numbers.tolist() == [1, 2, 2**53 + 1]
    assert back.columns["b"].missing.tolist() == [False, True, False]


def test_labels_of_rows_come_as_a_column(mine: Interop) -> None:
    """A library without labels of rows gets them as pandas has Arrow name them."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}, index=[0.5, 1.5])
    sheet = mine.convert(frame, to=Sheet)
    assert list(sheet.columns) == ["a", "b", "__index_level_0__"]
    assert sheet.columns["__index_level_0__"].numbers.tolist() == [0.5, 1.5]
    assert mine.convert(frame, to="numpy").tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_a_sheet_becomes_an_array_of_the_dtype_that_holds_it(mine: Interop) -> None:
    """An integer that the common dtype does not hold is refused, and so are nulls."""
    with pytest.raises(RefusedError, match="column 'a': 9007199254740993 would be rounded"):
        mine.convert(_sheet(), to="numpy", allow="drop_mask")
    with pytest.raises(RefusedError):
        mine.convert(_sheet(), to="numpy", dtype="float64", allow="narrow")
    array: Any = mine.convert(_sheet(), to="numpy", dtype="float64", allow={"narrow", "drop_mask"})
    assert (array.dtype, array.shape) == (np.float64, (3, 2))
    assert np.array_equal(array, [[1, 0], [2, np.nan], [2**53, 2]], equal_nan=True)
    masked: Any = mine.convert(_sheet(), to="numpy.ma", dtype="float64", allow="narrow")
    assert masked.mask.tolist() == [[False, False], [False, True], [False, False]]


def test_casts_and_copies_keep_names_and_nulls(mine: Interop) -> None:
    """A dtype is that of each column, and a copy shares no memory."""
    sheet = _sheet()
    cast: Any = mine.convert(sheet, to="sheets", dtype="float32", allow="narrow")
    assert {n: c.numbers.dtype.name for n, c in cast.columns.items()} == dict.fromkeys(
        "ab", "float32"
    )
    assert cast.columns["b"].missing.tolist() == [False, True, False]
    assert cast.columns["a"].missing is None
    copied: Any = mine.convert(sheet, to="sheets", copy=True)
    for name, column in sheet.columns.items():
        assert np.array_equal(copied.columns[name].numbers, column.numbers)
        assert not np.shares_memory(copied.columns[name].numbers, column.numbers)
    named: Any = mine.convert(np.ones((3, 2)), like=sheet)
    assert (type(named), list(named.columns)) == (Sheet, ["a", "b"])


def test_a_column_shares_the_memory_of_an_array_and_gives_it_back(mine: Interop) -> None:
    """Numbers without nulls are shared both ways; those with nulls become a masked array."""
    numbers = np.arange(3.0)
    column: Any = mine.convert(numbers, to=Column)
    assert (column.missing, np.shares_memory(column.numbers, numbers)) == (None, True)
    inspection = Inspection(mine)
    assert inspection.shares_memory(column, numbers) is True
    assert inspection.shares_memory(Sheet({"a": column}), numbers) is True
    assert inspection.shares_memory(Column(np.array(["x"])), numbers) is not True
    tensor: Any = mine.convert(column, to="torch")
    assert tensor.data_ptr() == numbers.ctypes.data
    masked: Any = mine.convert(_sheet().columns["b"], to="numpy.ma")
    assert (masked.tolist(), type(masked)) == ([0.0, None, 2.0], np.ma.MaskedArray)
    back: Any = mine.convert(masked, to=Column)
    assert back.missing.tolist() == [False, True, False]


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bfloat16"])
def test_a_reader_of_chunks_writes_what_whole_columns_give(
    loaded: Interop, dtype: str, by_rows: bool
) -> None:
    """Chunks, casts and nulls come in the order that the reader names, by rows or by columns."""
    mine = _declared(
        loaded, reader=ColumnReader(**READING, make=Column, chunks="chunks", by_rows=by_rows)
    )
    sheet = Sheet({"a": Column(np.arange(5)), "b": Column(np.arange(5.0), np.arange(5) == 3)})
    array: Any = mine.convert(sheet, to="numpy", dtype=dtype, allow={"narrow", "drop_mask"})
    assert (array.dtype, array.flags.c_contiguous) == (np.dtype(dtype), by_rows)
    null = np.nan if array.dtype.kind != "i" else 0
    expected = np.array([[0, 0], [1, 1], [2, 2], [3, null], [4, 4]])
    assert np.array_equal(array.astype(complex), expected, equal_nan=True)


def test_a_stack_is_the_librarys_own_call(loaded: Interop) -> None:
    """What `stack` returns is the array; where it passes, columns are written one by one."""
    calls: list[str] = []

    def stack(sheet: Sheet, *, dtype: str) -> Any:
        calls.append(dtype)
        columns = [column.numbers.astype(dtype) for column in sheet.columns.values()]
        return np.column_stack(columns) if len(calls) == 1 else NotImplemented

    mine = _declared(loaded, reader=ColumnReader(**READING, make=Column, stack=stack))
    sheet = Sheet({"a": Column(np.arange(3)), "b": Column(np.arange(3))})
    arrays: list[Any] = [mine.convert(sheet, to="numpy") for _ in range(2)]
    assert calls == ["int64", "int64"]
    assert arrays[0].tolist() == arrays[1].tolist() == [[0, 0], [1, 1], [2, 2]]


DIGITS = [125, -399, 0, 99, -100, 2**53, 2**53 + 1, -(2**62)]


@pytest.mark.parametrize("scale", [0, 2, 5, 18, 22, 23])
@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "bfloat16", "int64", "int8", "uint16", "bool", "complex64"],
)
def test_digits_become_what_decimals_become_one_by_one(scale: int, dtype: str) -> None:
    """The quick way gives the number that Python's decimals give, or leaves it to them."""
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on

    target, tried = np.dtype(dtype), 0
    for digits in DIGITS:
        with np.errstate(over="ignore"):
            quick = cast_digits(np.array([[digits]]), scale, target)
            if quick is None:
                continue
            tried += 1
            number = Decimal(digits).scaleb(-scale)
            expected: Callable[[Decimal], Any] = {"b": bool, "i": int, "u": int}.get(
                target.kind, float
            )
            assert quick.dtype == target
            assert quick.tolist() == np.array([expected(number)]).astype(target).tolist()
    assert tried or scale > 18


def test_digits_of_several_words_and_nulls() -> None:
    """Digits of more than 64 bits are left to Python, and null places hold anything."""
    words = np.array([[125, 0], [-399, -1], [7, 3]])
    nulls = np.array([False, False, True])
    assert cast_digits(words, 2, np.dtype("float64")) is None
    quick = cast_digits(words, 2, np.dtype("float64"), nulls)
    assert quick is not None
    assert np.array_equal(quick, [1.25, -3.99, np.nan], equal_nan=True)


def test_a_table_tells_how_its_columns_lie(mine: Interop) -> None:
    """Numbers lie in blocks or at strides; truth values and what hides nulls are bytes."""
    numbers, missing = np.arange(2.0), np.array([False, True])
    columns = {
        "block_columns": Column(numbers),
        "strided_columns": Column(np.arange(4.0)[::2]),
        "byte_columns": Column(missing),
        "masked": Column(numbers, missing),
    }
    kinds = {"block_columns", "strided_columns", "byte_columns", "masked"}
    found = [mine.spec(Sheet({"a": c, "b": c})).traits & kinds for c in columns.values()]
    assert found == [
        *({name} for name in list(columns)[:3]),
        {"byte_columns", "block_columns", "masked"},
    ]


def test_what_is_no_number_is_told_apart_from_decimals(loaded: Interop) -> None:
    """Objects that may be numbers are `untyped`, and read if a dtype is named; text is neither.

    A library whose reader reads none takes none.
    """
    decimals = pd.DataFrame({"a": [Decimal(1), Decimal("2.5")]})
    with pytest.raises(RefusedError):
        _declared(Interop(), **READING).convert(decimals, to="sheets")
    names = {"O": "untyped", "U": "text"}
    reader = ColumnReader(
        **READING,
        make=Column,
        dtype=lambda column: names.get(column.numbers.dtype.kind, column.numbers.dtype.name),
        untyped=lambda column, dtype: column.numbers.astype(dtype),
    )
    mine = _declared(loaded, reader=reader)
    objects, texts = (Column(np.array(a)) for a in ([Decimal(1), Decimal("2.5")], ["x", "y"]))
    mixed = Sheet({"a": objects, "b": Column(np.ones(2))})
    told = {"not_numbers", "untyped", "object_columns"}
    values = objects, texts, Sheet({"a": objects}), Sheet({"a": texts}), mixed
    assert [mine.spec(value).traits & told for value in values] == [
        {"not_numbers", "untyped"},
        {"not_numbers"},
        {"not_numbers", "untyped", "object_columns"},
        {"not_numbers", "object_columns"},
        {"not_numbers", "untyped", "object_columns"},
    ]
    for table in (mixed, mine.convert(decimals, to="sheets")):
        array: Any = mine.convert(table, to="numpy", dtype="float64")
        assert array[:, 0].tolist() == [1, 2.5]
    with pytest.raises(RefusedError):
        mine.convert(Sheet({"a": texts}), to="numpy", dtype="float64")


def test_a_plan_foresees_how_the_columns_of_an_array_lie(mine: Interop) -> None:
    """Whatever a table of numbers or truth values is, its plan has said."""
    for array in (np.ones((3, 2)), np.ones((3, 2), bool), np.asfortranarray(np.ones((3, 2)))):
        plan = mine.plan(array, to="sheets")
        assert mine.spec(plan(array)).traits <= plan.steps[-1].after.traits


def test_text_stays_in_columns(mine: Interop) -> None:
    """A column of text is kept from table to table, and refused as an array."""
    sheet: Any = mine.convert(pd.DataFrame({"a": ["x", "y"]}), to=Sheet)
    assert sheet.columns["a"].numbers.tolist() == ["x", "y"]
    with pytest.raises(RefusedError):
        mine.convert(sheet, to="numpy")
