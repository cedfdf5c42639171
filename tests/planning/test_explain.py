"""Explanations: warnings of needless round trips, and refusals that no keyword would permit."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import interop
from interop import Cost, Interop
from interop._execution import engine
from interop.errors import NeedlessCopyWarning, RefusedError
from interop.plugin import Result, make_spec
from tests.toys import Box, copy, labels, toy, view

BOTH = frozenset({"npu", "cpu"})
THERE = frozenset({"npu"})


@pytest.fixture
def instance(empty: Interop) -> Interop:
    """Two formats on a device that hand over there, and a cast that is made on the host alone."""
    empty.register(toy("a", devices=("npu", "cpu")), toy("b", devices=("npu",)))
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
    return Box("a", [1.0, 2.0], device="npu:0", **facts)


ROUND: dict[str, Any] = {"to": "b", "dtype": "float64", "allow": "host_round_trip"}


def test_the_keyword_that_is_to_blame_is_named(instance: Interop) -> None:
    """The warning names the route, the keyword to blame, and what comes out without the keyword."""
    with pytest.warns(NeedlessCopyWarning) as warned:
        result = instance.convert(box(), **ROUND)
    assert (result.kind, result.dtype) == ("b", "float64")
    text = str(warned[0].message)
    assert "a float32 on npu:0 goes to b, dtype=float64 through the host's memory" in text
    assert "without dtype='float64' it would not, and come out as b float32 on npu:0" in text
    assert warned[0].filename == __file__


def test_each_line_is_warned_once(instance: Interop) -> None:
    """However often a line converts, by convert or by a converter, it is warned once."""
    converter = instance.converter(**ROUND)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(3):
            instance.convert(box(), **ROUND)
        for _ in range(3):
            converter(box())
    assert len(warned) == 2
    assert len({warning.lineno for warning in warned}) == 2
    assert {warning.filename for warning in warned} == {__file__}


@pytest.mark.parametrize(
    ("value", "request_"),
    [
        (box(), {"to": "b"}),  # no round trip
        (box(dtype="float64"), {**ROUND, "dtype": "float64"}),  # nothing to cast
        (Box("a", [1.0]), {"to": "b", "device": "npu"}),  # it was on the host to begin with
        (box(), {"to": "a", "device": "cpu"}),  # and there it is to go
        (box(), {"to": "a", "dtype": "float64", "device": "cpu"}),
    ],
)
def test_no_alarm_is_false(instance: Interop, value: Box, request_: dict[str, Any]) -> None:
    """No route is warned of that every other request would take through the host as well."""
    instance.convert(value, **request_)  # a warning would be an error


def test_without_a_keyword_to_blame_there_is_no_warning(empty: Interop) -> None:
    """A round trip that every request would make is not called needless."""
    empty.register(toy("a", devices=("npu", "cpu")), toy("b", devices=("npu", "cpu")))
    move: dict[str, Any] = {
        "devices": BOTH,
        "changes": frozenset({"device"}),
        "effects": frozenset({"transfer"}),
    }
    empty.register(view("a", "b"), copy("a", "a", name="down", **move))
    empty.register(copy("b", "b", name="up", **move))
    result = empty.convert(box(), to="b", dtype="float32", allow="host_round_trip")
    assert (result.kind, result.device) == ("b", "npu:0")


def test_fresh_memory_may_be_to_blame(instance: Interop) -> None:
    """If only the host can copy, the warning says to leave copy=True out and copy on the device."""
    with pytest.warns(NeedlessCopyWarning, match="Leave copy=True out and copy there"):
        result = instance.convert(box(), to="b", copy=True, allow="host_round_trip")
    assert (result.kind, result.device) == ("b", "npu:0")


def test_another_device_is_never_needless(instance: Interop) -> None:
    """A request for another device is never called needless."""
    result = instance.convert(box(), to="a", device="npu:1", allow="host_round_trip")
    assert result.device == "npu:1"


def test_a_route_with_a_warning_has_no_fast_path(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route with a warning takes no fast path, so that the warning is given."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda value: Box("b", [])))
    monkeypatch.setattr(engine, "round_trip_warning", lambda *arguments: "beware")
    for _ in range(2):
        with pytest.warns(NeedlessCopyWarning, match="beware"):
            assert empty.convert(Box("a", [1.0]), to="b").numbers == [1.0]
    assert empty._cache.fast_paths.get("b", {}) == {}
    monkeypatch.undo()
    empty.register(toy("c"))
    empty.convert(Box("a", [1.0]), to="b")
    assert list(empty._cache.fast_paths["b"]) == [Box]


# ---------------------------------------------------------------------- what no keyword permits


def test_axes_that_a_target_does_not_have(empty: Interop) -> None:
    """A target of another number of axes is refused, and the formats with as many axes are named."""
    empty.register(
        toy("a"), toy("b", ndims=frozenset({1})), toy("b.plane", ndims=frozenset({2, 3}))
    )
    empty.register(view("a", "b"), view("a", "b.plane"), toy("b.gone"))
    empty.register(toy("b.parts"), view("a", "b.parts", like={"sharded"}))  # only with like=
    line, plane, cube = (make_spec("a", "float32", shape=(3,) * axes) for axes in (1, 2, 4))
    assert labels(empty.plan(line, to="b")) == ["a_to_b"]
    assert empty.plan(plane, to=["b", "b.plane"]).result.format == "b.plane"
    with pytest.raises(
        RefusedError, match=r"b holds arrays of 1 axis, not of 2; ask for b\.plane\.$"
    ):
        empty.plan(plane, to="b")
    with pytest.raises(RefusedError, match="2 to 3 axes, not of 4; reshape it first"):
        empty.plan(cube, to="b.plane")
    odd = make_spec("b", "float32", shape=(3, 3))  # what a value already is, it can be
    assert empty.plan(odd, to="b").steps == ()


def test_a_route_that_needs_more_than_a_nearer_one_is_not_named() -> None:
    """What one permission opens is said once, not again with two that open a longer way round."""
    spec = interop.make_spec("torch", "float32", shape=(3,), traits="grad")
    with pytest.raises(RefusedError) as caught:
        interop.plan(spec, to="numpy", forbid=set(interop.EFFECTS))
    assert str(caught.value).count("\n  - ") == 1
    assert str(caught.value).endswith("To permit the nearest, leave out forbid='detach'.")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"dtype": "int4"}, "torch does not hold int4; ask for one of these with dtype=: bool, "),
        ({"device": "mps"}, "To permit the nearest, pass allow={'narrow'} or dtype='float32'."),
        (
            {"to": "array"},
            "array is a protocol by which values are read and not made; name a framework.",
        ),
    ],
    ids=str,
)
def test_what_a_format_does_not_hold_is_said_with_what_it_does(words: Any, reason: str) -> None:
    """A dtype it has not, one that it has not on a device, and a protocol, which holds nothing."""
    spec = interop.make_spec("numpy", "float64", shape=(3,))
    with pytest.raises(RefusedError) as caught:
        interop.plan(spec, **{"to": "torch", **words})
    assert reason in str(caught.value)
    assert str(caught.value).count(", ") <= 14


def test_a_format_that_holds_nothing_says_so(empty: Interop) -> None:
    """Where there is no dtype to ask for, the message lists none."""
    empty.register(toy("a"), toy("b", dtypes=()), view("a", "b"))
    with pytest.raises(RefusedError, match="ask for one of these with dtype=: none"):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b")


def test_what_is_narrowed_for_a_device_can_be_permitted() -> None:
    """A device without float64 is reached by the cast that the refusal names."""
    spec = interop.make_spec("numpy", "float64", shape=(3,))
    route = interop.plan(spec, to="torch", device="mps", allow="narrow")
    assert (route.result.dtype, route.result.device) == ("float32", "mps")


def test_a_tensor_without_data_is_told_to_get_some(empty: Interop) -> None:
    """If no route takes a value without data, the refusal says so, and how to give it data."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,), traits=frozenset({"meta"}))
    with pytest.raises(RefusedError, match=r"give it data first \(in its own framework"):
        empty.plan(spec, to="b")


