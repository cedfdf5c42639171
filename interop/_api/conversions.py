"""Conversions: what calls ask for, carried out or made into something that callers keep."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from interop._execution.engine import Engine
from interop._execution.fast_path import Converter
from interop._model.spec import Spec
from interop._model.typing import Value
from interop._planning.explain import refused_routes
from interop._planning.planner import Planner
from interop._planning.route import Route
from interop._recognition.installed import not_installed
from interop._request.keywords import Keywords, checked
from interop._request.naming import check_format
from interop._request.policy import block, current_policy

from .fill import Fills
from .pickling import reduced
from .requests import Requests

if TYPE_CHECKING:
    from .accepts import Calls
    from .leaves import Trees


class Conversions:
    """Converts values as calls ask, and makes converters, routes and functions that do so.

    All that it makes is pickled by its request, which is resolved again where it is loaded.

    Parameters
    ----------
    owner : Interop
        By which this is pickled.
    requests : Requests
    engine : Engine
    planner : Planner
    """

    def __init__(self, owner: Value, requests: Requests, engine: Engine, planner: Planner) -> None:
        self._owner = owner
        self._registry = requests.registry
        self._requests = requests
        self._engine = engine
        self._planner = planner
        self._fills = Fills(requests, engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("_conversions"), (self._owner,)

    @cached_property
    def trees(self) -> Trees:
        """What converts trees."""
        from .leaves import Trees  # imported for the first tree

        return Trees(self._registry, self._engine)

    def converted(self, x: Value, given: Keywords, key: object = None) -> Value:
        """Convert without a fast path, and let calls with the same `key` find those there are."""
        keywords, requests = checked(given), self._requests
        if keywords.out is not None:
            return self._fills.write(x, keywords)
        self._registry.loader.load()
        version = self._registry.version
        tables = requests.tables(keywords)
        result = self._engine.convert(tables, keywords, x)
        # No fast path for a call whose effects came from an iterator, which `checked` has used up,
        # nor for one whose result gets labels.
        if key is not None and keywords is given and not requests.labels(keywords.like):
            requests.cache.link(key, tables.paths, version)
        return result

    def converter(self, keywords: Keywords) -> Converter:
        """Return what converts values under one request."""
        tables = self._requests.tables(keywords)
        has_paths = keywords.stream is None and not self._requests.labels(keywords.like)
        return Converter(
            partial(self._engine.convert, tables, keywords),
            tables.paths if has_paths else {},
            block,
            self._pickled(self.converter, (), keywords),
            keywords,
        )

    def calls(
        self, function: Callable[..., Value], grad: bool, lists: bool, keywords: Keywords
    ) -> Calls:
        """Return the calls of a function under `accepts`."""
        from .accepts import Calls

        if grad and not self._registry.loader.is_loading():
            self._registry.loader.load_all()  # messages list what differentiates
        pickled = self._pickled(self.calls, (function, grad, lists), keywords)
        convert = self._owner.convert
        return Calls(self._requests, convert, function, keywords, grad, lists, pickled)

    def route(self, spec: Spec, keywords: Keywords) -> Route:
        """Return the route for a spec."""
        registry = self._registry.loaded()  # what was pickled begins here
        table = self._requests.tables(keywords).table_for(spec)
        check_format(registry, spec.format)
        request, steps = table.request, self._engine.steps(spec, table)
        specs = (spec, *(step.after for step in steps))
        formats = (registry.formats[spec.format] for spec in specs)
        cache = self._requests.cache
        return Route(
            spec,
            request,
            steps,
            lambda value: self._engine.convert(cache.table(request), keywords, value),
            lambda: refused_routes(self._planner, spec, request, specs[-1]),
            pickled=self._pickled(self.route, (spec,), keywords),
            problem=self._engine.problem(steps, spec),
            missing=tuple(dict.fromkeys(filter(None, map(not_installed, formats)))),
        )

    def _pickled(
        self, make: Callable[..., object], arguments: tuple[object, ...], keywords: Keywords
    ) -> Callable[[], tuple[Any, ...]]:
        """Return a `__reduce__` for what a method makes of some arguments and keywords."""
        return partial(reduced, make, arguments, self._registry, keywords, current_policy())
