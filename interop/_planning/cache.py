"""The plan cache: plans, fast paths and other results of planning, kept between calls.

Every change of the registry clears all of it. It is also emptied when it would exceed its bound: a
program makes a handful of kinds of calls, and one that keeps making new kinds must not fill the
memory. Converted values are never kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakSet

from interop._model.dtype import NUMBERS
from interop._model.foreign import is_signal
from interop._model.spec import WEAK, Spec, has_one_order, spec_class
from interop._model.typing import Value, ValueFunction
from interop._registry.registry import Registry
from interop._request.request import Request

from .plan import Plan
from .step import Step

_Kept = TypeVar("_Kept")

#: Entries that are kept: those of some 5,000 different requests. An entry has 0.3 to 1 KiB, all of
#: them 16 MiB at most.
_MOST = 16384
#: Cases that the path of one type has: of a framework's type on the host, on a device, and by key.
_MOST_CASES = 4

#: Answers `NotImplemented` for a value that is not plain. None stands for the value itself.
FastPath: TypeAlias = ValueFunction | None


class Case(NamedTuple):
    """One case of the fast path of a type: for the values that those before it leave out."""

    function: FastPath
    #: Tells the address of values for which the path may write. It is None if the path never
    #: writes, and `NotImplemented` if address, dtype and shape do not tell the elements.
    address_of: ValueFunction | None
    #: Whether it leads to another device.
    moves: bool = False
    #: What it calls, if that depends on the fast key of the value.
    calls: Calls | None = None
    #: Whether the path takes ``stream=``.
    takes_stream: bool = False


@dataclass(slots=True)
class Path:
    """The fast path of a type: its cases in turn.

    Every call reads its function, for which slots take half the time of a named tuple.
    """

    function: FastPath
    #: The same without the cases that lead to another device.
    staying: FastPath
    cases: tuple[Case, ...]
    #: The first that takes ``stream=``, if one does.
    on_stream: Any = NotImplemented


#: The fast paths of types.
Paths: TypeAlias = Mapping[type, Path]
#: The cases of types, of which each takes what those before it leave out.
Cases: TypeAlias = Mapping[type, tuple[Case, ...]]
#: The entry of a type without a fast path.
NO_PATH = Path(NotImplemented, NotImplemented, ())


class Calls:
    """The functions that plans for plain and small values of one type call, by their fast keys.

    Parameters
    ----------
    key_of : callable
        The fast key of the values.
    """

    def __init__(self, key_of: ValueFunction) -> None:
        #: By the fast key of a value, the steps of its plan as one call; None if there are none.
        self.by_key: dict[object, FastPath] = {}
        #: By the same keys, the plans that can convert several values at once.
        self.batches: dict[object, Plan] = {}
        self.key_of = key_of
        #: The fast path that makes the calls.
        self.path = _path(key_of, self.by_key)


def _path(key_of: ValueFunction, by_key: Mapping[object, FastPath]) -> ValueFunction:
    def path(x: Value) -> Value:
        try:
            call = by_key.get(key_of(x), NotImplemented)
            return x if call is None else call if call is NotImplemented else call(x)
        except BaseException as error:
            if is_signal(error):
                raise
            return NotImplemented  # the plan, which is called then, says which step fails

    return path


def _defaults(default_dtype: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(map(default_dtype, NUMBERS))


def _in_turn(cases: Iterable[Case], untraced: Callable[[ValueFunction], ValueFunction]) -> FastPath:
    """Return the fast path that tries cases in turn; None takes all values."""
    path: FastPath = NotImplemented
    for case in cases:
        if path is NotImplemented:
            path = case.function
        elif path is not None and case.function is not None:
            path = untraced(_either(path, case.function))
    return path


def _either(first: Any, second: Any) -> ValueFunction:
    """Return the fast path that is the second where the first leaves a value out."""

    def path(x: Value) -> Value:
        result = first(x)
        return second(x) if result is NotImplemented else result

    return path


class PlanTable:
    """The plans of one request.

    Settings of a framework may change which dtypes its formats hold, and which ones it gives to
    numbers. Each of `states` returns the dtypes that a format cannot hold now, each of `defaults`
    those of numbers without a dtype, and plans are kept apart by these answers.

    A class of specs does not tell lengths, so that values whose shape has one order have the plans
    of `in_c_order` where the request is for Fortran order.
    """

    def __init__(
        self,
        request: Request,
        states: tuple[Callable[[], Set[str]], ...] = (),
        defaults: tuple[Callable[[], tuple[str, ...]], ...] = (),
        in_c_order: PlanTable | None = None,
    ) -> None:
        self.request = request
        self.in_c_order = in_c_order
        #: Whether fast paths are learnt: nothing tells plain values of one order from others.
        self.learns = in_c_order is None
        self.states = states
        self.defaults = defaults
        #: Whether a framework of the request is known to be installed.
        self.installed = False
        #: By class of spec.
        self.plans: dict[tuple[object, ...], Plan] = {}
        #: By type, for plain values.
        self.paths: dict[type, Path] = {}
        #: The cases of the types whose values are leaves of trees; never changed, but replaced.
        self.leaf_cases: Cases = {}
        #: For the classes that have no plan, the nearest routes, which are refused.
        self.refusals: dict[tuple[object, ...], list[Value]] = {}

    def table_for(self, spec: Spec) -> PlanTable:
        """Return the plans for a spec, which are the same for all but in Fortran order."""
        return self if self.in_c_order is None or not has_one_order(spec) else self.in_c_order

    def key(self, spec: Spec) -> tuple[object, ...]:
        """Return the key of the class of a spec under the settings of this moment."""
        states = self.states if WEAK.isdisjoint(spec.traits) else (*self.states, *self.defaults)
        key = spec_class(spec)
        return (*key, *(state() for state in states)) if states else key

    def clear(self) -> None:
        """Forget all plans."""
        self.installed = False
        self.plans.clear()
        self.paths.clear()
        self.leaf_cases = {}
        self.refusals.clear()


class TablesByDtype:
    """The plans of a request whose dtype depends on the dtype of the value.

    Parameters
    ----------
    tables : mapping of str to PlanTable
        By the dtypes of values.
    uncast : PlanTable
        For values of all other dtypes.
    """

    def __init__(self, tables: Mapping[str, PlanTable], uncast: PlanTable) -> None:
        self._tables = tables
        self._uncast = uncast
        self.learns = uncast.learns
        #: By type, for plain values, whose fast keys tell their dtypes.
        self.paths: dict[type, Path] = {}
        #: As for one `PlanTable`.
        self.leaf_cases: Cases = {}

    def clear(self) -> None:
        """Forget all fast paths."""
        self.paths.clear()
        self.leaf_cases = {}

    def table_for(self, spec: Spec) -> PlanTable:
        """Return the plans for a spec."""
        return self._tables.get(spec.dtype or "", self._uncast).table_for(spec)


#: The plans of what a call asks for.
Tables: TypeAlias = PlanTable | TablesByDtype
_Table = TypeVar("_Table", PlanTable, TablesByDtype)


class PlanCache:
    """Requests by their keywords, plans by request and class of spec, and fast paths by type."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.lock = threading.RLock()
        self._count = 0
        self._tables: dict[Request, PlanTable] = {}
        #: All tables that are in use, also by converters.
        self._used: WeakSet[PlanTable | TablesByDtype] = WeakSet()
        #: For the keywords and the policy of a call, the plans of what they ask for.
        self.by_keywords: dict[tuple[Any, ...], Tables] = {}
        #: By the key of a call, which stands for all its arguments but the value, the fast paths of
        #: its request.
        self.fast_paths: dict[object, Paths] = {}
        #: By the types of a value and of an ``out=``, what writes one into the other if it can.
        self.fills: dict[tuple[type, type], Callable[[Value, Value], bool]] = {}
        #: The routes for arrays of composite values, by request, dtypes that the target cannot hold
        #: now, and class of spec. A route that writes nothing serves all sizes: it is kept by kind
        #: of spec.
        self.array_routes: dict[tuple[object, ...], tuple[Step, ...] | None] = {}
        #: By type of values in ``like=``, what tells where they begin.
        self.addresses: dict[type, ValueFunction] = {}
        registry.on_change.append(self.clear)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._count = 0
            self._tables.clear()
            self.by_keywords.clear()
            self.fast_paths.clear()
            self.fills.clear()
            self.array_routes.clear()
            self.addresses.clear()
            # In place, since converters hold them.
            for table in self._used:
                table.clear()
                if isinstance(table, PlanTable):
                    table.states, table.defaults = self._settings(table.request)

    def keep(
        self, table: dict[Any, _Kept], key: object, value: _Kept, version: int | None = None
    ) -> _Kept:
        """Keep a value unless there is one, and return the one that is kept.

        Nothing is kept that was found from an older `version` of the registry.
        """
        with self.lock:
            if version is not None and version != self._registry.version:
                return value
            if key in table:
                return table[key]
            if self._count >= _MOST:
                self.clear()
            self._count += 1
            table[key] = value
            return value

    def link(self, key: object, paths: Paths, version: int) -> None:
        """Let calls with a key find the fast paths of their request."""
        try:
            if key not in self.fast_paths:
                self.keep(self.fast_paths, key, paths, version)
        except TypeError:  # a list of targets, a set of effects
            return

    def keep_case(self, tables: Tables, kind: type, case: Case, version: int) -> None:
        """Keep a fast path for the values of a type that those kept before do not take."""
        with self.lock:
            cases = tables.paths.get(kind, NO_PATH).cases
            if case in cases or len(cases) >= _MOST_CASES or version != self._registry.version:
                return
            cases = (*cases, case)
            untraced = self._registry.untraced
            staying = [case for case in cases if not case.moves]
            on_stream = (case.function for case in cases if case.takes_stream)
            path = Path(
                _in_turn(cases, untraced),
                _in_turn(staying, untraced),
                cases,
                next(on_stream, NotImplemented),
            )
            self.keep(tables.paths, kind, path)  # counts a new type
            tables.paths[kind] = path
            # Numbers and memory of Python's own count as arrays only outside of trees.
            if kind.__module__ != "builtins":
                tables.leaf_cases = {**tables.leaf_cases, kind: cases}

    def used(self, table: _Table) -> _Table:
        """Return a table that will be cleared with all others."""
        with self.lock:
            self._used.add(table)
        return table

    def table(self, request: Request) -> PlanTable:
        """Return the table of a request."""
        table = self._tables.get(request)
        if table is None:
            with self.lock:
                in_order = request._replace(order="C")
                in_c_order = self.table(in_order) if request.order == "F" else None
                table = PlanTable(request, *self._settings(request), in_c_order)
                return self.used(self.keep(self._tables, request, table))
        return table

    def _settings(
        self, request: Request
    ) -> tuple[tuple[Callable[[], Set[str]], ...], tuple[Callable[[], tuple[str, ...]], ...]]:
        """Return what tells of the settings that a request's plans depend on: states, defaults."""
        formats = self._registry.formats
        # A wrapper holds the dtypes of the format that it wraps, which may be any.
        wraps = any(name in formats and formats[name].wrapper for name in request.formats)
        states = tuple(
            partial(format_.limits.unsupported_now, request.device or format_.devices[0])
            for name, format_ in formats.items()
            if (wraps or name in request.formats) and format_.limits.unsupported_now is not None
        )
        defaults = tuple(
            partial(_defaults, default_dtype)
            for name in request.formats
            if name in formats and (default_dtype := formats[name].default_dtype) is not None
        )
        return states, defaults
