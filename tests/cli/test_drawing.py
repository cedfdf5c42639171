"""Drawings: what stands in the text that Graphviz lays out."""

from __future__ import annotations

import re

import pytest

from interop import Interop
from interop._cli.drawing import dot
from interop._cli.network import Network, network
from tests.toys import copy, toy, view


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_any_number_of_frameworks_is_drawn(empty: Interop, count: int) -> None:
    """None, one, and more than there will ever be: each is a box with its formats."""
    for number in range(count):
        empty.register(*(toy(f"f{number}.layout{m}") for m in range(number % 7 + 1)))
    shown = network(empty)
    assert len(shown.groups) == count
    assert len(re.findall(r"subgraph cluster_\d", dot(shown))) == count
    for node in shown.nodes:
        assert f'    "{node.name}";\n' in dot(shown)
    assert len(shown.by_frameworks().nodes) == count


def test_the_same_network_gives_the_same_drawing() -> None:
    """Neither chance nor the order of registration changes a line."""
    forward, backward = Interop(plugins=False), Interop(plugins=False)
    forward.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    backward.register(copy("b", "c"), view("a", "b"), toy("c"), toy("b"), toy("a"))
    assert dot(network(forward)) == dot(network(backward))


def test_a_drawing_has_each_format_and_each_link(loaded: Interop) -> None:
    """Of all that is registered there is a box for every format and an arrow for every link."""
    shown = network(loaded)
    assert len(shown.nodes) > 50
    text = dot(shown)
    boxes = re.findall(r'^ +"([^ "]*)"(?: \[label|;)', text, re.MULTILINE)
    assert sorted(boxes) == sorted(node.name for node in shown.nodes)
    arrows = set()
    for source, target, ways in re.findall(r'^  "(.*)" -> "(.*)" \[(.*)\];$', text, re.MULTILINE):
        arrows |= {(source, target)} | ({(target, source)} if "dir=both" in ways else set())
    assert arrows == {(link.source, link.target) for link in shown.links}


def test_names_are_text_in_every_drawing(empty: Interop) -> None:
    """A name with a meaning in the language of the drawing is quoted."""
    empty.register(toy('<a>&"'), toy("b"), view('<a>&"', "b", name='<script>"\\'))
    text = dot(network(empty))
    assert '"<a>&\\""' in text
    assert 'tooltip="<script>\\"\\\\"' in text


def test_missing_frameworks_are_told_apart(empty: Interop) -> None:
    """A framework that is not installed says so, and looks different, as a box or as one node."""
    missing = {"requires": "no_such_framework"}
    empty.register(toy("a.x"), toy("a.y"), toy("b.x", **missing), toy("b.y", **missing))
    empty.register(view("a.x", "b.x"))
    for shown in (network(empty), network(empty).by_frameworks()):
        (present,) = [line for line in dot(shown).splitlines() if 'label="a"' in line]
        (absent,) = [line for line in dot(shown).splitlines() if '"b (not installed)"' in line]
        assert 'style="rounded,filled"' in present
        assert 'style="rounded,dashed"' in absent


def test_the_legend_explains_every_line(empty: Interop) -> None:
    """Each color and pattern of an arrow stands in the legend, beside its meaning."""
    text = dot(_toys(empty))
    styles = set(re.findall(r'^  ".*" -> ".*" \[(color.*), tooltip', text, re.MULTILINE))
    legend = set(re.findall(r'^    "legend.*" -> "legend.*" \[(color.*)\];', text, re.MULTILINE))
    assert len(styles) == 2
    assert styles < legend
    assert "memory is shared" in text


def _toys(empty: Interop) -> Network:
    empty.register(toy("a"), toy("b.x"), toy("b.y"), view("a", "b.x"), copy("b.x", "b.y"))
    empty.register(copy("b.y", "b.x"))
    return network(empty)


def test_dot_has_clusters_and_edges(empty: Interop) -> None:
    """A cluster for each framework and an edge for each link; one has two heads for both ways."""
    text = dot(_toys(empty))
    assert text.startswith("digraph interop {")
    assert len(re.findall(r"subgraph cluster_\d", text)) == 1
    assert '"a" -> "b.x" [color="#1b7f5f", tooltip="a_to_b.x"];' in text
    assert re.search(r'"b.x" -> "b.y" \[color="#b86b00", style=dashed, .*, dir=both\];', text)
    assert '"b.y" -> "b.x"' not in text
    assert text.count("{") == text.count("}")
