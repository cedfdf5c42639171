"""The outlook: what is known beforehand of the ways from one format to some goals.

It is drawn from formats alone, before any spec is looked at, so what it says of a way is the least
that the way can take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from ._links import Link, Links, distances

__all__ = ["Given", "Left", "Outlook", "Remainder"]

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
