"""Bounds: the least that the rest of a route takes, whatever the value may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from heapq import heappop, heappush
from typing import TypeAlias, cast

from interop._model.format import Format

from .conversion import ResolvedConversion
from .ranking import EACH

#: The least that a part of a route takes, in the order of `Rank`: losses, whether bytes are copied,
#: whether no memory is shared, imports, and seconds. Each is the least of all paths by itself, so
#: that no path takes less of any, whatever the mix.
Least: TypeAlias = tuple[int, bool, bool, int, float]
NOTHING: Least = (0, False, False, 0, 0.0)

#: The effects that a step has, the devices that it takes values on, and those that it moves them
#: to; None: all, and nowhere.
_Needs: TypeAlias = tuple[frozenset[str], Set[str] | None, Iterable[str] | None]
#: The least that a step into a format takes, by its source and by what it needs.
Links: TypeAlias = Mapping[str, Mapping[_Needs, Least]]

_NO_NEEDS: _Needs = (frozenset(), None, None)
_HOST = frozenset({"cpu"})

#: The factor by which bounds understate seconds. They add the same numbers as the ranks of routes,
#: but in another order, and rounding must not lift a bound above the rank.
_ROUNDING = 1 - 1e-9


def links(
    conversions: Iterable[ResolvedConversion], target: Format, members: list[Format]
) -> Links:
    """Return the least that a step into a format takes.

    Parameters
    ----------
    conversions : iterable of ResolvedConversion
        Those into the format.
    target : Format
    members : iterable of Format
        The formats of its layout, itself among them, which are handed over array by array.
    """
    links: dict[str, dict[_Needs, Least]] = {}
    for way in conversions:
        seconds = (way.latency + EACH) * _ROUNDING
        least = way.losses, way.writes, not way.aliases, 0, seconds
        _keep(links.setdefault(way.source.name, {}), (way.effects, way.devices, way.arrives), least)
    for source in members:
        _keep(links.setdefault(source.name, {}), _NO_NEEDS, _handed_over(source, target))
    return links


def _keep(leasts: dict[_Needs, Least], needs: _Needs, least: Least) -> None:
    """Keep the least of steps with the same needs."""
    other = leasts.get(needs, least)
    leasts[needs] = least if other == least else _both(least, other)


def _both(least: Least, other: Least) -> Least:
    return cast("Least", tuple(map(min, least, other)))


def _handed_over(source: Format, target: Format) -> Least:
    """Return the least that it takes to hand a value over array by array."""
    unpacking, packing = source.components, target.components
    assert unpacking is not None
    assert packing is not None
    copied = unpacking.unpack_copies | packing.pack_copies
    shared = (unpacking.roles.keys() & packing.roles.keys()) - copied
    seconds = (unpacking.pack_seconds + packing.pack_seconds + EACH) * _ROUNDING
    return 0, bool(copied), not shared, 0, seconds


def rest(
    links_into: Callable[[str], Links],
    names: Set[str],
    ends: Iterable[str],
    *,
    possible: Set[str],
    devices: Set[str],
    imports: Set[str],
) -> dict[str, dict[str, Least]]:
    """Return the least that the rest of a route takes, by the format it is in and the next one.

    It is Dijkstra's algorithm, backwards from the ends. Since each number is a minimum by itself, a
    format is looked at again when one of them falls.

    Parameters
    ----------
    links_into : callable
        Returns the links into a format.
    names : set of str
        The formats that a route may visit.
    ends : iterable of str
        The formats from which the rest may take nothing.
    possible : set of str
        The effects that a step may have.
    devices : set of str
        The devices that the route may touch.
    imports : set of str
        The formats that cost an import.
    """
    rest = dict.fromkeys(ends, NOTHING)
    onward: dict[str, dict[str, Least]] = {}
    moves = devices != _HOST  # on the host there is nowhere to move to, not even another part of it
    queue = [(NOTHING, name) for name in rest]
    while queue:
        bound, name = heappop(queue)
        if bound != rest[name]:
            continue  # it has fallen since
        losses, copied, unshared, imported, seconds = bound
        imported += name in imports
        for source, by_needs in links_into(name).items():
            if source not in names:
                continue
            least: Least | None = None
            for (effects, on, arrives), other in by_needs.items():
                if (
                    effects <= possible
                    and (on is None or not devices.isdisjoint(on))
                    and (arrives is None or (moves and not devices.isdisjoint(arrives)))
                ):
                    least = other if least is None else cast("Least", tuple(map(min, least, other)))
            if least is not None:
                bound = (
                    losses + least[0],
                    copied or least[1],
                    unshared or least[2],
                    imported,
                    seconds + least[4],
                )
                onward.setdefault(source, {})[name] = bound
                if source in rest:
                    bound = cast("Least", tuple(map(min, bound, rest[source])))
                if bound != rest.get(source):
                    rest[source] = bound
                    heappush(queue, (bound, source))
    return onward
