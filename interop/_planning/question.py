"""A question to the planner, and what formats and declarations alone say about the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, TypeAlias

from interop._model.device import device_type
from interop._model.format import Format
from interop._model.spec import Spec
from interop._request.request import Request

from .ranking import EACH, Least
from .step import Step

#: The factor by which bounds understate seconds. They add the same numbers as the ranks of routes,
#: but in another order, and rounding must not lift a bound above the rank.
_ROUNDING = 1 - 1e-9

#: Returns the steps that the planner prefers for the arrays of a composite value.
RouteOf: TypeAlias = Callable[[Spec, Request], tuple[Step, ...] | None]


class Goal(NamedTuple):
    """The result that is asked for, in one acceptable format."""

    dtype: str | None
    device: str
    carries: frozenset[str]
    requires: frozenset[str] = frozenset()


class Way(Protocol):
    """A way from one format to another: a conversion, an unwrapping, or two formats of one layout.

    Its attributes describe the best step that it can make: others may have more effects, write
    more, share less and take longer.
    """

    source: Format
    target: Format
    effects: frozenset[str]
    losses: int
    writes: bool
    aliases: bool
    latency: float

    def takes_value(self, spec: Spec) -> bool:
        """Tell whether the way can make steps of a value."""

    def steps(self, spec: Spec, question: Question, route_of: RouteOf) -> Iterable[Step]:
        """Return the steps that can be made of a value that the way takes."""


#: The least that the rest of a route takes by a way; a number, so that ways are never compared; and
#: the way.
Onward: TypeAlias = tuple[Least, int, Way]


class Scope:
    """The formats that a route may visit, and how much the rest of a route takes from each.

    Parameters
    ----------
    names : frozenset of str
        The formats.
    ends : iterable of str
        Formats whose remaining cost may be zero: the goals, and wrappers, whose content is not
        known yet.
    goals : iterable of str
    places : mapping of str to int
        The places of the goals in the order of preference (see `Rank`), if it is not 0 for all.
    ways : callable
        ``ways(name)`` returns the ways from a format to those that a route may visit.
    unrequested, not_imported : frozenset of str
        The formats whose framework nobody requested, and those of them that cost an import.
    familiar : frozenset of str
        The distributions that are no bystanders (see `Rank`).
    computes : bool
        Whether a step may compute a lazy value: the formats that such a step leads to are no
        detour.
    permitted, waived : set of str
        The effects that the policy permits, and the refused ones that do not stop a route.
    """

    def __init__(
        self,
        names: frozenset[str],
        ends: Iterable[str],
        goals: Iterable[str],
        ways: Callable[[str], Iterable[Way]],
        *,
        places: Mapping[str, int],
        unrequested: frozenset[str],
        not_imported: frozenset[str],
        familiar: frozenset[str],
        computes: bool,
        permitted: frozenset[str],
        waived: frozenset[str],
    ) -> None:
        self.names = names
        self.places = places
        self.unrequested = unrequested
        self.not_imported = not_imported
        self.familiar = familiar
        self._ways: dict[str, list[Way]] = {}
        into: dict[str, list[Way]] = {}
        possible = permitted | waived
        for name in names:
            self._ways[name] = [way for way in ways(name) if way.effects <= possible]
            for way in self._ways[name]:
                if way.target.name != name:
                    into.setdefault(way.target.name, []).append(way)
        self._rest = _rest(ends, into, not_imported)
        #: The formats from which a goal can be reached without writing bytes.
        self._uncopied = _reached(goals, into, lambda way: not way.writes)
        #: The formats from which a goal can share memory.
        self._shared = _reached(goals, into, lambda way: way.aliases)
        #: The formats from which a goal can share memory without a detour.
        self._straight = self._shared
        if not computes:
            self._straight = _reached(
                goals, into, lambda way: way.aliases and way.source.name not in unrequested
            )
        self._onward: dict[tuple[str, bool, bool], list[Onward]] = {}

    def onward(self, name: str, copied: bool, unshared: bool) -> list[Onward]:
        """Return the ways that lead on from a format, the best first.

        Parameters
        ----------
        name : str
        copied, unshared : bool
            Whether the route copies bytes, or shares no memory, whichever way it takes.
        """
        key = name, copied, unshared
        onward = self._onward.get(key)
        if onward is None:
            onward = sorted(self.leading(self._ways.get(name, ()), copied, unshared))
            self._onward[key] = onward
        return onward

    def leading(self, ways: Iterable[Way], copied: bool, unshared: bool) -> Iterator[Onward]:
        """Yield the ways from which a route can lead on to an end."""
        for number, way in enumerate(ways):
            name = way.target.name
            rest = self._rest.get(name)
            if rest is not None:
                losses, imports, seconds = rest
                copies = copied or way.writes or name not in self._uncopied
                sharing = self._straight if copies else self._shared
                least = Least(
                    way.losses + losses,
                    copies,
                    unshared or not way.aliases or name not in sharing,
                    (name in self.not_imported) + imports,
                    _seconds(way) + seconds,
                )
                yield least, number, way


def _seconds(way: Way) -> float:
    return (way.latency + EACH) * _ROUNDING


def _rest(
    ends: Iterable[str], into: Mapping[str, Sequence[Way]], not_imported: frozenset[str]
) -> dict[str, tuple[int, int, float]]:
    """Return the losses, imports and seconds of the best path from each format to an end.

    This is Dijkstra's algorithm, backwards from the ends.
    """
    rest: dict[str, tuple[int, int, float]] = {}
    queue = [(0, 0, 0.0, name) for name in ends]
    while queue:
        losses, imports, seconds, name = heappop(queue)
        if name in rest:
            continue
        rest[name] = losses, imports, seconds
        imports += name in not_imported
        for way in into.get(name, ()):
            if way.source.name not in rest:
                least = losses + way.losses, imports, seconds + _seconds(way), way.source.name
                heappush(queue, least)
    return rest


def _reached(
    goals: Iterable[str], into: Mapping[str, Sequence[Way]], serves: Callable[[Way], bool]
) -> frozenset[str]:
    """Return the formats from which a path leads to a goal by nothing but ways that serve."""
    reached = set(goals)
    rim = [*reached]
    while rim:
        for way in into.get(rim.pop(), ()):
            name = way.source.name
            if name not in reached and serves(way):
                reached.add(name)
                rim.append(name)
    return frozenset(reached)


class Question(NamedTuple):
    """A question to the planner: a spec, a request, and what they imply for the steps of a route.

    Parameters
    ----------
    spec : Spec
    request : Request
    goals : mapping of str to Goal
        By acceptable format.
    dtypes, devices : tuple of str
        The dtypes and devices that a step may change to; `waiving` sets the devices.
    formats : mapping of str to Format
        All that are registered.
    waived : frozenset of str
        Refused effects that do not stop a route.
    dense : bool
        Whether routes stay among dense formats, as those of a composite value's arrays do.
    within : str
        The framework that routes stay in; "" if they may leave it.
    """

    spec: Spec
    request: Request
    goals: Mapping[str, Goal]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    formats: Mapping[str, Format]
    waived: frozenset[str] = frozenset()
    dense: bool = False
    within: str = ""

    def waiving(self, effects: frozenset[str]) -> Question:
        """Return the question with the refusal of some effects waived, and with its devices."""
        devices = dict.fromkeys(goal.device for goal in self.goals.values())
        returns = "host_round_trip" in self.request.permitted | effects
        if returns or "cpu" in map(device_type, (self.spec.device, *devices)):
            # Frameworks meet on the host, so a route may lead through it.
            devices["cpu"] = None
        return self._replace(devices=tuple(devices), waived=effects)

    @property
    def changes(self) -> Hashable:
        """Whatever decides, beside the spec, which steps can be made, and varies within a plan."""
        return self.dense, self.dtypes, self.devices, self.request.consents
