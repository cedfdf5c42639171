"""The search: from one spec to the first of some goals, by the order of preference.

A state is a spec, with a few facts about the way there. The ways that lead on from its format make
the steps to further states, so the states need not be known beforehand.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import chain, count
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from interop._model.device import device_type, matches
from interop._model.effect import EFFECTS
from interop._model.format import LINES, Format
from interop._model.spec import Spec

from .derived import WRITE_LOCKS
from .graph import Graph
from .question import Onward, Question, RouteOf, Way
from .ranking import Rank
from .step import Step

#: The traits of memory that its owner has flagged. Memory that is flagged because its framework
#: never changes it is `immutable`, too.
_READONLY = frozenset({"readonly"})


class State(NamedTuple):
    """A spec, and the facts about the way to it that still matter."""

    spec: Spec
    fresh: bool = False  # its memory is not the value's
    copied: bool = False  # bytes were written
    was_on_device: bool = False  # bytes came from a device to the host
    refused: bool = False  # a step has an effect that the policy refuses
    via_unrequested: bool = False  # the way led through a framework that nobody requested
    readonly_source: bool = False  # the memory was flagged read-only by its owner
    #: The roles of the component arrays that are still the value's; None: all.
    shared: frozenset[str] | None = None


#: Steps by spec and way.
Made: TypeAlias = dict[Spec, dict[Way, tuple[Step, ...]]]


class Search:
    """The search for the route that a question asks for.

    It finds a shortest path by setting labels [1]_. A lower bound on the rest guides it (A*, [2]_):
    the losses, copies, imports and seconds of the best path through the formats, whatever the specs
    may be. No step lowers that bound by more than its own cost, so the first goal that leaves the
    queue is the preferred one. The ways that lead on from a state are tried one by one, the best
    bound first [3]_, so a format with a thousand neighbours costs no more than the few that are
    worth a look.

    References
    ----------
    .. [1] E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische
       Mathematik 1, 1959.
    .. [2] P. E. Hart, N. J. Nilsson and B. Raphael, "A formal basis for the heuristic
       determination of minimum cost paths", IEEE Transactions on Systems Science and
       Cybernetics 4 (2), 1968.
    .. [3] T. Yoshizumi, T. Miura and T. Ishida, "A* with partial expansion for large branching
       factor problems", AAAI, 2000.
    """

    def __init__(
        self,
        graph: Graph,
        question: Question,
        route_of: RouteOf,
        made: dict[Hashable, Made],
        start: State,
    ) -> None:
        self._graph = graph
        self._start = start
        self._bare = question
        self._route_of = route_of
        #: The steps made so far, by `Question.changes`. They are used again, since several states
        #: have one spec, a refusal takes several runs, and many arrays of a value are similar.
        self._made_for = made

    def run(
        self, without: frozenset[object] = frozenset(), waived: frozenset[str] = frozenset()
    ) -> tuple[Rank, list[Step]] | None:
        """Return the preferred route, or None.

        Steps of the origins `without` are left out. If effects are `waived`, the search is for the
        nearest route that is refused for nothing but these.
        """
        self._without, self._waived = without, waived
        self._refused = int(bool(waived))  # the route must have at least so many refused effects
        self._question = question = self._bare.waiving(waived)
        self._scope = self._graph.scope(question)
        self._made = self._made_for.setdefault(question.changes, {})
        self._permitted = question.request.permitted
        self._dtypes = {goal.dtype for goal in question.goals.values()}
        self._devices = {goal.device for goal in question.goals.values()}
        source = self._graph.formats[question.spec.format]
        self._from_lazy, self._layout = source.lazy, source.layout
        self._order = count()
        #: Lower bounds, ranks and states, with the ways that lead on, or None at a goal.
        self._queue: list[tuple[Rank, int, Rank, State, Iterator[Onward] | None]] = []
        self._ranks: dict[State, Rank] = {}
        self._came: dict[State, tuple[State, Step]] = {}
        self._enter(self._start, Rank())
        while self._queue:
            _, order, rank, state, onward = heappop(self._queue)
            if rank is self._ranks[state]:  # no better route to the state was found meanwhile
                if onward is None:
                    return rank, self._steps_to(state)
                self._go_on(order, rank, state, onward)
        return None

    def _enter(self, state: State, rank: Rank) -> None:
        """Enter a state in the queue, with the ways that lead on from it."""
        self._ranks[state] = rank
        spec = state.spec
        if self._is_goal(state):
            place = self._scope.places.get(spec.format, 0)
            goal = rank._replace(place=place) if place else rank
            heappush(self._queue, (goal, next(self._order), rank, state, None))
            if not place:
                return
        copied = rank.copied or self._must_write(state)
        # If bytes are copied, sharing by a detour is worse than not sharing (`Rank.by_detour`).
        unshared = rank.sharing > 0 or (copied and state.via_unrequested)
        takers = self._graph.takers(spec)
        ways = self._scope.onward(spec.format, copied, unshared)
        onward = [item for item in ways if item[-1] in takers]
        # What a step has wrapped may lie in another format within; to unwrap it leads nowhere new.
        if spec.wrapped in self._scope.names and spec.wrapped == self._start.spec.wrapped:
            way = self._graph.unwrapping(spec.format, spec.wrapped)
            onward = [*onward, *self._scope.leading([way], copied, unshared)]
            onward.sort(key=itemgetter(0))
        if onward:
            bound = rank.bounded(onward[0][0], self._refused)
            heappush(self._queue, (bound, next(self._order), rank, state, iter(onward)))

    def _go_on(self, order: int, rank: Rank, state: State, onward: Iterator[Onward]) -> None:
        """Try the ways that lead on from a state, until another state has a better bound.

        Where bounds are equal, the state that was entered first goes first.
        """
        spec = state.spec
        made = self._made.setdefault(spec, {})
        for least, number, way in onward:
            bound = rank.bounded(least, self._refused)
            if self._queue and self._queue[0][:2] < (bound, order):
                rest = chain([(least, number, way)], onward)
                heappush(self._queue, (bound, order, rank, state, rest))
                return
            steps = made.get(way)
            if steps is None:
                steps = made[way] = tuple(way.steps(spec, self._question, self._route_of))
            for step in steps:
                if step.origin not in self._without:
                    self._extend(rank, state, step)

    def _extend(self, rank: Rank, state: State, bare: Step) -> None:
        """Enter the state that a permitted step leads to, unless a better route leads there."""
        if bare.after == state.spec and self._question.request.copy is not True:
            return
        step, after = along(state, bare, self._graph.formats, from_lazy=self._from_lazy)
        refused = step.effects - self._permitted
        if refused and not refused <= self._waived:
            return
        scope, name = self._scope, step.after.format
        # A lazy value is computed into whatever format its library makes: that is no detour.
        is_detour = name in scope.unrequested and "materialize" not in step.effects
        if refused or is_detour:
            via_unrequested = after.via_unrequested or is_detour
            after = after._replace(
                refused=after.refused or bool(refused), via_unrequested=via_unrequested
            )
        imports = name in scope.not_imported
        bystander = not step.replaces and step.provenance.distribution not in scope.familiar
        shares = after.shared is None or bool(after.shared)
        extended = rank.extended(
            step,
            len(refused),
            imports,
            bystander=bystander,
            departs=self._layout is not None and self._departs(step),
            reorders=self._reorders(step),
            shares=shares,
        )
        by_detour = after.via_unrequested and extended.copied and not after.fresh
        if by_detour and self._is_goal(after):
            extended = extended.by_detour()
        previous = self._ranks.get(after)
        if previous is None or extended < previous:
            self._came[after] = state, step
            self._enter(after, extended)

    def _departs(self, step: Step) -> bool:
        """Tell whether a step leaves the layout of the value that is converted."""
        formats = self._graph.formats
        before, after = formats[step.before.format].layout, formats[step.after.format].layout
        return before == self._layout != after

    def _reorders(self, step: Step) -> bool:
        """Tell whether a step puts elements in another order than that in memory."""
        lost = step.before.traits - step.after.traits
        if "noncontiguous" in lost or (step.writes and "uncoalesced" in lost):
            return True
        formats = self._graph.formats
        layouts = {formats[name].layout for name in (step.before.format, step.after.format)}
        return layouts == LINES.keys()

    def _must_write(self, state: State) -> bool:
        """Tell whether bytes must still be written."""
        spec = state.spec
        return (
            spec.dtype not in self._dtypes
            or (self._question.request.copy is True and not state.fresh)
            or not any(matches(spec.device, device) for device in self._devices)
        )

    def _never_changes(self, spec: Spec) -> bool:
        """Tell whether nobody writes to values that are packed in a format."""
        components = self._graph.formats[spec.format].components
        return components is not None and "immutable" in components.pack_adds

    def _is_goal(self, state: State) -> bool:
        spec = state.spec
        goal = self._question.goals.get(spec.format)
        return (
            goal is not None
            and spec.carrier is None
            and spec.dtype == goal.dtype
            and matches(spec.device, goal.device)
            and goal.requires <= spec.traits <= goal.carries
            and (state.fresh or self._question.request.copy is not True)
            # Callers may write to fresh memory, whichever library has made it, unless its format is
            # one to which nobody writes.
            and not (state.fresh and "readonly" in spec.traits and not self._never_changes(spec))
            and state.refused == self._refused
        )

    def steps(self, spec: Spec, target: str) -> Iterator[Step]:
        """Yield every step that can be made from a spec to a format."""
        question = self._bare.waiving(frozenset(EFFECTS))
        for way in self._graph.takers(spec):
            if way.target.name == target:
                yield from way.steps(spec, question, self._route_of)

    def _steps_to(self, state: State) -> list[Step]:
        steps: list[Step] = []
        while state in self._came:
            state, step = self._came[state]
            steps.append(step)
        return steps[::-1]


def along(
    state: State, step: Step, formats: Mapping[str, Format], *, from_lazy: bool
) -> tuple[Step, State]:
    """Return a step with the effects that depend on the way to it, and the state after it.

    The state leaves out what depends on the question: whether the step is refused, and whether it
    leads through a framework that nobody requested.

    Parameters
    ----------
    state : State
    step : Step
    formats : mapping of str to Format
    from_lazy : bool
        Whether the value that is converted is lazy.
    """
    before, after = device_type(step.before.device), device_type(step.after.device)
    if state.was_on_device and before == "cpu" and after != "cpu":
        step = step._replace(effects=step.effects | {"host_round_trip"})
    shared = step.still_shared(state.shared)
    is_shared = shared is None or bool(shared)
    readonly = is_shared and (
        state.readonly_source or step.before.traits & WRITE_LOCKS == _READONLY
    )
    if readonly and "alias_immutable" in step.effects:
        # The owner's flag still counts after an immutable framework has shared the memory.
        step = step._replace(effects=step.effects - {"alias_immutable"} | {"share_readonly"})
    # A lazy result of a lazy value reads that later, when it is computed.
    reads_later = formats[step.before.format].lazy and formats[step.after.format].lazy
    parts = not step.aliases or (not is_shared and state.shared != shared)
    is_fresh = parts and (from_lazy or not reads_later)
    return step, State(
        step.after,
        shared=shared,
        fresh=state.fresh or is_fresh,
        copied=state.copied or step.writes,
        was_on_device=state.was_on_device or (before != "cpu" and after == "cpu"),
        refused=state.refused,
        via_unrequested=state.via_unrequested,
        readonly_source=readonly,
    )


def first(
    searches: Iterable[Search],
    without: frozenset[object] = frozenset(),
    waived: frozenset[str] = frozenset(),
) -> tuple[Rank, list[Step]] | None:
    """Return the route, with its rank, of the first search that finds one; None if none does."""
    routes = (search.run(without, waived) for search in searches)
    return next((route for route in routes if route is not None), None)
