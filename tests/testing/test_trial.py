"""Trials: what is remembered of a device on which a sample cannot be made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interop import Interop
from interop.testing import _trial
from interop.testing._sample import NoSample, Recipe
from interop.testing._trial import possible, sampled
from tests.cases import together

PLAIN = Recipe("grid", "float32", (2,), device="gpu")
BACKWARDS = PLAIN._replace(traits=frozenset({"negative_strides"}))


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Recipe]]:
    """Let no sample be made of some recipes, and return those that it was tried with."""

    def fail(*impossible: Recipe) -> list[Recipe]:
        recipes: list[Recipe] = []

        def sample(interop: Interop, recipe: Recipe) -> Recipe:
            recipes.append(recipe)
            if recipe in impossible:
                raise NoSample("it cannot be made")
            return recipe

        monkeypatch.setattr(_trial, "sample", sample)
        return recipes

    return fail


def test_a_device_that_is_there_stays_there(
    empty: Interop, attempts: Callable[..., list[Recipe]]
) -> None:
    """One trait that cannot be had on a device does not keep the others from being tried there."""
    attempts(BACKWARDS)
    assert sampled(empty, PLAIN) == PLAIN
    with pytest.raises(NoSample):
        sampled(empty, BACKWARDS)
    assert sampled(empty, PLAIN) == PLAIN


def test_a_device_that_is_absent_is_tried_once(
    empty: Interop, attempts: Callable[..., list[Recipe]]
) -> None:
    """To find out that there is no device takes long, so the answer is kept."""
    recipes = attempts(PLAIN, BACKWARDS)
    for recipe in (PLAIN, BACKWARDS, PLAIN):
        with pytest.raises(NoSample, match="it cannot be made"):
            sampled(empty, recipe)
    assert recipes == [PLAIN]


@together(
    "ndims, shapes",
    [
        (None, [(3, 4), (5,)]),
        ({1, 4}, [(5,)]),
        ({3}, [(2, 3, 4)]),
        ({0}, [()]),
        (frozenset(), [()]),
    ],
)
def test_a_shape_of_other_axes_is_made(ndims: set[int] | None, shapes: list[tuple[int]]) -> None:
    """Where no shape has as many axes as a format takes, one has whose axes differ in length."""
    assert possible([(3, 4), (5,)], ndims) == shapes
