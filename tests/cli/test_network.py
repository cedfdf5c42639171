"""The network: what is drawn of what is registered."""

from __future__ import annotations

import json

from interop import Interop
from interop._cli.network import KINDS, network
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


def test_json_holds_a_row_for_each_format_and_link(empty: Interop) -> None:
    """It has a row for each format and for each link."""
    shown = network(_three(empty))
    document = json.loads(json.dumps(shown.as_dict()))
    assert [row["name"] for row in document["formats"]] == [node.name for node in shown.nodes]
    assert {(row["source"], row["target"]): row["kind"] for row in document["links"]} == {
        (link.source, link.target): link.kind for link in shown.links
    }


def test_a_part_has_the_links_between_its_formats(empty: Interop) -> None:
    """It is named by frameworks and by formats."""
    whole = network(_three(empty))
    part = whole.only(["a.odd", "b", "c"])
    assert [node.name for node in part.nodes] == ["a.odd", "b", "c"]
    assert [(link.source, link.target) for link in part.links] == [("b", "c")]
    assert whole.only(["a"]).nodes == whole.groups[0].nodes
    assert whole.only(["nothing"]).groups == ()


def test_frameworks_are_linked_as_mildly_as_their_formats(empty: Interop) -> None:
    """Each is one node; protocols and links within a framework are left out."""
    shown = network(_three(empty)).by_frameworks()
    assert [node.name for node in shown.nodes] == ["a", "b", "c"]
    links = [(link.source, link.target, link.kind) for link in shown.links]
    assert links == [("a", "b", "shares"), ("b", "a", "copies"), ("b", "c", "loses")]
