"""The planner: the cheapest route for a spec and a request.

A state is a spec, with three facts about the way there: whether the memory is fresh, whether
bytes were copied, and whether they came from a device to the host. Steps are generated from the
state by the conversions that take its spec, and by taking composite values apart; so the graph is
implicit, and routes are found by label-setting shortest path (E. W. Dijkstra, 1959).

Hand-offs are limited: a route may visit only formats that lie on a way at most `SLACK` hand-offs
longer than the shortest one. If no route is feasible within that, the limit is dropped.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from ._composite import Composites
from ._device import device_type, matches
from ._dtype import narrowed, promoted
from ._format import Format
from ._policy import LOSING
from ._registry import Registry
from ._request import Request
from ._spec import Spec, spec_kind
from ._step import Edge, Step, Wants

__all__ = ["SLACK", "Label", "Planner"]

SLACK = 2


class State(NamedTuple):
    """A spec, and what of the way to it still matters."""

    spec: Spec
    fresh: bool = False
    copied: bool = False
    hosted: bool = False


class Label(NamedTuple):
    """The order of preference between routes: the one sort key.

    Feasible under the policy, then fewest lost properties, then no bytes copied before any
    copied, then the shorter estimated time, then fewer steps, then the names.
    """

    refused: int = 0
    lost: int = 0
    copied: bool = False
    seconds: float = 0.0
    steps: int = 0
    names: tuple[str, ...] = ()

    def extended(self, step: Step, refused: int) -> Label:
        """Return the label of this route with one more step."""
        return Label(
            self.refused + refused,
            self.lost + len(step.effects & LOSING),
            self.copied or step.writes,
            self.seconds + step.seconds,
            self.steps + 1,
            (*self.names, step.label),
        )


class Goal(NamedTuple):
    """What a result of one acceptable format must be."""

    dtype: str | None
    device: str
    carries: frozenset[str]


class Planner:
    """Finds routes through what one registry holds.

    Parameters
    ----------
    registry : Registry
    available : callable
        ``available(module) -> bool``: whether a framework can be imported. Intermediate formats
        whose framework is missing are not visited.
    """

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        self._registry = registry
        self._available = available
        self._version = -1
        self._edges: dict[str, list[Edge]] = {}
        self._neighbours: dict[str, frozenset[str]] = {}
        self._reverse: dict[str, set[str]] = {}
        self._composites = Composites(registry, self)

    def refresh(self) -> None:
        """Make the registered conversions ready for planning, if anything changed."""
        if self._version == self._registry.version:
            return
        formats = self._registry.formats
        edges: dict[str, list[Edge]] = {name: [] for name in formats}
        for declared in self._registry.conversions:
            target = formats.get(declared.conversion.target)
            for source in self._sources(declared.conversion.source):
                if target is not None:
                    edges[source.name].append(Edge(declared, source, target))
        self._edges = edges
        self._composites.refresh()
        self._connect()
        self._version = self._registry.version

    def _sources(self, name: str) -> list[Format]:
        formats = self._registry.formats
        speakers = [f for f in formats.values() if name in f.speaks and f.name != name]
        return ([formats[name]] if name in formats else []) + speakers

    def _connect(self) -> None:
        self._reverse = {name: set() for name in self._registry.formats}
        neighbours: dict[str, frozenset[str]] = {}
        for name, edges in self._edges.items():
            reached = {e.target.name for e in edges} | self._composites.siblings(name)
            neighbours[name] = frozenset(reached - {name})
            for target in neighbours[name]:
                self._reverse[target].add(name)
        self._neighbours = neighbours

    def edges(self, name: str) -> list[Edge]:
        """Return the declared conversions that start at a format."""
        return self._edges.get(name, [])

    def format(self, name: str) -> Format:
        """Return a format by its name."""
        return self._registry.formats[name]

    def goals(self, spec: Spec, request: Request) -> dict[str, Goal]:
        """Return, for each acceptable format, what the result must be."""
        goals: dict[str, Goal] = {}
        for name in request.formats:
            target = self._registry.formats[name]
            dtype = request.dtype or _wanted_dtype(spec, target)
            device = request.device or _wanted_device(spec, target)
            if dtype is not None and device_type(device) in target.devices:
                goals[name] = Goal(dtype, device, self._registry.carries(target))
        return goals

    def route(
        self,
        spec: Spec,
        request: Request,
        without: frozenset[object] = frozenset(),
        *,
        relaxed: bool = False,
    ) -> tuple[Label, list[Step]] | None:
        """Return the preferred route for a spec and a request, or None if there is none.

        Parameters
        ----------
        spec : Spec
        request : Request
        without : frozenset
            Places of steps to leave out.
        relaxed : bool
            Whether to let refused effects through, counting them, so as to explain a refusal.

        Returns
        -------
        tuple of Label and list of Step, or None
        """
        self.refresh()
        goals = self.goals(spec, request)
        if not goals:
            return None
        near = self._near(spec.format, goals)
        found = _Search(self, request, goals, near, without, relaxed).run(spec)
        if found is None and len(near) < len(self._registry.formats):
            everywhere = near | {n for n in self._registry.formats if self._usable(n)}
            found = _Search(self, request, goals, everywhere, without, relaxed).run(spec)
        return found

    def replayed(self, spec: Spec, request: Request, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps of a route as they are for another spec of its class."""
        wants = _wants(request, self.goals(spec, request))
        near = frozenset(step.after.format for step in steps)
        state, done = State(spec), []
        for chosen in steps:
            step = next(
                step
                for step in self.steps(state.spec, wants, request, near)
                if step.place == chosen.place and _alike(step.after, chosen.after)
            )
            state, step = _advanced(state, step)
            done.append(step)
        return tuple(done)

    def shortcut(self, source: Format, steps: tuple[Step, ...]) -> Callable[[Any], Any] | None:
        """Return the shortcut that stands for a route, if no other distribution has a say.

        It stands for one if the only hand-off among the steps declares it, and if nobody else
        declares conversions between the two formats, which might be preferred for some values.
        """
        target = steps[-1].after.format
        between = [step for step in steps if step.before.format != step.after.format]
        rivals = {e.provenance for e in self.edges(source.name) if e.target.name == target}
        if len(between) == 1 and len({r.distribution for r in rivals}) == 1:
            return between[0].shortcut
        return None

    def _near(self, start: str, goals: dict[str, Goal]) -> frozenset[str]:
        """Return the formats on ways at most `SLACK` hand-offs longer than the shortest."""
        from_start = _distances({start}, self._neighbours)
        to_goal = _distances(goals, self._reverse)
        limit = min((from_start[name] for name in goals if name in from_start), default=0) + SLACK
        return frozenset(
            name
            for name, there in from_start.items()
            if name in to_goal
            and there + to_goal[name] <= limit
            and (name == start or name in goals or self._usable(name))
        )

    def _usable(self, name: str) -> bool:
        requires = self._registry.formats[name].requires
        return not requires or self._available(requires)

    def steps(
        self, spec: Spec, wants: Wants, request: Request, near: frozenset[str]
    ) -> Iterator[Step]:
        """Yield every step that can be made from a spec."""
        for edge in self._edges.get(spec.format, ()):
            if edge.target.name in near and edge.takes_value(spec):
                yield from edge.steps(spec, wants)
        yield from self._composites.steps(spec, wants, request, near)


