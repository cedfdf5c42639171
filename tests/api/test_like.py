"""``like=`` with a value that is divided over devices or processes."""

from __future__ import annotations

import pytest

import interop
from interop import Conversion, Interop
from interop.errors import Declined, RefusedError
from tests import toys
from tests.toys import Box

DISTRIBUTED = frozenset({"distributed"})


def in_parts(*numbers: float) -> Box:
    """Return a toy array whose parts are of some lengths."""
    return Box("parts", list(numbers), traits=DISTRIBUTED)


def divide(value: Box, *, like: Box) -> Box:
    """Return a value in as many parts as another."""
    if not like.numbers:
        msg = "the other has no parts"
        raise Declined(msg)
    result = Box("parts", value.numbers, traits=like.traits)
    result.after = like  # type: ignore[attr-defined]
    return result


@pytest.fixture
def mine() -> Interop:
    """Return a registry in which one format is made only like another value of it."""
    mine = Interop(plugins=False)
    mine.register(
        toys.toy("start"),
        toys.toy("whole"),
        toys.toy("parts", carries=DISTRIBUTED),
        toys.view("start", "whole"),
        Conversion("whole", "parts", divide, like=DISTRIBUTED),
        toys.view("parts", "whole", requires=DISTRIBUTED, drops=DISTRIBUTED),
    )
    return mine


def test_a_conversion_is_given_what_its_result_is_like(mine: Interop) -> None:
    """Every way to ask hands the value of ``like=`` to the last step, and plans its division."""
    like, start = in_parts(1.0, 2.0), Box("start", [3.0])
    route = mine.plan(start, like=like)
    assert toys.labels(route) == ["start_to_whole", "divide"]
    assert route.result.traits == DISTRIBUTED
    assert route.zero_copy
    with interop.trace():
        traced = mine.convert(start, like=like)
    tree = mine.convert_tree({"a": [start]}, like=like)
    converter = mine.converter(like=like)
    results = [mine.convert(start, like=like), converter(start), route(start), traced]
    for result in (*results, tree["a"][0]):
        assert result.after is like
        assert result.numbers is start.numbers
    other = in_parts(5.0)
    assert mine.convert(start, like=other).after is other


def test_a_conversion_that_divides_needs_a_value_to_divide_like(mine: Interop) -> None:
    """Without a divided ``like=`` there is no such step; the message says what to pass."""
    start = Box("start", [3.0])
    with pytest.raises(RefusedError):
        mine.convert(start, to="parts")
    with pytest.raises(RefusedError):
        mine.convert(start, like=Box("parts", [1.0]))
    assert mine.convert(start, to="whole").kind == "whole"
    assert mine.convert(in_parts(1.0), to="whole").kind == "whole"


def test_a_division_may_be_declined(mine: Interop) -> None:
    """What a step finds wrong with the value of ``like=`` is the refusal."""
    with pytest.raises(RefusedError, match="divide declined: the other has no parts"):
        mine.convert(Box("start", [3.0]), like=in_parts())
