"""Drawings of the network: as SVG, and as text for Mermaid and Graphviz, which lay it out.

In the SVG each framework is a card with its formats. The one with the most neighbors stands in the
middle and the others around it on an ellipse, in an order that keeps neighbors together. All of it
follows from the network alone, so that the same network gives the same drawing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from .network import KINDS, Group, Link, Network

__all__ = ["Card", "cards", "dot", "mermaid", "svg"]

_ROW, _HEAD, _CHAR, _PAD = 22.0, 30.0, 7.2, 14.0
_GAP = 34.0
#: Width over height of the ellipse.
_ASPECT = 1.5
#: How far lines bend to the middle.
_BEND = 0.45

_STYLE = """
.net { --ink:#1c2733; --soft:#5b6977; --card:#ffffff; --edge:#c3ccd6; --head:#eef2f6;
  --shares:#1b7f5f; --copies:#b86b00; --loses:#b3303c; --mark:#2456c8;
  font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif; }
@media (prefers-color-scheme: dark) { .net { --ink:#e6ebf0; --soft:#9aa8b6; --card:#1d252e;
  --edge:#44505c; --head:#27313c; --shares:#4cc29a; --copies:#e5a244; --loses:#ef7f88;
  --mark:#86a9ff; } }
.net .card > rect { fill:var(--card); stroke:var(--edge); stroke-width:1.2; }
.net .card .head { fill:var(--head); stroke:none; }
.net .card.missing { opacity:.55; }
.net .title { font-size:14px; font-weight:650; fill:var(--ink); }
.net .format text { font-size:12.5px; fill:var(--ink); }
.net .format .note { fill:var(--soft); font-size:11px; }
.net .format rect { fill:transparent; }
.net .link { fill:none; stroke-width:1.6; opacity:.55; }
.net .shares { stroke:var(--shares); }
.net .copies { stroke:var(--copies); stroke-dasharray:7 4; }
.net .loses { stroke:var(--loses); stroke-dasharray:2 4; }
.net .arrow { fill:var(--soft); stroke:none; }
.net .legend text { font-size:12.5px; fill:var(--soft); }
"""

_LEGEND = {
    "shares": "memory is shared",
    "copies": "bytes are copied",
    "loses": "a property is lost (sparse to dense …)",
}


class Card(NamedTuple):
    """A group at its place; `x` and `y` are those of its middle."""

    group: Group
    x: float
    y: float

    @property
    def width(self) -> float:
        """Of the whole card."""
        return _size(self.group)[0]

    @property
    def height(self) -> float:
        """Of the whole card."""
        return _size(self.group)[1]


def _size(group: Group) -> tuple[float, float]:
    letters = max(len(group.name), *(len(n.name) + len(n.layout) + 2 for n in group.nodes))
    return letters * _CHAR + 2 * _PAD, _HEAD + len(group.nodes) * _ROW + 6


# ---------------------------------------------------------------------- where the cards stand


def cards(shown: Network) -> list[Card]:
    """Return the groups at their places."""
    weights = _weights(shown)
    degree = {group.name: 0 for group in shown.groups}
    for one, other in weights:
        degree[one] += 1
        degree[other] += 1
    groups = {group.name: group for group in shown.groups}
    if not groups:
        return []
    hub = max(sorted(groups), key=degree.__getitem__)
    ring = _ordered([name for name in sorted(groups) if name != hub], weights)
    return [Card(groups[hub], 0.0, 0.0), *_around(groups[hub], [groups[name] for name in ring])]


def _weights(shown: Network) -> dict[tuple[str, str], int]:
    """Return how many links there are between two groups, whichever way they lead."""
    home = {node.name: node.group for node in shown.nodes}
    weights: dict[tuple[str, str], int] = {}
    for link in shown.links:
        one, other = sorted((home[link.source], home[link.target]))
        if one != other:
            weights[one, other] = weights.get((one, other), 0) + 1
    return weights


def _ordered(names: list[str], weights: dict[tuple[str, str], int]) -> list[str]:
    """Return names in an order on a ring in which neighbors are near: by swaps, while they help."""
    near = [(a, b, w) for (a, b), w in weights.items() if a in names and b in names]

    def length(order: list[str]) -> int:
        place = {name: n for n, name in enumerate(order)}
        gaps = ((abs(place[a] - place[b]), w) for a, b, w in near)
        return sum(w * min(gap, len(order) - gap) for gap, w in gaps)

    best, least = list(names), length(names)
    better = True
    while better:
        better = False
        for i in range(len(best)):
            for j in range(i + 1, len(best)):
                best[i], best[j] = best[j], best[i]
                now = length(best)
                if now < least:
                    least, better = now, True
                else:
                    best[i], best[j] = best[j], best[i]
    return best


def _around(hub: Group, ring: list[Group]) -> list[Card]:
    """Return cards on an ellipse around a hub, so large that none overlaps another."""
    if not ring:
        return []
    width, height = _size(hub)
    needs = [math.hypot(*_size(group)) * 0.8 + _GAP for group in ring]
    radius = max(sum(needs) / (2 * math.pi * _ASPECT), height / 2 + 120, width / 2 / _ASPECT + 120)
    while True:
        placed = _on_ellipse(ring, radius)
        if not _overlap([Card(hub, 0, 0), *placed]):
            return placed
        radius *= 1.03


def _on_ellipse(ring: list[Group], radius: float) -> list[Card]:
    """Return cards at angles that leave each as much of the ellipse as it takes up there."""
    angles = [2 * math.pi * n / len(ring) for n in range(len(ring))]
    for _ in range(12):
        shares = [
            (_along(_size(group), angle) + _GAP) / _speed(angle)
            for group, angle in zip(ring, angles, strict=True)
        ]
        scale, at = 2 * math.pi / sum(shares), 0.0
        for n, share in enumerate(shares):
            angles[n] = (at + share / 2) * scale
            at += share
    return [
        Card(group, radius * _ASPECT * math.sin(angle), -radius * math.cos(angle))
        for group, angle in zip(ring, angles, strict=True)
    ]


def _along(size: tuple[float, float], angle: float) -> float:
    """Return how much of the ellipse a card takes up at an angle."""
    dx, dy = _ASPECT * math.cos(angle), math.sin(angle)
    return (abs(dx) * size[0] + abs(dy) * size[1]) / math.hypot(dx, dy)


def _speed(angle: float) -> float:
    return math.hypot(_ASPECT * math.cos(angle), math.sin(angle))


def _overlap(placed: list[Card]) -> bool:
    return any(
        abs(one.x - other.x) < (one.width + other.width) / 2 + _GAP
        and abs(one.y - other.y) < (one.height + other.height) / 2 + _GAP
        for n, one in enumerate(placed)
        for other in placed[:n]
    )


# ---------------------------------------------------------------------- SVG


def svg(shown: Network, *, alone: bool = True) -> str:
    """Return the network as SVG.

    Parameters
    ----------
    shown : Network
    alone : bool
        Whether it is a file of its own, with a legend, rather than a part of a page.
    """
    placed = cards(shown)
    left, top, width, height = _frame(placed, 44 if alone else 0)
    body = [*_lines(shown, placed), *(part for card in placed for part in _card(card))]
    if alone:
        body += _legend(left + 20, top + height - 22)
    size = f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}"'
    if alone:
        size += f' width="{width:.0f}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="net" {size} role="img">',
            "<title>Formats and the conversions between them</title>",
            f"<style>{_STYLE}</style>",
            '<g class="world">',
            *body,
            "</g>",
            "</svg>",
        ]
    )


def _frame(placed: list[Card], below: float) -> tuple[float, float, float, float]:
    """Return left, top, width and height of what holds all cards."""
    lefts = [card.x - card.width / 2 for card in placed] or [0.0]
    rights = [card.x + card.width / 2 for card in placed] or [0.0]
    tops = [card.y - card.height / 2 for card in placed] or [0.0]
    bottoms = [card.y + card.height / 2 for card in placed] or [0.0]
    margin = 24.0
    left, top = min(lefts) - margin, min(tops) - margin
    return left, top, max(rights) + margin - left, max(bottoms) + margin + below - top


def _lines(shown: Network, placed: list[Card]) -> Iterator[str]:
    """Yield a line for each two groups between which something leads."""
    home = {node.name: node.group for node in shown.nodes}
    at = {card.group.name: card for card in placed}
    between: dict[tuple[str, str], list[Link]] = {}
    for link in shown.links:
        one, other = sorted((home[link.source], home[link.target]))
        if one != other:
            between.setdefault((one, other), []).append(link)
    # The mildest lie on top.
    worst_first = sorted(between.items(), key=lambda item: (-_mildest(item[1]), item[0]))
    for (one, other), links in worst_first:
        kind = KINDS[_mildest(links)]
        starts = {home[link.source] for link in links}
        ends = (at[one], at[other]) if one in starts else (at[other], at[one])
        path = _curve(*ends)
        names = "\n".join(f"{k.source} → {k.target}: {', '.join(k.names)}" for k in links)
        yield (
            f'<g class="line" data-a="{escape(one)}" data-b="{escape(other)}">'
            f'<path class="link {kind}" d="{_d(path)}"><title>{escape(names)}</title></path>'
            f"{_arrow(path) if len(starts) == 1 else ''}</g>"
        )


def _mildest(links: Iterable[Link]) -> int:
    return min(KINDS.index(link.kind) for link in links)


_Point = tuple[float, float]


def _curve(one: Card, other: Card) -> tuple[_Point, _Point, _Point]:
    """Return start, control point and end of a line that bends to the middle of the drawing."""
    middle = ((one.x + other.x) / 2, (one.y + other.y) / 2)
    return (one.x, one.y), (middle[0] * (1 - _BEND), middle[1] * (1 - _BEND)), (other.x, other.y)


def _d(path: tuple[_Point, _Point, _Point]) -> str:
    (x0, y0), (x1, y1), (x2, y2) = path
    return f"M{x0:.1f} {y0:.1f}Q{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f}"


def _arrow(path: tuple[_Point, _Point, _Point]) -> str:
    """Return a head half way along, for what leads one way only."""
    (x0, y0), (x1, y1), (x2, y2) = path
    x, y = (x0 + 2 * x1 + x2) / 4, (y0 + 2 * y1 + y2) / 4
    turn = math.degrees(math.atan2(y2 - y0, x2 - x0))
    place = f"translate({x:.1f} {y:.1f}) rotate({turn:.1f})"
    return f'<path class="arrow" d="M-5 -5L6 0L-5 5Z" transform="{place}"/>'


def _card(card: Card) -> Iterator[str]:
    group, width, height = card.group, card.width, card.height
    left, top = card.x - width / 2, card.y - height / 2
    missing = " missing" if all(node.state == "missing" for node in group.nodes) else ""
    yield (
        f'<g class="card{missing}" data-group="{escape(group.name)}" '
        f'transform="translate({left:.1f} {top:.1f})">'
    )
    yield f'<rect width="{width:.1f}" height="{height:.1f}" rx="9"/>'
    top_edge = f"M1 {_HEAD}V9a8 8 0 0 1 8-8H{width - 9:.1f}a8 8 0 0 1 8 8V{_HEAD}Z"
    yield f'<path class="head" d="{top_edge}"/>'
    yield f'<text class="title" x="{_PAD}" y="20">{escape(group.name)}</text>'
    for n, node in enumerate(group.nodes):
        name, y = escape(node.name), _HEAD + 3 + n * _ROW
        yield (
            f'<g class="format" data-format="{name}" transform="translate(0 {y:.1f})">'
            f'<rect x="3" width="{width - 6:.1f}" height="{_ROW}" rx="4"/>'
            f'<text x="{_PAD}" y="15.5">{name}</text>'
            f'<text class="note" x="{width - _PAD:.1f}" y="15.5" text-anchor="end">'
            f"{escape(node.layout)}</text></g>"
        )
    yield "</g>"


def _legend(x: float, y: float) -> Iterator[str]:
    yield '<g class="legend">'
    for n, kind in enumerate(KINDS):
        at = x + n * 190
        yield f'<path class="link {kind}" d="M{at:.1f} {y - 4:.1f}h36" style="opacity:1"/>'
        yield f'<text x="{at + 44:.1f}" y="{y:.1f}">{escape(_LEGEND[kind])}</text>'
    yield "</g>"


# ---------------------------------------------------------------------- text


def mermaid(shown: Network) -> str:
    """Return the network as a flowchart of Mermaid's."""
    ids = {node.name: f"n{n}" for n, node in enumerate(shown.nodes)}
    lines = ["flowchart LR"]
    for n, group in enumerate(shown.groups):
        lines.append(f'  subgraph g{n}["{_named(group.name)}"]')
        lines += [f'    {ids[node.name]}["{_named(node.name)}"]' for node in group.nodes]
        lines.append("  end")
    arrows = {"shares": "-->", "copies": "-.->", "loses": "-. loses .->"}
    lines += [f"  {ids[k.source]} {arrows[k.kind]} {ids[k.target]}" for k in shown.links]
    return "\n".join(lines)


def _named(text: str) -> str:
    """Return text as Mermaid takes it within quotes."""
    return text.replace('"', "#quot;")


def dot(shown: Network) -> str:
    """Return the network in Graphviz's language."""
    lines = [
        "digraph interop {",
        '  graph [rankdir=LR, compound=true, fontname="sans-serif"];',
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
    ]
    for n, group in enumerate(shown.groups):
        lines.append(f"  subgraph cluster_{n} {{")
        lines.append(f"    label={_quoted(group.name)};")
        lines += [f"    {_quoted(node.name)};" for node in group.nodes]
        lines.append("  }")
    styles = {
        "shares": 'color="#1b7f5f"',
        "copies": 'color="#b86b00", style=dashed',
        "loses": 'color="#b3303c", style=dotted',
    }
    for k in shown.links:
        tip = _quoted(", ".join(k.names))
        lines.append(
            f"  {_quoted(k.source)} -> {_quoted(k.target)} [{styles[k.kind]}, tooltip={tip}];"
        )
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
