"""Routes: as a table, with an explanation, as HTML and as JSON."""

from __future__ import annotations

import json
from functools import partial

import pytest

from interop import Cost, Interop, Plan
from interop.plugin import make_spec
from tests.toys import copy, labels, toy, view


def _route(empty: Interop) -> object:
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float64"})), toy("<c>"))
    empty.register(
        copy("a", "a", name="cast", changes=frozenset({"dtype"})),
        view("a", "b"),
        view("b", "<c>"),
    )
    return empty.plan(make_spec("a", "float32", shape=(1024, 1024)), to="<c>", dtype="float64")


def test_the_table_shows_each_step(empty: Interop) -> None:
    """Each line has the number, name, specs, effects, bytes, estimate and provenance of a step."""
    lines = str(_route(empty)).splitlines()
    assert lines[0].startswith("a float32 1024x1024 on cpu → <c>, dtype=float64: fresh memory")
    assert lines[1].split()[:3] == ["step", "from", "to"]
    assert [line.split()[1] for line in lines[2:]] == ["cast", "a_to_b", "b_to_<c>"]
    assert "8.0 MiB" in lines[2]
    assert "copy" in lines[2]
    assert "view" in lines[3]
    assert "run time" in lines[2]


def test_explain_adds_what_was_refused(empty: Interop) -> None:
    """Below the table stand the refused routes, with the step and the keyword of each."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    effects = frozenset({"drop_mask"})
    empty.register(view("a", "b", name="unmask", effects=effects))
    text = empty.plan(make_spec("a", "float32", shape=(3,)), to="b").explain()
    assert "copy_a_to_b" in text
    assert "unmask has the effect 'drop_mask'" in text
    assert "allow={'drop_mask'}" in text


def test_a_refused_route_that_comes_back_to_a_place_is_none(empty: Interop) -> None:
    """To go to a device, back and there again is no alternative to going there."""
    devices = ("cpu", "cuda")
    empty.register(toy("a", devices=devices), toy("b", devices=devices))
    move = copy("a", "a", effects={"transfer"}, changes={"device"}, devices=None, name="move")
    empty.register(move, view("a", "b", devices=None))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b", device="cuda:0")
    assert [step.after.device for step in route.steps] == ["cuda:0", "cuda:0"]
    assert "Refused" not in route.explain()


def test_a_cast_that_reads_the_numbers_has_no_alternative_that_does_not(empty: Interop) -> None:
    """A cast that looks at the numbers is taken, and the one that would not is no alternative."""
    cast = partial(copy, "a", "a", changes={"dtype"})
    empty.register(toy("a"), toy("b", dtypes={"float32"}), view("a", "b"))
    empty.register(cast(name="look", checked=True), cast(name="cast", cost=Cost(0.0)))
    route = empty.plan(make_spec("a", "float64", shape=(3,)), to="b")
    assert labels(route) == ["look", "a_to_b"]
    assert "Refused" not in route.explain()


def test_a_route_without_steps_says_so(empty: Interop) -> None:
    """A value that meets the request is returned as it is, and the text says so."""
    empty.register(toy("a"))
    route = empty.plan(make_spec("a", "float32"), to="a")
    assert (route.steps, route.zero_copy, route.aliases) == ((), True, True)
    assert "returned as it is" in str(route)


def test_html_is_the_same_table_escaped(empty: Interop) -> None:
    """Notebooks show a table with a row for each step, its text escaped."""
    html = _route(empty)._repr_html_()  # type: ignore[attr-defined]
    assert html.count("<tr>") == 4
    assert "b_to_&lt;c&gt;" in html
    assert "<c>" not in html


def test_a_route_is_what_json_can_hold(empty: Interop) -> None:
    """As a dict, a route has its request, its steps, and their specs and effects."""
    route = _route(empty)
    assert isinstance(route, Plan)
    document = json.loads(json.dumps(route.as_dict()))
    assert document["request"] == "<c>, dtype=float64"
    assert (document["zero_copy"], document["aliases"], document["effects"]) == (
        False,
        False,
        ["copy"],
    )
    assert document["source"] == {
        "format": "a",
        "dtype": "float32",
        "device": "cpu",
        "shape": [1024, 1024],
        "traits": [],
        "nbytes": 2**22,
    }
    assert [step["step"] for step in document["steps"]] == ["cast", "a_to_b", "b_to_<c>"]
    assert [step["written"] for step in document["steps"]] == [2**23, 0, 0]
    assert document["seconds"] == pytest.approx(route.cost)


def test_plans_of_one_class_have_the_sizes_of_their_specs(empty: Interop) -> None:
    """Asked for in turn and again, each plan has the bytes and the time of its own spec."""
    empty.register(toy("a"), toy("b"), copy("a", "b", cost=Cost(0.0, 1e6)))
    specs = [make_spec("a", "float32", shape=(size,)) for size in (600, 700)]
    for spec in (*specs, *specs, specs[1]):
        plan = empty.plan(spec, to="b")
        assert plan.result == spec._replace(format="b")
        assert plan.cost == 2 * spec.nbytes / 1e6


def test_a_route_that_cannot_be_replayed_is_shown_as_planned(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its steps cannot be made for the very spec, they are those of its class of specs."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    monkeypatch.setattr(empty._planner, "replayed", lambda *_: None)
    assert labels(empty.plan(make_spec("a", "float32", shape=(3,)), to="b")) == ["a_to_b"]
