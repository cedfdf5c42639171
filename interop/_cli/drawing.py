"""The network as text for Graphviz and for Mermaid, which lay it out and draw it."""

from __future__ import annotations

from interop._text import PART, legible

from .network import Arrow, Group, Network

#: For each kind of link, the attributes of its line and its meaning.
_STYLES = {
    "shares": ('color="#1b7f5f"', "memory is shared"),
    "copies": ('color="#b86b00", style=dashed', "bytes are copied"),
    "loses": ('color="#b3303c", style=dotted', "a property is lost"),
}
#: Characters with a meaning of their own in a text of Mermaid's.
_MERMAIDS = frozenset('"#&<>`')
_ARROWS = {"shares": "-->", "copies": "-.->", "loses": "-. loses .->"}


def mermaid(shown: Network) -> str:
    """Return the network as a flowchart of Mermaid's."""
    ids = {node.name: f"n{number}" for number, node in enumerate(shown.nodes)}
    lines = ["flowchart LR"]
    for number, group in enumerate(shown.groups):
        lines.append(f'  subgraph g{number}["{_escaped(_title(group))}"]')
        lines += [f'    {ids[node.name]}["{_escaped(node.name)}"]' for node in group.nodes]
        lines.append("  end")
    lines += [
        f"  {ids[link.source]} {_ARROWS[link.kind]} {ids[link.target]}" for link in shown.links
    ]
    return "\n".join(lines)


def _title(group: Group) -> str:
    return f"{group.name} (not installed)" if group.is_missing else group.name


def _escaped(text: str) -> str:
    """Return text escaped for Mermaid's quotes, in which it reads HTML, Markdown and codes."""
    return "".join(f"#{ord(c)};" if c in _MERMAIDS else c for c in legible(text, PART))


def dot(shown: Network) -> str:
    """Return the network in Graphviz's language."""
    lines = [
        "digraph interop {",
        '  graph [rankdir=LR, ranksep=1.2, nodesep=0.12, fontname="sans-serif", labelloc=b,',
        f"    label=<{_legend()}>];",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif",',
        "    height=0.3, margin=0.1];",
        "  edge [arrowsize=0.6];",
    ]
    for number, group in enumerate(shown.groups):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(_title(group))}; {_CARDS[group.is_missing]};")
        lines += [f"    {_quoted(node.name)};" for node in group.nodes]
        lines.append("  }")
    lines += [_edge(link) for link in shown.links]
    return "\n".join([*lines, "}"])


#: The attributes of the box of a framework, by whether the framework is missing.
_CARDS = {
    False: 'labelloc=t; labeljust=l; style="rounded,filled"; fillcolor="#eef2f6"; color="#c3ccd6"',
    True: 'labelloc=t; labeljust=l; style="rounded,dashed"; color="#8a97a5"; fontcolor="#5b6977"',
}


def _edge(link: Arrow) -> str:
    style, _ = _STYLES[link.kind]
    tooltip = _quoted(", ".join(link.names))
    return f"  {_quoted(link.source)} -> {_quoted(link.target)} [{style}, tooltip={tooltip}];"


def _legend() -> str:
    """Return the meaning of the colors, in Graphviz's HTML."""
    texts = [
        f"<font {style.partition(',')[0]}>{meaning}</font>" for style, meaning in _STYLES.values()
    ]
    return " · ".join(texts)


def _quoted(text: str) -> str:
    escaped = legible(text, PART).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
