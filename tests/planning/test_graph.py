"""The graph: which formats a route may visit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import interop
from benchmarks import crowd
from interop import Cost, Interop
from interop._planning.conversion import ResolvedConversion
from interop._recognition.installed import how_to_get
from interop.plugin import Components, make_spec
from interop.plugin.advanced import Advanced
from tests.toys import Box, copy, labels, toy, view


def test_a_route_through_hubs_may_be_of_any_length(empty: Interop) -> None:
    """However much longer it is than the shortest way, which no value may take, it is found."""
    names = "abcdef"
    empty.register(*(toy(n) for n in names), *(view(x, y) for x, y in pairwise(names)))
    empty.register(view("a", "f", name="shut", requires=frozenset({"never"})))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="f")
    assert labels(route) == [f"{x}_to_{y}" for x, y in pairwise(names)]


def test_a_copy_may_take_the_way_round(empty: Interop) -> None:
    """A value of a format that copies nothing itself is copied on the shortest way back to it."""
    empty.register(*(toy(n) for n in "abcd"))
    empty.register(view("a", "b"), copy("b", "c"), view("c", "a"))
    spec = make_spec("a", "float32", shape=(3,))
    route = empty.plan(spec, to="a", copy=True)
    assert labels(route) == ["a_to_b", "copy_b_to_c", "c_to_a"]
    assert not route.aliases


def test_no_route_leads_through_a_framework_that_is_missing(empty: Interop) -> None:
    """A route may end at a format whose framework is missing, and not lead through it."""
    empty.register(toy("a"), toy("b", requires="no_such_framework"), toy("c"))
    empty.register(view("a", "b"), view("b", "c"))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b"
    with pytest.raises(interop.errors.NotInstalledError):
        empty.convert(Box("a", [1.0]), to="b")


def test_a_route_may_lead_through_a_missing_framework_that_is_requested(empty: Interop) -> None:
    """To plan from or to a framework needs none of it; the route says what is not installed."""
    gone = "no_such_framework"
    empty.register(toy("a"), toy("b", requires=gone), toy("b.x", requires=gone))
    empty.register(view("a", "b"), view("b", "b.x"))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b.x")
    assert labels(route) == ["a_to_b", "b_to_b.x"]
    assert route.missing == (f"{gone} is not installed: {how_to_get(gone)}",)
    assert str(route).splitlines()[-1] == route.missing[0]
    assert f"; {route.missing[0]}</caption>" in route._repr_html_()
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="a").missing == ()


def test_no_route_leads_through_a_package_that_only_some_of_a_framework_needs(
    empty: Interop,
) -> None:
    """A format of a requested framework is no way through if it alone needs what is missing."""
    install = "pip install b"
    empty.register(
        *(toy("a"), toy("b", requires="no_such_b", install=install), toy("b.y")),
        toy("b.x", requires="no_such_framework"),
        toy("b.z", requires="no_such_z", install=install),
    )
    empty.register(view("a", "b.x"), view("b.x", "b.y"), view("a", "b"), view("b", "b.z"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b.y")
    assert labels(empty.plan(spec, to="b.z")) == ["a_to_b", "b_to_b.z"]


WITHOUT_TORCH = """
    import sys

    class Hidden:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "scipy"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Hidden())
    import numpy as np
    import interop
    route = interop.plan(np.ones((3, 3)), to="torch.sparse_csr")
    print([step.after.format for step in route.steps], route.missing)
    print(str(route).splitlines()[-1])
    target = "torch.sparse_csr"
    for convert in (
        lambda x: interop.Interop().convert(x, to=target),
        lambda x: interop.convert(x, to=target),
        interop.converter(target),
        route,
    ):
        try:
            convert(np.ones((3, 3)))
        except ImportError as error:
            print(error)
"""


def test_a_plan_for_torch_without_torch_is_the_one_with_torch(
    in_subprocess: Callable[..., str],
) -> None:
    """It is made from the declarations, and says what is missing; only to convert is refused."""
    line = "torch is not installed: pip install torch"
    steps = [
        step.after.format for step in interop.plan(np.ones((3, 3)), to="torch.sparse_csr").steps
    ]
    assert steps == ["torch", "torch.sparse_csr"]
    lines = in_subprocess(WITHOUT_TORCH).splitlines()
    assert lines == [f"{steps} {(line,)}", *[line] * 5]


def test_only_its_own_framework_leads_through_a_format_that_is_no_hub(empty: Interop) -> None:
    """No route between two other frameworks leads through it, even if there is no other route."""
    empty.register(toy("a"), toy("b"), toy("c"), toy("m", advanced=Advanced()), toy("m.x"))
    empty.register(view("a", "m", cost=Cost(1e-9)), view("m", "b", cost=Cost(1e-9)))
    empty.register(view("m.x", "m"), view("m", "c"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b")
    empty.register(copy("a", "b"))
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    within = make_spec("m.x", "float32", shape=(3,))
    assert labels(empty.plan(within, to="b")) == ["m.x_to_m", "m_to_b"]
    assert labels(empty.plan(spec, to="m")) == ["a_to_m"]


def test_a_composite_of_a_format_that_is_not_there_is_no_obstacle(empty: Interop) -> None:
    """A layout whose arrays are of a format that nobody declares leads nowhere, and breaks nothing."""
    components = Components("pairs", "gone", {"values": "dtype"}, print, print)
    empty.register(toy("a"), toy("b"), view("a", "b"), toy("a.pairs", components=components))
    assert labels(empty.plan(make_spec("a", "float32", shape=(3,)), to="b")) == ["a_to_b"]
    assert empty._planner.graph.composites("a.pairs") == []


def test_few_of_a_thousand_neighbours_are_looked_at(
    loaded: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many formats convert to and from NumPy and torch, a plan makes steps to a few alone."""
    names = [f"f{n}" for n in range(300)]
    hubs = ("numpy", "torch")
    loaded.register(
        *(toy(name, dtypes={"float32", "float64"}) for name in names),
        *(copy(hub, name) for name in names for hub in hubs),
        *(view(name, hub) for name in names for hub in hubs),
    )
    asked: set[str] = set()
    steps = ResolvedConversion.steps

    def noted(way: ResolvedConversion, *args: Any) -> Any:
        asked.update({way.source.name, way.target.name})
        return steps(way, *args)

    monkeypatch.setattr(ResolvedConversion, "steps", noted)
    spec = interop.make_spec("torch", "float32", shape=(3, 4))
    route = loaded.plan(spec, to="numpy", copy=True)
    assert {step.after.format for step in route.steps} == {"numpy"}
    assert {"numpy", "torch"} <= asked
    assert len(asked & {*names}) < 3


def test_a_plan_in_a_star_of_a_thousand_formats_visits_hubs_alone() -> None:
    """A route between two of a thousand formats around NumPy leads through NumPy, and is found among hubs."""
    star = crowd.star(1000)
    spec = star.make_spec("f7", "float32", shape=(3,))
    assert labels(star.plan(spec, to="f8")) == ["out of f7", "into f8"]
    graph = star._planner.graph
    hubs = {name for name, format_ in graph.formats.items() if format_.hub}
    assert graph.visited(spec, ["f8"]) <= hubs | {"f7", "f8"}
    assert len(hubs) < 30
