"""The planner: the cheapest route for a spec and a request.

A state is a spec, with three facts about the way there: whether the memory is fresh, whether
bytes were copied, and whether they came from a device to the host. Steps are generated from the
state by the conversions that take its spec, and by taking composite values apart; so the graph is
implicit, and routes are found by label-setting shortest path (E. W. Dijkstra, 1959).

Hand-offs are limited: a route visits only formats that lie on a way at most `SLACK` hand-offs
longer than the shortest one. If no route is feasible within that, the limit is dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

from ._composite import Composites
from ._device import device_type, matches
from ._dtype import itemsize, narrowed, promoted
from ._format import Format
from ._graph import Graph, Outlook
from ._policy import LOSING
from ._registry import Registry
from ._request import Request
from ._spec import Spec, spec_kind
from ._step import Step, Wants

__all__ = ["Goal", "Label", "Planner", "State"]


class State(NamedTuple):
    """A spec, and what of the way to it still matters."""

    spec: Spec
    fresh: bool = False
    copied: bool = False
    hosted: bool = False
    stopped: bool = False


class Label(NamedTuple):
    """The order of preference between routes: the one sort key.

    Feasible under the policy, then fewest lost properties, then no bytes copied before any
    copied, then some memory shared before none, then fewest visits to frameworks that would have
    to be imported though nobody asked for them, then the shorter estimated time, then fewer steps,
    then the names.
    """

    refused: int = 0
    lost: int = 0
    copied: bool = False
    parted: bool = False
    imports: int = 0
    seconds: float = 0.0
    steps: int = 0
    names: tuple[str, ...] = ()

    def extended(self, step: Step, refused: int, imports: bool) -> Label:
        """Return the label of this route with one more step."""
        return Label(
            self.refused + refused,
            self.lost + len(step.effects & LOSING),
            self.copied or step.writes,
            self.parted or not step.aliases,
            self.imports + imports,
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
        ``available(module) -> bool``: whether a framework can be imported.
    """

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        self._registry = registry
        self.graph = Graph(registry, available)
        self._composites = Composites(registry, self)

    def format(self, name: str) -> Format:
        """Return a format by its name."""
        return self._registry.formats[name]

    def goals(self, spec: Spec, request: Request) -> dict[str, Goal]:
        """Return, for each acceptable format, what the result must be."""
        goals: dict[str, Goal] = {}
        for name in request.formats:
            target = self._registry.formats[name]
            device = request.device or _wanted_device(spec, target)
            dtype = request.dtype or _wanted_dtype(spec, target, device)
            same = name == spec.format and dtype == spec.dtype
            holds = same or dtype in target.holds(device)
            if holds and device_type(device) in target.devices:
                goals[name] = Goal(dtype, device, self._registry.carries(target))
        return goals

    def route(
        self,
        spec: Spec,
        request: Request,
        without: frozenset[object] = frozenset(),
        *,
        relaxed: bool = False,
        dense: bool = False,
    ) -> tuple[Label, list[Step]] | None:
        """Return the preferred route for a spec and a request, or None if there is none.

        Parameters
        ----------
        spec : Spec
        request : Request
        without : frozenset
            Places of steps to leave out.
        relaxed : bool
            Whether to return the nearest of the routes that are refused, instead of the preferred
            one of those that are permitted.
        dense : bool
            Whether to stay among dense formats, as the arrays of a composite value do.

        Returns
        -------
        tuple of Label and list of Step, or None
        """
        if self.graph.refresh():
            self._composites.forget()
        goals = self.goals(spec, request)
        if not goals:
            return None
        places = ("cpu", spec.device, *(goal.device for goal in goals.values()))
        devices = frozenset(map(device_type, places))
        for everywhere in (False, True):
            outlook = self.graph.outlook(
                spec.format, goals, devices, everywhere=everywhere, dense=dense
            )
            found = _Search(self, request, goals, outlook, without, relaxed).run(spec)
            if found is not None:
                return found
        return None

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

    def shortcut(self, steps: tuple[Step, ...]) -> Callable[[Any], Any] | None:
        """Return the shortcut that stands for a route, if no other distribution has a say.

        It stands for one if the only hand-off among the steps declares it, and if nobody else
        declares conversions between the two formats, which might be preferred for some values.
        """
        source, target = steps[0].before.format, steps[-1].after.format
        between = [step for step in steps if step.before.format != step.after.format]
        rivals = {e.provenance for e in self.graph.edges(source) if e.target.name == target}
        if len(between) == 1 and len({r.distribution for r in rivals}) <= 1:
            return between[0].shortcut
        return None

    def steps(
        self, spec: Spec, wants: Wants, request: Request, near: frozenset[str]
    ) -> Iterator[Step]:
        """Yield every step that can be made from a spec."""
        for edge in self.graph.edges(spec.format):
            if edge.target.name in near and edge.takes_value(spec):
                yield from edge.steps(spec, wants)
        yield from self._composites.steps(spec, wants, request, near)


