"""Drawings: what stands in the texts that Graphviz and Mermaid lay out."""

from __future__ import annotations

import re

import pytest

from interop import Interop
from interop._cli.drawing import dot, mermaid
from interop._cli.network import Network, network
from tests.toys import copy, toy, view


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_any_number_of_frameworks_is_drawn(empty: Interop, count: int) -> None:
    """None, one, and more than there will ever be: each is a box with its formats."""
    for number in range(count):
        empty.register(*(toy(f"f{number}.layout{m}") for m in range(number % 7 + 1)))
    shown = network(empty)
    assert len(shown.groups) == count
    assert dot(shown).count("subgraph cluster_") == count
    assert mermaid(shown).count("subgraph ") == count
    for node in shown.nodes:
        assert f'    "{node.name}";\n' in dot(shown)
        assert f'["{node.name}"]\n' in mermaid(shown)


def test_the_same_network_gives_the_same_drawing() -> None:
    """Neither chance nor the order of registration changes a line."""
    forward, backward = Interop(plugins=False), Interop(plugins=False)
    forward.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    backward.register(copy("b", "c"), view("a", "b"), toy("c"), toy("b"), toy("a"))
    assert dot(network(forward)) == dot(network(backward))
    assert mermaid(network(forward)) == mermaid(network(backward))


def test_a_drawing_has_each_format_and_each_link(loaded: Interop) -> None:
    """Of all that is registered there is a box for every format and an arrow for every link."""
    shown = network(loaded)
    assert len(shown.nodes) > 50
    text = dot(shown)
    boxes = re.findall(r'^    "(.*)";$', text, re.MULTILINE)
    assert sorted(boxes) == sorted(node.name for node in shown.nodes)
    arrows = re.findall(r'^  "(.*)" -> "(.*)" \[', text, re.MULTILINE)
    assert arrows == [(link.source, link.target) for link in shown.links]
    ids = dict(re.findall(r'^    (n\d+)\["(.*)"\]$', mermaid(shown), re.MULTILINE))
    assert sorted(ids.values()) == sorted(boxes)
    ends = re.findall(r"^  (n\d+) -.*> (n\d+)$", mermaid(shown), re.MULTILINE)
    assert [(ids[source], ids[target]) for source, target in ends] == arrows


def test_names_are_text_in_every_drawing(empty: Interop) -> None:
    """A name with a meaning in the language of the drawing is quoted."""
    empty.register(toy('<a>&"'), toy("b"), view('<a>&"', "b", name='<script>"\\'))
    shown = network(empty)
    assert '"<a>&\\""' in dot(shown)
    assert 'tooltip="<script>\\"\\\\"' in dot(shown)
    assert '"#60;a#62;#38;#34;"' in mermaid(shown)


def test_missing_frameworks_are_told_apart(empty: Interop) -> None:
    """The box of a framework that is not installed says so, and looks different."""
    empty.register(toy("a"), toy("b", requires="no_such_framework"), view("a", "b"))
    shown = network(empty)
    assert 'label="b (not installed)"; labelloc=t; labeljust=l; style="rounded,dashed"' in dot(
        shown
    )
    assert 'label="a"; labelloc=t; labeljust=l; style="rounded,filled"' in dot(shown)
    assert '["b (not installed)"]' in mermaid(shown)
    assert '["a"]' in mermaid(shown)


def test_dot_explains_its_colors(empty: Interop) -> None:
    """The legend has each color of an arrow, in that color."""
    text = dot(_toys(empty))
    colors = set(re.findall(r'^  .* -> .*color="(#\w+)"', text, re.MULTILINE))
    assert colors
    assert colors <= set(re.findall(r'<font color="(#\w+)">', text))


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
