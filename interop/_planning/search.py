"""The search: from one spec to the first of some goals, by the order of preference.

A state is a spec, with a few facts about the way there: whether the memory is fresh, whether bytes
were copied, whether they came from a device to the host, and whether their owner had locked them.
Steps are generated from the state by the conversions that take its spec, and by taking composite
values apart; so the graph is implicit, and routes are found by label-setting shortest path (E. W.
Dijkstra, 1959).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple, Protocol

from interop._model.device import device_type, matches
from interop._model.dtype import bit_carrier, itemsize
from interop._model.effect import LOSING
from interop._model.format import Format
from interop._model.spec import Spec

from .bound import EACH, Given, Outlook, Remainder
from .components import Composites
from .graph import Graph
from .request import Request
from .step import Step, Wants

__all__ = ["Goal", "Label", "Search", "State", "advanced"]


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
    imported though nobody asked for them, then fewest steps that write elements in another order
    than they lie in, then the shorter estimated time, then fewer steps, then the names.
    """

    refused: int = 0
    lost: int = 0
    copied: bool = False
    parted: int = 0
    imports: int = 0
    turned: int = 0
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
            self.turned + _turns(step),
            self.seconds + step.seconds + EACH,
            self.steps + 1,
            (*self.names, step.label),
        )


def _turns(step: Step) -> bool:
    """Tell whether a step writes elements by their indices, and not as they lie in memory.

    Whether it does decides where the result's elements lie, so that must not depend on costs.
    """
    return step.writes and "noncontiguous" in step.before.traits - step.after.traits


class Goal(NamedTuple):
    """What a result of one acceptable format must be."""

    dtype: str | None
    device: str
    carries: frozenset[str]


class World(Protocol):
    """What is searched: the planner, of which this is a part."""

    graph: Graph
    composites: Composites

    def format(self, name: str) -> Format:
        """Return a format by its name."""


