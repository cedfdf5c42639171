"""The graph: which formats a route may visit."""

from __future__ import annotations

from itertools import pairwise

import pytest

import interop
from interop import Cost, Interop
from interop.plugin import make_spec
from tests.toys import Box, copy, labels, toy, view


def test_a_route_longer_than_the_limit_is_found_if_there_is_no_other(empty: Interop) -> None:
    """The limit on hand-offs is dropped before a request is refused."""
    names = "abcdef"
    empty.register(*(toy(n) for n in names), *(view(x, y) for x, y in pairwise(names)))
    empty.register(view("a", "f", name="closed", requires=frozenset({"never"})))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="f")
    assert len(route.steps) == 5


def test_no_route_leads_through_a_framework_that_is_missing(empty: Interop) -> None:
    """A route may end at a format whose framework is missing, and not lead through it."""
    empty.register(toy("a"), toy("b", requires="no_such_framework"), toy("c"))
    empty.register(view("a", "b"), view("b", "c"))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b"
    with pytest.raises(interop.errors.NotInstalledError, match="no_such_framework"):
        empty.convert(Box("a", [1.0]), to="b")


def test_a_format_that_is_no_transit_is_the_last_resort(
    empty: Interop,
) -> None:
    """Only its own framework's routes lead through it, unless there is no other route."""
    empty.register(toy("a"), toy("b"), toy("c"), toy("m", transit=False), toy("m.x"))
    empty.register(view("a", "m", cost=Cost(1e-9)), view("m", "b", cost=Cost(1e-9)))
    empty.register(view("m.x", "m"), view("m", "c"))
    spec = make_spec("a", "float32", shape=(3,))
    assert labels(empty.plan(spec, to="b")) == ["a_to_m", "m_to_b"]
    empty.register(copy("a", "b"))
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    within = make_spec("m.x", "float32", shape=(3,))
    assert labels(empty.plan(within, to="b")) == ["m.x_to_m", "m_to_b"]
    assert labels(empty.plan(spec, to="m")) == ["a_to_m"]