class _Search:
    """One search: from a spec to the first goal settled."""

    def __init__(
        self,
        planner: Planner,
        request: Request,
        goals: dict[str, Goal],
        near: frozenset[str],
        without: frozenset[object],
        relaxed: bool,
    ) -> None:
        self._planner = planner
        self._request = request
        self._goals = goals
        self._near = near
        self._without = without
        self._relaxed = relaxed
        self._wants = _wants(request, goals)
        self._order = count()

    def run(self, spec: Spec) -> tuple[Label, list[Step]] | None:
        """Return the preferred route from `spec`."""
        start = State(spec)
        best: dict[State, Label] = {start: Label()}
        came: dict[State, tuple[State, Step]] = {}
        queue = [(Label(), next(self._order), start)]
        settled: set[State] = set()
        while queue:
            label, _, state = heapq.heappop(queue)
            if state in settled:
                continue
            if self._reached(state):
                return label, _trace(came, state)
            settled.add(state)
            for after, step, extended in self._extend(state, label):
                if after not in best or extended < best[after]:
                    best[after], came[after] = extended, (state, step)
                    heapq.heappush(queue, (extended, next(self._order), after))
        return None

    def _reached(self, state: State) -> bool:
        spec = state.spec
        goal = self._goals.get(spec.format)
        return (
            goal is not None
            and spec.carrier is None
            and spec.dtype == goal.dtype
            and matches(spec.device, goal.device)
            and spec.traits <= goal.carries
            and (state.fresh or self._request.copy is not True)
        )

    def _extend(self, state: State, label: Label) -> Iterator[tuple[State, Step, Label]]:
        for step in self._planner.steps(state.spec, self._wants, self._request, self._near):
            if step.place in self._without:
                continue
            after, taken = _advanced(state, step)
            refused = len(taken.effects - self._request.permitted)
            if not refused or self._relaxed:
                yield after, taken, label.extended(taken, refused)


def _advanced(state: State, step: Step) -> tuple[State, Step]:
    """Return the state after a step, and the step with the effects that only the way shows."""
    was, now = device_type(step.before.device), device_type(step.after.device)
    hosted = state.hosted or (was != "cpu" and now == "cpu")
    if state.hosted and was == "cpu" and now != "cpu":
        step = step._replace(effects=step.effects | {"host_round_trip"})
    fresh = state.fresh or (step.writes and not step.aliases)
    return State(step.after, fresh, state.copied or step.writes, hosted), step


def _alike(one: Spec, other: Spec) -> bool:
    """Tell whether two specs differ in nothing but sizes."""
    return spec_kind(one) == spec_kind(other)


def _trace(came: dict[State, tuple[State, Step]], state: State) -> list[Step]:
    steps: list[Step] = []
    while state in came:
        state, step = came[state]
        steps.append(step)
    return steps[::-1]


def _wants(request: Request, goals: dict[str, Goal]) -> Wants:
    dtypes = dict.fromkeys(goal.dtype for goal in goals.values() if goal.dtype)
    # The host is where frameworks meet, so a way through it is worth a look.
    devices = dict.fromkeys([*(goal.device for goal in goals.values()), "cpu"])
    return Wants(tuple(dtypes), tuple(devices), request.dtype is not None)


def _distances(start: Iterable[str], neighbours: Mapping[str, Iterable[str]]) -> dict[str, int]:
    found = dict.fromkeys(start, 0)
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for other in neighbours[name]:
            if other not in found:
                found[other] = found[name] + 1
                queue.append(other)
    return found


def _wanted_dtype(spec: Spec, target: Format) -> str | None:
    """Return the dtype a result should have when the caller named none."""
    if spec.dtype in target.dtypes or spec.format == target.name:
        return spec.dtype
    if spec.dtype is None:
        return None
    return promoted(spec.dtype, target.dtypes) or narrowed(spec.dtype, target.dtypes)


def _wanted_device(spec: Spec, target: Format) -> str:
    """Return where a result should be when the caller did not say: where the data is, if it can."""
    return spec.device if device_type(spec.device) in target.devices else target.devices[0]
