"""The planner: the cheapest route for a spec and a request.

Hand-offs are limited: a route visits only formats that lie on a way at most `SLACK` hand-offs
longer than the shortest one. If no route is feasible within that, the limit is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import product

from interop._model.device import device_type, is_host_part, matches
from interop._model.dtype import narrowed, promoted
from interop._model.format import Format
from interop._model.spec import LABELLED, MEMORY_TRAITS, SEVERAL, UNWRITABLE, Spec, spec_kind
from interop._model.typing import Value, ValueFunction
from interop._registry.registry import Registry

from .bound import Candidates
from .cache import PlanCache
from .components import ComponentTransfers
from .graph import Graph
from .ranking import Rank
from .request import WRITABLE, Request
from .search import Goal, Search, SearchState, advanced
from .step import Step, Targets


class Planner:
    """Finds routes through what one registry holds."""

    def __init__(
        self, registry: Registry, available: Callable[[str], bool], cache: PlanCache
    ) -> None:
        self._registry = registry
        self.graph = Graph(registry, available)
        self.transfers = ComponentTransfers(registry, self, cache)
        # The graph must not change during a search.
        self.lock = threading.RLock()

    def format(self, name: str) -> Format:
        """Return a format by its name."""
        return self._registry.formats[name]

    def formats(self, framework: str) -> list[Format]:
        """Return the formats of a framework."""
        formats = self._registry.formats.values()
        return [format_ for format_ in formats if format_.framework == framework]

    def goals(self, spec: Spec, request: Request) -> dict[str, Goal]:
        """Return, for each acceptable format, what the result must be."""
        goals: dict[str, Goal] = {}
        for name in request.formats:
            target = self._registry.formats[name]
            device = self._device(spec, target, request.device)
            dtype = request.dtype or _default_dtype(spec, target, device)
            unchanged = name == spec.format and dtype == spec.dtype
            fits = name == spec.format or target.ndims is None or len(spec.shape) in target.ndims
            holds = fits and (unchanged or dtype in self.holds(spec, target, device))
            if holds and target.home(device) == device:
                carries = self._carries(spec, target, request)
                goals[name] = Goal(dtype, device, carries, self._division(spec, target, request))
        return goals

    def _device(self, spec: Spec, target: Format, requested: str | None) -> str:
        """Return where a result must be: where the data is, if it can and the caller did not say.

        The first part of the host is the host where that is one device, as it is in a framework
        whose values do not say on which part they are.
        """
        if requested is None:
            return target.home(spec.device) or target.devices[0]
        source = self.format(spec.wrapped or spec.format)
        within = source.framework == target.framework and spec.traits.isdisjoint(SEVERAL)
        whole = within and spec.device == "cpu"
        return "cpu" if requested == "cpu:0" and (whole or not target.divides_host) else requested

    def holds(self, spec: Spec, target: Format, device: str) -> Set[str]:
        """Return the dtypes a result may have; a wrapper that stays one keeps what it wraps."""
        dtypes = target.holds(device)
        if target.wrapper is None or not spec.wrapped:
            return dtypes
        stays = self.format(spec.format).framework == target.framework
        return dtypes & self.format(spec.wrapped).holds(device) if stays else dtypes

    def _division(self, spec: Spec, target: Format, request: Request) -> frozenset[str]:
        """Return how a result must be divided: as ``like=`` is, if any conversion can do that."""
        divides = spec.format != target.name and self.graph.divides(target.name, request.like)
        return request.like if divides else frozenset()

    def _carries(self, spec: Spec, target: Format, request: Request) -> frozenset[str]:
        """Return the traits that a result may have; a wrapper has those of what it wraps."""
        carries = self._registry.carries(target)
        if target.wrapper is not None and spec.wrapped:
            carries |= spec.traits
        if request.copy == WRITABLE:
            carries -= UNWRITABLE & MEMORY_TRAITS
        # A dtype that is asked for is that of every column, and one device that of every part.
        if request.dtype:
            carries -= {"mixed"}
        return carries - SEVERAL if ":" in (request.device or "") else carries

    def route(
        self,
        spec: Spec,
        request: Request,
        without: frozenset[object] = frozenset(),
        *,
        relaxed: bool = False,
        dense: bool = False,
        nearby: bool = False,
    ) -> tuple[Rank, list[Step]] | None:
        """Return the preferred route for a spec and a request, or None if there is none.

        Steps of the origins `without` are left out. With `relaxed` it is the nearest of the routes
        that are refused; with `dense` one among dense formats, as the arrays of a composite value
        take; with `nearby` one of nearly as few hand-offs as can be.
        """
        with self.lock:
            self.graph.refresh()
            goals = self.goals(spec, request)
            limits = (False,) if nearby else (False, True)
            for within, everywhere in product(self._scopes(spec, goals), limits):
                candidates = self._candidates(spec, goals, within, everywhere, dense)
                targets = _targets(request, goals, self._registry.formats)
                search = Search(self, spec, request, goals, targets, candidates)
                route = search.run(without, relaxed=relaxed)
                if route is not None:
                    return route
            return None

    def labels_confine(self, spec: Spec, goals: Iterable[str]) -> bool:
        """Tell whether a value would lose its labels by leaving the framework of the goals."""
        return not LABELLED.isdisjoint(spec.traits) and self._may_label(spec, goals)

    def _may_label(self, spec: Spec, goals: Iterable[str]) -> bool:
        """Tell whether a value's format and all goals are of one framework, and have labels."""
        source = self.format(spec.format)
        formats = [source, *map(self.format, goals)]
        return all(f.labels is not None and f.framework == source.framework for f in formats)

    def _scopes(self, spec: Spec, goals: dict[str, Goal]) -> tuple[bool, ...]:
        """Return whether routes stay within a framework, for one search after the other.

        A value without labels loses none, so that it leaves where no route within does what is
        asked for. What a framework does itself keeps all else that sets its values apart.
        """
        if not goals or not self._may_label(spec, goals):
            return (False,) if goals else ()
        return (True,) if self.labels_confine(spec, goals) else (True, False)

    def _candidates(
        self, spec: Spec, goals: dict[str, Goal], within: bool, everywhere: bool, dense: bool
    ) -> Candidates:
        """Return the formats that a route may visit: with `within`, those of its framework."""
        places = ("cpu", spec.device, *(goal.device for goal in goals.values()))
        devices = frozenset({*map(device_type, places), *filter(is_host_part, places)})
        candidates = self.graph.candidates(
            spec.wrapped or spec.format, goals, devices, everywhere=everywhere, dense=dense
        )
        if not within:
            return candidates
        framework = self.format(spec.format).framework
        names = frozenset(format_.name for format_ in self.formats(framework))
        return candidates.among(names & (candidates.names | {spec.format}))

    def replayed(
        self, spec: Spec, request: Request, steps: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        """Return the steps of a route as they are for another spec of its class.

        None if they were found before something else was registered.
        """
        with self.lock:
            self.graph.refresh()
            targets = _targets(request, self.goals(spec, request), self._registry.formats)
            names = frozenset(step.after.format for step in steps)
            state, replayed = SearchState(spec), []
            for chosen in steps:
                possible = self._steps(state.spec, targets, request, names)
                # Of one origin, and different in nothing but sizes.
                alike = (
                    step
                    for step in possible
                    if step.origin == chosen.origin
                    and spec_kind(step.after) == spec_kind(chosen.after)
                )
                step = next(alike, None)
                if step is None:
                    return None
                state, step = advanced(state, step)
                replayed.append(step)
            return tuple(replayed)

    def _steps(
        self, spec: Spec, targets: Targets, request: Request, names: frozenset[str]
    ) -> Iterator[Step]:
        """Yield every step that can be made from a spec to some formats."""
        yield from self.graph.unwrap_steps(spec, names)
        for conversion in self.graph.conversions(spec.format):
            if conversion.target.name in names and conversion.takes_value(spec):
                yield from conversion.steps(spec, targets)
        for target in self.transfers.targets(spec, names):
            yield from self.transfers.steps(spec, targets, request, target)

    def fast_path(self, steps: tuple[Step, ...]) -> ValueFunction | None:
        """Return the fast path that stands for a route, if no other distribution has a say.

        It stands for one if every hand-off among the steps declares one, and if nobody else
        declares conversions between two of the formats, which might be preferred for some values.
        """
        between = [step for step in steps if step.before.format != step.after.format]
        paths = tuple(step.fast_path for step in between if step.fast_path is not None)
        ends = steps[0].before.format, steps[-1].after.format
        pairs = {ends, *((step.before.format, step.after.format) for step in between)}
        if not paths or len(paths) < len(between) or any(map(self._is_contested, pairs)):
            return None
        return paths[0] if len(paths) == 1 else partial(_one_after_another, paths)

    def _is_contested(self, pair: tuple[str, str]) -> bool:
        """Tell whether several distributions declare conversions between two formats."""
        source, target = pair
        distributions = {
            conversion.provenance.distribution
            for conversion in self.graph.conversions(source)
            if conversion.target.name == target
        }
        return len(distributions) > 1


def _one_after_another(paths: tuple[ValueFunction, ...], value: Value) -> Value:
    """Return what fast paths make of a value in turn; `NotImplemented` as soon as one does."""
    for path in paths:
        value = path(value)
        if value is NotImplemented:
            break
    return value


def _targets(request: Request, goals: dict[str, Goal], formats: Mapping[str, Format]) -> Targets:
    dtypes = dict.fromkeys(goal.dtype for goal in goals.values() if goal.dtype)
    # The host is where frameworks meet, so a way through it is worth a look.
    devices = dict.fromkeys([*(goal.device for goal in goals.values()), "cpu"])
    like = dict.fromkeys(goals, request.like) if request.like else {}
    return Targets(tuple(dtypes), tuple(devices), request.consents, like, formats)


def _default_dtype(spec: Spec, target: Format, device: str) -> str | None:
    """Return the dtype a result should have when the caller named none."""
    dtypes: Set[str] = target.holds(device)
    if spec.dtype in dtypes or (spec.format == target.name and matches(spec.device, device)):
        return spec.dtype
    if spec.dtype is None:
        return None
    return promoted(spec.dtype, dtypes) or narrowed(spec.dtype, dtypes)
