"""The planner: the preferred route for a spec and a request.

A route visits hubs and the frameworks of its two ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial

from interop._model.spec import WEAK, Spec, representative, spec_class, spec_kind
from interop._model.typing import ValueFunction
from interop._registry.registry import Registry
from interop._request.request import Request

from .goals import frameworks, goals
from .graph import Graph
from .ranking import Rank
from .search import Search, State, along, first
from .step import Step, fast_path

#: Routes for arrays of composite values that a graph keeps at most.
_MOST_ROUTES = 4096


class Planner:
    """Finds routes through the declarations of one registry."""

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        self._registry = registry
        self._available = available
        self._graph: Graph | None = None
        # All threads need the same graph: a step is known by the conversion that it was made of.
        self.lock = threading.RLock()

    @property
    def graph(self) -> Graph:
        """The graph of the registry as it is now."""
        graph = self._graph
        if graph is None or not graph.is_of(self._registry):
            with self.lock:
                graph = self._graph
                if graph is None or not graph.is_of(self._registry):
                    graph = self._graph = Graph(self._registry, self._available)
        return graph

    def route(
        self, spec: Spec, request: Request, without: frozenset[object] = frozenset()
    ) -> tuple[Rank, list[Step]] | None:
        """Return the preferred route for a spec and a request, or None if there is none.

        Steps of the origins `without` are left out.
        """
        return first(self.searches(spec, request), without)

    def searches(self, spec: Spec, request: Request, state: State | None = None) -> list[Search]:
        """Return the searches for a route, in order; the first route that one finds is taken.

        If steps have been taken already, the search is for the rest of the way from `state`.
        """
        return self._searches(self.graph, spec, request, state)

    def _searches(
        self,
        graph: Graph,
        spec: Spec,
        request: Request,
        state: State | None = None,
        *,
        dense: bool = False,
    ) -> list[Search]:
        """Return the searches in one graph. With `dense` the routes stay among dense formats."""
        start, wanted = state or State.at(spec), goals(graph, spec, request)
        route_of = partial(self._array_steps, graph)
        return [
            Search(graph, start, request, wanted, route_of=route_of, dense=dense, within=within)
            for within in frameworks(graph, start.spec, wanted)
        ]

    def _array_steps(self, graph: Graph, spec: Spec, request: Request) -> tuple[Step, ...] | None:
        """Return the steps for an array of a composite value; None if there is no route."""
        (target,) = request.formats
        if request.copy and not graph.formats[target].lazy:
            # The best route often copies anyway, and then copy=True changes nothing.
            steps = self._array_steps(graph, spec, request._replace(copy=None))
            if steps is None or not all(step.aliases for step in steps):
                return steps
        unsupported = graph.formats[target].unsupported(request.device or spec.device)
        kind, sized = ((request, unsupported, key) for key in (spec_kind(spec), spec_class(spec)))
        routes = graph.array_routes
        for key in (kind, sized):
            if key in routes:
                return routes[key]
        route = first(self._searches(graph, representative(spec), request, dense=True))
        steps = None if route is None else tuple(route[1])
        # The size matters only if the preferred route writes bytes.
        key = sized if any(step.writes for step in steps or ()) else kind
        if len(routes) >= _MOST_ROUTES:
            routes.clear()
        return routes.setdefault(key, steps)

    def state_after(self, spec: Spec, steps: Iterable[Step]) -> State:
        """Return the state after some steps from a spec."""
        state, formats = State.at(spec), self.graph.formats
        for step in steps:
            _, state = along(state, step, formats, from_lazy=formats[spec.format].lazy)
        return state

    def replayed(
        self, spec: Spec, request: Request, steps: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        """Return the steps of a route as they are for another spec of the same class.

        None if a step can no longer be made, because something was registered since.
        """
        searches = self.searches(spec, request)
        state, replayed, formats = State.at(spec), [], self.graph.formats
        for chosen in steps:
            # The step for this spec has the same origin, and differs only in sizes. Any of the
            # searches can make it, and there is none if no format can hold the result.
            following = (
                step
                for search in searches[-1:]
                for step in search.steps(state.spec, chosen.after.format, chosen.origin)
                if step.origin == chosen.origin and spec_kind(step.after) == spec_kind(chosen.after)
            )
            step = next(following, None)
            if step is None:
                return None
            step, state = along(state, step, formats, from_lazy=formats[spec.format].lazy)
            replayed.append(step)
        return tuple(replayed)

    def comes_first(self, steps: tuple[Step, ...], names: tuple[str, ...]) -> bool:
        """Return whether all values that fit where a route leads prefer it to some other formats.

        Those that come before it hold values of other numbers of axes.
        """
        if len(names) < 2 or not steps:
            return True
        graph, name = self.graph, steps[-1].after.format
        order, axes = graph.preferences(steps[0].before.format, names), graph.formats[name].ndims
        before = [graph.formats[n].ndims for n, at in order.items() if at < order[name]]
        apart = axes is not None and all(n is not None and n.isdisjoint(axes) for n in before)
        return bool(order) and (apart or not before)

    def fast_path(self, steps: tuple[Step, ...], dtype: str | None) -> ValueFunction | None:
        """Return the fast path that stands for a route, if no other distribution has a say.

        Numbers without a dtype of their own get the one that is asked for, or the target's default.
        """
        formats, rivals = self.graph.formats, self.graph.rival_pairs
        source, target = formats[steps[0].before.format], formats[steps[-1].after.format]
        if WEAK.isdisjoint(source.carries):
            return fast_path(steps, rivals)
        if dtype is not None:
            return fast_path(steps, rivals, dtype=dtype)
        default = target.default_dtype
        return fast_path(steps, rivals, **({} if default is None else {"default_dtype": default}))