def test_the_nearest_routes_need_different_keywords(empty: Interop) -> None:
    """Of refused routes each needs another keyword, the one that needs least comes first."""
    empty.register(toy("a"), toy("b"))
    masked = view("a", "b", name="drop", effects=frozenset({"drop_mask"}))
    both = copy("a", "b", name="both", effects=frozenset({"copy", "gather"}))
    empty.register(masked, both, copy("a", "b", name="collect", effects=frozenset({"gather"})))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError) as refused:
        empty.plan(spec, to="b", copy=False)
    lines = [line for line in str(refused.value).splitlines() if line.startswith("  - ")]
    assert [line.split()[1] for line in lines] == ["collect", "drop"]
    assert lines[0].endswith("leave out copy=False and pass allow={'gather'}")
    assert lines[1].endswith("pass allow={'drop_mask'}")
    assert refused.value.effects == {"gather"}


def test_of_routes_that_do_without_different_keywords_the_nearer_comes_first(
    empty: Interop,
) -> None:
    """Of two that need no keyword more than the nearest the one that copies nothing is nearer."""
    empty.register(toy("a"), toy("b"))
    empty.register(
        copy("a", "b", name="nearest", effects={"copy", "gather"}),
        copy("a", "b", name="an_apart", effects={"copy", "drop_mask"}),
        view("a", "b", name="the_view", effects={"gather", "drop_mask"}),
    )
    with pytest.raises(RefusedError) as refused:
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b", copy=False)
    lines = [line for line in str(refused.value).splitlines() if line.startswith("  - ")]
    assert [line.split()[1] for line in lines] == ["nearest", "the_view", "an_apart"]


