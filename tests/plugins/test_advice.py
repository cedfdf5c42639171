"""The last line of a refusal: the move that keeps the numbers right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import RefusedError, UnknownValueError


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
def test_what_keeps_nulls_right_stands_last(value: Any, fill: str) -> None:
    """A refusal says what dropped nulls become, and its last words fill them; both moves work."""
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch")
    last = str(caught.value).splitlines()[-1]
    assert last.startswith("In reals nulls then become NaN, as with dtype='float64'; in integers")
    assert last.endswith(f"{fill}(...) says what they become.")
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
