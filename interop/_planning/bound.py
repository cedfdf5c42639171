"""Links: what every step from one format into another must take at least, on some devices.

Between formats of one layout there is a link that nobody declares: the value is handed over array
by array, which takes as long as the ways between the formats of the arrays do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from interop._model.cost import Cost
from interop._model.dtype import CARRIERS, itemsize
from interop._model.format import Format

from .step import Edge

__all__ = ["EACH", "Link", "Links", "distances", "grouped"]

#: Seconds that a step takes beside its own: to be called for, and to forgo the shortcut that stands
#: for one step alone.
EACH = 2e-6

_HOST = frozenset({"cpu"})

#: The roles whose arrays are as long as what is stored.
_LONG = frozenset({"values", "indices", "codes"})


class Link(NamedTuple):
    """What every step from one format into another must take at least.

    Parameters
    ----------
    source : str
    losses : int
    seconds : float
        What it takes whatever the size.
    cost : Cost or None
        Of the bytes; None if they cost nothing.
    dense, stored : int
        How many of its two ends are dense arrays, and how many are sparse or quantized.
    values, others : int
        Of those that are handed over array by array: how many of the arrays hold the values, and
        the bytes of the others for each element that is stored.
    writes : bool
        Whether it may write bytes.
    dtypes, makes : frozenset of str or None
        The dtypes of the elements before and after; None: any.
    requires : frozenset of str
    ndims : frozenset of int or None
        What it takes, as of a conversion.
    """

    source: str
    losses: int
    seconds: float
    cost: Cost | None = None
    dense: int = 0
    stored: int = 0
    values: int = 0
    others: int = 0
    writes: bool = True
    dtypes: frozenset[str] | None = None
    makes: frozenset[str] | None = None
    requires: frozenset[str] = frozenset()
    ndims: frozenset[int] | None = None


class _Crossing(NamedTuple):
    """What the ways from dense formats to one of them have in common.

    Parameters
    ----------
    latency, rate : mapping of str to float
        Seconds, and seconds for each byte, that such a way takes at least.
    uncopied, shared : mapping of str to int
        The formats from which one writes no bytes, or shares the memory.
    """

    latency: Mapping[str, float]
    rate: Mapping[str, float]
    uncopied: Mapping[str, int]
    shared: Mapping[str, int]


class _Dense:
    """The conversions between dense formats, by where they lead."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._latency: dict[str, dict[str, float]] = {}
        self._rate: dict[str, dict[str, float]] = {}
        uncopied, shared = [], []
        self._found: dict[str, _Crossing] = {}
        for edge in edges:
            source, target, cost = edge.source.name, edge.target.name, edge.conversion.cost
            ends = (edge.source.inside is None) + (edge.target.inside is None)
            some = self._latency.setdefault(target, {})
            some[source] = min(cost.latency, some.get(source, math.inf))
            some = self._rate.setdefault(target, {})
            some[source] = min(ends / cost.fastest, some.get(source, math.inf))
            if not edge.writes:
                uncopied.append((target, source))
            if edge.aliases:
                shared.append((target, source))
        self._uncopied, self._shared = grouped(uncopied), grouped(shared)

    def crossing(self, name: str) -> _Crossing:
        """Return what the ways to a format take at least, through dense ones."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = _Crossing(
                _least(name, self._latency),
                _least(name, self._rate),
                distances((name,), self._uncopied),
                distances((name,), self._shared),
            )
        return found


def _least(name: str, into: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the least sum of weights on the ways to a format from each other."""
    found: dict[str, float] = {}
    queue = [(0.0, name)]
    while queue:
        left, here = heappop(queue)
        if here not in found:
            found[here] = left
            for source, more in into.get(here, {}).items():
                if source not in found:
                    heappush(queue, (left + more, source))
    return found


