"""The network: what is drawn of what is registered."""

from __future__ import annotations

import json

from interop import Interop
from interop._cli.network import KINDS, network, routes
from tests.toys import copy, toy, view


def _three(empty: Interop) -> Interop:
    empty.register(toy("a"), toy("a.odd"), toy("b"), toy("c", ndims=frozenset({1})))
    empty.register(toy("p", protocol="__p__"))
    empty.register(view("a", "b"), copy("b", "a"), copy("a", "b", name="slow"), view("p", "a"))
    empty.register(view("b", "c", effects=frozenset({"detach"}), name="lose"))
    return empty


def test_formats_stand_in_the_groups_of_their_frameworks(empty: Interop) -> None:
    """Those of protocols, which are no framework's, share one."""
    shown = network(_three(empty))
    groups = {group.name: [node.name for node in group.nodes] for group in shown.groups}
    assert groups == {"a": ["a", "a.odd"], "b": ["b"], "c": ["c"], "protocols": ["p"]}


def test_links_are_as_mild_as_their_mildest_conversion(empty: Interop) -> None:
    """Between two formats there is one link each way, with all its conversions."""
    links = {(link.source, link.target): link for link in network(_three(empty)).links}
    assert links["a", "b"][2:] == ("shares", ("a_to_b", "slow"))
    assert links["b", "a"].kind == "copies"
    assert links["b", "c"].kind == "loses"
    assert ("a", "a.odd") not in links
    assert {link.kind for link in links.values()} == set(KINDS)


def test_formats_of_one_layout_are_linked_by_their_components(loaded: Interop) -> None:
    """Hand-overs that nobody declared are links, too."""
    links = {(link.source, link.target): link for link in network(loaded).links}
    assert "by its components" in links["scipy.csr", "torch.sparse_csr"].names


def test_routes_are_those_that_plan_gives(empty: Interop) -> None:
    """For each ordered pair there is the route of a value of a usual size, or none."""
    interop = _three(empty)
    news: list[tuple[int, int, str]] = []
    facts = routes(interop, network(interop), lambda *args: news.append(args))
    assert len(facts) == 5 * 4
    assert facts["b p"] is None
    route = facts["p c"]
    assert route is not None
    assert [step["step"] for step in route["steps"]] == ["p_to_a", "a_to_b", "lose"]
    assert [step["to"] for step in route["steps"]] == ["a", "b", "c"]
    assert route["value"] == "p float32 (1048576,) on cpu"
    assert (route["zero_copy"], route["steps"][2]["effects"]) == (True, ["detach"])
    reverse = facts["b a"]
    assert reverse is not None
    assert reverse["steps"][0]["written"] == 4 * 2**20
    assert news[0] == (0, 5, "a")
    json.dumps(facts)


def test_formats_that_never_have_as_many_axes_have_no_route(empty: Interop) -> None:
    """There is no value of both."""
    empty.register(toy("a", ndims=frozenset({1})), toy("b", ndims=frozenset({3})), view("a", "b"))
    assert routes(empty, network(empty)) == {"a b": None, "b a": None}
