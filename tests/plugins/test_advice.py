"""The advice of refusals: what they name exists, works, and keeps the numbers right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import InteropError, RefusedError, UnknownValueError
from tests.cases import together


def locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_the_last_line_is_the_safe_way() -> None:
    """Where the nearest route needs a permission and another only a copy, the copy stands last."""
    for value in (pd.Series([1.0, 2.0]), locked(np.ones(2))):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="torch", copy=False)
        last = str(caught.value).splitlines()[-1]
        assert last == "The safe way is another: leave out copy=False."
        assert "a write reaches the owner's numbers, or ends the process" in str(caught.value)
        assert caught.value.effects == {"share_readonly"}
    with pytest.raises(RefusedError, match=r"To permit the nearest, leave out copy=False\.$"):
        interop.convert(np.ones(2, "f4"), to="jax", copy=False)


@pytest.mark.parametrize(
    ("value", "fill"),
    [
        (pd.Series([1, None], dtype="Int64"), "x.fillna"),
        (pd.Series([True, None], dtype="boolean"), "x.fillna"),
        (pl.Series([1, None]), "x.fill_null"),
        (pl.DataFrame({"a": [1, None]}), "x.fill_null"),
        (pa.array([1, None]), "x.fill_null"),
        (pa.chunked_array([[1, None]]), "x.fill_null"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_refusal_of_nulls_says_how_to_fill_them_first(value: Any, fill: str) -> None:
    """A refusal fills nulls before it drops them, says what dropped ones become, and both work."""
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch")
    *_, advice, last = str(caught.value).splitlines()
    assert f"{fill}(...) says what nulls become" in advice
    assert "dtype='float64' beside it makes NaN of those, too." in advice
    assert last == "To permit the nearest, pass allow={'drop_mask'}, dtype='float64'."
    result = interop.convert(value, to="torch", dtype="float64", allow="drop_mask")
    assert result.isnan().reshape(-1).tolist() == [False, True]


@pytest.mark.parametrize(
    ("series", "name", "move"),
    [
        (pd.Series(["a", "b"], dtype="category"), r"cat\.codes", lambda x: x.cat.codes),
        (
            pd.Series(pd.to_datetime(["2026-01-01"])),
            r"astype\('int64'\)",
            lambda x: x.astype("int64"),
        ),
        (pd.Series(["1", "2"], dtype=object), r"to_numeric", pd.to_numeric),
    ],
)
def test_the_moves_of_pandas_work(series: Any, name: str, move: Any) -> None:
    """A Series of no numbers is refused with calls, each of which makes numbers of its kind."""
    with pytest.raises(RefusedError, match=name):
        interop.convert(series, to="torch")
    assert interop.convert(move(series), to="torch").shape == series.shape


@pytest.mark.parametrize(
    ("array", "cast", "move"),
    [
        (pa.array(["1.5"]), r"x\.cast\('float64'\)", lambda x: x.cast("float64")),
        (pa.array([1], pa.timestamp("s")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.duration("s")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.date64()), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.date32()), r"x\.cast\('int32'\)", lambda x: x.cast("int32")),
        (pa.array([1], pa.time32("s")), r"x\.cast\('int32'\)", lambda x: x.cast("int32")),
        (pa.array([1], pa.time64("us")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array(["a"]).dictionary_encode(), r"x\.indices", lambda x: x.indices),
        (pa.array([2]).dictionary_encode(), r"x\.dictionary", lambda x: x.dictionary_decode()),
    ],
)
def test_the_moves_of_arrow_work(array: Any, cast: str, move: Any) -> None:
    """An array, a chunked array and a table of no numbers are refused with a cast that works."""
    for value in (array, pa.chunked_array([array]), pa.table({"a": array})):
        with pytest.raises(RefusedError, match=cast):
            interop.convert(value, to="torch")
    assert interop.convert(move(array), to="torch").shape == (1,)


@pytest.mark.extra("safetensors")
def test_the_move_of_a_slice_of_a_file_works(tmp_path: Path) -> None:
    """A slice of safetensors, whose class names no module, is refused with what reads it."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    save_file({"w": torch.arange(6.0).reshape(2, 3)}, tmp_path / "w.safetensors")
    with safe_open(tmp_path / "w.safetensors", "torch") as opened:
        part = opened.get_slice("w")
        with pytest.raises(UnknownValueError, match=r"convert x\[\.\.\.\], which reads it"):
            interop.convert(part, to="numpy")
        assert interop.convert(part[...], to="numpy").tolist() == [[0, 1, 2], [3, 4, 5]]


