"""The search: from one spec to the first of some goals, by the order of preference.

A state is a spec, with a few facts about the way there. Steps are generated from the state by the
conversions that take its spec, and by unpacking composite values; so the graph is implicit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from interop._model.device import device_type, matches
from interop._model.dtype import itemsize
from interop._model.format import Format
from interop._model.spec import Spec

from .bound import BoundInputs, Candidates, LowerBound
from .derived import LOCKED
from .ranking import EACH, WORST, Rank, Sacrifice
from .request import Request
from .step import Step, Targets

if TYPE_CHECKING:
    from .planner import Planner

#: What memory has that its owner has flagged read-only; `immutable` says why it is flagged.
_READONLY = frozenset({"readonly"})


class SearchState(NamedTuple):
    """A spec, and what of the way to it still matters."""

    spec: Spec
    fresh: bool = False  # its memory is not the value's
    copied: bool = False  # bytes were written
    was_on_device: bool = False  # bytes came from a device to the host
    refused: bool = False  # a step has an effect that the policy refuses
    via_unrequested: bool = False  # the way led through a framework that nobody requested
    readonly_source: bool = False  # the memory was flagged read-only by its owner


class Goal(NamedTuple):
    """What a result of one acceptable format must be."""

    dtype: str | None
    device: str
    carries: frozenset[str]
    requires: frozenset[str] = frozenset()


class Search:
    """One search: from a spec to the first goal settled.

    It is a label-setting shortest path [1]_. A lower bound on the remaining cost guides it (A*,
    [2]_): the losses, copies, imports and seconds of the best way through the formats, whatever
    the specs there may be. No step lowers that bound by more than its own cost, so that the first
    goal settled is the preferred one.

    References
    ----------
    .. [1] E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische
       Mathematik 1, 1959.
    .. [2] P. E. Hart, N. J. Nilsson and B. Raphael, "A formal basis for the heuristic
       determination of minimum cost paths", IEEE Transactions on Systems Science and
       Cybernetics 4 (2), 1968.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        planner: Planner,
        spec: Spec,
        request: Request,
        goals: dict[str, Goal],
        targets: Targets,
        candidates: Candidates,
    ) -> None:
        self._planner = planner
        self._start = SearchState(spec)
        self._request = request
        self._permitted = request.permitted
        self._goals = goals
        self._targets = targets
        self._candidates = candidates
        self._dtypes = {goal.dtype for goal in goals.values()}
        self._devices = {goal.device for goal in goals.values()}
        requested = (spec.format, spec.wrapped or spec.format, *goals)
        self._not_imported = planner.graph.not_imported(candidates.names, requested)
        self._unrequested = planner.graph.unrequested(candidates.names, requested)
        self._familiar = planner.graph.familiar(requested)
        self._from_lazy = planner.format(spec.format).lazy
        # Worked out at the first need, by hand: functools.cached_property has a lock in Python
        # 3.11, which a fork could leave taken.
        self._bounds: LowerBound | None = None
        #: The formats from which a route shares memory and visits only what was requested.
        self._straight: frozenset[str] | None = None
        self._without: frozenset[object] = frozenset()
        self._relaxed = False
        self._order = count()
        self._queue: list[tuple[Rank, int, SearchState, Format | None]] = []
        self._ranks: dict[SearchState, Rank] = {}
        #: The states that were reached, by their specs.
        self._reached: dict[Spec, list[SearchState]] = {}
        self._came: dict[SearchState, tuple[SearchState, Step]] = {}
        #: The smallest sacrifice of any complete route.
        self._best: Sacrifice = WORST

    def run(
        self, without: frozenset[object] = frozenset(), *, relaxed: bool = False
    ) -> tuple[Rank, list[Step]] | None:
        """Return the preferred route, or None; the arguments are those of `Planner.route`."""
        self._without, self._relaxed = without, relaxed
        self._ranks[self._start] = Rank()
        self._enter(Rank(), self._start)
        settled: set[SearchState] = set()
        while self._queue:
            _, _, state, target = heapq.heappop(self._queue)
            if target is not None:
                self._extend(state, self._transfer_steps(state, target))
            elif state not in settled:
                if self._is_goal(state):
                    return self._ranks[state], _steps_to(self._came, state)
                settled.add(state)
                self._extend(state, self._declared_steps(state))
                self._defer_transfers(state)
        return None

    def _lower_bound(self) -> LowerBound:
        """Return what the rest of a route takes at least; most searches of one step never ask."""
        spec = self._start.spec
        dtypes = {spec.dtype, *self._dtypes}
        width = min(map(itemsize, dtypes))
        dense = stored = spec.size * width
        if spec.nnz is not None:
            narrower = itemsize(spec.element) - width
            stored = max(0, min(dense, spec.nbytes - spec.nnz * narrower))
        elif spec.wrapped or spec.code_dtype:
            stored = min(dense, spec.nbytes)
        inputs = BoundInputs(
            dense,
            stored,
            self._not_imported,
            self._must_write(self._start),
        )
        return self._candidates.bound(inputs)

    def _extend(self, state: SearchState, steps: Iterable[Step]) -> None:
        """Enter what some steps make of a state in the queue."""
        for after, step, extended in self._permitted_steps(state, steps):
            is_goal = self._is_goal(after)
            by_detour = after.via_unrequested and extended.sacrifice.copied and not after.fresh
            rank = extended.by_detour() if is_goal and by_detour else extended
            previous = self._ranks.get(after)
            if (previous is None or rank < previous) and not self._is_beaten(after, rank):
                if previous is None:
                    self._reached.setdefault(after.spec, []).append(after)
                self._ranks[after], self._came[after] = rank, (state, step)
                if is_goal:
                    self._best = min(self._best, rank.sacrifice)
                self._enter(rank if is_goal else self._bound(after, rank), after)

    def _defer_transfers(self, state: SearchState) -> None:
        """Enter the transfers of a composite value in the queue, by what they must cost at least.

        Each takes several searches, for its components. Few of them are ever looked at.
        """
        rank, spec = self._ranks[state], state.spec
        unpacking = self._planner.format(spec.format).components
        as_it_is = not self._may_change(spec)
        for target in self._planner.transfers.targets(spec, self._candidates.names):
            if target.name in self._unrequested and not target.transit:
                continue  # what it could be given, the goal could be given as well
            if self._is_worthwhile(rank, target.name):
                assert unpacking is not None
                assert target.components is not None
                imports = target.name in self._not_imported
                packing = unpacking.pack_seconds + target.components.pack_seconds
                least = rank.bounding(rank.sacrifice.plus(imports=imports), packing + EACH)
                after = state._replace(spec=spec._replace(format=target.name))
                previous = self._ranks.get(after)
                as_good = previous is not None and previous <= least
                if not (as_it_is and (as_good or self._is_beaten(after, least))):
                    self._enter(self._bound(after, least, written=True), state, target)

    def _may_change(self, spec: Spec) -> bool:
        """Tell whether a transfer may give a value another dtype, device or memory."""
        dtypes = {spec.dtype, *self._targets.dtypes}
        devices = {spec.device, *self._targets.devices}
        return self._request.copy is True or len(dtypes) > 1 or len(devices) > 1

    def _enter(self, bound: Rank | None, state: SearchState, target: Format | None = None) -> None:
        if bound is not None:
            heapq.heappush(self._queue, (bound, next(self._order), state, target))

    def _is_beaten(self, state: SearchState, rank: Rank) -> bool:
        """Tell whether a state is dominated by another state of the same spec.

        A state with less behind it comes first anyway; but a later one may be the quicker if what
        sets them apart has to happen sooner or later, so that neither stands for the other.
        """
        # A route that still shares memory may copy part of it later, and then rank last.
        strict = self._request.copy is True or self._candidates.breaks_sharing
        return any(
            other != state
            and _has_less(other, state, strict=strict)
            and self._ranks[other].dominates(rank)
            for other in self._reached.get(state.spec, ())
        )

    def _bound(self, state: SearchState, rank: Rank, *, written: bool = False) -> Rank | None:
        """Return the least rank that a whole route through `state` can have, if there is one.

        With `written`, the bytes that have to be written may be so by the step before.
        """
        name, writing = state.spec.format, self._must_write(state)
        if self._bounds is None:
            self._bounds = self._lower_bound()
        least = self._bounds.least(name, writing and not written)
        if least is None:
            return None
        losses, imports, seconds = least
        copied = rank.sacrifice.copied or writing or name not in self._candidates.uncopied
        breaks = not self._may_share(state, copied)
        return rank.bounding(
            rank.sacrifice.plus(losses, copied=copied, breaks=breaks, imports=imports), seconds
        )

    def _may_share(self, state: SearchState, copied: bool) -> bool:
        """Tell whether some memory may be shared at the end, if bytes are copied or if none are.

        Where bytes are, to share by way of a framework that nobody requested is the worst of all.
        """
        if not copied or self._candidates.computes:
            return state.spec.format in self._candidates.shared
        if self._straight is None:
            self._straight = self._candidates.sharing(self._goals, self._unrequested)
        return not state.via_unrequested and state.spec.format in self._straight

    def _must_write(self, state: SearchState) -> bool:
        """Tell whether bytes must still be written."""
        spec = state.spec
        return (
            spec.dtype not in self._dtypes
            or (self._request.copy is True and not state.fresh)
            or not any(matches(spec.device, device) for device in self._devices)
        )

    def _is_goal(self, state: SearchState) -> bool:
        spec = state.spec
        goal = self._goals.get(spec.format)
        return (
            goal is not None
            and spec.carrier is None
            and spec.dtype == goal.dtype
            and matches(spec.device, goal.device)
            and goal.requires <= spec.traits <= goal.carries
            and (state.fresh or self._request.copy is not True)
            # Fresh memory is the caller's to write, whichever library has made it.
            and not (state.fresh and "readonly" in spec.traits)
            and state.refused == self._relaxed
        )

    def _permitted_steps(
        self, state: SearchState, steps: Iterable[Step]
    ) -> Iterator[tuple[SearchState, Step, Rank]]:
        """Yield what those of some steps that are permitted make of a state."""
        rank = self._ranks[state]
        for step in steps:
            if step.origin in self._without:
                continue
            after, advanced_step = advanced(state, step)
            if after.fresh and not (state.fresh or self._from_lazy or self._is_snapshot(step)):
                after = after._replace(fresh=False)
            # What is computed comes out as its library makes it, and not by a detour.
            if after.spec.format in self._unrequested and "materialize" not in step.effects:
                after = after._replace(via_unrequested=True)
            if after.spec == state.spec and self._request.copy is not True:
                continue
            refused = len(advanced_step.effects - self._permitted)
            if refused and self._relaxed:
                after = after._replace(refused=True)
            if not refused or self._relaxed:
                imports = after.spec.format in self._not_imported
                bystander = step.priority <= 0 and step.provenance[1] not in self._familiar
                extended = rank.extended(advanced_step, refused, imports, bystander=bystander)
                yield after, advanced_step, extended

    def _is_snapshot(self, step: Step) -> bool:
        """Tell whether a step reads its value at once, and not whenever its result is computed."""
        before, after = step.before.format, step.after.format
        return not (self._planner.format(before).lazy and self._planner.format(after).lazy)

    def _declared_steps(self, state: SearchState) -> Iterator[Step]:
        """Yield the declared steps that can be part of a better route than those that are complete.

        What a conversion does whatever it is asked for is known before any step is made of it.
        Those that copy nothing come first: once one has reached a goal, none that copies is looked
        at.
        """
        spec, rank, names = state.spec, self._ranks[state], self._candidates.names
        for conversion in self._planner.graph.conversions(spec.format):
            name = conversion.target.name
            if (
                name in names
                and self._is_worthwhile(
                    rank,
                    name,
                    copied=conversion.writes,
                    breaks=not conversion.aliases,
                    losses=conversion.losses,
                )
                and conversion.takes_value(spec)
            ):
                yield from conversion.steps(spec, self._targets)
        yield from self._planner.graph.unwrap_steps(spec, names)

    def _transfer_steps(self, state: SearchState, target: Format) -> Iterator[Step]:
        """Yield the transfers of a composite value to one format, as `_declared_steps`."""
        rank, name = self._ranks[state], target.name
        if self._is_worthwhile(rank, name):
            writing = self._is_worthwhile(rank, name, copied=True)
            yield from self._planner.transfers.steps(
                state.spec, self._targets, self._request, target, writing=writing
            )

    def _is_worthwhile(
        self,
        rank: Rank,
        name: str,
        *,
        copied: bool = False,
        breaks: bool = False,
        losses: int = 0,
    ) -> bool:
        """Tell whether a route with a step to a format may be better than those complete."""
        imports = name in self._not_imported
        return self._relaxed or (
            rank.sacrifice.plus(losses, copied=copied, breaks=breaks, imports=imports) <= self._best
        )