class Search:
    """One search: from a spec to the first goal settled.

    It is led on by the least that the rest of the way must cost (P. E. Hart, N. J. Nilsson and
    B. Raphael, 1968): the losses, copies, imports and seconds of the best way through the formats,
    whatever the specs there may be. No step lowers that bound by more than its own cost, so that
    the first goal settled is the preferred one.

    Parameters
    ----------
    world : World
    spec : Spec
        Where it begins.
    request : Request
    goals : dict of str to Goal
    wants : Wants
    outlook : Outlook
        What is known of the ways from the one to the others.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        world: World,
        spec: Spec,
        request: Request,
        goals: dict[str, Goal],
        wants: Wants,
        outlook: Outlook,
    ) -> None:
        self._world = world
        self._start = State(spec)
        self._request = request
        self._goals = goals
        self._wants = wants
        self._outlook = outlook
        self._dtypes = {goal.dtype for goal in goals.values()}
        self._devices = {goal.device for goal in goals.values()}
        known = (spec.format, spec.inside or spec.format, *goals)
        self._foreign = world.graph.foreign(outlook.near, known)
        self._third = world.graph.third(outlook.near, known)
        self._lazy = world.format(spec.format).lazy
        self._without: frozenset[object] = frozenset()
        self._relaxed = False
        self._order = count()
        self._queue: list[tuple[Label, int, State, Format | None]] = []
        self._labels: dict[State, Label] = {}
        #: The states that were met, by their specs.
        self._met: dict[Spec, list[State]] = {}
        self._came: dict[State, tuple[State, Step]] = {}
        #: The best losses, copies and imports of the routes that are complete, as in `Label`.
        self._best: tuple[Any, ...] = (math.inf,)

    def run(
        self, without: frozenset[object] = frozenset(), *, relaxed: bool = False
    ) -> tuple[Label, list[Step]] | None:
        """Return the preferred route, or None if there is none.

        Parameters
        ----------
        without : frozenset
            Places of steps to leave out.
        relaxed : bool
            Whether to search among the routes that are refused.
        """
        self._without, self._relaxed = without, relaxed
        self._labels[self._start] = Label()
        self._enter(Label(), self._start)
        settled: set[State] = set()
        while self._queue:
            _, _, state, target = heapq.heappop(self._queue)
            if target is not None:
                self._extend(state, self._handed_over(state, target))
            elif state not in settled:
                if self._reached(state):
                    return self._labels[state], _trace(self._came, state)
                settled.add(state)
                self._extend(state, self._declared(state))
                self._put_off(state)
        return None

    @cached_property
    def _remainder(self) -> Remainder:
        """The least that is left from each format, of use to searches that take several steps."""
        spec, graph = self._start.spec, self._world.graph
        dtypes = {spec.dtype, *self._dtypes}
        width = min(map(itemsize, dtypes))
        dense = stored = spec.size * width
        if spec.nnz is not None:
            narrower = itemsize(spec.element) - width
            stored = max(0, min(dense, spec.nbytes - spec.nnz * narrower))
        elif spec.inside or spec.code_dtype:
            stored = min(dense, spec.nbytes)
        given = Given(
            dense,
            stored,
            spec.size if spec.nnz is None else min(spec.size, spec.nnz),
            width,
            len(spec.shape),
            frozenset({*dtypes, spec.carrier, *map(bit_carrier, dtypes)}),
            spec.traits | graph.added,
            self._foreign,
            self._must_write(self._start),
        )
        return self._outlook.remainder(given)

    def _extend(self, state: State, steps: Iterable[Step]) -> None:
        """Enter what some steps make of a state in the queue."""
        for after, step, label in self._taken(state, steps):
            reached = self._reached(after)
            if reached and after.detoured and label.copied and not after.fresh:
                label = label._replace(parted=_BY_THE_WAY)  # noqa: PLW2901 - of a whole route
            known = self._labels.get(after)
            if (known is None or label < known) and not self._beaten(after, label):
                if known is None:
                    self._met.setdefault(after.spec, []).append(after)
                self._labels[after], self._came[after] = label, (state, step)
                if reached and label[1:5] < self._best:
                    self._best = label[1:5]
                self._enter(label if reached else self._bound(after, label), after)

    def _put_off(self, state: State) -> None:
        """Enter the hand-overs of a composite value in the queue, by what they must cost at least.

        Each takes several searches, for its components. Few of them are ever looked at.
        """
        label, spec = self._labels[state], state.spec
        source = self._world.format(spec.format)
        as_it_is = not self._changes(spec)
        for target in self._world.composites.targets(spec, self._outlook.near):
            if target.name in self._third and not target.passable:
                continue  # what it could be given, the goal could be given as well
            if self._is_worthwhile(label, target.name):
                least = label._replace(
                    imports=label.imports + (target.name in self._foreign),
                    seconds=label.seconds + source.handling + target.handling + EACH,
                )
                there = state._replace(spec=spec._replace(format=target.name))
                known = self._labels.get(there)
                met = known is not None and known <= least
                if not (as_it_is and (met or self._beaten(there, least))):
                    self._enter(self._bound(there, least, written=True), state, target)

    def _changes(self, spec: Spec) -> bool:
        """Tell whether a hand-over may give a value another dtype, device or memory."""
        dtypes, devices = {spec.dtype, *self._wants.dtypes}, {spec.device, *self._wants.devices}
        return self._request.copy is True or len(dtypes) > 1 or len(devices) > 1

    def _enter(self, bound: Label | None, state: State, target: Format | None = None) -> None:
        if bound is not None:
            heapq.heappush(self._queue, (bound, next(self._order), state, target))

    def _beaten(self, state: State, label: Label) -> bool:
        """Tell whether the same spec was reached with less behind it, and as well in all else.

        A state with less behind it comes first anyway; but a later one may be the quicker if what
        sets them apart has to happen sooner or later, so that neither stands for the other.
        """
        # What is shared yet may be copied in part, by the way, and then come last after all.
        strict = self._request.copy is True or self._outlook.parting
        for other in self._met.get(state.spec, ()):
            if other != state and _has_less(other, state, strict=strict):
                known = self._labels[other]
                if (
                    known.refused <= label.refused
                    and known.lost <= label.lost
                    and known.imports <= label.imports
                    and known[5:] <= label[5:]
                ):
                    return True
        return False

    def _bound(self, state: State, label: Label, *, written: bool = False) -> Label | None:
        """Return the least label that a whole route through `state` can have, if there is one.

        Parameters
        ----------
        state : State
        label : Label
        written : bool
            Whether the bytes that have to be written may be so by the step before.
        """
        name, outlook, writing = state.spec.format, self._outlook, self._must_write(state)
        left = self._remainder.least(name, writing and not written)
        if left is None:
            return None
        losses, imports, seconds = left
        copied = label.copied or writing or name not in outlook.uncopied
        return Label(
            label.refused,
            label.lost + losses,
            copied,
            max(label.parted, not self._may_share(state, copied)),
            label.imports + imports,
            label.turned,
            label.seconds + seconds,
            label.steps,
            label.names,
        )

    def _may_share(self, state: State, copied: bool) -> bool:
        """Tell whether some memory may be shared at the end, if bytes are copied or if none are.

        Where bytes are, to share by way of a framework that nobody asked for is the worst of all.
        """
        if not copied or self._outlook.computing:
            return state.spec.format in self._outlook.shared
        return not state.detoured and state.spec.format in self._straight

    @cached_property
    def _straight(self) -> frozenset[str]:
        """The formats from which a way shares memory and visits only what was asked for."""
        return self._outlook.sharing(self._goals, self._third)

    def _must_write(self, state: State) -> bool:
        """Tell whether the spec and the request have it that bytes are written from here on."""
        spec = state.spec
        return (
            spec.dtype not in self._dtypes
            or (self._request.copy is True and not state.fresh)
            or not any(matches(spec.device, device) for device in self._devices)
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
            after, taken = advanced(state, step)
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
        return not (self._world.format(before).lazy and self._world.format(after).lazy)

    def _declared(self, state: State) -> Iterator[Step]:
        """Yield the declared steps that can be part of a better route than those that are complete.

        What an edge does whatever it is asked for is known before any step is made of it. Those
        that copy nothing come first: once one has reached a goal, none that copies is looked at.
        """
        spec, label, near = state.spec, self._labels[state], self._outlook.near
        for edge in self._world.graph.edges(spec.format):
            name, rest = edge.target.name, (edge.writes, not edge.aliases, edge.losses)
            wanted = name in near and self._is_worthwhile(label, name, *rest)
            if wanted and edge.takes_value(spec):
                yield from edge.steps(spec, self._wants)
        yield from self._world.graph.openings(spec, self._outlook.near)

    def _handed_over(self, state: State, target: Format) -> Iterator[Step]:
        """Yield the hand-overs of a composite value to one format, as `_declared`."""
        label, name = self._labels[state], target.name
        if self._is_worthwhile(label, name):
            writing = self._is_worthwhile(label, name, True)
            yield from self._world.composites.steps(
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


def _has_less(one: State, other: State, *, strict: bool) -> bool:
    """Tell whether there is less behind one of two states of a spec than behind the other."""
    return (
        (one.fresh == other.fresh if strict else one.fresh <= other.fresh)
        and one.copied <= other.copied
        and one.hosted == other.hosted
        and one.stopped == other.stopped
        and one.detoured <= other.detoured
        and one.locked <= other.locked
    )


def advanced(state: State, step: Step) -> tuple[State, Step]:
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


def _trace(came: dict[State, tuple[State, Step]], state: State) -> list[Step]:
    steps: list[Step] = []
    while state in came:
        state, step = came[state]
        steps.append(step)
    return steps[::-1]
