"""Kept promises: what a plan says, what its receipt says, and what the addresses of memory show."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import zip_longest
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import note

import interop
from interop import Plan, Spec
from interop._execution.trace import shares_memory
from interop._model.dtype import preserves
from interop._model.effect import COPYING, LOSSES
from interop._model.spec import NOMINAL
from interop.errors import HandOffError, RefusedError, UnknownValueError
from interop.plugin import DTYPES
from tests.cases import together
from tests.properties.grid import ByArray, ByDlpack, ByInterface
from tests.properties.outcomes import outcomes_of
from tests.properties.readers import DECLARED, FORMATS, FRAMEWORKS, calm
from tests.properties.test_cold_and_warm import array, made_lazy

pytestmark = pytest.mark.slow

__all__ = ["calm"]  # a fixture

#: What a conversion may refuse although its plan did not: values may not fit, and formats decline.
REFUSALS = RefusedError, HandOffError, UnknownValueError
#: Effects that say what has become of a trait.
TOLD = {"masked": "drop_mask", "grad": "detach", "labelled": "drop_labels"}


def keywords(rng: Random, target: str) -> dict[str, Any]:
    """Return keywords of a request at random."""
    words: dict[str, Any] = {"to": target}
    if rng.random() < 0.4:
        words["dtype"] = rng.choice(sorted(DECLARED[target].dtypes) or ["float32"])
    if rng.random() < 0.5:
        words["copy"] = rng.choice((True, False, "writable"))
    elif rng.random() < 0.3:
        words["allow"] = rng.choice(("narrow", "share_readonly", "drop_mask"))
    return words


def dressed(rng: Random, value: Any) -> Any:
    """Return a value with a mask, a history, labels or in a foreign object, or as it is."""
    if rng.random() < 0.5:
        return value
    match interop.spec(value).format:
        case "numpy":
            masked = np.ma.masked_array(value, np.zeros(value.shape, bool))
            return rng.choice([masked, ByArray(value), ByInterface(value), ByDlpack(value)])
        case "torch" if value.is_floating_point() and value.element_size() > 1:
            return value.detach().requires_grad_()
        case "pandas.series":
            return value.set_axis([f"row {n}" for n in range(len(value))])
        case _:
            return value


def check(rng: Random, source: str, target: str) -> str:
    """Convert a value at random, and hold the plan and the receipt to what has happened."""
    numbers = array(rng, source)
    try:
        value = dressed(rng, interop.convert(numbers, to=source))
        value, _ = made_lazy(rng, value, numbers)
        interop.spec(value)
    except REFUSALS:
        return "no value"
    return judged(value, keywords(rng, target), note)[0]


def judged(value: Any, words: dict[str, Any], tell: Callable[[str], object]) -> tuple[str, Any]:
    """Hold the plan and the receipt of a request to what happens; return that, and the result."""
    spec = interop.spec(value)
    tell(f"{spec} → {words}")
    try:
        plan = interop.plan(value, **words)
    except REFUSALS:
        with pytest.raises(REFUSALS):
            interop.convert(value, **words)
        return "refused", None
    tell(str(plan))
    check_against_no_copy(value, words, plan)
    with interop.trace() as receipts:
        try:
            result = interop.convert(value, **words)
        except REFUSALS:
            return "declined", None
    (receipt,) = receipts
    tell(str(receipts))
    after = interop.spec(result)
    # What a step has dropped may mark all such results when they are described.
    assert receipt.result.traits <= after.traits
    assert receipt.result == after._replace(traits=receipt.result.traits)
    planned = tuple(step.label for step in plan.steps)
    if declined := receipt.steps != planned:
        # A step found out from the numbers that it cannot convert them. Up to there all is as
        # planned, the rest is planned anew without it, and the result is what was promised.
        pairs = enumerate(zip_longest(planned, receipt.steps))
        number, step = next((number, a) for number, (a, b) in pairs if a != b)
        assert step is not None
        assert step not in receipt.steps[number:]
    else:
        assert receipt.effects == plan.effects
        assert (sum(receipt.written) > 0) <= (not plan.zero_copy)
    check_result(spec, plan, after)
    check_effects(spec, after, receipt.effects, words)
    shared = shares_memory(interop.default._registry, value, result)
    assert receipt.aliased == shared
    # One True of Python's is all Trues.
    if after.format != "python" and shared is not None and stored(spec) and stored(after):
        assert plan.aliases == shared or declined
        if words.get("copy") is True:
            assert not shared
    return "right", result


def stored(spec: Spec) -> bool:
    """Tell whether a value has memory of its own to share, of which formats tell that of numbers."""
    is_of_numbers = "not_numbers" not in spec.traits
    return bool(spec.nbytes and spec.size and spec.nnz != 0) and is_of_numbers


def check_result(before: Spec, plan: Plan, after: Spec) -> None:
    """Hold a result to the spec that was planned.

    Libraries have names of their own for what is no dtype of numbers. Labels of rows may become
    columns.
    """
    unknown = DECLARED[after.format].not_recoverable
    planned = plan.result
    assert (planned.format, planned.device) == (after.format, after.device)
    is_nominal = not (NOMINAL | {"indexed"}).isdisjoint(planned.traits)
    assert planned.dtype == after.dtype or "dtype" in unknown or not after.size or is_nominal
    is_unknown = "shape" in unknown or "unknown_shape" in before.traits
    assert planned.shape == after.shape or is_unknown or "indexed" in planned.traits


def check_effects(before: Spec, after: Spec, effects: frozenset[str], words: Any) -> None:
    """Hold effects to what is no longer as it was."""
    source, target = DECLARED[before.format], DECLARED[after.format]
    for trait, effect in TOLD.items():
        # Python's None is an object among others.
        is_told = trait != "masked" or "not_numbers" not in before.traits
        if is_told and trait in before.traits and trait not in after.traits:
            assert effect in effects, f"{trait} is gone"
    is_packed = source.is_sparse or source.layout == "affine"
    if is_packed and target.is_dense and not after.wrapped:
        assert effects & {"densify", "dequantize"}
    if source.lazy and not target.lazy and not after.wrapped:
        assert "materialize" in effects
    if not after.size or not {before.dtype, after.dtype} <= DTYPES.keys():
        return  # frames without columns have no dtype, and decimals one of their own
    if before.dtype and after.dtype and not preserves(before.dtype, after.dtype):
        # Integers that a target forces into a narrower dtype are looked at one by one.
        integers = {DTYPES[dtype].kind for dtype in (before.dtype, after.dtype)} <= {"i", "u"}
        assert "narrow" in effects or "dtype" in words or "weak" in before.traits or integers


def check_against_no_copy(value: Any, words: dict[str, Any], plan: Plan) -> None:
    """A route without a copy is taken under ``copy=False`` too, and one with a copy is not."""
    if words.get("copy") not in {None, False}:
        return
    copies = plan.effects & COPYING
    try:
        strict = interop.plan(value, **{**words, "copy": False})
    except RefusedError:
        assert copies
    else:
        assert not strict.effects & COPYING
        if strict.result.format != plan.result.format:
            return  # of the formats of one name, the first is taken if it may copy
        # It may lose more, or compute at once what the other route leaves lazy.
        more = strict.effects - plan.effects
        assert not copies or more & (LOSSES | {"materialize"})


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_plans_and_receipts_keep_their_promises(framework: str) -> None:
    """Steps, effects and sharing happen as planned, and ``copy=False`` refuses what would copy."""
    assert "right" in outcomes_of(framework, check) or framework in {"torchao", "quantized"}


COMPOSITE = sorted(name for name in FORMATS if DECLARED[name].components)


@together("source", COMPOSITE)
def test_the_plan_of_what_stores_nothing_shows_what_is_carried_out(source: str) -> None:
    """The steps inside a composite step are those of its class of sizes, in a plan as in a call."""
    import torch  # noqa: F401 - which more routes lead through from then on

    dtypes = DECLARED[source].dtypes
    numbers = np.zeros((0, 4), min({"uint16", "float32"} & dtypes or dtypes))
    try:
        value = interop.convert(numbers, to=source, allow="narrow")
    except REFUSALS:
        return
    for target in COMPOSITE:
        for words in ({"to": target}, {"to": target, "copy": True}):
            with interop.trace() as receipts, suppress(*REFUSALS):
                effects = interop.plan(value, **words).effects
                interop.convert(value, **words)
            assert [receipt.effects for receipt in receipts] in ([], [effects]), words