class _Search:
    """One search: from a spec to the first goal settled.

    It is led on by the least that the rest of the way must cost (P. E. Hart, N. J. Nilsson and
    B. Raphael, 1968): at least one loss, or one copy, or so many hand-offs. No step lowers that
    bound by more than its own cost, so that the first goal settled is the preferred one.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        planner: Planner,
        request: Request,
        goals: dict[str, Goal],
        outlook: Outlook,
        without: frozenset[object],
        relaxed: bool,
    ) -> None:
        self._planner = planner
        self._request = request
        self._goals = goals
        self._dtypes = {goal.dtype for goal in goals.values()}
        self._devices = {goal.device for goal in goals.values()}
        self._dense = all(planner.format(name).is_dense for name in goals)
        self._outlook = outlook
        self._without = without
        self._relaxed = relaxed
        self._wants = _wants(request, goals)
        self._order = count()
        self._foreign: frozenset[str] = frozenset()

    def run(self, spec: Spec) -> tuple[Label, list[Step]] | None:
        """Return the preferred route from `spec`."""
        self._foreign = self._planner.graph.foreign(self._outlook.near, (spec.format, *self._goals))
        start = State(spec)
        best: dict[State, Label] = {start: Label()}
        came: dict[State, tuple[State, Step]] = {}
        queue = [(Label(), next(self._order), start)]
        settled: set[State] = set()
        while queue:
            _, _, state = heapq.heappop(queue)
            if state in settled:
                continue
            if self._reached(state):
                return best[state], _trace(came, state)
            settled.add(state)
            for after, step, label in self._extend(state, best[state]):
                if after not in best or label < best[after]:
                    best[after], came[after] = label, (state, step)
                    heapq.heappush(queue, (self._bound(after, label), next(self._order), after))
        return None

    def _bound(self, state: State, label: Label) -> Label:
        """Return the least label that a whole route through `state` can have."""
        spec, outlook = state.spec, self._outlook
        must_copy = (
            spec.format not in outlook.uncopied
            or spec.dtype not in self._dtypes
            or (self._request.copy is True and not state.fresh)
            or not any(matches(spec.device, device) for device in self._devices)
        )
        must_lose = spec.format not in outlook.lossless
        seconds = outlook.hops.get(spec.format, 0) * outlook.latency
        if self._dense and (must_copy or must_lose):
            width = min(itemsize(dtype) for dtype in (spec.dtype, *self._dtypes))
            rate = outlook.losing_rate if must_lose else outlook.rate
            seconds += spec.size * width / rate
        return Label(
            label.refused,
            label.lost + must_lose,
            label.copied or must_copy,
            label.parted or spec.format not in outlook.shared,
            label.imports,
            label.seconds + seconds,
            label.steps,
            label.names,
        )

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
            and state.stopped == self._relaxed
        )

    def _extend(self, state: State, label: Label) -> Iterator[tuple[State, Step, Label]]:
        for step in self._planner.steps(state.spec, self._wants, self._request, self._outlook.near):
            if step.place in self._without:
                continue
            after, taken = _advanced(state, step)
            if after.spec == state.spec and self._request.copy is not True:
                continue
            refused = len(taken.effects - self._request.permitted)
            if refused and self._relaxed:
                after = after._replace(stopped=True)
            if not refused or self._relaxed:
                imports = after.spec.format in self._foreign
                yield after, taken, label.extended(taken, refused, imports)


def _advanced(state: State, step: Step) -> tuple[State, Step]:
    """Return the state after a step, and the step with the effects that only the way shows."""
    was, now = device_type(step.before.device), device_type(step.after.device)
    hosted = state.hosted or (was != "cpu" and now == "cpu")
    if state.hosted and was == "cpu" and now != "cpu":
        step = step._replace(effects=step.effects | {"host_round_trip"})
    fresh = state.fresh or not step.aliases
    return State(step.after, fresh, state.copied or step.writes, hosted, state.stopped), step


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


def _wanted_dtype(spec: Spec, target: Format, device: str) -> str | None:
    """Return the dtype a result should have when the caller named none."""
    holds = target.holds(device)
    if spec.dtype in holds or (spec.format == target.name and matches(spec.device, device)):
        return spec.dtype
    if spec.dtype is None:
        return None
    return promoted(spec.dtype, holds) or narrowed(spec.dtype, holds)


def _wanted_device(spec: Spec, target: Format) -> str:
    """Return where a result should be when the caller did not say: where the data is, if it can."""
    return spec.device if device_type(spec.device) in target.devices else target.devices[0]
