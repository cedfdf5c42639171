"""Labels: what of a unit, of names and of attributes is lost, kept and given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import RefusedError
from tests.kit.library import Quantity
from tests.kit.library_plugin import with_library

NUMBERS = np.arange(6.0).reshape(3, 2)
MINE = with_library()


def metres(*shape: int) -> Quantity:
    """Return lengths."""
    return Quantity(np.ones(shape or (3, 2)), "m")


def test_labels_are_an_effect_of_the_plan_and_can_be_forbidden() -> None:
    """Leaving a format with labels drops them, which plans and receipts say and policy forbids."""
    for target in ("numpy", "library"):
        assert "drop_labels" in MINE.plan(metres(), to=target).effects
        with interop.trace() as receipts:
            MINE.convert(metres(), to=target)
        assert "drop_labels" in receipts[0].effects
        with pytest.raises(RefusedError):
            MINE.convert(metres(), to=target, forbid="drop_labels")
        assert "drop_labels" not in MINE.plan(Quantity(NUMBERS), to=target).effects
        MINE.convert(Quantity(NUMBERS), to=target, forbid="drop_labels")


def test_copies_and_casts_within_a_format_keep_labels() -> None:
    """They have the same labels, and are planned without the effect."""
    for words in ({"copy": True}, {"dtype": "float32"}):
        kept = MINE.convert(metres(), to="quantity", forbid="drop_labels", **words)
        assert (kept.unit, kept.magnitude.tolist()) == ("m", [[1, 1]] * 3)


def test_like_a_labelled_value_takes_its_labels() -> None:
    """What has no labels of its own takes those of `like`, without a copy; others keep their own."""
    like = metres()
    for call in (
        lambda x: MINE.convert(x, like=like, copy=False),
        MINE.converter(like=like),
        lambda x: MINE.plan(x, like=like)(x),
    ):
        result = call(NUMBERS)
        assert (result.unit, result.magnitude is NUMBERS) == ("m", True)
    own = Quantity(NUMBERS, "s")
    assert MINE.convert(own, like=like).unit == "s"
    assert MINE.convert(Quantity(NUMBERS), like=Quantity(NUMBERS)).unit == ""
    assert like.magnitude.tolist() == [[1, 1]] * 3


def test_accepts_gives_labels_back() -> None:
    """A result of the argument's format comes back under its labels, cold and warm."""
    same = MINE.accepts("numpy")(lambda array: array * 1)
    for _ in range(3):
        result = same(metres())
        assert (type(result), result.unit) == (Quantity, "m")


class Length(np.ndarray):
    """An array with a unit, as astropy and unyt have them."""

    unit: str | None

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)


class Slotted(np.ndarray):
    """A subclass whose arrays hold nothing else."""

    __slots__ = ()


def _with_unit(unit: str | None) -> Length:
    length = np.array([1.0, 2.0]).view(Length)
    length.unit = unit
    return length


@pytest.mark.parametrize("value", [_with_unit("m"), [_with_unit("m")] * 2])
def test_attributes_of_a_subclass_are_labels(value: Any) -> None:
    """A unit or metadata that an array of a subclass has beside its numbers is not lost unsaid."""
    own = MINE.spec(value).format
    for target in {"numpy", "library", "python"} - {own}:
        assert "labelled" in MINE.spec(value).traits
        assert "drop_labels" in MINE.plan(value, to=target).effects
        with pytest.raises(RefusedError):
            MINE.convert(value, to=target, forbid="drop_labels")
        assert MINE.spec(MINE.convert(value, to=target)).shape[-1:] == (2,)


def test_a_subclass_without_attributes_is_no_label(tmp_path: Path) -> None:
    """What holds nothing else, and the attributes that NumPy gives its own subclasses, are none."""
    mapped = np.memmap(tmp_path / "mapped", dtype="f4", mode="w+", shape=(2,))
    for value in (_with_unit(None), mapped, np.ones(2).view(Slotted)):
        assert MINE.spec(value).traits == {"subclass"}
        MINE.convert(value, to="library", forbid="drop_labels")
