"""Drawings: the places of the cards, and what stands in the texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from interop import Interop
from interop._cli.drawing import Card, cards, dot, mermaid, svg
from interop._cli.network import Network, network
from tests.toys import copy, toy, view

SVG = "{http://www.w3.org/2000/svg}"


def _apart(one: Card, other: Card) -> bool:
    return (
        abs(one.x - other.x) >= (one.width + other.width) / 2
        or abs(one.y - other.y) >= (one.height + other.height) / 2
    )


def test_cards_do_not_overlap_and_the_hub_is_in_the_middle(loaded: Interop) -> None:
    """Of all that is registered no card covers another, whatever their sizes."""
    placed = cards(network(loaded))
    assert len(placed) > 10
    assert all(_apart(one, other) for one, other in combinations(placed, 2))
    assert [card.group.name for card in placed if (card.x, card.y) == (0, 0)] == ["numpy"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_any_number_of_cards_has_a_place(empty: Interop, count: int) -> None:
    """None, one, and more than there will ever be."""
    for n in range(count):
        empty.register(*(toy(f"f{n}.layout{m}") for m in range(n % 7 + 1)))
    placed = cards(network(empty))
    assert len(placed) == count
    assert all(_apart(one, other) for one, other in combinations(placed, 2))
    ET.fromstring(svg(network(empty)))


def test_neighbors_stand_next_to_each_other(empty: Interop) -> None:
    """Of frameworks around the hub, those that convert to each other are not far apart."""
    empty.register(*(toy(f"f{n}") for n in range(9)))
    empty.register(*(view("f0", f"f{n}") for n in range(1, 9)))
    empty.register(view("f1", "f8"), view("f2", "f7"))
    ring = [card.group.name for card in cards(network(empty))][1:]
    for a, b in (("f1", "f8"), ("f2", "f7")):
        gap = abs(ring.index(a) - ring.index(b))
        assert min(gap, len(ring) - gap) == 1


def test_the_same_network_gives_the_same_drawing() -> None:
    """Neither chance nor the order of registration moves a card."""
    one, other = Interop(plugins=False), Interop(plugins=False)
    one.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    other.register(copy("b", "c"), view("a", "b"), toy("c"), toy("b"), toy("a"))
    assert svg(network(one)) == svg(network(other))


def test_the_svg_has_each_format_and_each_pair_of_groups(loaded: Interop) -> None:
    """It is well-formed, with a row for every format and a line wherever something leads."""
    shown = network(loaded)
    root = ET.fromstring(svg(shown))
    rows = [g.get("data-format") for g in root.iter(f"{SVG}g") if g.get("data-format")]
    assert sorted(rows) == sorted(node.name for node in shown.nodes)
    home = {node.name: node.group for node in shown.nodes}
    pairs = {
        frozenset((home[link.source], home[link.target]))
        for link in shown.links
        if home[link.source] != home[link.target]
    }
    lines = [g for g in root.iter(f"{SVG}g") if g.get("class") == "line"]
    assert {frozenset((g.get("data-a"), g.get("data-b"))) for g in lines} == pairs
    assert len(lines) == len(pairs)
    for line in lines:  # a head where nothing leads back, and there alone
        path = line.find(f"{SVG}path")
        assert path is not None
        title = path.find(f"{SVG}title")
        assert title is not None
        ways = {
            text.partition(" → ")[0].partition(".")[0] for text in (title.text or "").split("\n")
        }
        heads = [p for p in line.iter(f"{SVG}path") if p.get("class") == "arrow"]
        assert len(heads) == (1 if len({home.get(w, w) for w in ways}) == 1 else 0)


def test_names_are_text_in_every_drawing(empty: Interop) -> None:
    """A name with a meaning in the language of the drawing is quoted."""
    empty.register(toy('<a>&"'), toy("b"), view('<a>&"', "b", name='<script>"\\'))
    shown = network(empty)
    ET.fromstring(svg(shown))
    assert "<a>" not in svg(shown)
    assert '"<a>&\\""' in dot(shown)
    assert 'tooltip="<script>\\"\\\\"' in dot(shown)
    assert "#quot;" in mermaid(shown)


def _toys(empty: Interop) -> Network:
    empty.register(toy("a"), toy("b.x"), toy("b.y"), view("a", "b.x"), copy("b.x", "b.y"))
    return network(empty)


def test_dot_has_clusters_and_edges(empty: Interop) -> None:
    """A cluster for each framework and an edge for each link."""
    text = dot(_toys(empty))
    assert text.startswith("digraph interop {")
    assert text.count("subgraph cluster_") == 2
    assert '"a" -> "b.x" [color="#1b7f5f", tooltip="a_to_b.x"];' in text
    assert '"b.x" -> "b.y" [color="#b86b00", style=dashed' in text
    assert text.count("{") == text.count("}")


def test_mermaid_has_subgraphs_and_arrows(empty: Interop) -> None:
    """A subgraph for each framework, and dotted arrows for what copies."""
    text = mermaid(_toys(empty))
    assert text.startswith("flowchart LR\n")
    assert text.count("subgraph") == text.count("  end") == 2
    names = {name: key for key, name in re.findall(r'(n\d+)\["([^"]+)"\]', text)}
    assert f"{names['a']} --> {names['b.x']}" in text
    assert f"{names['b.x']} -.-> {names['b.y']}" in text