def objects(*elements: Any) -> np.ndarray:
    """Return an array of objects, which NumPy does not look into."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


#: Values that are refused, by what they are.
REFUSED: dict[str, Callable[[], Any]] = {
    "arrays as objects": lambda: objects(np.ones(2), np.zeros(2)),
    "ragged objects": lambda: objects(np.ones(2), np.zeros(3)),
    "text as objects": lambda: np.array(["1"], object),
    "decimals": lambda: np.array([Decimal(1)], object),
    "text": lambda: np.array(["1"]),
    "dates": lambda: np.array(["2026-01-01"], "datetime64[D]"),
    "records": lambda: np.zeros(2, [("name", "f4")]),
    "raw bfloat16": lambda: np.ones(2, ml_dtypes.bfloat16).view("V2"),
    "masked": lambda: np.ma.array([1, 2], mask=[True, False]),
    "keys": lambda: jax.random.key(0),
    "MaskedTensor": lambda: torch.masked.masked_tensor(torch.ones(1), torch.tensor([True])),
    "meta": lambda: torch.ones(1, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "module": lambda: torch.nn.Linear(1, 1),
    "optimizer": lambda: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]),
    "lazy frame": lambda: pl.LazyFrame({"a": [1]}),
    **{
        f"{kind.__name__} {name}": lambda kind=kind, make=make: kind(make())
        for kind in (pd.Series, pd.Index, pd.array)
        for name, make in {
            "of categories": lambda: pd.Categorical(["a"]),
            "of numbers as categories": lambda: pd.Categorical([20, 10]),
            "of text": lambda: pd.array(["1"], dtype="string"),
            "of objects": lambda: np.array(["1"], object),
            "of dates": lambda: pd.to_datetime(["2026-01-01"]),
            "of spans": lambda: pd.to_timedelta([1], "s"),
            "of periods": lambda: pd.period_range("2026", periods=1),
            "of intervals": lambda: pd.interval_range(0, 1),
            "with nulls": lambda: pd.array([1, None], dtype="Int64"),
        }.items()
    },
    "pandas frame": lambda: pd.DataFrame({"a": ["x"], "b": [1]}),
    "polars text": lambda: pl.Series(["1"]),
    "polars dates": lambda: pl.Series([date(2026, 1, 1)]),
    "polars nulls": lambda: pl.Series([1, None]),
    "polars frame": lambda: pl.DataFrame({"a": ["x"], "b": [1]}),
    "Arrow's text": lambda: pa.array(["1"]),
    "Arrow's nulls": lambda: pa.array([1, None]),
    "Arrow's dictionary": lambda: pa.array(["a"]).dictionary_encode(),
    "Arrow's table": lambda: pa.table({"a": [1], "b": [0.5]}),
}


def named(value: Any, text: str) -> Iterator[tuple[object, str]]:
    """Yield what a text names, of the value `x` or of a module, as an owner and a path."""
    for path in re.findall(r"\bx((?:\.[a-z_]\w*)+)", text):
        yield value, path[1:]
    for path in re.findall(r"\bits (?:method )?([a-z_]\w*)\(\)", text):
        yield value, path
    for module, path in re.findall(r"\b(numpy|pandas|polars|jax|ml_dtypes)((?:\.\w+)+)", text):
        yield import_module(module), path[1:]


@pytest.mark.filterwarnings("ignore:The PyTorch API of .* tensors is in prototype")
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors is in prototype")
@together("name", REFUSED)
def test_everything_that_a_refusal_names_exists(name: str) -> None:
    """Each method, attribute and function in a message is one of the value, or of its library."""
    value = REFUSED[name]()
    for keywords in ({}, {"dtype": "float64"}):
        for to in ("torch", "numpy"):
            try:
                interop.convert(value, to=to, **keywords)
            except InteropError as error:
                advice = str(error).partition(" to ")[2] or str(error)
                for owner, path in named(value, advice):
                    attrgetter(path)(owner)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors is in prototype")
@together(
    "name, move, expected",
    [
        ("arrays as objects", "numpy.stack(x)", [[1, 1], [0, 0]]),
        ("text as objects", "x.astype(float)", [1]),
        ("raw bfloat16", "x.view(ml_dtypes.bfloat16)", [1, 1]),
        ("Series of numbers as categories", "x.astype(x.cat.categories.dtype)", [20, 10]),
        ("Index of numbers as categories", "x.astype(x.categories.dtype)", [20, 10]),
        ("keys", "jax.random.key_data(x)", [0, 0]),
        ("MaskedTensor", "x.get_data()", [1]),
    ],
)
def test_the_calls_of_a_refusal_make_its_numbers(name: str, move: str, expected: Any) -> None:
    """A call that a refusal writes out gives what converts to the value's numbers."""
    value = REFUSED[name]()
    to = "numpy" if isinstance(value, torch.Tensor) else "torch"
    with pytest.raises(RefusedError, match=re.escape(move)):
        interop.convert(value, to=to)
    result = eval(move, {"x": value, "numpy": np, "ml_dtypes": ml_dtypes, "jax": jax})
    assert interop.convert(result, to="numpy").tolist() == expected


def test_nulls_become_nan_where_a_refusal_is_followed() -> None:
    """For integers with nulls both keywords are offered; without a dtype with NaN, a null is 0."""
    for value in (pd.array([1, None], dtype="Int64"), pl.Series([1, None]), pa.array([1, None])):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="torch")
        keywords = {"allow": {"drop_mask"}, "dtype": "float64"}
        assert "permit the nearest, pass allow={'drop_mask'}, dtype='float64'." in str(caught.value)
        assert interop.convert(value, to="torch", **keywords).isnan().tolist() == [False, True]
    masked = np.ma.array([1, 2], mask=[True, False])  # has numbers under its mask
    with pytest.raises(RefusedError, match=r"permit the nearest, pass allow=\{'drop_mask'\}\."):
        interop.convert(masked, to="torch")
