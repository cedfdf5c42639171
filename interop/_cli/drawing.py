"""The network as text for Graphviz, which lays it out and draws it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interop._text import PART, legible

from .network import Arrow, Group, Network

#: For each kind of link, the attributes of its line and its meaning; the mildest first.
_STYLES = {
    "shares": ('color="#1b7f5f"', "memory is shared"),
    "copies": ('color="#b86b00", style=dashed', "bytes are copied"),
    "loses": ('color="#b3303c", style=dotted', "a property is lost"),
}
#: The attributes of the box of a framework, by whether the framework is missing.
_CARDS = {
    False: 'style="rounded,filled"; fillcolor="#eef2f6"; color="#c3ccd6"',
    True: 'style="rounded,dashed"; color="#8a97a5"; fontcolor="#5b6977"',
}
_HEAD = """digraph interop {
  graph [rankdir=LR, ranksep=1.2, nodesep=0.12, fontname="sans-serif", newrank=true];
  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif",
    height=0.3, margin=0.1];
  edge [arrowsize=0.6];"""


def dot(shown: Network) -> str:
    """Return the network in Graphviz's language.

    Frameworks are boxes around their formats; of a framework that is one node there is no more.
    """
    lines = [_HEAD]
    for number, group in enumerate(shown.groups):
        card, title = _CARDS[group.is_missing], _title(group)
        if [node.name for node in group.nodes] == [group.name]:
            lines.append(f"  {_quoted(group.name)} [label={_quoted(title)}; {card}];")
            continue
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(title)}; labelloc=t; labeljust=l; {card};")
        lines += [f"    {_quoted(node.name)};" for node in group.nodes]
        lines.append("  }")
    lines += [*_edges(shown.links), *_legend(), "}"]
    return "\n".join(lines)


def _title(group: Group) -> str:
    return f"{group.name} (not installed)" if group.is_missing else group.name


def _edges(links: Sequence[Arrow]) -> Iterator[str]:
    """Yield a line for each link, and one with two heads for both ways of one kind."""
    kinds = {(link.source, link.target): link.kind for link in links}
    for link in links:
        both = kinds.get((link.target, link.source)) == link.kind
        if both and link.source > link.target:
            continue
        tooltip = _quoted(", ".join(link.names))
        style = f"{_STYLES[link.kind][0]}, tooltip={tooltip}" + ", dir=both" * both
        yield f"  {_quoted(link.source)} -> {_quoted(link.target)} [{style}];"


def _legend() -> Iterator[str]:
    """Yield a box with an arrow of each kind and its meaning."""
    yield "  subgraph cluster_legend {"
    yield '    label="the mildest way there"; labeljust=l; color=white;'
    for kind, (style, meaning) in _STYLES.items():
        yield f'    "legend {kind}" [shape=point, style=invis, label=""];'
        yield f'    "legend {kind} end" [shape=plaintext, style="", label="{meaning}"];'
        yield f'    "legend {kind}" -> "legend {kind} end" [{style}];'
    yield "  }"


def _quoted(text: str) -> str:
    escaped = legible(text, PART).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
