"""Resolved conversions: what each takes, and the steps it makes of a spec."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, Format, Interop, Spec
from interop.plugin import Result, make_spec
from interop.plugin.advanced import Advanced
from tests.toys import Box, labels, toy, view

GAPS = frozenset({"noncontiguous"})


def test_bits_are_carried_through_a_format_without_the_dtype(empty: Interop) -> None:
    """bfloat16 crosses a hand-off that knows only uint16, and arrives uncopied as bfloat16."""
    empty.register(toy("a"), toy("b"), view("a", "b", dtypes=frozenset({"uint16"})))
    empty.register(
        view("a", "a", result=Result(bits="carry"), name="carry"),
        view("b", "b", result=Result(bits="restore"), name="restore"),
    )
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")
    assert labels(route) == ["carry", "a_to_b", "restore"]
    assert route.result.dtype == "bfloat16"
    assert route.zero_copy


def test_carried_bits_never_reach_the_user(empty: Interop) -> None:
    """Where nothing restores the carried bits, there is no route."""
    empty.register(toy("a"), toy("b"), view("a", "b", dtypes=frozenset({"uint16"})))
    empty.register(view("a", "a", result=Result(bits="carry"), name="carry"))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")


def test_a_trait_that_the_target_could_carry_must_still_be_taken(empty: Interop) -> None:
    """Even if both ends carry a trait, the step between them has to take it."""
    entangled = frozenset({"entangled"})
    empty.register(toy("a", carries=entangled), toy("b", carries=entangled), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,), traits={"entangled"})
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b")
    empty.register(view("a", "b", takes=entangled, name="careful"))
    assert labels(empty.plan(spec, to="b")) == ["careful"]


def test_a_conversion_from_a_protocol_applies_to_every_format_that_exports_by_it(
    empty: Interop,
) -> None:
    """A consumer and a producer of one protocol make a hand-off without knowing of each other."""
    empty.register(
        toy("a", exports={"proto": frozenset({"float32"})}, advanced=Advanced(fast_key=type)),
        *(toy("b"), toy("proto", types=())),
    )
    asked: list[Box] = []
    empty.register(view("proto", "b", fast_path=asked.append))
    assert labels(empty.plan(make_spec("a", "float32", shape=(3,)), to="b")) == ["proto_to_b"]
    for _ in range(3):
        assert empty.convert(Box("a", [1.0]), to="b").numbers == [1.0]
    assert not asked  # a fast path of the protocol does not know the traits of the format
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(make_spec("a", "float64", shape=(3,)), to="b")


ORDERED = frozenset({"noncontiguous", "fortran"})


@pytest.mark.parametrize(
    ("traits", "orders", "order", "given"),
    [
        (frozenset(), "CFK", None, "C"),
        (frozenset(), "CFK", "F", "F"),
        (GAPS, "CFK", None, "K"),
        (GAPS, "CFK", "C", "C"),
        (GAPS, "CFK", "F", "F"),
        (GAPS, "CF", None, "C"),
        (ORDERED, "CFK", None, "K"),
        (ORDERED, "CFK", "F", "K"),
        (ORDERED, "CF", "F", "F"),
        (GAPS | {"broadcast"}, "CFK", None, "C"),
    ],
)
def test_a_copy_is_given_an_order(
    empty: Interop, traits: frozenset[str], orders: str, order: Any, given: str
) -> None:
    """What can lay elements out keeps theirs if it can and may, and else gives what is asked for."""
    words = []
    takes = ORDERED | {"broadcast"}
    empty.register(toy("a", carries=takes))
    empty.register(
        Conversion(
            *("a", "a", lambda value, *, order="C": words.append(order)),
            takes=takes,
            effects={"copy"},
            cost=Cost(1e-3),
            across=Cost(1.0),
            changes={"order"},
            result=Result(orders=frozenset(orders)),
        )
    )
    spec = make_spec("a", "float32", shape=(3, 4), traits=traits)
    (step,) = empty.plan(spec, to="a", copy=True, order=order).steps
    step.call(object())
    assert words == [given]
    assert step.after.traits == {"C": frozenset(), "K": traits, "F": ORDERED}[given]
    assert step.seconds == (1.0 if given == "F" or (given == "C" and traits) else 1e-3)


def test_a_way_takes_a_value_exactly_if_it_objects_to_nothing(loaded: Interop) -> None:
    """The yes or no of a way and the sentence that explains a no agree for values of all formats."""
    loaded.formats()  # loads the plugins
    graph, rng = loaded._planner.graph, Random(1)
    counts = {True: 0, False: 0}
    for format_ in graph.formats.values():
        kinds = [_some_spec(rng, format_) for _ in range(20)]
        for way in graph.conversions(format_.name):
            for spec in kinds:
                objection = way.objection(spec)
                assert way.takes_value(spec) is (objection is None), (way.conversion, spec)
                counts[objection is None] += 1
    assert min(counts.values()) > 100


def _some_spec(rng: Random, format_: Format) -> Spec:
    """Return a spec whose dtype, device, traits, axes and indices the format may or may not have."""
    return Spec(
        format_.name,
        rng.choice(("float32", "int64", "bfloat16", "object")),
        rng.choice(("cpu", "cpu", "cuda:0")),
        (3,) * rng.choice((0, 1, 2, 2, 3)),
        frozenset(
            rng.sample(sorted(format_.carries | {"readonly", "untyped"}), rng.choice((0, 1)))
        ),
        index_dtype=rng.choice((None, "int32", "int64", "int8")),
    )
