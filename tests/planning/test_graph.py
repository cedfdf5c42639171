"""The graph: which formats a route may visit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
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
    reason = "no_such_framework is not installed: pip install no_such_framework"
    with pytest.raises(interop.errors.RefusedError, match=reason):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b"
    with pytest.raises(interop.errors.NotInstalledError, match="no_such_framework"):
        empty.convert(Box("a", [1.0]), to="b")


def test_a_route_may_lead_through_a_missing_framework_that_is_requested(empty: Interop) -> None:
    """To plan from or to a framework needs none of it; the route says what is not installed."""
    gone = "no_such_framework"
    empty.register(toy("a"), toy("b", requires=gone), toy("b.x", requires=gone))
    empty.register(view("a", "b"), view("b", "b.x"))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b.x")
    assert labels(route) == ["a_to_b", "b_to_b.x"]
    assert route.missing == (f"{gone} is not installed: pip install {gone}",)
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
    with pytest.raises(interop.errors.RefusedError, match="no_such_framework is not installed"):
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
