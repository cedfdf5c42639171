"""The plan cache: what was found out for requests, kept between calls.

Any change of the registry clears all of it, and so does entry 4,097: a program asks for a handful
of kinds, and a runaway one starts over. Converted values are never kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

from interop._model.typing import Value, ValueFunction
from interop._registry.registry import Registry

from .plan import Plan
from .policy import Block
from .request import Request
from .step import Step

_Kept = TypeVar("_Kept")

#: Entries that are kept.
_MOST = 4096

#: Keywords whose values are keys of their own, and those whose values are not.
_NO_KEYS = ("like", "out", "stream")
_KEYS = frozenset({"dtype", "device", "copy", "allow", "forbid"})

#: Answers `NotImplemented` for a value that is not plain. None stands for the value itself.
FastPath = ValueFunction | None


class PlanTable:
    """The plans of one request, kept apart by settings of the process.

    `states` tell the settings that change which dtypes a format holds.
    """

    def __init__(self, request: Request, states: tuple[Callable[[], Set[str]], ...] = ()) -> None:
        self.request = request
        self.states = states
        #: By class of spec.
        self.plans: dict[tuple[object, ...], Plan] = {}
        #: For plain and small values, by type and fast key.
        self.plans_by_key: dict[type, dict[object, Plan]] = {}
        #: For plain and small values, by the fast path that makes a view of them and the fast key
        #: of that, what the rest of their plan calls; None for the view itself.
        self.calls_on_view: dict[ValueFunction, dict[object, FastPath]] = {}
        #: By type, for values alone; and those for the arrays of a tree, which write nothing: of
        #: two arrays over the same memory, one copy is made.
        self.fast_paths: dict[type, FastPath] = {}
        self.leaf_paths: dict[type, FastPath] = {}
        #: For the classes that have no plan, the nearest routes, which are refused.
        self.refusals: dict[tuple[object, ...], list[Value]] = {}
        #: The routes of the arrays of composite values, by class of spec; those that write nothing
        #: by kind of spec, for all sizes.
        self.component_routes: dict[tuple[object, ...], tuple[Step, ...] | None] = {}

    def key(self, group: tuple[object, ...]) -> tuple[object, ...]:
        """Return the key of a group of specs, their kind or their class."""
        return (*group, *(state() for state in self.states)) if self.states else group

    def clear(self) -> None:
        """Forget all plans."""
        self.plans.clear()
        self.plans_by_key.clear()
        self.calls_on_view.clear()
        self.fast_paths.clear()
        self.leaf_paths.clear()
        self.refusals.clear()
        self.component_routes.clear()


class PlanCache:
    """Requests by their keywords, plans by request and class of spec, and fast paths by type."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.lock = threading.RLock()
        self._count = 0
        self._tables: dict[Request, PlanTable] = {}
        #: All tables that are in use, also by converters.
        self._used: WeakSet[PlanTable] = WeakSet()
        #: For the keywords of a call, the table of the request that they make.
        self.by_words: dict[tuple[Any, ...], PlanTable] = {}
        #: For what a call says beside its value, the fast paths of the request that it makes.
        self.fast_paths: dict[object, Mapping[type, FastPath]] = {}
        #: By the types of a value and of an ``out=``, what writes one into the other if it can.
        self.fills: dict[tuple[type, type], Callable[[Value, Value], bool]] = {}
        #: By type, what tells plain values of it apart.
        self.fast_keys: dict[type, ValueFunction] = {}
        registry.on_change.append(self.clear)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._count = 0
            self._tables.clear()
            self.by_words.clear()
            self.fast_paths.clear()
            self.fills.clear()
            self.fast_keys.clear()
            # In place, since converters hold them.
            for table in self._used:
                table.clear()

    def keep(
        self, table: dict[Any, _Kept], key: object, value: _Kept, version: int | None = None
    ) -> _Kept:
        """Keep a value unless there is one, and return the one that is kept.

        Nothing is kept that was found from an older `version` of the registry.
        """
        with self.lock:
            if version is not None and version != self._registry.version:
                return value
            if self._count >= _MOST:
                self.clear()
            self._count += 1
            return table.setdefault(key, value)

    def table(self, request: Request) -> PlanTable:
        """Return the table of a request."""
        table = self._tables.get(request)
        if table is None:
            formats = self._registry.formats
            # What a wrapper holds depends on the format of what it wraps, which may be any.
            wraps = any(name in formats and formats[name].wrapper for name in request.formats)
            states = tuple(
                partial(format_.limits.unsupported_now, request.device or format_.devices[0])
                for name, format_ in formats.items()
                if (wraps or name in request.formats) and format_.limits.unsupported_now is not None
            )
            with self.lock:
                table = self.keep(self._tables, request, PlanTable(request, states))
                self._used.add(table)
        return table

    def call_key(self, innermost: Block | None, to: Any, keywords: Mapping[str, Any]) -> object:
        """Return what a call says beside its value, or None if such calls take no fast paths.

        Of a value in ``like=`` it is what plans for plain ones depend on.
        """
        policy, trace = (None, None) if innermost is None else innermost
        if trace is not None:
            return None
        if len(keywords) < 2:
            for name, word in keywords.items():  # sooner than to unpack them
                if name in _KEYS:
                    # With its type, because True equals 1, which is refused.
                    return policy, to, name, word, type(word)
                if name == "like" and to is None:
                    key_of = self.fast_keys.get(type(word))
                    key = None if key_of is None else key_of(word)
                    return None if key is None else (policy, type(word), key, name)
            if not keywords:
                return policy, to
        for name in _NO_KEYS:
            if keywords.get(name) is not None:
                return None
        return (policy, to, *keywords.items(), type(keywords.get("copy")))
