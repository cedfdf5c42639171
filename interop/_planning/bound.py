"""Lower bounds: what the rest of a route takes at least, known before any spec is looked at.

An edge says what every step from one format into another takes at least, where only some devices
are touched. Between formats of one layout there is an edge that nobody declares: the value is
handed over array by array, which takes as long as the routes between the formats of the arrays do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from heapq import heappop, heappush
from typing import NamedTuple

from interop._model.cost import Cost
from interop._model.format import Format

from .conversion import ResolvedConversion
from .ranking import EACH

#: By how much seconds are understated, so that sums that are rounded otherwise than those of whole
#: routes do not decide between routes that take equally long.
_ROUNDING = 1 - 1e-9

#: For how many sizes lower bounds are kept; there are few magnitudes, so few are met.
_MOST = 64

#: What the rest of a route takes at least: losses, imports, seconds, in the order of `Rank`.
Least = tuple[int, int, float]


class Edge(NamedTuple):
    """What every step from one format into another takes at least; None stands for any."""

    source: str
    losses: int
    seconds: float  # whatever the size
    cost: Cost | None = None  # of the bytes
    # How many of its two ends are dense arrays, and how many are sparse or quantized.
    dense: int = 0
    stored: int = 0
    writes: bool = True


class Edges:
    """The edges between formats, where only devices of some types are touched.

    They are made of conversions, and of `alike`, the pairs of formats of one layout. By target,
    `uncopied` and `shared` name the sources of edges that write no bytes, or share some memory.
    """

    def __init__(
        self,
        conversions: Iterable[ResolvedConversion],
        alike: Iterable[tuple[Format, Format]],
        devices: frozenset[str],
    ) -> None:
        self._between: dict[tuple[str, str], list[Edge]] = {}
        #: By target and source, what the edges between the two are made of.
        self._declared: dict[str, dict[str, list[ResolvedConversion]]] = {}
        self._alike: dict[tuple[str, str], tuple[Format, Format]] = {}
        self.uncopied: dict[str, set[str]] = {}
        self.shared: dict[str, set[str]] = {}
        for conversion in conversions:
            if _is_possible(conversion, devices):
                self._add(conversion)
        for source, target in alike:
            if not devices.isdisjoint(target.devices):
                self._declared.setdefault(target.name, {}).setdefault(source.name, [])
                self._alike[source.name, target.name] = source, target
                copied, common = _copied_roles(source, target), _common_roles(source, target)
                if not copied:
                    self.uncopied.setdefault(target.name, set()).add(source.name)
                if common - copied:
                    self.shared.setdefault(target.name, set()).add(source.name)

    def _add(self, conversion: ResolvedConversion) -> None:
        source, target = conversion.source, conversion.target
        if source is not target or conversion.writes:
            sources = self._declared.setdefault(target.name, {})
            sources.setdefault(source.name, []).append(conversion)
        if source is target:
            return
        if not conversion.writes:
            self.uncopied.setdefault(target.name, set()).add(source.name)
        if conversion.aliases:
            self.shared.setdefault(target.name, set()).add(source.name)

    def sources(self, target: str) -> Iterable[str]:
        """Return the formats from which edges lead to a format."""
        return self._declared.get(target, ())

    def between(self, source: str, target: str) -> list[Edge]:
        """Return the edges from one format to another, drawn up when they are first asked for."""
        edges = self._between.get((source, target))
        if edges is None:
            edges = [*map(_declared_edge, self._declared[target][source])]
            if (source, target) in self._alike:
                edges.append(_component_edge(*self._alike[source, target]))
            self._between[source, target] = edges
        return edges


def _component_edge(source: Format, target: Format) -> Edge:
    assert source.components is not None
    assert target.components is not None
    packing = source.components.pack_seconds + target.components.pack_seconds
    return Edge(source.name, 0, packing + EACH)


def _common_roles(source: Format, target: Format) -> Set[str]:
    assert source.components is not None
    assert target.components is not None
    return source.components.roles.keys() & target.components.roles.keys()


def _copied_roles(source: Format, target: Format) -> Set[str]:
    assert source.components is not None
    assert target.components is not None
    return source.components.unpack_copies | target.components.pack_copies


def _is_possible(conversion: ResolvedConversion, devices: frozenset[str]) -> bool:
    """Tell whether a conversion can be a step where only some devices are touched."""
    declared = conversion.conversion
    ends: Iterable[str] = conversion.target.devices
    if "device" in declared.changes:
        ends = declared.result.devices or ends
        if devices == {"cpu"}:
            return False  # no part of it is named
    takes = conversion.devices is None or not devices.isdisjoint(conversion.devices)
    return takes and not devices.isdisjoint(ends)


def _declared_edge(conversion: ResolvedConversion) -> Edge:
    cost = conversion.conversion.cost
    # A wrapper may wrap anything, so that its bytes are not known.
    ends = [end for end in (conversion.source, conversion.target) if end.wrapper is None]
    dense = sum(end.is_dense for end in ends)
    return Edge(
        conversion.source.name,
        conversion.losses,
        cost.latency + EACH,
        cost if cost.bandwidth is not None else None,
        dense,
        len(ends) - dense,
        writes=conversion.writes,
    )


class BoundInputs(NamedTuple):
    """What is known beforehand of every value on the routes of one search."""

    dense: int  # bytes of a dense array, at least
    stored: int  # bytes of a sparse one
    not_imported: frozenset[str]  # the formats that cost an import
    writing: bool  # whether routes on which bytes have to be written are to be told apart

    def seconds(self, edge: Edge) -> float:
        """Return what an edge takes at least."""
        seconds = edge.seconds
        if edge.cost is not None:
            seconds += edge.cost.moving(edge.dense * self.dense + edge.stored * self.stored)
        return seconds * _ROUNDING


class LowerBound(NamedTuple):
    """What the rest of a route takes at least, from each format."""

    #: By format, and whether bytes have to be written on the way from there.
    least_from: Mapping[tuple[str, bool], Least]
    writing: bool  # whether the two are told apart

    def least(self, name: str, writing: bool) -> Least | None:
        """Return what the rest takes at least, or None if no route leads on."""
        return self.least_from.get((name, writing and self.writing))


class Candidates(NamedTuple):
    """The formats that routes from one format to some goals may visit, and what is known of them.

    It is drawn up from formats alone, before any spec is looked at.
    """

    names: frozenset[str]  # on routes of few enough hand-offs
    distance: Mapping[str, int]  # hand-offs to the nearest goal, at least
    #: The formats from which a route leads on without writing bytes, or sharing some memory.
    uncopied: frozenset[str]
    shared: frozenset[str]
    breaks_sharing: bool  # whether a step writes bytes and shares memory all the same
    computes: bool  # whether such a step computes a lazy value: what it visits is no detour
    ends: tuple[str, ...]  # where nothing is known of the rest: the goals, and wrappers
    edges: Edges
    bounds: dict[BoundInputs, LowerBound]  # worked out so far
    scopes: dict[frozenset[str], Candidates]  # those among some names only, asked for so far

    def among(self, names: frozenset[str]) -> Candidates:
        """Return those among some names, with lower bounds of their own."""
        scope = self.scopes.get(names)
        if scope is None:
            scope = self.scopes[names] = self._replace(names=names, bounds={}, scopes={})
        return scope

    def bound(self, inputs: BoundInputs) -> LowerBound:
        """Return what the rest of a route takes at least, from each format."""
        bound = self.bounds.get(inputs)
        if bound is None:
            if len(self.bounds) >= _MOST:
                self.bounds.clear()
            bound = self.bounds[inputs] = LowerBound(self._rest(inputs), inputs.writing)
        return bound

    def sharing(self, goals: Iterable[str], without: frozenset[str]) -> frozenset[str]:
        """Return the formats from which a route shares memory without visiting some others."""
        return frozenset(distances(goals, self.edges.shared, self.names - without))

    def _rest(self, inputs: BoundInputs) -> dict[tuple[str, bool], Least]:
        """Return the shortest routes to the goals, which are walked backwards from there."""
        least_from: dict[tuple[str, bool], Least] = {}
        nothing: Least = (0, 0, 0.0)
        queue = [(nothing, name, False) for name in self.ends]
        while queue:
            least, name, written = heappop(queue)
            if (name, written) in least_from:
                continue
            least_from[name, written] = least
            losses, imports, seconds = least
            imports += name in inputs.not_imported
            for source in self.edges.sources(name):
                anew = (source, written) not in least_from
                by_writing = inputs.writing and (source, True) not in least_from
                if source in self.names and (anew or by_writing):
                    for edge in self.edges.between(source, name):
                        longer = losses + edge.losses, imports, seconds + inputs.seconds(edge)
                        if anew:
                            heappush(queue, (longer, source, written))
                        if by_writing and edge.writes:
                            heappush(queue, (longer, source, True))
        return least_from


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Group pairs by their first item."""
    groups: dict[str, set[str]] = {}
    for first, second in pairs:
        groups.setdefault(first, set()).add(second)
    return groups


def distances(
    start: Iterable[str], links: Mapping[str, set[str]], within: frozenset[str] | None = None
) -> dict[str, int]:
    """Return the least number of links to every name that can be reached."""
    steps = dict.fromkeys(start, 0)
    rim, distance = set(steps), 0
    while rim:
        distance += 1
        reached: set[str] = set().union(*(links[name] for name in rim if name in links))
        rim = reached - steps.keys()
        if within is not None:
            rim &= within
        steps.update(dict.fromkeys(rim, distance))
    return steps
