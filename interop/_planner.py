"""The planner: the cheapest route for a spec and a request.

A state is a spec, with four facts about the way there: whether the memory is fresh, whether bytes
were copied, whether they came from a device to the host, and whether their owner had locked them.
Steps are generated from the state by the conversions that take its spec, and by taking composite
values apart; so the graph is implicit, and routes are found by label-setting shortest path (E. W.
Dijkstra, 1959).

Hand-offs are limited: a route visits only formats that lie on a way at most `SLACK` hand-offs
longer than the shortest one. If no route is feasible within that, the limit is dropped.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, product
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
from ._step import Step, Wants, opening

__all__ = ["Goal", "Label", "Planner", "State"]


#: Seconds that a step takes beside its own: to be called for, and to forgo the shortcut that stands
#: for one step alone.
_EACH = 2e-6

#: What memory has that its owner has flagged read-only; `immutable` says why it is flagged.
_LOCKED = frozenset({"readonly"})
_FLAGS = _LOCKED | {"immutable"}

#: How `Label.parted` ranks memory that is shared by way of a framework nobody asked for.
_BY_THE_WAY = 2


class State(NamedTuple):
    """A spec, and what of the way to it still matters."""

    spec: Spec
    fresh: bool = False
    copied: bool = False
    hosted: bool = False
    stopped: bool = False
    detoured: bool = False
    locked: bool = False


class Label(NamedTuple):
    """The order of preference between routes: the one sort key.

    Feasible under the policy, then fewest lost properties, then no bytes copied before any
    copied, then some memory shared before none (unless for the sake of it a framework is visited
    for which nobody asked: that comes last), then fewest visits to frameworks that would have to be
    imported though nobody asked for them, then the shorter estimated time, then fewer steps, then
    the names.
    """

    refused: int = 0
    lost: int = 0
    copied: bool = False
    parted: int = 0
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
            max(self.parted, not step.aliases),
            self.imports + imports,
            self.seconds + step.seconds + _EACH,
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
        self.composites = Composites(registry, self)
        # What is known of the graph is not to change under a search.
        self._lock = threading.RLock()

    def format(self, name: str) -> Format:
        """Return a format by its name."""
        return self._registry.formats[name]

    def formats(self, framework: str) -> list[Format]:
        """Return the formats of a framework."""
        return [one for one in self._registry.formats.values() if one.framework == framework]

    def goals(self, spec: Spec, request: Request) -> dict[str, Goal]:
        """Return, for each acceptable format, what the result must be."""
        goals: dict[str, Goal] = {}
        for name in request.formats:
            target = self._registry.formats[name]
            device = request.device or _wanted_device(spec, target)
            dtype = request.dtype or _wanted_dtype(spec, target, device)
            same = name == spec.format and dtype == spec.dtype
            fits = name == spec.format or target.ndims is None or len(spec.shape) in target.ndims
            holds = fits and (same or dtype in target.holds(device))
            if holds and device_type(device) in target.devices:
                goals[name] = Goal(dtype, device, self._carries(spec, target))
        return goals

    def _carries(self, spec: Spec, target: Format) -> frozenset[str]:
        """Return the traits that a result may have; a holder has those of what is inside."""
        held = spec.traits if target.inside is not None and spec.inside else frozenset()
        return self._registry.carries(target) | held

    def route(
        self,
        spec: Spec,
        request: Request,
        without: frozenset[object] = frozenset(),
        *,
        relaxed: bool = False,
        dense: bool = False,
        nearby: bool = False,
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
        nearby : bool
            Whether to leave it at that if there is none of nearly as few hand-offs as can be.

        Returns
        -------
        tuple of Label and list of Step, or None
        """
        with self._lock:
            return self._route(spec, request, without, relaxed=relaxed, dense=dense, nearby=nearby)

    def _route(
        self,
        spec: Spec,
        request: Request,
        without: frozenset[object],
        *,
        relaxed: bool,
        dense: bool,
        nearby: bool,
    ) -> tuple[Label, list[Step]] | None:
        self._refresh()
        goals = self.goals(spec, request)
        if not goals:
            return None
        places = ("cpu", spec.device, *(goal.device for goal in goals.values()))
        devices = frozenset(map(device_type, places))
        for everywhere in (False,) if nearby else (False, True):
            outlook = self.graph.outlook(
                spec.inside or spec.format, goals, devices, everywhere=everywhere, dense=dense
            )
            outlook = self._keeping_labels(spec, goals, outlook)
            found = _Search(self, request, goals, outlook, without, relaxed).run(spec)
            if found is not None:
                return found
        return None

    def _keeping_labels(self, spec: Spec, goals: dict[str, Goal], outlook: Outlook) -> Outlook:
        """Return the outlook without other frameworks, if only labels would be lost by them."""
        source = self.format(spec.format)
        frameworks = {self.format(name).framework for name in goals}
        if not source.labelled or frameworks != {source.framework}:
            return outlook
        own = frozenset(one.name for one in self.formats(source.framework))
        return outlook._replace(near=own & (outlook.near | {spec.format}))

    def replayed(
        self, spec: Spec, request: Request, steps: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        """Return the steps of a route as they are for another spec of its class.

        None if they were found before something else was registered.
        """
        with self._lock:
            self._refresh()
            return self._replayed(spec, request, steps)

    def _refresh(self) -> None:
        if self.graph.refresh():
            self.composites.forget()

    def _replayed(
        self, spec: Spec, request: Request, steps: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        wants = _wants(request, self.goals(spec, request))
        near = frozenset(step.after.format for step in steps)
        state, done = State(spec), []
        for chosen in steps:
            same = (
                step
                for step in self.steps(state.spec, wants, request, near)
                if step.place == chosen.place and _alike(step.after, chosen.after)
            )
            step = next(same, None)
            if step is None:
                return None
            state, step = _advanced(state, step)
            done.append(step)
        return tuple(done)

    def shortcut(self, steps: tuple[Step, ...]) -> Callable[[Any], Any] | None:
        """Return the shortcut that stands for a route, if no other distribution has a say.

        It stands for one if every hand-off among the steps declares one, and if nobody else
        declares conversions between two of the formats, which might be preferred for some values.
        """
        between = [step for step in steps if step.before.format != step.after.format]
        found = tuple(step.shortcut for step in between if step.shortcut is not None)
        ends = steps[0].before.format, steps[-1].after.format
        pairs = {ends, *((step.before.format, step.after.format) for step in between)}
        if not found or len(found) < len(between) or any(map(self._contested, pairs)):
            return None
        return found[0] if len(found) == 1 else partial(_one_by_one, found)

    def _contested(self, pair: tuple[str, str]) -> bool:
        """Tell whether several distributions declare conversions between two formats."""
        source, target = pair
        rivals = {e.provenance for e in self.graph.edges(source) if e.target.name == target}
        return len({rival.distribution for rival in rivals}) > 1

    def steps(
        self, spec: Spec, wants: Wants, request: Request, near: frozenset[str]
    ) -> Iterator[Step]:
        """Yield every step that can be made from a spec."""
        yield from self.openings(spec, near)
        for edge in self.graph.edges(spec.format):
            if edge.target.name in near and edge.takes_value(spec):
                yield from edge.steps(spec, wants)
        for target in self.composites.targets(spec, near):
            yield from self.composites.steps(spec, wants, request, target)

    def openings(self, spec: Spec, near: frozenset[str]) -> Iterator[Step]:
        """Yield the step that opens a holder."""
        if spec.inside in near:
            holder = self.format(spec.format)
            yield opening(spec, holder, self._registry.provenance[holder.name])


def _one_by_one(shortcuts: tuple[Callable[[Any], Any], ...], value: Any) -> Any:
    """Return what shortcuts make of a value in turn, or `NotImplemented` as soon as one does."""
    for shortcut in shortcuts:
        value = shortcut(value)
        if value is NotImplemented:
            break
    return value


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
        # What a holder is given stays as it is.
        formats = [planner.format(name) for name in goals]
        self._dense = all(one.is_dense and one.inside is None for one in formats)
        self._outlook = outlook
        self._lazy = False
        self._without = without
        self._relaxed = relaxed
        self._wants = _wants(request, goals)
        self._order = count()
        self._queue: list[tuple[Label, int, State, Format | None]] = []
        self._labels: dict[State, Label] = {}
        self._came: dict[State, tuple[State, Step]] = {}
        self._foreign: frozenset[str] = frozenset()
        self._third: frozenset[str] = frozenset()
        #: The best losses, copies and imports of the routes that are complete, as in `Label`.
        self._best: tuple[Any, ...] = (math.inf,)

    def run(self, spec: Spec) -> tuple[Label, list[Step]] | None:
        """Return the preferred route from `spec`."""
        known = (spec.format, spec.inside or spec.format, *self._goals)
        self._foreign = self._planner.graph.foreign(self._outlook.near, known)
        self._third = self._planner.graph.third(self._outlook.near, known)
        self._lazy = self._planner.format(spec.format).lazy
        start = State(spec)
        self._labels[start] = Label()
        queue = self._queue = [(Label(), next(self._order), start, None)]
        settled: set[State] = set()
        while queue:
            _, _, state, target = heapq.heappop(queue)
            if target is not None:
                self._extend(state, self._handed_over(state, target))
            elif state not in settled:
                if self._reached(state):
                    return self._labels[state], _trace(self._came, state)
                settled.add(state)
                self._extend(state, self._declared(state))
                self._put_off(state)
        return None

    def _extend(self, state: State, steps: Iterable[Step]) -> None:
        """Enter what some steps make of a state in the queue."""
        for after, step, label in self._taken(state, steps):
            if after.detoured and label.copied and not after.fresh and self._reached(after):
                label = label._replace(parted=_BY_THE_WAY)  # noqa: PLW2901 - of a whole route
            known = self._labels.get(after)
            if (known is None or label < known) and not self._beaten(after, label):
                self._labels[after], self._came[after] = label, (state, step)
                if label[1:5] < self._best and self._reached(after):
                    self._best = label[1:5]
                self._enter(self._bound(after, label), after)

    def _put_off(self, state: State) -> None:
        """Enter the hand-overs of a composite value in the queue, by what they must cost at least.

        Each takes several searches, for its components. Few of them are ever looked at.
        """
        label, spec = self._labels[state], state.spec
        source = self._planner.format(spec.format)
        as_it_is = not self._changes(spec)
        for target in self._planner.composites.targets(spec, self._outlook.near):
            if target.name in self._third and not target.passable:
                continue  # what it could be given, the goal could be given as well
            if self._is_worthwhile(label, target.name):
                least = label._replace(
                    imports=label.imports + (target.name in self._foreign),
                    seconds=label.seconds + source.handling + target.handling,
                )
                there = state._replace(spec=spec._replace(format=target.name))
                known = self._labels.get(there)
                met = known is not None and known <= least
                if not (as_it_is and (met or self._beaten(there, least))):
                    self._enter(self._bound(there, least), state, target)

    def _changes(self, spec: Spec) -> bool:
        """Tell whether a hand-over may give a value another dtype, device or memory."""
        dtypes, devices = {spec.dtype, *self._wants.dtypes}, {spec.device, *self._wants.devices}
        return self._request.copy is True or len(dtypes) > 1 or len(devices) > 1

    def _enter(self, bound: Label, state: State, target: Format | None = None) -> None:
        heapq.heappush(self._queue, (bound, next(self._order), state, target))

    def _beaten(self, state: State, label: Label) -> bool:
        """Tell whether the same spec was reached with less behind it, and as well in all else.

        A state with less behind it comes first anyway; but a later one may be the quicker if what
        sets them apart has to happen sooner or later, so that neither stands for the other.
        """
        spec, fresh, copied, hosted, stopped, detoured, locked = state
        # What is shared yet may be copied in part, by the way, and then come last after all.
        strict = self._request.copy is True or self._outlook.parting
        freshness = {fresh} if strict else {fresh, False}
        less = product(
            (spec,),
            freshness,
            {copied, False},
            (hosted,),
            (stopped,),
            {detoured, False},
            {locked, False},
        )
        others = (self._labels.get(State(*one)) for one in less if one != state)
        return any(
            other is not None
            and other.refused <= label.refused
            and other.lost <= label.lost
            and other.imports <= label.imports
            and other[5:] <= label[5:]
            for other in others
        )

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
            rates = [outlook.losing_rate] * must_lose + [outlook.rate] * must_copy
            seconds += spec.size * width / min(rates)
        return Label(
            label.refused,
            label.lost + must_lose,
            label.copied or must_copy,
            max(label.parted, spec.format not in outlook.shared),
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
            # Fresh memory is the caller's to write, whichever library has made it.
            and not (state.fresh and "readonly" in spec.traits)
            and state.stopped == self._relaxed
        )

    def _taken(self, state: State, steps: Iterable[Step]) -> Iterator[tuple[State, Step, Label]]:
        """Yield what those of some steps that are permitted make of a state."""
        label = self._labels[state]
        for step in steps:
            if step.place in self._without:
                continue
            after, taken = _advanced(state, step)
            if after.fresh and not (state.fresh or self._lazy or self._is_snapshot(step)):
                after = after._replace(fresh=False)
            # What is computed comes out as its library makes it, and not by the way.
            if after.spec.format in self._third and "materialize" not in step.effects:
                after = after._replace(detoured=True)
            if after.spec == state.spec and self._request.copy is not True:
                continue
            refused = len(taken.effects - self._request.permitted)
            if refused and self._relaxed:
                after = after._replace(stopped=True)
            if not refused or self._relaxed:
                imports = after.spec.format in self._foreign
                yield after, taken, label.extended(taken, refused, imports)

    def _is_snapshot(self, step: Step) -> bool:
        """Tell whether a step reads its value at once, and not whenever its result is computed."""
        before, after = step.before.format, step.after.format
        return not (self._planner.format(before).lazy and self._planner.format(after).lazy)

    def _declared(self, state: State) -> Iterator[Step]:
        """Yield the declared steps that can be part of a better route than those that are complete.

        What an edge does whatever it is asked for is known before any step is made of it. Those
        that copy nothing come first: once one has reached a goal, none that copies is looked at.
        """
        spec, label, near = state.spec, self._labels[state], self._outlook.near
        for edge in self._planner.graph.edges(spec.format):
            name, rest = edge.target.name, (edge.writes, not edge.aliases, edge.losses)
            wanted = name in near and self._is_worthwhile(label, name, *rest)
            if wanted and edge.takes_value(spec):
                yield from edge.steps(spec, self._wants)
        yield from self._planner.openings(spec, self._outlook.near)

    def _handed_over(self, state: State, target: Format) -> Iterator[Step]:
        """Yield the hand-overs of a composite value to one format, as `_declared`."""
        label, name = self._labels[state], target.name
        if self._is_worthwhile(label, name):
            writing = self._is_worthwhile(label, name, True)
            yield from self._planner.composites.steps(
                state.spec, self._wants, self._request, target, writing=writing
            )

    def _is_worthwhile(
        self, label: Label, name: str, writes: bool = False, parts: bool = False, losses: int = 0
    ) -> bool:
        least = (
            label.lost + losses,
            label.copied or writes,
            max(label.parted, parts),
            label.imports + (name in self._foreign),
        )
        return self._relaxed or least <= self._best


def _advanced(state: State, step: Step) -> tuple[State, Step]:
    """Return the state after a step, and the step with the effects that only the way shows."""
    was, now = device_type(step.before.device), device_type(step.after.device)
    hosted = state.hosted or (was != "cpu" and now == "cpu")
    if state.hosted and was == "cpu" and now != "cpu":
        step = step._replace(effects=step.effects | {"host_round_trip"})
    fresh = state.fresh or not step.aliases
    copied = state.copied or step.writes
    flags = step.before.traits & _FLAGS
    locked = step.aliases and (state.locked or flags == _LOCKED)
    if locked and "alias_immutable" in step.effects:
        # A framework on the way that changes nothing gives nobody leave to write there.
        step = step._replace(effects=step.effects - {"alias_immutable"} | {"share_readonly"})
    after = State(step.after, fresh, copied, hosted, state.stopped, state.detoured, locked)
    return after, step


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