def _has_less(state: SearchState, other: SearchState, *, strict: bool) -> bool:
    """Tell whether there is less behind one of two states of a spec than behind the other."""
    return (
        (state.fresh == other.fresh if strict else state.fresh <= other.fresh)
        and state.copied <= other.copied
        and state.was_on_device == other.was_on_device
        and state.refused == other.refused
        and state.via_unrequested <= other.via_unrequested
        and state.readonly_source <= other.readonly_source
    )


def advanced(state: SearchState, step: Step) -> tuple[SearchState, Step]:
    """Return the state after a step, and the step with the effects that only the way shows."""
    before, after = device_type(step.before.device), device_type(step.after.device)
    was_on_device = state.was_on_device or (before != "cpu" and after == "cpu")
    if state.was_on_device and before == "cpu" and after != "cpu":
        step = step._replace(effects=step.effects | {"host_round_trip"})
    flags = step.before.traits & LOCKED
    readonly = step.aliases and (state.readonly_source or flags == _READONLY)
    if readonly and "alias_immutable" in step.effects:
        # A framework on the way that changes nothing gives nobody leave to write there.
        step = step._replace(effects=step.effects - {"alias_immutable"} | {"share_readonly"})
    reached = SearchState(
        step.after,
        fresh=state.fresh or not step.aliases,
        copied=state.copied or step.writes,
        was_on_device=was_on_device,
        refused=state.refused,
        via_unrequested=state.via_unrequested,
        readonly_source=readonly,
    )
    return reached, step


def _steps_to(came: dict[SearchState, tuple[SearchState, Step]], state: SearchState) -> list[Step]:
    steps: list[Step] = []
    while state in came:
        state, step = came[state]
        steps.append(step)
    return steps[::-1]
