"""The fast path: plain values, which end here.

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
from interop._planning.cache import FastPath, PlanCache, PlanTable
from interop._planning.plan import Plan, StepDeclined
from interop._planning.planner import Planner
from interop._planning.policy import Block, Policy
from interop._planning.request import Request
from interop._registry.registry import Registry
from interop.errors import InteropError

from .trace import overlap

#: Bytes from which on a value is not small: the memory for its copy is looked at before. In
#: smaller ones a few microseconds count.
SMALL = 2**21

_BUILTINS = frozenset(kind for kind in vars(builtins).values() if isinstance(kind, type))
#: The keyword that takes a path of its own, if it stands alone.
_OUT = {"out"}
#: What passes through trees as it is.
_PASSED = frozenset({int, float, complex, bool, str, bytes, type(None)})


class _NotPlain(Exception):  # noqa: N818 - nothing is wrong
    """Something in a tree has no fast path."""


def with_fast_paths(
    full: Callable[..., Value],
    cache: PlanCache,
    block: ContextVar[Block | None],
    link: Callable[[object, Any, dict[str, Any]], None],
) -> Callable[..., Value]:
    """Return `full` behind the fast paths of every request.

    State in cells is what is cheapest to reach.

    Parameters
    ----------
    full : callable
    cache : PlanCache
        Has the fast paths by what a call says beside its value: by its target, or by the
        `call_key` of the open block, the target and the keywords.
    block : ContextVar
    link : callable
        Is told what a call said that was carried out in full.
    """
    tables, fills, call_key = cache.fast_paths, cache.fills, cache.call_key

    @wraps(full)
    def convert(x: Value, /, to: TargetLike | None = None, **keywords: Any) -> Value:
        innermost = block.get()
        key: Any = to
        if keywords or innermost is not None:
            key = call_key(innermost, to, keywords)
            if key is None:
                if innermost is None and to is None and keywords.keys() == _OUT:
                    out = keywords["out"]
                    fill = fills.get((type(x), type(out)))
                    if fill is not None and fill(x, out):
                        return out
                return full(x, to, **keywords)
        try:
            fast_path = tables[key][type(x)]
        except (KeyError, TypeError):
            pass  # converted below, so that no KeyError stands in the traceback of what follows
        else:
            if fast_path is None:
                return x
            result = fast_path(x)
            if result is not NotImplemented:
                return result
        result = full(x, to, **keywords)
        link(key, to, keywords)
        return result

    return convert


def with_fast_paths_to(
    full: ValueFunction, table: Mapping[type, FastPath], block: ContextVar[Block | None]
) -> ValueFunction:
    """Return `full`, which takes a value alone, behind the fast paths of its request."""

    def converted(x: Value, /) -> Value:
        innermost = block.get()
        if innermost is None or innermost.trace is None:
            try:
                fast_path = table[type(x)]
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


def fast_fill(path: FastPath, target: Format) -> Callable[[Value, Value], bool]:
    """Return what writes a value into an ``out=`` of a format, on the fast path that leads there.

    It tells whether it has. Nothing is written unless both are plain, alike and apart in memory.
    """
    key_of, memory, write = target.fast_key, target.memory, target.fill
    assert key_of is not None and memory is not None and write is not None  # noqa: PT018
    unwritable = target.limits.unwritable
    describe = None if target.devices == ("cpu",) else target.describe

    def fill(x: Value, out: Value) -> bool:
        value = x if path is None else path(x)
        if type(value) is not type(out):
            return False  # no fast path applies; the planner decides
        key = key_of(out)
        if key is None or key != key_of(value) or value.shape != out.shape:
            return False
        if describe is not None and describe(out).device != "cpu":
            return False
        if unwritable is not None and unwritable(out):
            return False
        if overlap(memory(value), memory(out)):
            return False
        write(out, value)
        return True

    return fill


def leaf_path(kind: type, paths: Mapping[type, FastPath]) -> FastPath:
    """Return what converts the values of a type inside a tree.

    It is None if they pass as they are, and `NotImplemented` for containers and for types without a
    fast path. A number counts as an array only if `others` says so, and so does memory of Python's
    own.
    """
    if kind in _BUILTINS:
        return None if kind in _PASSED else NotImplemented
    return paths.get(kind, NotImplemented)


def fast_leaf(value: Value, path: FastPath) -> Value:
    """Return what a path of a type makes of its value, or `NotImplemented`."""
    if path is None:
        return value
    if path is NotImplemented:
        return NotImplemented
    try:
        return path(value)
    except InteropError:  # raised again by whoever can say where in the tree it is
        return NotImplemented


def fast_tree(
    tree: Value, paths: Mapping[type, FastPath], converted: dict[int, tuple[Value, Value]]
) -> Value:
    """Return a tree of plain containers, with the arrays in it converted by their fast paths.

    Parameters
    ----------
    tree : object
    paths : mapping of type to FastPath
        Of types whose values count as arrays inside a tree.
    converted : dict
        Takes up every array and its result, in order. The keys are the arrays' `id`, by which an
        array that occurs twice is converted once.

    Returns
    -------
    object
        `NotImplemented` if anything in the tree is not plain; no array is copied then.
    """
    # What goes wrong does so again for whoever can say where in the tree it does.
    try:
        return _grown(tree, paths, converted)
    except (_NotPlain, RecursionError, InteropError):
        return NotImplemented


def _grown(
    value: Value, paths: Mapping[type, FastPath], converted: dict[int, tuple[Value, Value]]
) -> Value:
    kind = type(value)
    path = paths.get(kind, NotImplemented)
    if path is NotImplemented or kind in _BUILTINS:  # as in `leaf_path`
        return value if kind in _PASSED else _opened(kind, value, paths, converted)
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
    paths: Mapping[type, FastPath],
    converted: dict[int, tuple[Value, Value]],
) -> Value:
    if kind is dict:
        return {name: _grown(child, paths, converted) for name, child in value.items()}
    if kind is list or kind is tuple:
        return kind([_grown(child, paths, converted) for child in value])
    if kind is not OrderedDict:
        raise _NotPlain
    new = copy(value)  # with the attributes that a state dict has
    for name, child in value.items():
        new[name] = _grown(child, paths, converted)
    return new


class FastPaths:
    """Learns, from values that were converted in full, what fast paths those like them can take."""

    def __init__(self, registry: Registry, planner: Planner, cache: PlanCache) -> None:
        self._registry = registry
        self._planner = planner
        self._cache = cache

    def learn(self, x: Value, spec: Spec, plan: Plan, table: PlanTable, version: int) -> None:
        """Keep the fast path for values of the very type of `x`, if its route has one."""
        registry, keep, kind = self._registry, self._cache.keep, type(x)
        if kind in plan.fast_types:
            return
        # The first route of a type may have none, so that every plan is asked once.
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
            # A compiler may trace into it.
            entry = None if path is itself else registry.untraced(path)
            keep(table.fast_paths, kind, entry, version)
            if shares:
                keep(table.leaf_paths, kind, entry, version)

    def _planned_path(
        self, x: Value, spec: Spec, plan: Plan, table: PlanTable, version: int
    ) -> ValueFunction | None:
        """Keep a plan for values that are plain and small; return the path to it if `x` is one."""
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
    """Tell whether the fast path of a plan gives what is asked for, whatever the value.

    Fast paths know the default policy alone, no dtype, and no place but that of the value.
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

    The view tells plain values apart sooner than the values themselves, and what is left to call
    is kept by its key.
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
