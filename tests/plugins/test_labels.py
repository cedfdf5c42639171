"""Labels: what of an index, of names and of attributes is lost, kept and given back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xarray as xr

import interop
from interop.errors import RefusedError
from tests.cases import together

NUMBERS = np.arange(6.0).reshape(3, 2)

#: A value with labels, and the same numbers without.
LABELLED: dict[str, tuple[Any, Any]] = {
    "frame": (
        pd.DataFrame(NUMBERS, index=[7, 8, 9], columns=["a", "b"]),
        pd.DataFrame(NUMBERS),
    ),
    "series": (pd.Series(NUMBERS[:, 0], name="height"), pd.Series(NUMBERS[:, 0])),
    "index": (pd.Index([3, 1], name="key"), pd.Index([3, 1])),
    "polars frame": (
        pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        pl.DataFrame(np.ones((2, 2))),
    ),
    "polars series": (pl.Series("height", [1.0, 2.0]), pl.Series([1.0, 2.0])),
    "table": (pa.table({"a": [1.0, 2.0]}), pa.table({"0": [1.0, 2.0]})),
    "record batch": (pa.record_batch({"a": [1.0, 2.0]}), pa.record_batch({"0": [1.0, 2.0]})),
    "dataarray": (
        xr.DataArray(NUMBERS, dims=("t", "x"), coords={"t": [7, 8, 9]}, attrs={"unit": "m"}),
        xr.DataArray(NUMBERS),
    ),
    "variable": (xr.Variable(("t", "x"), NUMBERS), xr.Variable(("dim_0", "dim_1"), NUMBERS)),
}


#: Nothing becomes a table, nor a copy of one.
NOT_COPIED = ("table", "record batch")


def same(value: Any, other: Any) -> bool:
    """Tell whether two values have the same numbers under the same labels."""
    if isinstance(value, (xr.DataArray, xr.Variable)):
        return value.identical(other)
    if isinstance(value, pd.Index):
        return value.identical(other)
    return value.equals(other) and getattr(value, "name", None) == getattr(other, "name", None)


@pytest.mark.parametrize("kind", LABELLED)
def test_labels_are_an_effect_of_the_plan_and_can_be_forbidden(kind: str) -> None:
    """Leaving a framework with labels drops them, which plans and receipts say and policy forbids."""
    labelled, plain = LABELLED[kind]
    for target in ("numpy", "torch"):
        assert "drop_labels" in interop.plan(labelled, to=target).effects
        with interop.trace() as receipts:
            interop.convert(labelled, to=target)
        assert "drop_labels" in receipts[0].effects
        with pytest.raises(RefusedError):
            interop.convert(labelled, to=target, forbid="drop_labels")
        assert "drop_labels" not in interop.plan(plain, to=target).effects
        interop.convert(plain, to=target, forbid="drop_labels")


@pytest.mark.parametrize("kind", [kind for kind in LABELLED if kind not in NOT_COPIED])
def test_copies_and_casts_within_a_framework_keep_labels(kind: str) -> None:
    """A copy in the same format has the same labels, and is planned without the effect."""
    labelled, _ = LABELLED[kind]
    format_ = interop.spec(labelled).format
    copied = interop.convert(labelled, to=format_, copy=None if kind[:2] == "po" else True)
    assert same(copied, labelled)
    if kind != "index":
        cast = interop.convert(labelled, to=format_, dtype="float32", forbid="drop_labels")
        assert interop.spec(cast).traits >= {"labelled"}


@pytest.mark.parametrize("kind", ["frame", "series", "polars frame", "dataarray", "variable"])
def test_like_a_labelled_value_takes_its_labels(kind: str) -> None:
    """What has no labels of its own takes those of `like` where the shapes are the same."""
    labelled, plain = LABELLED[kind]
    numbers = interop.convert(labelled, to="numpy")
    for source in (numbers, torch.tensor(numbers)):
        assert same(interop.convert(source, like=labelled), labelled)
        assert same(interop.converter(like=labelled)(source), labelled)
        assert same(interop.plan(source, like=labelled)(source), labelled)
    assert same(interop.convert(plain, like=plain), plain)
    other_shape = interop.convert(numbers[:1], like=labelled)
    assert "labelled" not in interop.spec(other_shape).traits


def test_like_shares_the_memory_it_would_share_without_labels() -> None:
    """Labels are given without a copy, and leave the source and `like` as they were."""
    frame, _ = LABELLED["frame"]
    numbers = np.ones((3, 2))
    result = interop.convert(numbers, like=frame, copy=False)
    assert np.shares_memory(result.to_numpy(), numbers)
    assert frame.to_numpy().tolist() == NUMBERS.tolist()
    array, _ = LABELLED["dataarray"]
    shared = interop.convert(numbers, like=array, copy=False)
    assert shared.data is numbers
    assert array.data is NUMBERS


def test_a_value_keeps_its_own_labels() -> None:
    """`like` decides the format of a labelled value, and not its labels."""
    for kind, mine in (
        ("frame", pd.DataFrame(np.ones((3, 2)), columns=["mine", "too"])),
        ("series", pd.Series([1.0, 2.0, 3.0], name="mine")),
        ("index", pd.Index([1, 2], name="mine")),
        ("polars series", pl.Series("mine", [3.0, 4.0])),
        ("dataarray", xr.DataArray(np.ones((3, 2)), dims=("mine", "too"))),
        ("variable", xr.Variable(("mine", "too"), np.ones((3, 2)))),
    ):
        assert same(interop.convert(mine, like=LABELLED[kind][0]), mine), kind


@pytest.mark.parametrize("kind", ["frame", "series", "polars frame", "dataarray", "variable"])
def test_accepts_gives_labels_back(kind: str) -> None:
    """A result of the argument's shape comes back under its labels."""
    labelled, _ = LABELLED[kind]
    result = interop.accepts("numpy")(lambda array: array * 1)(labelled)
    assert same(result, labelled)


