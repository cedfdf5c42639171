"""The fast path: functions that convert plain values without a plan.

A conversion that shares memory takes a few hundred nanoseconds, so even a dozen bytecodes before it
are noticeable.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Any

from interop._model.format import Format, itself
from interop._model.spec import Spec
from interop._model.typing import TargetLike, Value, ValueFunction
from interop._planning.cache import FastPath, Paths, PlanCache, PlanTable
from interop._planning.plan import Plan, StepDeclined
from interop._planning.planner import Planner
from interop._planning.policy import Block, Policy
from interop._planning.request import Request
from interop._registry.registry import Registry
from interop.errors import InteropError

#: Bytes; values with fewer are small. A few microseconds count for them, so that the engine copies
#: them without asking how much memory is left.
SMALL = 2**21

_BUILTINS = frozenset(kind for kind in vars(builtins).values() if isinstance(kind, type))
#: The keyword that has fast paths of its own, if no other is given.
_OUT = {"out"}
#: The keywords that take objects, which cannot be looked up.
_OBJECTS = frozenset({"like", "out", "stream"})
#: The types whose values pass through trees as they are.
_PASSED = frozenset({int, float, complex, bool, str, bytes, type(None)})
#: The entry of a type without a fast path.
NO_PATH: tuple[FastPath, bool] = (NotImplemented, False)


class _NotPlain(Exception):  # noqa: N818 - nothing is wrong
    """A value in a tree has no fast path."""


def with_fast_paths(
    full: Callable[..., Value],
    cache: PlanCache,
    block: ContextVar[Block | None],
    link: Callable[[object, Any, dict[str, Any]], None],
) -> Callable[..., Value]:
    """Return `full` behind the fast paths of every request.

    The function keeps its state in cells, because they are the cheapest to reach.

    Parameters
    ----------
    full : callable
    cache : PlanCache
        Has the fast paths by what a call says beside its value: by its target, or by the
        `_call_key` of the open block, the target and the keywords.
    block : ContextVar
    link : callable
        Is told what a call said that was carried out in full.
    """
    tables, fills, fast_keys = cache.fast_paths, cache.fills, cache.fast_keys

    @wraps(full)
    def convert(x: Value, /, to: TargetLike | None = None, **keywords: Any) -> Value:
        innermost = block.get()
        key: Any = to
        if keywords or innermost is not None:
            key = _call_key(fast_keys, innermost, to, keywords)
            if key is None:
                if innermost is None and to is None and keywords.keys() == _OUT:
                    out = keywords["out"]
                    fill = fills.get((type(x), type(out)))
                    if fill is not None and fill(x, out):
                        return out
                return full(x, to, **keywords)
        try:
            fast_path, _ = tables[key][type(x)]
        except (KeyError, TypeError):
            pass  # converted below, so that no KeyError stands in the traceback of a later error
        else:
            if fast_path is None:
                return x
            result = fast_path(x)
            if result is not NotImplemented:
                return result
        result = full(x, to, **keywords)
        link(key, to, keywords)
        return result

    # The marks of compilers are kept, but not the signature of the method, which has `self`.
    vars(convert).pop("__signature__", None)
    return convert


def with_fast_paths_to(
    full: ValueFunction, paths: Paths, block: ContextVar[Block | None]
) -> ValueFunction:
    """Return `full`, which takes a value alone, behind the fast paths of its request."""

    def converted(x: Value, /) -> Value:
        innermost = block.get()
        if innermost is None or innermost.trace is None:
            try:
                fast_path, _ = paths[type(x)]
            except KeyError:
                pass
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        return full(x)

    converted.__qualname__ = "converter"  # as errors of Python's name it
    return converted


def _call_key(
    fast_keys: Mapping[type, ValueFunction],
    innermost: Block | None,
    to: Any,
    keywords: Mapping[str, Any],
) -> tuple[Any, ...] | None:
    """Return the key of a call, whatever its value, or None if such calls take no fast paths.

    The key has the type of each keyword, because 1 equals True, and is refused. The value in
    ``like=`` is replaced by its fast key, which decides the request.
    """
    policy = None
    if innermost is not None:
        policy, trace = innermost
        if trace is not None:
            return None
    key: tuple[Any, ...] = policy, to
    for name, value in keywords.items():
        type_ = type(value)
        if name in _OBJECTS and value is not None:
            key_of = fast_keys.get(type_) if name == "like" else None
            value = None if key_of is None else key_of(value)  # noqa: PLW2901 - sooner
            if value is None:
                return None
        key += name, value, type_
    return key


def leaf_path(kind: type, paths: Paths) -> FastPath:
    """Return the fast path of a type inside a tree.

    It is None if values pass as they are, and `NotImplemented` for containers and for types without
    a fast path. Numbers and memory of Python's own count as arrays only outside of trees.
    """
    if kind in _BUILTINS:
        return None if kind in _PASSED else NotImplemented
    return paths.get(kind, NO_PATH)[0]


def fast_leaf(value: Value, path: FastPath) -> Value:
    """Return the result of a fast path for a value, or `NotImplemented`."""
    if path is None:
        return value
    if path is NotImplemented:
        return NotImplemented
    try:
        return path(value)
    except InteropError:  # raised again by code that can say where in the tree it came up
        return NotImplemented


def fast_tree(
    tree: Value, paths: Paths, converted: dict[int, tuple[Value, Value]], *, share: bool = False
) -> Value:
    """Return a tree of plain containers, with the arrays in it converted by their fast paths.

    Parameters
    ----------
    tree : object
    paths : mapping of type to fast path
        For the types whose values count as arrays inside a tree.
    converted : dict
        Takes up every array and its result, in order. The keys are the arrays' `id`, so that an
        array that occurs twice is converted once.
    share : bool, default False
        Whether no fast path may copy, because two arrays over the same memory get one copy.

    Returns
    -------
    object
        `NotImplemented` if anything in the tree is not plain; no array is copied then.
    """
    # An error is raised again by code that can say where in the tree it came up.
    try:
        return _grown(tree, paths, converted, share)
    except (_NotPlain, RecursionError, InteropError):
        return NotImplemented


def _grown(
    value: Value, paths: Paths, converted: dict[int, tuple[Value, Value]], share: bool
) -> Value:
    kind = type(value)
    path, shares = paths.get(kind, NO_PATH)
    if path is NotImplemented or kind in _BUILTINS:  # as in `leaf_path`
        return value if kind in _PASSED else _opened(kind, value, paths, converted, share)
    if share and not shares:
        raise _NotPlain
    address = id(value)
    if address in converted:
        return converted[address][1]
    result = value if path is None else path(value)
    if result is NotImplemented:
        raise _NotPlain
    converted[address] = value, result
    return result


def _opened(
    kind: type,
    value: Value,
    paths: Paths,
    converted: dict[int, tuple[Value, Value]],
    share: bool,
) -> Value:
    if kind is dict:
        return {name: _grown(child, paths, converted, share) for name, child in value.items()}
    if kind is list or kind is tuple:
        return kind([_grown(child, paths, converted, share) for child in value])
    if kind is not OrderedDict:
        raise _NotPlain
    new = copy(value)  # with the attributes that a state dict has
    for name, child in value.items():
        new[name] = _grown(child, paths, converted, share)
    return new


class FastPaths:
    """Learns fast paths from values that were converted in full."""

    def __init__(self, registry: Registry, planner: Planner, cache: PlanCache) -> None:
        self._registry = registry
        self._planner = planner
        self._cache = cache

    def learn(self, x: Value, spec: Spec, plan: Plan, table: PlanTable, version: int) -> None:
        """Keep the fast path for values of the very type of `x`, if its route has one."""
        registry, keep, kind = self._registry, self._cache.keep, type(x)
        if kind in plan.fast_types:
            return
        # The first route of a type may have no fast path, so every plan is asked once.
        keep(plan.fast_types, kind, True, version)
        source = registry.formats[spec.format]
        if plan.warning or not registry.is_plain(kind, source):
            return
        steps, path = plan.steps, None
        if _serves(table.request, plan, source, registry.formats):
            path = self._planner.fast_path(steps) if steps else source.fast_path
        shares = path is not None and not plan.writes
        if path is None:
            path = self._planned_path(x, spec, plan, table, version)
        if path is not None:
            # A compiler must not trace into it.
            function = None if path is itself else registry.untraced(path)
            keep(table.fast_paths, kind, (function, shares), version)

    def _planned_path(
        self, x: Value, spec: Spec, plan: Plan, table: PlanTable, version: int
    ) -> ValueFunction | None:
        """Keep the plan by the fast key of `x` if `x` is plain and small; return the path to it."""
        formats, steps = self._registry.formats, plan.steps
        source, keep, kind = formats[spec.format], self._cache.keep, type(x)
        if source.fast_key is None or plan.allocates or spec.nbytes >= SMALL:
            return None
        key = None if table.states or table.request.like else source.fast_key(x)
        if key is None:
            return None
        plans = keep(table.plans_by_key, kind, {}, version)
        keep(plans, key, plan, version)
        path = _path_by_key(plans, source.fast_key)
        share = self._planner.fast_path(steps[:1]) if steps else None
        key_of = formats[steps[0].after.format].fast_key if share else None
        if share is None or key_of is None or not _is_default(table.request.policy):
            return path
        view = share(x)
        key = None if view is NotImplemented else key_of(view)
        if key is None:
            return path
        calls = keep(table.calls_on_view, share, {}, version)
        keep(calls, key, _call(plan.calls[1:]), version)
        return _path_by_view(calls, share, key_of, path)


def _serves(request: Request, plan: Plan, source: Format, formats: Mapping[str, Format]) -> bool:
    """Tell whether the fast path of a plan serves a request for every value that it takes.

    Fast paths know only the default policy, no dtype, and no device but that of the value.
    """
    names, dtype, device, copy, policy, _, division = request
    if dtype or division or not _is_default(policy):
        return False
    if len(names) > 1 and plan.steps:
        return False
    stays = device is None or ("cpu",) in (source.devices, formats[names[0]].devices)
    return stays and device in {None, "cpu"} and not copy and (copy is None or not plan.writes)


def _is_default(policy: Policy) -> bool:
    return policy.permitted == Policy().permitted


def _call(calls: Sequence[ValueFunction]) -> FastPath:
    """Return the calls of several steps as one, or None if there are none."""
    if len(calls) < 2:
        return calls[0] if calls else None

    def call(value: Value) -> Value:
        for call in calls:
            value = call(value)
        return value

    return call


def _path_by_key(plans: Mapping[object, Plan], key_of: ValueFunction) -> ValueFunction:
    """Return the fast path of a type whose plans are kept by the keys of its plain values."""

    def path(x: Value) -> Value:
        plan = plans.get(key_of(x))
        if plan is None:
            return NotImplemented
        try:
            return plan(x)
        except StepDeclined:
            return NotImplemented

    return path


def _path_by_view(
    calls: Mapping[object, FastPath],
    share: ValueFunction,
    key_of: ValueFunction,
    otherwise: ValueFunction,
) -> ValueFunction:
    """Return the fast path of a type whose plans begin with a view.

    The view has a fast key sooner than the value itself. The calls that remain are kept by that
    key.
    """

    def path(x: Value) -> Value:
        view = share(x)
        if view is not NotImplemented:
            call = calls.get(key_of(view), NotImplemented)
            if call is None:
                return view
            if call is not NotImplemented:
                try:
                    return call(view)
                except Exception:  # noqa: BLE001 - the whole plan says which step fails
                    return otherwise(x)
        return otherwise(x)

    return path
