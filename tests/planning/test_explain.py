"""Advice: who is warned of bytes that go through the host for nothing, and who is not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from interop import Interop
from interop.errors import NeedlessCopyWarning
from tests.toys import Box, copy, toy, view

BOTH = frozenset({"gpu", "cpu"})
THERE = frozenset({"gpu"})


@pytest.fixture
def face(empty: Interop) -> Interop:
    """Two formats on a device that hand over there, and a cast that is made on the host alone."""
    empty.register(toy("a", devices=("gpu", "cpu")), toy("b", devices=("gpu",)))
    empty.register(
        view("a", "b", devices=THERE),
        copy("a", "a", name="cast", changes=frozenset({"dtype"})),
        copy(
            "a",
            "a",
            name="move",
            devices=BOTH,
            changes=frozenset({"device"}),
            effects=frozenset({"transfer"}),
        ),
    )
    return empty


def box(**facts: Any) -> Box:
    return Box("a", [1.0, 2.0], device="gpu:0", **facts)


ROUND: dict[str, Any] = {"to": "b", "dtype": "float64", "allow": "host_round_trip"}


def test_the_keyword_that_is_to_blame_is_named(face: Interop) -> None:
    """The warning says what goes where, which keyword makes it, and what comes out without it."""
    with pytest.warns(NeedlessCopyWarning) as said:
        result = face.convert(box(), **ROUND)
    assert (result.kind, result.dtype) == ("b", "float64")
    text = str(said[0].message)
    assert "a float32 on gpu:0 goes to b, dtype=float64 through the host's memory" in text
    assert "without dtype='float64' it would not, and come out as b float32 on gpu:0" in text
    assert said[0].filename == __file__


def test_each_line_is_warned_once(face: Interop) -> None:
    """However often a line converts, and through whichever door, it is told once."""
    converter = face.converter(**ROUND)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            face.convert(box(), **ROUND)
        for _ in range(3):
            converter(box())
    assert len(said) == 2
    assert len({one.lineno for one in said}) == 2
    assert {one.filename for one in said} == {__file__}


@pytest.mark.parametrize(
    ("value", "request_"),
    [
        (box(), {"to": "b"}),  # no round trip
        (box(dtype="float64"), {**ROUND, "dtype": "float64"}),  # nothing to cast
        (Box("a", [1.0]), {"to": "b", "device": "gpu"}),  # it was on the host to begin with
        (box(), {"to": "a", "device": "cpu"}),  # and there it is to go
        (box(), {"to": "a", "dtype": "float64", "device": "cpu"}),
    ],
)
def test_no_alarm_is_false(face: Interop, value: Box, request_: dict[str, Any]) -> None:
    """Nobody is warned of a route that no other request would spare the host."""
    face.convert(value, **request_)  # a warning would be an error


def test_where_no_keyword_is_to_blame_nobody_is_warned(empty: Interop) -> None:
    """A round trip that every request would make is not called needless."""
    empty.register(toy("a", devices=("gpu", "cpu")), toy("b", devices=("gpu", "cpu")))
    move: dict[str, Any] = {
        "devices": BOTH,
        "changes": frozenset({"device"}),
        "effects": frozenset({"transfer"}),
    }
    empty.register(view("a", "b"), copy("a", "a", name="down", **move))
    empty.register(copy("b", "b", name="up", **move))
    result = empty.convert(box(), to="b", dtype="float32", allow="host_round_trip")
    assert (result.kind, result.device) == ("b", "gpu:0")


def test_fresh_memory_may_be_to_blame(face: Interop) -> None:
    """What can be shared on the device, and copied on the host alone, is to be copied there."""
    with pytest.warns(NeedlessCopyWarning, match="Leave copy=True out and copy there"):
        result = face.convert(box(), to="b", copy=True, allow="host_round_trip")
    assert (result.kind, result.device) == ("b", "gpu:0")


def test_another_device_is_never_needless(face: Interop) -> None:
    """Who asks for another device is not told that the data could have stayed where they are."""
    result = face.convert(box(), to="a", device="gpu:1", allow="host_round_trip")
    assert result.device == "gpu:1"


def test_the_advice_stays_with_a_route_that_has_a_shortcut(empty: Interop) -> None:
    """No shortcut stands for a route that somebody is to be warned of."""
    from interop._execution.runner import Runner

    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda value: Box("b", [])))
    value = Box("a", [1.0])
    request = empty._requests.get("b")
    spec = empty.spec(value)
    planned = empty._engine.route(spec, request)
    empty._learn("b", value, spec, Runner(planned.steps, "beware"), empty._registry.version)
    assert empty._shortcuts.table("b") == {}
    empty._learn("b", value, spec, planned, empty._registry.version)
    assert empty._shortcuts.table("b") != {}
