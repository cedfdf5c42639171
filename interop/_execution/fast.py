"""What a converter has learnt of one type: functions that convert plain values without a plan.

A conversion that shares memory takes a few hundred nanoseconds, so even a dozen bytecodes before it
are noticeable. What warm calls run is therefore one function a type, composed when it is learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from interop._model.blame import is_signal
from interop._model.dtype import itemsize
from interop._model.effect import WRITING
from interop._model.format import Format, itself
from interop._model.spec import WEAK, Spec, is_of_one_order
from interop._model.typing import Value, ValueFunction
from interop._planning.plan import Plan
from interop._planning.planner import Planner
from interop._planning.step import Step, handed_off
from interop._request.policy import Policy
from interop._request.request import Request

#: Bytes; values are small if they and their results have fewer. A few microseconds count for them,
#: so that they are copied on the host without asking how much memory is left.
SMALL = 2**24
#: How many declared fast paths of one type are tried in turn.
_MOST_PATHS = 4

#: The effects, permitted by default, of steps that write nothing.
_SHARING = Policy().permitted - WRITING

#: Adds what was learnt from one value to what is known of its type.
Lesson: TypeAlias = "Callable[[Fast], None]"


class Fast:
    """What a converter has learnt of the values of one type.

    All functions answer `NotImplemented` for a value that they leave out; None in the place of one
    stands for the value itself.

    Parameters
    ----------
    key_of : callable or None
        The fast key of the values.
    address_of : callable or None
        Tells where they begin.
    """

    __slots__ = (
        *("away", "batches", "by_key", "function", "key_of", "on_stream", "parts", "plain"),
        *("same", "sharing", "staying", "_address_of"),
    )

    def __init__(self, key_of: Any = None, address_of: Any = None) -> None:
        #: All that was learnt as one function; the same without what leads to another device; and
        #: the same without what writes.
        self.function: Any = NotImplemented
        self.staying: Any = NotImplemented
        self.sharing: Any = NotImplemented
        #: The first path that takes ``stream=``.
        self.on_stream: Any = NotImplemented
        #: For trees: functions to be tried in turn, each with what tells the addresses of values
        #: that it copies: None if it copies none, `NotImplemented` if nothing tells them.
        self.parts: tuple[tuple[Any, Any], ...] = ()
        self.key_of = key_of
        self._address_of = NotImplemented if address_of is None else address_of
        #: By the fast key of a value, the steps of its plan as one call: to its device, or away.
        self.by_key: dict[object, Any] = {}
        self.away: dict[object, Any] = {}
        #: By the same keys, the plans that can convert several values at once.
        self.batches: dict[object, Plan] = {}
        #: Declared paths, each with what `parts` say of it.
        self.plain: tuple[tuple[Any, Any], ...] = ()
        #: By the dtype of values that keep it, such a path.
        self.same: dict[object, Any] = {}

    def compose(self, untraced: Callable[[Any], Any]) -> None:
        """Compose the functions anew, and keep compilers from tracing into them."""
        same = _of_dtype(self.same, NotImplemented) if self.same else NotImplemented
        by_key = _by_key(self.key_of, self.by_key) if self.by_key else NotImplemented
        away = _by_key(self.key_of, self.away) if self.away else NotImplemented
        parts = (*self.plain, (same, None), (by_key, self._address_of), (away, self._address_of))
        self.parts = tuple(part for part in parts if part[0] is not NotImplemented)
        declared = [path for path, _ in self.plain]
        self.sharing = _in_turn([path for path, copied in self.parts if copied is None])
        self.staying = _in_turn([*declared, self._guarded(_in_turn([by_key]))])
        self.function = _in_turn([*declared, self._guarded(_in_turn([by_key, away]))])
        functions = [self.sharing, self.staying, self.function, *(path for path, _ in self.parts)]
        for function in functions:
            if callable(function):
                untraced(function)

    def _guarded(self, rest: Any) -> Any:
        """Return the path for the dtypes that are kept, and `rest` for all others."""
        return _of_dtype(self.same, rest) if self.same else rest


def _in_turn(paths: Iterable[Any]) -> Any:
    """Return the function that tries paths in turn; None takes all values."""
    function: Any = NotImplemented
    for path in paths:
        if function is NotImplemented:
            function = path
        elif function is not None and path is not NotImplemented:
            function = _either(function, path)
    return function


def _either(first: Any, second: Any) -> ValueFunction:
    """Return the function that is the second where the first leaves a value out."""
    if second is None:

        def either(x: Value) -> Value:
            result = first(x)
            return x if result is NotImplemented else result

    else:

        def either(x: Value) -> Value:
            result = first(x)
            return second(x) if result is NotImplemented else result

    return either


def _of_dtype(same: Mapping[object, Any], rest: Any) -> ValueFunction:
    """Return the function that is a declared path for some dtypes, and `rest` for all others."""
    rest = _left_out if rest is NotImplemented else rest
    if len(same) > 1:
        paths = dict(same)

        def of_dtypes(x: Value) -> Value:
            path = paths.get(x.dtype, rest)
            if path is None:
                return x
            result = path(x)
            return rest(x) if result is NotImplemented else result

        return of_dtypes
    ((dtype, path),) = same.items()
    if path is None:
        return lambda x: x if x.dtype is dtype else rest(x)
    if rest is _left_out:
        return lambda x: path(x) if x.dtype is dtype else NotImplemented

    def of_dtype(x: Value) -> Value:
        if x.dtype is dtype:
            result = path(x)
            if result is not NotImplemented:
                return result
        return rest(x)

    return of_dtype


def _left_out(_: Value) -> Any:
    return NotImplemented


def _by_key(key_of: ValueFunction, by_key: Mapping[object, Any]) -> ValueFunction:
    """Return the function that makes the call of the fast key of a value."""

    def call_of_key(x: Value) -> Value:
        try:
            call = by_key.get(key_of(x), NotImplemented)
            return x if call is None else call if call is NotImplemented else call(x)
        except BaseException as error:
            if is_signal(error):
                raise
            return NotImplemented  # the plan, which is called then, says which step fails

    return call_of_key


# ---------------------------------------------------------------------- what a value teaches


def lesson(
    x: Value,
    result: Value,
    spec: Spec,
    plan: Plan,
    request: Request,
    *,
    planner: Planner,
    guarded: bool,
) -> Lesson | None:
    """Return what the plan of a value teaches of others of its type, or None.

    Parameters
    ----------
    x, result, spec, plan, request
        The value, what it was converted to, its spec, the plan that converted it, and the request
        of that plan.
    planner : Planner
    guarded : bool
        Whether other plans of the converter are for values of other dtypes.
    """
    formats = planner.graph.formats
    source = formats[spec.format]
    if (
        not _forgets(plan.steps, formats)
        and _serves(request, plan, source, formats)
        and planner.comes_first(plan.steps, request.formats)
    ):
        path = planner.fast_path(plan.steps, request.dtype) if plan.steps else source.fast_path
        # Of numbers without a dtype, the path knows the one that is asked for.
        guarded |= request.dtype is not None and WEAK.isdisjoint(source.carries)
        if path is not None and not guarded:
            return _declared(path, plan, source)
        if path is not None and _keeps_dtype(spec, plan, request, source):
            return _guarded(x, result, path, plan, source)
    return None


def _declared(path: ValueFunction, plan: Plan, source: Format) -> Lesson:
    """Return the lesson of a path that formats declare for all values of a type."""
    # Two values are the same elements in the same memory only where a format tells memory.
    copied = NotImplemented if not plan.zero_copy and source.memory is not None else None
    takes_stream = [(path, ("stream",))] == [(step.hand_off, step.wants) for step in plan.steps]
    function = None if path is itself else path

    def add(fast: Fast) -> None:
        if len(fast.plain) < _MOST_PATHS and function not in [path for path, _ in fast.plain]:
            fast.plain = (*fast.plain, (function, copied))
        if takes_stream and fast.on_stream is NotImplemented:
            fast.on_stream = function

    return add


def _guarded(
    x: Value, result: Value, path: ValueFunction, plan: Plan, source: Format
) -> Lesson | None:
    """Return the lesson of a declared path for values of one dtype.

    That of values with an address is known before the call. Of others, such as tables, the result
    tells it, which shares their memory.
    """
    if source.advanced.address is not None:
        dtype, function = x.dtype, None if path is itself else path

        def add(fast: Fast) -> None:
            fast.same = {**fast.same, dtype: function}

        return add
    dtype = getattr(result, "dtype", None)
    if dtype is None:
        return None

    def checked(x: Value) -> Value:
        result = path(x)
        return result if getattr(result, "dtype", None) is dtype else NotImplemented

    return _declared(checked, plan, source)


def with_shape(key_of: ValueFunction) -> ValueFunction:
    """Return the fast key of calls in Fortran order.

    Shapes that C and Fortran order are the same for have other plans in it.
    """

    def key_with_shape(x: Value) -> Any:
        key = key_of(x)
        return None if key is None else (key, is_of_one_order(x.shape))

    return key_with_shape


def call_lesson(
    x: Value, spec: Spec, plan: Plan, key_of: ValueFunction | None, learnt: Fast | None
) -> Lesson | None:
    """Return the lesson of what a plan calls for values with the fast key of `x`, if it is new.

    What fills memory of the host has to be small.
    """
    if key_of is None or plan._allocates:
        return None
    if plan._fills_host and _most_bytes(plan.steps, spec) >= SMALL:
        return None
    try:
        key = key_of(x)
    except BaseException as error:
        if learnt is None or is_signal(error):
            raise
        return None  # others of its type have keys, and it was converted by its plan
    if key is None or (learnt is not None and (key in learnt.by_key or key in learnt.away)):
        return None
    call = _call(plan.steps)
    moves = any(step.before.device != step.after.device for step in plan.steps)

    def add(fast: Fast) -> None:
        # Another format of the type, which came first, may have no keys.
        fast.key_of = fast.key_of or key_of
        calls = fast.away if moves else fast.by_key
        calls.setdefault(key, call)
        if plan._batch is not None:
            fast.batches.setdefault(key, plan)

    return add


def _keeps_dtype(spec: Spec, plan: Plan, request: Request, source: Format) -> bool:
    """Return whether the dtype of a value tells that the path of its plan serves.

    What keeps it and writes nothing does so for all values that the path takes. Where no dtype is
    asked for, it has to be that of the values, which those with an address tell.
    """
    dtypes = {spec.dtype} if source.advanced.address is None else {None, spec.dtype}
    return (
        request.dtype in dtypes
        and plan.zero_copy
        and all(step.after.dtype == spec.dtype for step in plan.steps)
    )


def _serves(request: Request, plan: Plan, source: Format, formats: Mapping[str, Format]) -> bool:
    """Return whether the fast path of a plan serves a request for every value that it takes.

    Fast paths know no order, and no device but that of the value. They have only effects that are
    permitted by default, and where one plan writes nothing, the others write nothing either.
    """
    names, _, device, copy, policy, _, division, order, columns, _ = request
    effects = _SHARING if plan.zero_copy else Policy().permitted
    if division or order or not policy.permitted >= effects:
        return False
    if not plan.zero_copy and policy.permitted != effects:
        return False  # another effect may permit a better route
    if columns is not None and source.is_table:  # each column has a dtype of its own
        return False
    stays = device is None or ("cpu",) in (source.devices, formats[names[0]].devices)
    if not stays or device not in {None, "cpu"}:
        return False
    if copy is True:  # numbers without a dtype have no memory, so that what is made of them is new
        within = any(step.before.format == step.after.format for step in plan.steps)
        return bool(plan.steps) and not within and not WEAK.isdisjoint(source.carries)
    # Whoever adopts a table may join the chunks of another.
    may_join = source.is_table and any(step.hand_off is not None for step in plan.steps)
    return copy is None or (copy is False and plan.zero_copy and not may_join)


def _forgets(steps: Sequence[Step], formats: Mapping[str, Format]) -> bool:
    """Return whether a format on the way lacks a trait that the source and the target carry.

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


def _call(steps: Sequence[Step]) -> Any:
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