@together(
    "function, columns",
    [
        (lambda array: array.sum(1), None),
        (lambda array: array.argmax(1), None),
        (lambda array: array[:, :1], [0]),
        (lambda array: np.c_[array, array], [0, 1, 2, 3]),
    ],
)
def test_accepts_gives_the_labels_of_rows_back(function: Any, columns: list[int] | None) -> None:
    """A result with a row for each row of a frame has its index, by which pandas aligns."""
    frame, _ = LABELLED["frame"]
    expected = function(frame.to_numpy())
    result = interop.accepts("numpy")(function)(frame)
    assert result.index.equals(frame.index)
    assert result.to_numpy().tolist() == expected.tolist()
    assert columns is None or list(result.columns) == columns
    joined = frame.assign(result=result if columns is None else result[0])
    assert not joined["result"].isna().any()
    series = interop.accepts("numpy")(lambda array: np.c_[array, array])(frame["a"])
    assert series.index.equals(frame.index)


def test_no_labels_are_guessed() -> None:
    """As many rows as columns do not tell which of them a result has; nor do other lengths."""
    frame, _ = LABELLED["frame"]
    for part, function in (
        (frame[:2], lambda array: array.sum(1)),
        (frame[:2], lambda array: array.sum(0)),
        (frame, lambda array: array[1:]),
        (frame, lambda array: array.T @ array),
    ):
        result = interop.accepts("numpy")(function)(part)
        assert "labelled" not in interop.spec(result).traits


def test_accepts_gives_results_of_other_shapes_back_without_labels() -> None:
    """A reduction has no labels, and is of a format of the framework that has so many axes, if any."""
    frame, _ = LABELLED["frame"]
    total = interop.accepts("numpy")(lambda array: array.sum(0))(frame)
    assert total.equals(pd.Series([6.0, 9.0]))
    mean = interop.accepts("numpy")(lambda array: array.mean())(frame)
    assert mean == 2.5
    array, _ = LABELLED["dataarray"]
    means = interop.accepts("torch")(lambda tensor: tensor.mean(1))(array)
    assert means.identical(xr.DataArray([0.5, 2.5, 4.5]))


class Length(np.ndarray):
    """An array with a unit, as astropy and unyt have them."""

    unit: str | None

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)


class Image(torch.Tensor):
    """A tensor with metadata, as MONAI's have."""

    affine: Any


def _with_unit(unit: str | None) -> Length:
    length = np.array([1.0, 2.0]).view(Length)
    length.unit = unit
    return length


def _with_metadata() -> Image:
    image = torch.ones(2).as_subclass(Image)
    image.affine = np.eye(4)
    return image


@pytest.mark.parametrize("value", [_with_unit("m"), _with_metadata(), [_with_unit("m")] * 2])
def test_attributes_of_a_subclass_are_labels(value: Any) -> None:
    """A unit or metadata that an array of a subclass has beside its numbers is not lost unsaid."""
    own = interop.spec(value).format
    for target in {"numpy", "torch", "python", "pandas", "scipy.coo"} - {own}:
        assert "labelled" in interop.spec(value).traits
        assert "drop_labels" in interop.plan(value, to=target).effects
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, forbid="drop_labels")
        assert interop.spec(interop.convert(value, to=target)).shape[-1:] == (2,)


def test_a_subclass_without_attributes_is_no_label() -> None:
    """What holds nothing else has none."""
    for value in (_with_unit(None), torch.ones(2).as_subclass(Image)):
        assert interop.spec(value).traits == {"subclass"}
        for target in ("numpy", "torch"):
            interop.convert(value, to=target, forbid="drop_labels")