class Links:
    """The links between formats, where only some devices are touched.

    Parameters
    ----------
    edges : iterable of Edge
    alike : iterable of tuple of Format
        The pairs of formats of one layout.
    devices : frozenset of str
        The types of the devices.

    Attributes
    ----------
    uncopied, shared : dict of str to set of str
        The formats from which a link leads to one without writing bytes, or sharing some memory.
    """

    def __init__(
        self,
        edges: Iterable[Edge],
        alike: Iterable[tuple[Format, Format]],
        devices: frozenset[str],
    ) -> None:
        self._into: dict[str, list[Link]] = {}
        self._edges: dict[str, list[Edge]] = {}
        self._alike: dict[str, list[tuple[Format, Format]]] = {}
        edges = [edge for edge in edges if _is_possible(edge, devices)]
        for edge in edges:
            if edge.writes or edge.source is not edge.target:
                self._edges.setdefault(edge.target.name, []).append(edge)
        between = [edge for edge in edges if edge.source is not edge.target]
        self._dense = _Dense(e for e in between if e.source.is_dense and e.target.is_dense)
        uncopied = [(e.target.name, e.source.name) for e in between if not e.writes]
        shared = [(e.target.name, e.source.name) for e in between if e.aliases]
        for one, other in alike:
            crossing = self._dense.crossing(other.components or "")
            components = one.components or ""
            if components in crossing.latency and not devices.isdisjoint(other.devices):
                self._alike.setdefault(other.name, []).append((one, other))
                restacked = one.unstacks | other.restacks
                if not restacked and components in crossing.uncopied:
                    uncopied.append((other.name, one.name))
                if (one.roles.keys() & other.roles) - restacked and components in crossing.shared:
                    shared.append((other.name, one.name))
        self.uncopied, self.shared = grouped(uncopied), grouped(shared)

    def into(self, name: str) -> list[Link]:
        """Return the links that lead to a format, drawn up when they are first asked for."""
        found = self._into.get(name)
        if found is None:
            found = self._into[name] = [
                *map(_declared, self._edges.get(name, ())),
                *(self._handed_over(*pair) for pair in self._alike.get(name, ())),
            ]
        return found

    def _handed_over(self, one: Format, other: Format) -> Link:
        name, crossing = one.components or "", self._dense.crossing(other.components or "")
        rate, indices = crossing.rate[name], one.index_dtypes | other.index_dtypes
        roles = one.roles.keys() & other.roles.keys()
        held = [one.roles[role] for role in roles & _LONG]
        narrowest = {
            "index_dtype": min(map(itemsize, indices), default=1),
            "code_dtype": 1,
            "dtype": 0,
        }
        return Link(
            one.name,
            0,
            one.handling + other.handling + len(roles) * crossing.latency[name] + EACH,
            Cost(0.0, 1 / rate) if rate else None,
            values=held.count("dtype"),
            others=sum(narrowest.get(dtype, itemsize(dtype)) for dtype in held),
        )


def _is_possible(edge: Edge, devices: frozenset[str]) -> bool:
    """Tell whether a conversion can be a step where only some devices are touched."""
    conversion = edge.conversion
    ends: Iterable[str] = edge.target.devices
    if "device" in conversion.changes:
        ends = conversion.to_devices or ends
        if devices == _HOST:
            return False  # there is but one host
    takes = edge.devices is None or not edge.devices.isdisjoint(devices)
    return takes and not devices.isdisjoint(ends)


def _declared(edge: Edge) -> Link:
    cost = edge.conversion.cost
    # What a holder has inside may be anything, so that its bytes are not known.
    known = [one for one in (edge.source, edge.target) if one.inside is None]
    dense = sum(one.is_dense for one in known)
    return Link(
        edge.source.name,
        edge.losses,
        cost.latency + EACH,
        cost if cost.bandwidth is not None else None,
        dense,
        len(known) - dense,
        writes=edge.writes,
        dtypes=edge.dtypes,
        makes=_made(edge),
        requires=edge.requires,
        ndims=edge.ndims,
    )


def _made(edge: Edge) -> frozenset[str]:
    """Return the dtypes that elements may have after a conversion."""
    castable, target = edge.conversion.to_dtypes, edge.target.dtypes
    return target if castable is None else castable | target & CARRIERS


