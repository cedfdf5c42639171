"""The search: from one spec to the first of some goals, by the order of preference.

A state is a spec, with a few facts about the way there. The ways that lead on from its format make
the steps to further states, so the states need not be known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from interop._model.device import device_type, is_host_part, matches
from interop._model.effect import EFFECTS
from interop._model.format import LINES, Format
from interop._model.spec import LABELLED, Spec
from interop._request.request import Request

from .bounds import NOTHING
from .components import Composite
from .conversion import ResolvedConversion
from .derived import WRITE_LOCKS
from .graph import Graph
from .question import Goal, Question
from .ranking import Rank
from .step import Step

#: The trait of values with nulls.
_GAPS = frozenset({"masked"})

#: The traits on the way of memory that its owner has flagged. Memory that is flagged there because
#: its framework never changes it is `immutable`, too.
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

    @classmethod
    def at(cls, spec: Spec) -> State:
        """Return the state before the first step; what a value says of its lock is its owner's."""
        return cls(spec, readonly_source="readonly" in spec.traits)


class Search:
    """The search for the preferred route of a value, or for the rest of its way from a state.

    It finds a shortest path by setting labels [1]_. A lower bound on the rest guides it (A*, [2]_):
    the least that any path to a goal takes from a format, whatever the value may be (`bounds`).
    What is queued is a state with the format to go on to, so that only the conversions to formats
    that are worth a look are asked whether they take the value. The first goal that leaves the
    queue is the preferred one.

    Parameters
    ----------
    graph : Graph
    start : State
    request : Request
    goals : mapping of str to Goal
        By acceptable format.
    route_of : callable
        Returns the steps for an array of a composite value.
    dense : bool
        Whether the route stays among dense formats, as those of a composite value's arrays do.
    within : str
        The framework that the route stays in; "" if it may leave it.

    References
    ----------
    .. [1] E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische
       Mathematik 1, 1959.
    .. [2] P. E. Hart, N. J. Nilsson and B. Raphael, "A formal basis for the heuristic
       determination of minimum cost paths", IEEE Transactions on Systems Science and
       Cybernetics 4 (2), 1968.
    """

    def __init__(
        self,
        graph: Graph,
        start: State,
        request: Request,
        goals: Mapping[str, Goal],
        *,
        route_of: Callable[[Spec, Request], tuple[Step, ...] | None],
        dense: bool = False,
        within: str = "",
    ) -> None:
        self._graph, self._start, self._route_of = graph, start, route_of
        self._request, self._goals, self._dense, self._within = request, goals, dense, within
        self._dtypes = {goal.dtype: None for goal in goals.values()}
        self._devices = {goal.device: None for goal in goals.values()}
        self._permitted = request.permitted
        spec = start.spec
        source = graph.formats[spec.format]
        self._from_lazy, self._layout = source.lazy, source.layout
        requested = (spec.format, *filter(None, [spec.wrapped]), *goals)
        self._frameworks = {graph.framework_of[name] for name in requested}
        self._first_parties = graph.first_parties(requested)
        self._preferences = graph.preferences(spec.format, tuple(goals))
        #: The steps made so far, by what they start from. Several states have one spec, and a
        #: refusal takes several runs.
        self._made: dict[
            tuple[Spec, tuple[str, ...]], dict[ResolvedConversion | Composite, tuple[Step, ...]]
        ] = {}

    def run(
        self, without: frozenset[object] = frozenset(), waived: frozenset[str] = frozenset()
    ) -> tuple[Rank, list[Step]] | None:
        """Return the preferred route, or None.

        Steps of the origins `without` are left out. If effects are `waived`, the search is for the
        nearest route that is refused for nothing but these.
        """
        self._waived = waived
        self._refused = int(bool(waived))  # the route must have at least so many refused effects
        question = self._question(self._permitted | waived)
        self._bound(question)
        #: Lower bounds, ranks and states, and the format to go on to; None at a goal.
        self._queue: list[tuple[Rank, int, Rank, State, str | None]] = []
        self._order = count()
        self._ranks: dict[State, Rank] = {}
        self._came: dict[State, tuple[State, Step]] = {}
        self._enter(self._start, Rank())
        while self._queue:
            _, _, rank, state, name = heappop(self._queue)
            if rank is not self._ranks[state]:
                continue  # a better route to the state was found meanwhile
            if name is None:
                return rank, self._steps_to(state)
            spec = state.spec
            # A wrapper that is no stop is just unwrapped.
            ways = self._graph.towards(spec.format) if spec.format in self._names else {}
            for step in self._steps(spec, name, ways.get(name, ()), question):
                if step.origin not in without:
                    self._extend(rank, state, step)
        return None

    def _question(self, effects: frozenset[str]) -> Question:
        """Return what decides which steps a way makes, if they may have some effects."""
        dtypes, devices = tuple(filter(None, self._dtypes)), dict(self._devices)
        kinds = map(device_type, (self._start.spec.device, *devices))
        if "host_round_trip" in effects or "cpu" in kinds:
            # Frameworks meet on the host, so a route may lead through it.
            devices["cpu"] = None
        formats = self._graph.formats
        return Question(
            self._request, self._goals, dtypes, tuple(devices), formats, self._route_of, effects
        )

    def _bound(self, question: Question) -> None:
        """Work out the formats that a route may visit, and the least that its rest takes."""
        graph, spec, goals = self._graph, self._start.spec, tuple(self._goals)
        devices = spec.device, *question.devices
        touched = frozenset({*map(device_type, devices), *filter(is_host_part, devices)})
        names = graph.stops(spec.wrapped or spec.format, goals, touched, dense=self._dense)
        if not (LABELLED | _GAPS).isdisjoint(spec.traits):
            names |= {spec.format}  # what a value wraps has no labels, and need not lie in lists
        if self._within:
            members = {format_.name for format_ in graph.framework(self._within)}
            names = (names | {spec.format}) & members
        wraps = spec.wrapped is not None
        self._names, self._imports = names, graph.not_imported(names, self._frameworks)
        #: By the format of a state and the next one.
        self._rest = graph.rest(names, goals, question.effects, touched, self._imports, wraps=wraps)

    def _enter(self, state: State, rank: Rank) -> None:
        """Enter a state in the queue: as a goal, and for each format that may come next."""
        self._ranks[state] = rank
        spec, graph = state.spec, self._graph
        if self._is_goal(state):
            preference = self._preferences.get(spec.format, 0)
            goal = rank._replace(preference=preference) if preference else rank
            heappush(self._queue, (goal, next(self._order), rank, state, None))
            if not preference:
                return
        onward = self._rest.get(spec.format, {})
        if spec.wrapped in self._names and spec.wrapped == self._start.spec.wrapped:
            onward = {**onward, spec.wrapped: NOTHING}
        copied = bool(onward) and (rank.copied or self._must_write(state))
        refused = max(rank.refused, self._refused)
        for name, (losses, writes, parts, imports, seconds) in onward.items():
            copies, unshared = copied or writes, parts
            if copies and not parts:
                # Sharing by a detour is worse than not sharing then (`Rank.by_detour`).
                is_detour = graph.framework_of[name] not in self._frameworks
                is_detour = is_detour and not graph.computes(spec.format, name)
                unshared = state.via_unrequested or is_detour
            bound = Rank(
                refused,
                rank.third_parties,
                rank.losses + losses,
                rank.layout_changes,
                rank.preference,
                copies,
                max(rank.sharing, unshared),
                rank.imports + imports,
                rank.reorders,
                rank.seconds + seconds,
                rank.steps,
                rank.names,
            )
            heappush(self._queue, (bound, next(self._order), rank, state, name))

    def _steps(
        self,
        spec: Spec,
        name: str,
        ways: Iterable[ResolvedConversion | Composite],
        question: Question,
    ) -> list[Step]:
        """Return the steps from a spec to a format by some ways, and by unwrapping."""
        made = self._made.setdefault((spec, question.devices), {})
        steps: list[Step] = []
        for way in ways:
            if way.effects <= question.effects:
                if way not in made:
                    takes = way.takes_value(spec)
                    made[way] = (*way.steps(spec, question),) if takes else ()
                steps += made[way]
        # What a step has wrapped may lie in another format within; to unwrap it leads nowhere new.
        if spec.wrapped == name == self._start.spec.wrapped:
            steps.append(self._graph.unwrapped(spec))
        return steps

    def _extend(self, rank: Rank, state: State, bare: Step) -> None:
        """Enter the state that a permitted step leads to, unless a better route leads there."""
        if bare.after == state.spec and self._request.copy is not True:
            return
        step, after = along(state, bare, self._graph.formats, from_lazy=self._from_lazy)
        refused = step.effects - self._permitted
        if refused and not refused <= self._waived:
            return
        name = step.after.format
        is_unrequested = self._graph.framework_of[name] not in self._frameworks
        # A lazy value is computed into whatever format its library makes: that is no detour.
        is_detour = is_unrequested and "materialize" not in step.effects
        if refused or is_detour:
            via_unrequested = after.via_unrequested or is_detour
            after = after._replace(
                refused=after.refused or bool(refused), via_unrequested=via_unrequested
            )
        imports = name in self._imports
        third_party = not step.replaces and step.provenance.distribution not in self._first_parties
        shares = after.shared is None or bool(after.shared)
        extended = rank.extended(
            step,
            len(refused),
            imports,
            third_party=third_party,
            leaves_layout=self._layout is not None and self._leaves_layout(step),
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

    def _leaves_layout(self, step: Step) -> bool:
        """Return whether a step leaves the layout of the value that is converted."""
        layout_of = self._graph.layout_of
        return layout_of[step.before.format] == self._layout != layout_of[step.after.format]

    def _reorders(self, step: Step) -> bool:
        """Return whether a step puts elements in another order than that in memory."""
        lost = step.before.traits - step.after.traits
        if "noncontiguous" in lost or (step.writes and "uncoalesced" in lost):
            return True
        layout_of = self._graph.layout_of
        layouts = layout_of[step.before.format], layout_of[step.after.format]
        # What is coalesced lies row by row.
        return {*layouts} == LINES.keys() or layouts == ("coo", "csc")

    def _must_write(self, state: State) -> bool:
        """Return whether bytes must still be written."""
        spec = state.spec
        return (
            spec.dtype not in self._dtypes
            or (self._request.copy is True and not state.fresh)
            or not any(matches(spec.device, device) for device in self._devices)
        )

    def _never_changes(self, spec: Spec) -> bool:
        """Return whether nobody writes to values that are packed in a format."""
        components = self._graph.formats[spec.format].components
        return components is not None and "immutable" in components.pack_adds

    def _is_goal(self, state: State) -> bool:
        spec = state.spec
        goal = self._goals.get(spec.format)
        return (
            goal is not None
            and spec.carrier is None
            and spec.dtype == goal.dtype
            and matches(spec.device, goal.device)
            and goal.requires <= spec.traits <= goal.carries
            and (state.fresh or self._request.copy is not True)
            # Callers may write to fresh memory, whichever library has made it, unless its format is
            # one to which nobody writes.
            and not (state.fresh and "readonly" in spec.traits and not self._never_changes(spec))
            and state.refused == self._refused
        )

    def steps(self, spec: Spec, target: str, origin: object) -> list[Step]:
        """Return the steps from a spec to a format that have an origin, though they be refused.

        Others may be among them.
        """
        ways = self._graph.towards(spec.format).get(target, ())
        if isinstance(origin, ResolvedConversion):
            ways = [way for way in ways if way is origin]
        return self._steps(spec, target, ways, self._question(frozenset(EFFECTS)))

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
