"""The fast path: functions that convert plain values without a plan.

A conversion that shares memory takes a few hundred nanoseconds, so even a dozen bytecodes before it
are noticeable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any

from interop._model.device import PAGE_LOCKED
from interop._model.dtype import itemsize
from interop._model.format import Format, itself
from interop._model.frames import shortened
from interop._model.spec import Spec
from interop._model.typing import TargetLike, Value, ValueFunction
from interop._planning.cache import (
    NO_PATH,
    Calls,
    Case,
    FastPath,
    Paths,
    PlanCache,
    PlanTable,
    Tables,
)
from interop._planning.plan import Plan
from interop._planning.planner import Planner
from interop._planning.step import Step, handed_off
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.policy import Block, Policy
from interop._request.request import Request
from interop.errors import InteropError

#: Bytes; values are small if they and their results have fewer. A few microseconds count for them,
#: so that they are copied on the host without asking how much memory is left.
SMALL = 2**24
#: How many times as many bytes a value may have that takes the path of another: see `size_class`.
SIZES = 4

#: Stands for no argument. Keyword-only parameters would say that there is none, but their defaults
#: are looked up by name at every call.
_NONE = object()

#: The keyword that has fast paths of its own, if no other is given.
_OUT = {"out"}
#: The keyword that a hand-off takes.
_STREAM = {"stream"}
#: The keywords that the function does not name.
_OTHERS = {"out", "allow", "forbid", "order", "stream"}
#: The keywords that take objects, which cannot be looked up.
_UNKEYED = frozenset({"out", "stream"})
#: The types of the words for ``copy=``.
_COPIES = frozenset({type(None), bool, str})


def with_fast_paths(
    full: Callable[..., Value],
    cache: PlanCache,
    block: ContextVar[Block | None],
    in_full: Callable[[Value, Keywords, object], Value],
) -> Callable[..., Value]:
    """Return `full` behind the fast paths of every request.

    The function keeps its state in cells, because they are the cheapest to reach.

    Parameters
    ----------
    full : callable
        Has the signature and the docstring.
    cache : PlanCache
        Has the fast paths by the key of a call: its target alone; its target, dtype, device and
        copy; or the `_longer_key` of all its keywords and the policy of the block around it.
    block : ContextVar
    in_full : callable
        ``in_full(x, keywords, key)`` converts a value without a fast path, and lets calls with that
        key find the paths of their request. A call whose key is None finds none.
    """
    paths, fills, addresses = cache.fast_paths, cache.fills, cache.addresses

    @wraps(full)
    def convert(  # noqa: PLR0912, PLR0917 - any function that it called would be noticeable
        x: Value,
        /,
        to: TargetLike | None = None,
        excess: Any = _NONE,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: Any = None,
        **others: Any,
    ) -> Value:
        try:
            innermost = block.get()
            key: Any = to
            if (
                dtype is not None
                or device is not None
                or copy is not None
                or like is not None
                or others
                or innermost is not None
                or excess is not _NONE
            ):
                if excess is not _NONE:
                    return full(x, to, excess)  # which says that there is one argument too many
                # A dict does not hash, so its items stand in the key.
                hashable = dtype if type(dtype) is not dict else (dict, *dtype.items())
                if not others and like is innermost is None and type(copy) in _COPIES:
                    key = to, hashable, device, copy
                elif (
                    others.keys() == _OUT
                    and innermost is to is like is dtype is device is copy is None
                ):
                    out = others["out"]
                    fill = fills.get((type(x), type(out)))
                    if fill is not None and fill(x, out):
                        return out
                    key = None
                elif (
                    others.keys() == _STREAM
                    and innermost is like is dtype is device is copy is None
                ):
                    try:
                        result = paths[to][type(x)].on_stream(x, **others)
                    except (KeyError, TypeError):  # there is none, or `to` does not hash
                        result = NotImplemented
                    if result is NotImplemented:
                        result = in_full(x, Keywords(to, **others), to)
                    return result
                else:
                    key = to, hashable, device, copy
                    key = _longer_key(key, like, addresses, innermost, others)
            try:
                fast_path = paths[key][type(x)].function
            except (KeyError, TypeError):
                pass  # converted below: no KeyError is to stand in the traceback of a later error
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
            if not others.keys() <= _OTHERS:
                return full(x, to, **others)  # which says which one there is not
            return in_full(x, Keywords(to, like, dtype, device, copy, **others), key)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error

    return convert


class Converter:
    """Converts values under one request, by its fast paths where there are any.

    Callers get its method `convert`: to call that takes as long as to call a function, and it can
    be pickled, as this is.

    Parameters
    ----------
    full : callable
        Converts a value without a fast path.
    paths : mapping of type to fast path
    block : ContextVar
    pickled : callable
        Returns what `__reduce__` has to.
    keywords : object
        The request as text.
    """

    __slots__ = ("_block", "_full", "_keywords", "_paths", "_pickled")

    def __init__(
        self,
        full: ValueFunction,
        paths: Paths,
        block: ContextVar[Block | None],
        pickled: Callable[[], tuple[Any, ...]],
        keywords: object,
    ) -> None:
        self._full = full
        self._paths = paths
        self._block = block
        self._pickled = pickled
        self._keywords = keywords

    def __repr__(self) -> str:
        return f"converter({self._keywords})"

    def convert(self, x: Value, /) -> Value:
        """Convert a value."""
        innermost = self._block.get()
        if innermost is None or not innermost.traces:
            try:
                fast_path = self._paths[type(x)].function
            except KeyError:
                pass
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        try:
            return self._full(x)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error

    def __reduce__(self) -> tuple[Any, ...]:
        return self._pickled()


def _longer_key(
    key: tuple[object, ...],
    like: Any,
    addresses: Mapping[type, ValueFunction],
    innermost: Block | None,
    others: Mapping[str, Any],
) -> tuple[object, ...] | None:
    """Return the key of a call with rarer keywords or in a block, or None if it has no fast paths.

    In the place of the value in ``like=`` stands what decides the request: its type, dtype and
    device.
    """
    if innermost is not None and innermost.traces:
        return None
    if type(key[-1]) not in _COPIES or not _UNKEYED.isdisjoint(others):  # 1 equals True
        return None
    if like is not None:
        address_of = addresses.get(type(like))
        try:
            if address_of is None or not address_of(like):
                return None
        except RuntimeError:  # it has no memory, and may be of another format
            return None
        key += type(like), like.dtype, getattr(like, "device", None)
    return (*key, innermost and innermost.policy, *others.items())


class FastPaths:
    """Learns fast paths from values that were converted in full."""

    def __init__(self, registry: Registry, planner: Planner, cache: PlanCache) -> None:
        self._registry = registry
        self._planner = planner
        self._cache = cache

    def learn(  # noqa: PLR0917 - on the way of every conversion
        self, x: Value, spec: Spec, plan: Plan, table: PlanTable, tables: Tables, version: int
    ) -> None:
        """Keep the fast path for values of the very type of `x`, if its route has one.

        The `table` is one of the `tables`, which keep the path. If there are several, by dtypes,
        the path looks at the fast key of a value, which tells its dtype.
        """
        registry, kind = self._registry, type(x)
        # What tells plain values apart does not say whether their memory is page-locked.
        is_locked = table.request.device == PAGE_LOCKED
        if (tables, kind) in plan.asked or is_locked or not tables.learns:
            return
        # The first route of a type may have no fast path, so every plan is asked once.
        self._cache.keep(plan.asked, (tables, kind), True, version)
        source = registry.formats[spec.format]
        if plan.warning or not registry.is_plain(kind, source):
            return
        steps, path = plan.steps, None
        if (
            tables is table
            and not _forgets(steps, registry.formats)
            and _serves(table.request, plan, source, registry.formats)
            and self._planner.comes_first(steps, table.request.formats)
        ):
            path = self._planner.fast_path(steps) if steps else source.fast_path
        if path is not None:
            function = None if path is itself else path
            takes_stream = [(path, ("stream",))] == [(step.hand_off, step.wants) for step in steps]
            # Two values are the same elements in the same memory only where a format tells memory.
            address_of = NotImplemented if plan.writes and source.memory is not None else None
            case = Case(function, address_of, takes_stream=takes_stream)
        else:
            learnt = self._learn_call(x, spec, plan, table, tables, version)
            if learnt is None:
                return
            case = learnt
        if case.function is not None:  # a compiler must not trace into it
            registry.untraced(case.function)
        self._cache.keep_case(tables, kind, case, version)

    def _learn_call(  # noqa: PLR0917 - called in one place
        self,
        x: Value,
        spec: Spec,
        plan: Plan,
        table: PlanTable,
        tables: Tables,
        version: int,
    ) -> Case | None:
        """Keep what the plan calls for values like `x`, if `x` is plain.

        What fills memory of the host has to be small.

        Return the case of all that is kept for its type, on its device or to another.
        """
        formats, steps, keep = self._registry.formats, plan.steps, self._cache.keep
        key_of = formats[spec.format].fast_key
        if key_of is None or plan.allocates:
            return None
        if plan.fills_host and _most_bytes(steps, spec) >= SMALL:
            return None
        key = None if table.states or table.request.like else key_of(x)
        if key is None:
            return None
        moves = any(step.before.device != step.after.device for step in steps)
        cases = tables.paths.get(type(x), NO_PATH).cases
        same = (case for case in cases if case.calls is not None and case.moves is moves)
        address_of = formats[spec.format].advanced.address or NotImplemented
        calls = Calls(key_of)
        case = next(same, Case(calls.path, address_of, moves, calls))
        calls = case.calls or calls
        keep(calls.by_key, key, _call(plan.steps), version)
        if plan.batch is not None:
            keep(calls.batches, key, plan, version)
        return case


def _serves(request: Request, plan: Plan, source: Format, formats: Mapping[str, Format]) -> bool:
    """Tell whether the fast path of a plan serves a request for every value that it takes.

    Fast paths know only the default policy, no dtype, no order, and no device but that of the
    value.
    """
    names, dtype, device, copy, policy, _, division, order = request
    if dtype or division or order or not _is_default(policy):
        return False
    stays = device is None or ("cpu",) in (source.devices, formats[names[0]].devices)
    return stays and device in {None, "cpu"} and not copy and (copy is None or not plan.writes)


def _forgets(steps: Sequence[Step], formats: Mapping[str, Format]) -> bool:
    """Tell whether a format on the way lacks a trait that the source and the target carry.

    A value with that trait takes another route: a tensor in a graph stays in the graph if the
    result is a tensor, so it must not pass through an array that knows no graph.
    """
    if len(steps) < 2:
        return False
    ends = formats[steps[0].before.format].carries & formats[steps[-1].after.format].carries
    return any(ends - formats[step.after.format].carries for step in steps[:-1])


def _most_bytes(steps: Sequence[Step], spec: Spec) -> float:
    """Return the bytes of a value or of a result of its steps, whichever has the most."""
    own = itemsize(spec.dtype)
    return spec.nbytes * max((1.0, *(itemsize(step.after.dtype) / own for step in steps)))


def _is_default(policy: Policy) -> bool:
    return policy.permitted == Policy().permitted


def _call(steps: Sequence[Step]) -> FastPath:
    """Return the calls of several steps as one, or None if there are none."""
    calls = [handed_off(step) for step in steps]
    if len(calls) < 2:
        return calls[0] if calls else None
    if len(calls) == 2:  # without a loop, for most casts and copies
        first, second = calls
        return lambda value: second(first(value))

    def call(value: Value) -> Value:
        for call in calls:
            value = call(value)
        return value

    return call