def test_a_target_that_can_never_be_written_to_is_refused_at_once(empty: Interop) -> None:
    """If every way into a format locks its result, copy='writable' is refused, and says why."""
    locked = frozenset({"immutable"})
    empty.register(toy("a"), toy("b", carries=locked), copy("a", "b", adds=locked))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError, match="b arrays cannot be written to; leave out copy='wri"):
        empty.plan(spec, to="b", copy="writable")
    empty.register(copy("a", "b", name="thaw", cost=Cost(1.0)))
    assert labels(empty.plan(spec, to="b", copy="writable")) == ["thaw"]


def test_memory_that_only_views_lead_to_is_not_called_locked(empty: Interop) -> None:
    """That a format cannot be written to is said of copy='writable' alone."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,))
    assert labels(empty.plan(spec, to="b")) == ["a_to_b"]
    with pytest.raises(RefusedError, match="copy=True: every route lacks a step"):
        empty.plan(spec, to="b", copy=True)


def test_the_only_sources_of_a_format_are_named(empty: Interop) -> None:
    """Where no conversion leads to a format, those are named that would, but none of the targets."""
    empty.register(toy("a"), toy("b"), toy("c"), toy("d"), toy("e"))
    empty.register(view("c", "b"), view("d", "b"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError, match=r"from a leads to b or c; only d does\.$"):
        empty.plan(spec, to=["b", "c"])
    empty.register(view("e", "c"))
    with pytest.raises(RefusedError, match=r"from a leads to b or c; only d, e do\.$"):
        empty.plan(spec, to=["b", "c"])


def test_conversions_that_give_up_less_say_first_why_they_do_not_serve(empty: Interop) -> None:
    """Of those that do not take a value, views come first, and those that lose something last."""
    empty.register(
        toy("a"), toy("b"),
        view("a", "b", name="loses", dtypes={"int64"}, effects={"detach"}),
        copy("a", "b", name="copies", dtypes={"int64"}),
        copy("a", "b", name="copies_in_part", dtypes={"int64"}, shares=True),
        view("a", "b", name="views", dtypes={"int64"}),
    )  # fmt: skip
    with pytest.raises(RefusedError) as caught:
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b")
    lines = [line for line in str(caught.value).splitlines() if line.startswith("  - ")]
    assert [line.split(":")[0] for line in lines] == [
        "  - views", "  - copies_in_part", "  - copies", "  - loses"
    ]  # fmt: skip


def test_bits_that_are_carried_are_not_carried_again(empty: Interop) -> None:
    """A value whose bits are carried already meets a second step that would carry them, in vain."""
    carry, restore = Result(bits="carry"), Result(bits="restore")
    empty.register(
        toy("a"), toy("b", dtypes={"uint16"}), toy("c", dtypes={"uint16"}), toy("d"),
        view("a", "b", result=carry), view("b", "c"), view("b", "c", name="again", result=carry),
        view("c", "d", result=restore),
    )  # fmt: skip
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="d")
    assert labels(route) == ["a_to_b", "b_to_c", "c_to_d"]
    assert (route.result.dtype, route.result.carrier) == ("bfloat16", None)


def test_the_dtypes_that_are_offered_are_those_of_the_device(loaded: Interop) -> None:
    """A refused dtype is answered with what the format holds where the value is."""
    there = make_spec("torch", "float32", device="mps:0", shape=(3,))
    with pytest.raises(RefusedError) as refused:
        loaded.plan(there, to="torch", dtype="float64")
    assert "torch does not hold float64" in str(refused.value)
    assert "float64" not in str(refused.value).partition("ask for one of these")[2]