def grouped(links: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the second items of pairs by the first."""
    groups: dict[str, set[str]] = {}
    for one, other in links:
        groups.setdefault(one, set()).add(other)
    return groups


def distances(
    start: Iterable[str], links: Mapping[str, set[str]], within: frozenset[str] | None = None
) -> dict[str, int]:
    """Return the least number of links to every name that can be reached."""
    found = dict.fromkeys(start, 0)
    rim, distance = set(found), 0
    while rim:
        distance += 1
        reached: set[str] = set().union(*(links[name] for name in rim if name in links))
        rim = reached - found.keys()
        if within is not None:
            rim &= within
        found.update(dict.fromkeys(rim, distance))
    return found


#: What is left of a way at least, compared in this order: losses, imports, seconds.
Left = tuple[int, int, float]

#: By how much the seconds that are left are understated, so that sums which are rounded otherwise
#: than those of whole routes do not decide between routes that take equally long.
_ROUNDING = 1 - 1e-9

#: For how many sizes an outlook keeps what is left; there are few magnitudes, so few are met.
_MOST = 64


class Given(NamedTuple):
    """What is known beforehand of every value on the ways of one search.

    Parameters
    ----------
    dense, stored : int, in bytes
        What a dense array has at least, and what a sparse one.
    elements, width : int
        How many elements it stores at least, and the bytes of one of them.
    axes : int
    dtypes : frozenset of str
        The dtypes that its elements may have.
    traits : frozenset of str
        Those that it may have.
    foreign : frozenset of str
        The formats that cost an import.
    writing : bool
        Whether the ways on which bytes have to be written are to be told apart.
    """

    dense: int
    stored: int
    elements: int
    width: int
    axes: int
    dtypes: frozenset[str | None]
    traits: frozenset[str]
    foreign: frozenset[str]
    writing: bool

    def take(self, link: Link) -> bool:
        """Tell whether a link may be part of such a way."""
        return (
            (link.dtypes is None or not link.dtypes.isdisjoint(self.dtypes))
            and (link.makes is None or not link.makes.isdisjoint(self.dtypes))
            and (link.ndims is None or self.axes in link.ndims)
            and link.requires <= self.traits
        )

    def seconds(self, link: Link) -> float:
        """Return what a link takes at least."""
        seconds = link.seconds
        if link.cost is not None:
            element = link.values * self.width + link.others
            ends = link.dense * self.dense + link.stored * self.stored
            seconds += link.cost.moving(ends + element * self.elements)
        return seconds * _ROUNDING


class Remainder(NamedTuple):
    """The least that is left from each format.

    Parameters
    ----------
    ways : mapping
        By format, and whether bytes have to be written on the way.
    writing : bool
        Whether the ways on which they have to be were told apart.
    """

    ways: Mapping[tuple[str, bool], Left]
    writing: bool

    def least(self, name: str, writing: bool) -> Left | None:
        """Return what is left at least, or None if no way leads on."""
        return self.ways.get((name, writing and self.writing))


class Outlook(NamedTuple):
    """What is known beforehand of the ways from one format to some goals.

    Parameters
    ----------
    near : frozenset of str
        The formats on ways at most `SLACK` hand-offs longer than the shortest.
    hops : mapping of str to int
        For each format, the hand-offs that are left at least.
    uncopied, shared : frozenset of str
        The formats from which a way leads on without writing bytes, or sharing some memory.
    parting : bool
        Whether there is a step that writes bytes and shares memory all the same.
    computing : bool
        Whether such a step computes a lazy value, so that what it visits is no detour.
    ends : tuple of str
        The formats from which nothing is known to be left: the goals, and those that open.
    links : Links
    remainders : dict
        Those that were worked out so far.
    """

    near: frozenset[str]
    hops: Mapping[str, int]
    uncopied: frozenset[str]
    shared: frozenset[str]
    parting: bool
    computing: bool
    ends: tuple[str, ...]
    links: Links
    remainders: dict[Given, Remainder]

    def remainder(self, given: Given) -> Remainder:
        """Return the least that is left from each format."""
        found = self.remainders.get(given)
        if found is None:
            if len(self.remainders) >= _MOST:
                self.remainders.clear()
            found = self.remainders[given] = Remainder(self._ways(given), given.writing)
        return found

    def sharing(self, goals: Iterable[str], without: frozenset[str]) -> frozenset[str]:
        """Return the formats from which a way shares memory without visiting some others."""
        return frozenset(distances(goals, self.links.shared, self.near - without))

    def _ways(self, given: Given) -> dict[tuple[str, bool], Left]:
        """Return the shortest ways to the goals, which are walked backwards from there."""
        found: dict[tuple[str, bool], Left] = {}
        nothing: Left = (0, 0, 0.0)
        queue = [(nothing, name, False) for name in self.ends]
        while queue:
            left, name, written = heappop(queue)
            if (name, written) in found:
                continue
            found[name, written] = left
            losses, imports, seconds = left
            imports += name in given.foreign
            for link in self.links.into(name):
                source = link.source
                if source in self.near and given.take(link):
                    more = losses + link.losses, imports, seconds + given.seconds(link)
                    if (source, written) not in found:
                        heappush(queue, (more, source, written))
                    if given.writing and link.writes and (source, True) not in found:
                        heappush(queue, (more, source, True))
        return found
