"""The graph of formats: which conversions start where, and what a way must cost at least."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ._format import Format
from ._policy import LOSING
from ._registry import Registry
from ._step import Edge

__all__ = ["SLACK", "Graph", "Outlook"]

#: How many hand-offs longer than the shortest a route may be.
SLACK = 2


class Outlook(NamedTuple):
    """What is known beforehand of the ways from one format to some goals.

    Parameters
    ----------
    near : frozenset of str
        The formats on ways at most `SLACK` hand-offs longer than the shortest.
    hops : mapping of str to int
        For each format, the hand-offs that are left at least.
    lossless, uncopied, shared : frozenset of str
        The formats from which a way leads on without a loss, without writing bytes, or sharing
        some memory.
    latency : float
        Seconds of the quickest hand-off there is.
    rate, losing_rate : float
        Bytes per second of the fastest step that writes, and of the fastest that leads to where no
        further loss is needed (by which what is sparse becomes dense).
    parting : bool
        Whether there is a step that writes bytes and shares memory all the same.
    """

    near: frozenset[str]
    hops: Mapping[str, int]
    lossless: frozenset[str]
    uncopied: frozenset[str]
    shared: frozenset[str]
    latency: float
    rate: float
    losing_rate: float
    parting: bool


class Graph:
    """The registered conversions, by the formats they start from.

    Parameters
    ----------
    registry : Registry
    available : callable
        ``available(module) -> bool``: whether a framework can be imported. Formats whose
        framework is missing are goals at most.
    """

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        self._registry = registry
        self._available = available
        self._version = -1
        self._edges: dict[str, list[Edge]] = {}
        self._layouts: dict[str, list[Format]] = {}
        self._outlooks: dict[tuple[object, ...], Outlook] = {}
        self._forward: dict[str, set[str]] = {}
        self._reverse: dict[str, set[str]] = {}
        self._reverse_lossless: dict[str, set[str]] = {}
        self._reverse_uncopied: dict[str, set[str]] = {}
        self._reverse_shared: dict[str, set[str]] = {}

    def refresh(self) -> bool:
        """Take notice of what is registered now; tell whether anything changed."""
        version = self._registry.version  # asked first: what comes later is found the next time
        if self._version == version:
            return False
        self._outlooks.clear()
        self._edges = self._sorted_edges()
        self._layouts = {}
        for one in self._registry.formats.values():
            components = self._registry.formats.get(one.components or "")
            # Of what is not there, or is composite itself, nothing can be put together.
            if one.layout and components is not None and components.is_dense:
                self._layouts.setdefault(one.layout, []).append(one)
        self._connect()
        self._version = version
        return True

    def _sorted_edges(self) -> dict[str, list[Edge]]:
        formats = self._registry.formats
        speakers: dict[str, list[Format]] = {name: [one] for name, one in formats.items()}
        for one in formats.values():
            for protocol in one.speaks:
                if protocol != one.name:
                    speakers.setdefault(protocol, []).append(one)
        edges: dict[str, list[Edge]] = {name: [] for name in formats}
        for declared in self._registry.conversions:
            target = formats.get(declared.conversion.target)
            if target is None:
                continue
            for source in speakers.get(declared.conversion.source, ()):
                edges[source.name].append(Edge(declared, source, target))
        for some in edges.values():
            some.sort(key=lambda edge: (edge.losses, edge.writes, not edge.aliases))
        return edges

    def _connect(self) -> None:
        links = [
            (e.source.name, e.target.name, bool(e.effects & LOSING), e.writes, e.aliases)
            for edges in self._edges.values()
            for e in edges
        ]
        links += [
            (one.name, other.name, False, False, True)
            for alike in self._layouts.values()
            for one in alike
            for other in alike
        ]
        links = [link for link in links if link[0] != link[1]]
        self._forward = _grouped((a, b) for a, b, *_ in links)
        self._reverse = _grouped((b, a) for a, b, *_ in links)
        self._reverse_lossless = _grouped((b, a) for a, b, loses, _, _ in links if not loses)
        self._reverse_uncopied = _grouped((b, a) for a, b, _, writes, _ in links if not writes)
        self._reverse_shared = _grouped((b, a) for a, b, _, _, shares in links if shares)

    def edges(self, name: str) -> list[Edge]:
        """Return the declared conversions that start at a format."""
        return self._edges.get(name, [])

    def alike(self, one: Format) -> list[Format]:
        """Return the formats of the same layout, itself among them."""
        alike = self._layouts.get(one.layout or "", [])
        return alike if one in alike else []

    def outlook(
        self,
        start: str,
        goals: Iterable[str],
        devices: frozenset[str] = frozenset({"cpu"}),
        *,
        everywhere: bool = False,
        dense: bool = False,
    ) -> Outlook:
        """Return what is known of the ways from a format to some others.

        Parameters
        ----------
        start : str
        goals : iterable of str
        devices : frozenset of str
            The types of the devices that a route may touch.
        everywhere : bool
            Whether to drop the limit on hand-offs.
        dense : bool
            Whether to stay among dense formats.
        """
        key = (start, *goals, devices, everywhere, dense)
        found = self._outlooks.get(key)
        if found is None:
            near, hops = self._near(start, tuple(goals), everywhere, dense)
            lossless = frozenset(_distances(goals, self._reverse_lossless))
            found = self._outlooks[key] = Outlook(
                near,
                hops,
                lossless,
                frozenset(_distances(goals, self._reverse_uncopied)),
                frozenset(_distances(goals, self._reverse_shared)),
                *self._speeds(near, devices, lossless),
            )
        return found

    def _near(
        self, start: str, goals: tuple[str, ...], everywhere: bool, dense: bool
    ) -> tuple[frozenset[str], dict[str, int]]:
        hops = _distances(goals, self._reverse)
        there = _distances((start,), self._forward)
        limit = min((there[name] for name in goals if name in there), default=0) + SLACK
        third = self.third(there, (start, *goals))
        near = {
            name
            for name, steps in there.items()
            if name in hops
            and (everywhere or steps + hops[name] <= limit)
            and (not dense or self._registry.formats[name].is_dense)
            and (name not in third or self._is_passable(name, everywhere))
            and self._usable(name)
        }
        return frozenset(near | {start, *goals}), hops

    def _is_passable(self, name: str, everywhere: bool) -> bool:
        """Tell whether a route between other frameworks may lead through a format.

        Through a lazy one it never does: to compute what was at hand is a copy by another name.
        """
        one = self._registry.formats[name]
        return not one.lazy and (everywhere or one.passable)

    def _speeds(
        self, near: frozenset[str], devices: frozenset[str], lossless: frozenset[str]
    ) -> tuple[float, float, float, bool]:
        """Return the last four items of the outlook, of the steps that a route may have."""
        edges = [
            edge
            for name in near
            for edge in self._edges.get(name, ())
            if edge.target.name in near and (edge.devices is None or edge.devices & devices)
        ]
        # Whoever cannot go on without a loss takes one of these, which need not write.
        crossing = [e for e in edges if e.source.name not in lossless and e.target.name in lossless]
        # Components are handed over, and holders opened, by steps that nobody declares.
        formats = (self._registry.formats[name] for name in near)
        undeclared = [one.handling for one in formats if one.layout or one.inside is not None]
        return (
            min((*undeclared, *(edge.conversion.cost.latency for edge in edges)), default=0.0),
            _fastest(edge for edge in edges if edge.writes),
            _fastest(crossing) if all(edge.writes for edge in crossing) else math.inf,
            any(edge.writes and edge.aliases for edge in edges),
        )

    def foreign(self, names: Iterable[str], asked_for: Iterable[str]) -> frozenset[str]:
        """Return those of some formats whose framework nobody asked for and is not imported."""
        formats = (self._registry.formats[name] for name in self.third(names, asked_for))
        return frozenset(
            one.name for one in formats if one.requires and one.requires not in sys.modules
        )

    def third(self, names: Iterable[str], asked_for: Iterable[str]) -> frozenset[str]:
        """Return those of some formats whose framework nobody asked for."""
        at_hand = {self._registry.formats[name].framework for name in asked_for}
        return frozenset(
            name for name in names if self._registry.formats[name].framework not in at_hand
        )

    def _usable(self, name: str) -> bool:
        """Tell whether a route may lead through a format: whether it is there, and forgets nothing.

        What a value does not remember of its spec, the steps after it would not know.
        """
        one = self._registry.formats[name]
        return not one.forgets and (not one.requires or self._available(one.requires))


def _fastest(edges: Iterable[Edge]) -> float:
    return max((e.conversion.cost.fastest for e in edges), default=math.inf)


def _grouped(links: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    grouped: dict[str, set[str]] = {}
    for one, other in links:
        grouped.setdefault(one, set()).add(other)
    return grouped


def _distances(start: Iterable[str], links: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the least number of links to every name that can be reached."""
    found = dict.fromkeys(start, 0)
    rim, distance = set(found), 0
    while rim:
        distance += 1
        reached: set[str] = set().union(*(links[name] for name in rim if name in links))
        rim = reached - found.keys()
        found.update(dict.fromkeys(rim, distance))
    return found
