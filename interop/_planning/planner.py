"""The planner: the cheapest route for a spec and a request.

Hand-offs are limited: a route visits only formats that lie on a way at most `SLACK` hand-offs
longer than the shortest one. If no route is feasible within that, the limit is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from interop._model.device import device_type, matches
from interop._model.dtype import narrowed, promoted
from interop._model.format import Format
from interop._model.spec import Spec, spec_kind
from interop._registry.registry import Registry

from .bound import Outlook
from .components import Composites
from .graph import Graph
from .request import Request
from .search import Goal, Label, Search, State, advanced
from .step import Step, Wants

__all__ = ["Planner"]


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
            search = Search(self, spec, request, goals, _wants(request, goals), outlook)
            found = search.run(without, relaxed=relaxed)
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
            state, step = advanced(state, step)
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
        yield from self.graph.openings(spec, near)
        for edge in self.graph.edges(spec.format):
            if edge.target.name in near and edge.takes_value(spec):
                yield from edge.steps(spec, wants)
        for target in self.composites.targets(spec, near):
            yield from self.composites.steps(spec, wants, request, target)


def _one_by_one(shortcuts: tuple[Callable[[Any], Any], ...], value: Any) -> Any:
    """Return what shortcuts make of a value in turn, or `NotImplemented` as soon as one does."""
    for shortcut in shortcuts:
        value = shortcut(value)
        if value is NotImplemented:
            break
    return value


def _alike(one: Spec, other: Spec) -> bool:
    """Tell whether two specs differ in nothing but sizes."""
    return spec_kind(one) == spec_kind(other)


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
