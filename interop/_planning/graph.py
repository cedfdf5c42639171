"""The graph of formats: which conversions start where, and which formats lie on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product

from interop._model.format import Format
from interop._model.spec import Spec
from interop._registry.registry import Registry

from .bound import Links, Outlook, distances, grouped
from .step import Edge, Step, opening

__all__ = ["SLACK", "Graph"]

#: How many hand-offs longer than the shortest a route may be.
SLACK = 2

#: What memory is flagged with when it is shared.
_SHARED = frozenset({"readonly", "immutable"})


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
        self._links: dict[frozenset[str], Links] = {}
        self._parting: list[Edge] = []
        #: The traits that a value may have at the end of a step, though not at the start.
        self.added = _SHARED

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
        edges = [edge for some in self._edges.values() for edge in some]
        links = {(edge.source.name, edge.target.name) for edge in edges}
        links |= {(one.name, other.name) for one, other in self._alike()}
        links = {(source, target) for source, target in links if source != target}
        self._forward = grouped(links)
        self._reverse = grouped((target, source) for source, target in links)
        self._links = {}
        self._parting = [edge for edge in edges if edge.writes and edge.aliases]
        self.added = _SHARED.union(*(edge.conversion.adds for edge in edges))

    def _alike(self) -> Iterator[tuple[Format, Format]]:
        return (pair for alike in self._layouts.values() for pair in product(alike, alike))

    def _links_on(self, devices: frozenset[str]) -> Links:
        """Return the links of which a route may be made that touches devices of some types."""
        found = self._links.get(devices)
        if found is None:
            edges = (edge for some in self._edges.values() for edge in some)
            found = self._links[devices] = Links(edges, self._alike(), devices)
        return found

    def edges(self, name: str) -> list[Edge]:
        """Return the declared conversions that start at a format."""
        return self._edges.get(name, [])

    def openings(self, spec: Spec, near: frozenset[str]) -> Iterator[Step]:
        """Yield the step that opens a holder."""
        if spec.inside in near:
            holder = self._registry.formats[spec.format]
            yield opening(spec, holder, self._registry.provenance[holder.name])

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
            links = self._links_on(devices)
            parting = [edge for edge in self._parting if self._is_open(edge, near, devices)]
            opening = (name for name in near if self._registry.formats[name].inside is not None)
            found = self._outlooks[key] = Outlook(
                near,
                hops,
                frozenset(distances(goals, links.uncopied, near)),
                frozenset(distances(goals, links.shared, near)),
                bool(parting),
                any("materialize" in edge.effects for edge in parting),
                (*goals, *opening),
                links,
                {},
            )
        return found

    def _near(
        self, start: str, goals: tuple[str, ...], everywhere: bool, dense: bool
    ) -> tuple[frozenset[str], dict[str, int]]:
        hops = distances(goals, self._reverse)
        there = distances((start,), self._forward)
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

    def _is_open(self, edge: Edge, near: frozenset[str], devices: frozenset[str]) -> bool:
        """Tell whether a route that stays near may have a step of a conversion."""
        ends = edge.source.name in near and edge.target.name in near
        return ends and (edge.devices is None or bool(edge.devices & devices))

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
