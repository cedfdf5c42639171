"""Converters: a request, its plans by class of spec, and what it has learnt of types of values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, cast
from weakref import WeakSet

from interop._model.blame import shortened
from interop._model.device import PAGE_LOCKED, device_type, ordinary
from interop._model.dtype import DTYPES, NUMBERS, same_kind
from interop._model.format import Format
from interop._model.log import log
from interop._model.spec import (
    DIVISIONS,
    LIKENESS,
    WEAK,
    Spec,
    has_one_order,
    representative,
    spec_class,
)
from interop._model.typing import Value, ValueFunction
from interop._planning.explain import explanation, nearest_refused, refusal
from interop._planning.plan import Plan
from interop._planning.planner import Planner
from interop._planning.search import first
from interop._recognition.classes import imported
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.naming import adopt, dtypes_by_dtype
from interop._request.policy import block, current_policy
from interop._request.request import Request, resolved
from interop._text import lines
from interop.errors import BadRequestError, InteropError, RefusedError, UnknownValueError

from .engine import Engine, imaginary_loss_of, names_of
from .fast import Fast, call_lesson, lesson, with_shape

#: The values for which a ``dtype=`` is: those of its kind, all numbers, or all values.
Among: TypeAlias = Literal["kind", "numbers", "all"]
_Kept = TypeVar("_Kept")
_User = TypeVar("_User")

#: Entries that are kept: those of some 5,000 different requests. An entry has 0.3 to 1 KiB, all of
#: them 16 MiB at most.
_MOST = 16384

#: Python 3.11 makes a bound method of `block.get` at each call, because `block` is imported.
_innermost = block.get
_NO_KEYWORDS = Keywords()


class Converter:
    """Converts values under one request.

    Those that callers keep share plans and fast paths with that of their request, and have keywords
    of their own: the value in ``like=``, and the stream. They are pickled by these.

    Parameters
    ----------
    store : Converters
    request : Request
        If `choose` leads to others, that of values for which it does not.
    choose : callable, optional
        ``choose(spec)`` returns the converter for a value, None for this one: where the dtype of
        the result depends on that of the value, or its order on its shape.
    """

    __slots__ = (
        *("asked", "choose", "fast", "installed", "keywords", "learns", "learnt"),
        *(
            "leaves",
            "pickled",
            "plans",
            "request",
            "settings",
            "store",
            "weak_settings",
            "__weakref__",
        ),
    )

    def __init__(
        self,
        store: Converters,
        request: Request,
        choose: Callable[[Spec], Converter | None] | None = None,
    ) -> None:
        self.store = store
        self.request = request
        self.choose = choose
        #: Whether anything tells plain values that go by one plan from others.
        self.learns = True
        self.keywords = _NO_KEYWORDS
        self.pickled: Callable[[], tuple[Any, ...]] | None = None
        #: What warm calls look into: of each type, the function of `learnt`.
        self.fast: dict[type, Any] = {}
        #: All that was learnt, by type.
        self.learnt: dict[type, Fast] = {}
        #: The same without Python's own types, which count as arrays only outside of trees.
        self.leaves: dict[type, Fast] = {}
        #: By class of spec; for classes that have no plan, the reason.
        self.plans: dict[tuple[object, ...], Plan | RefusedError] = {}
        #: Of which plans and types something was learnt, or nothing could be: whether values with
        #: other fast keys may teach more.
        self.asked: dict[tuple[Plan, type], bool] = {}
        self.resolve()

    def resolve(self) -> None:
        """Find anew what depends on the registry beside the plans."""
        #: Whether a framework of the request is known to be installed.
        self.installed = False
        #: What tells of frameworks' settings, for all values, and for numbers without a dtype.
        self.settings, self.weak_settings = _settings(self.store.registry.formats, self.request)

    def forget(self) -> None:
        """Forget all that was planned and learnt; in place, since warm calls hold it."""
        for kept in (self.fast, self.learnt, self.leaves, self.plans, self.asked):
            kept.clear()
        self.resolve()

    def __repr__(self) -> str:
        return f"converter({self.keywords})"

    def __call__(self, x: Value, /) -> Value:
        """Convert a value."""
        innermost = _innermost()
        if innermost is None or not innermost.traces:
            try:
                fast = self.fast[type(x)]
            except KeyError:
                pass
            else:
                if fast is None:
                    return x
                result = fast(x)
                if result is not NotImplemented:
                    return result
        try:
            return self.convert(x, self.keywords)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error

    def __reduce__(self) -> tuple[Any, ...]:
        assert self.pickled is not None
        return self.pickled()

    def kept(self, keywords: Keywords, pickled: Callable[[], tuple[Any, ...]]) -> Converter:
        """Return a converter that a caller keeps."""
        kept: Converter = object.__new__(Converter)
        for name in Converter.__slots__[:-1]:
            setattr(kept, name, getattr(self, name))
        kept.keywords, kept.pickled = keywords, pickled
        if keywords.stream is not None or self.store.labels(keywords.like):
            kept.fast, kept.learns = {}, False  # no fast path knows these
        return self.store.used(kept)

    def chosen(self, spec: Spec) -> Converter:
        """Return the converter for a spec."""
        chosen = None if self.choose is None else self.choose(spec)
        return self if chosen is None else chosen.chosen(spec)

    def convert(self, x: Value, keywords: Keywords = _NO_KEYWORDS) -> Value:
        """Convert a value by its plan, and learn from it."""
        registry, recognition = self.store.registry, self.store.registry.recognition
        version = registry.version
        original, x = x, recognition.opened(x)
        spec = recognition.describe(x)
        chosen = self.chosen(spec)
        try:
            plan, request = chosen.plan(spec), chosen.request
        except RefusedError as error:
            if x is original or not any(word in str(error) for word in ("x.", "x[")):
                raise
            given = f"In this advice x is what interop.convert(x, to={spec.format!r}) returns."
            raise RefusedError(lines([str(error), given]), error.effects) from None
        words = request.step_keywords(keywords)
        result = self.store.engine.run(plan, x, spec, request, words)
        self.learn(x, result, spec, plan, chosen, version=version)
        if result is x is not original and recognition.format_of(original).name == spec.format:
            result = original  # what it was opened to only stands for it
        return result if keywords.like is None else recognition.relabelled(result, keywords.like)

    # ------------------------------------------------------------------ plans

    def key(self, spec: Spec) -> tuple[object, ...]:
        """Return the key of the class of a spec under the settings of this moment."""
        key = spec_class(spec)
        if self.settings:
            key += tuple([setting() for setting in self.settings])
        if self.weak_settings and not WEAK.isdisjoint(spec.traits):
            key += tuple([setting() for setting in self.weak_settings])
        return key

    def plan(self, spec: Spec, *, installed: bool = True) -> Plan:
        """Return the plan for the class of `spec`, found once.

        With `installed`, a target whose framework is missing is refused first.
        """
        store = self.store
        if installed and not self.installed:
            store.engine.check_installed(self.request)
            self.installed = True
        key = self.key(spec)
        plan = self.plans.get(key)
        if plan is None:
            return self._new_plan(key, spec)
        if isinstance(plan, RefusedError):  # a caller may try every value, and go on without it
            raise refusal(spec, self.request, plan)
        return plan

    def _new_plan(self, key: tuple[object, ...], spec: Spec) -> Plan:
        """Find a plan, or the reason why there is none, and keep what was found."""
        store, request = self.store, self.request
        registry, planner = store.registry, store.planner
        with store.engine.lock:
            if key in self.plans:  # another thread has found it meanwhile
                return self.plan(spec, installed=False)
            version = registry.version
            typical = representative(spec)
            searches = planner.searches(typical, request)
            route = first(searches)
            if route is None and registry.loader.load_all():  # a refusal names all ways out
                return self.plan(spec, installed=False)
            if route is None:
                nearest = list(nearest_refused(searches, request))
                reason = explanation(planner, typical, request, nearest)
                store.keep(self.plans, key, reason, version)
                raise _logged(refusal(spec, request, reason))
            steps = tuple(route[1])
            plan = Plan(typical, request, steps, warning=imaginary_loss_of(steps))
            kept = store.keep(self.plans, key, plan, version)
        log.debug("planned %s → %s: %s", spec, request, names_of(steps))
        return cast(Plan, kept)

    def refuses(self, spec: Spec) -> bool:
        """Return whether values of a spec are known to be refused."""
        return isinstance(self.plans.get(self.key(spec)), RefusedError)

    # ------------------------------------------------------------------ learning

    def learn(
        self, x: Value, result: Value, spec: Spec, plan: Plan, chosen: Converter, *, version: int
    ) -> None:
        """Learn how values of the very type of `x` are converted fast, if they can be.

        All that is learnt is learnt here. The plan is that of the converter that was `chosen`.
        """
        kind, store, request = type(x), self.store, chosen.request
        # What tells plain values apart does not say whether their memory is page-locked.
        if not self.asked.get((plan, kind), True) or not self.learns:
            return
        if request.device == PAGE_LOCKED:
            return
        source = store.registry.formats.get(spec.format)
        if source is None or not store.knows(kind, source):
            return
        key_of = source.fast_key
        if key_of is not None and self.request.order == "F":
            # The rows of objects have axes of their own.
            key_of = with_shape(key_of) if getattr(x, "shape", None) == spec.shape else None
        lessons, keyed = [], None
        if not plan._warning:
            guarded = chosen is not self
            lessons = [
                lesson(x, result, spec, plan, request, planner=store.planner, guarded=guarded)
            ]
            # Numbers without a dtype get the one that the settings of the target name.
            is_weak = request.dtype is None and not WEAK.isdisjoint(spec.traits)
            varies = chosen.settings or (is_weak and chosen.weak_settings)
            # Declared paths share, and leave out what is copied within a format, such as bytes.
            is_left_out = lessons == [None] or _copies_within(plan)
            if is_left_out and not (varies or request.like):
                keyed = call_lesson(x, spec, plan, key_of, self.learnt.get(kind))
                lessons.append(keyed)
        with store.lock:
            if version != store.registry.version:
                return
            store.count()  # which may forget all that there is
            # The first plan of a type may teach nothing.
            self.asked[plan, kind] = keyed is not None or self.asked.get((plan, kind), False)
            learnt = [learn for learn in lessons if learn is not None]
            if not learnt:
                return
            fast = self.learnt.get(kind) or Fast(key_of, source.advanced.address)
            for learn in learnt:
                learn(fast)
            fast.compose(store.registry.untraced)
            self.learnt[kind] = fast
            if kind.__module__ != "builtins":
                self.leaves[kind] = fast
            self.fast[kind] = fast.function


def _copies_within(plan: Plan) -> bool:
    """Return whether a plan copies, and has a step within a format."""
    return not plan.zero_copy and any(s.before.format == s.after.format for s in plan.steps)


class Converters:
    """The converters of one registry, by what calls ask for.

    Every change of the registry clears all that they keep. It is also emptied when it would exceed
    its bound: a program makes a handful of kinds of calls, and one that keeps making new kinds must
    not fill the memory. Converted values are never kept.
    """

    def __init__(self, registry: Registry, planner: Planner) -> None:
        self.registry = registry
        self.planner = planner
        self.engine = Engine(registry, planner, lambda request, spec: self.of(request).plan(spec))
        #: Held by whoever writes to what is kept. Nothing else is locked meanwhile.
        self.lock = threading.RLock()
        self._count = 0
        #: By the key of a call, which stands for all its arguments but the value.
        self.calls: dict[object, Converter] = {}
        self._by_keywords: dict[tuple[Any, ...], Converter] = {}
        self._by_request: dict[Request, Converter] = {}
        #: All that are in use, also by callers. Functions under `accepts` are among them.
        self._users: WeakSet[Any] = WeakSet()
        #: By the types of a value and of an ``out=``, what writes one into the other if it can.
        self.fills: dict[tuple[type, type], partial[bool]] = {}
        #: By type of values in ``like=``, what returns what decides the request.
        self.likes: dict[type, ValueFunction] = {}
        registry.on_change.append(self.forget)

    # ------------------------------------------------------------------ what is kept

    def forget(self) -> None:
        """Forget everything, in place: warm calls hold the dicts."""
        with self.lock:
            self._count = 0
            for kept in (self.calls, self._by_keywords, self._by_request, self.fills, self.likes):
                kept.clear()
            for user in list(self._users):
                user.forget()

    def count(self) -> None:
        """Count one more entry, before it is kept; forget everything if there are too many."""
        if self._count >= _MOST:
            self.forget()
        self._count += 1

    def keep(
        self, kept: dict[Any, _Kept], key: object, value: _Kept, version: int | None = None
    ) -> _Kept:
        """Keep a value unless there is one, and return the one that is kept.

        Nothing is kept that was found from an older `version` of the registry.
        """
        with self.lock:
            if version is not None and version != self.registry.version:
                return value
            if key in kept:
                return kept[key]
            self.count()
            kept[key] = value
            return value

    def used(self, user: _User) -> _User:
        """Return what has a method `forget`, which every change of the registry will call."""
        with self.lock:
            self._users.add(user)
        return user

    def link(self, key: object, converter: Converter, version: int) -> None:
        """Let calls with a key find their converter."""
        try:
            if key not in self.calls:
                self.keep(self.calls, key, converter, version)
        except TypeError:  # a list of targets, a set of effects
            return

    def knows(self, kind: type, format_: Format) -> bool:
        """Return whether something may be kept of a type, one of a format's own.

        It holds the type, and so it must be one that is there for good: its module has it.
        """
        names = (f"{kind.__module__}:{kind.__qualname__}", *format_.types)
        is_plain = self.registry.recognition.is_plain(kind, format_)
        return is_plain and any(imported(name) is kind for name in names)

    # ------------------------------------------------------------------ requests

    def convert(self, x: Value, keywords: Keywords, key: object = None) -> Value:
        """Convert without a fast path, and let calls with the same `key` find their converter."""
        self.registry.loader.load()
        version = self.registry.version
        converter = self.converter(keywords)
        result = converter.convert(x, keywords)
        # None for a call whose result gets labels.
        if key is not None and not self.labels(keywords.like):
            self.link(key, converter, version)
        return result

    def converter(self, keywords: Keywords, *, among: Among = "all") -> Converter:
        """Return the converter for what keywords ask for, resolved once.

        It leads to others if ``dtype=`` is a mapping, or if one dtype is for some values `among`
        others: those of its kind, or all numbers.
        """
        division: frozenset[str] = frozenset()
        if keywords.like is not None:
            keywords, division = self._resolved_like(keywords)
        innermost, dtype = _innermost(), keywords.dtype
        named = keywords
        # An abstract class takes a while to tell what is no mapping.
        if dtype is not None and type(dtype) is not str and isinstance(dtype, Mapping):
            named, among = keywords._replace(dtype=(Mapping, *dtype.items())), "all"
        # All but the stream, which is for the steps.
        key = named[:-1], innermost and innermost.policy, division, among
        try:
            return self._by_keywords[key]
        except KeyError:
            keep = True
        except TypeError:  # a list or a set of targets does not hash
            keep = False
        adopt(self.registry, keywords.to)
        version = self.registry.version
        try:
            converter = self._resolved(keywords, division, among)
        except InteropError:
            if not self.registry.loader.load_all():  # words are refused among those of all plugins
                raise
            version = self.registry.version
            converter = self._resolved(keywords, division, among)
        return self.keep(self._by_keywords, key, converter, version) if keep else converter

    def _resolved(self, keywords: Keywords, division: frozenset[str], among: Among) -> Converter:
        """Return the converter for keywords that are given the first time."""
        registry, policy, dtype = self.registry, current_policy(), keywords.dtype

        def request_for(dtype: object) -> Request:
            return resolved(registry, keywords._replace(dtype=dtype), policy, division)

        if isinstance(dtype, Mapping):
            targets = dtypes_by_dtype(registry, dtype)
            requests = {own: request_for(target) for own, target in targets.items()}
        else:
            request = request_for(dtype)
            if request.dtype is None or among == "all":
                return self.of(request)
            cast_ = (own for own in DTYPES if among == "numbers" or same_kind(own, request.dtype))
            requests = dict.fromkeys(cast_, request)
        return self._choosing(requests, request_for(None))

    def _choosing(self, by_dtype: Mapping[str, Request], others: Request) -> Converter:
        """Return a converter whose results have a dtype that depends on that of the value.

        Those of a table depend on the dtypes of its columns.
        """
        columns = tuple(sorted((own, str(request.dtype)) for own, request in by_dtype.items()))
        uncast = self.of(others._replace(columns=columns))
        converters = {
            own: self.of(request._replace(columns=columns)) for own, request in by_dtype.items()
        }

        def choose(spec: Spec) -> Converter:
            return converters.get(spec.dtype or "", uncast)

        return self.used(Converter(self, uncast.request, choose))

    def of(self, request: Request) -> Converter:
        """Return the converter of a request.

        A class of specs does not tell lengths, so that values whose shape has one order have the
        plans of the request in C order where it is for Fortran order.
        """
        converter = self._by_request.get(request)
        if converter is not None:
            return converter
        with self.lock:
            if request.order != "F":
                converter = Converter(self, request)
            else:
                in_c_order = self.of(request._replace(order="C"))

                def choose(spec: Spec) -> Converter | None:
                    return in_c_order if has_one_order(spec) else None

                converter = Converter(self, request, choose)
            return self.used(self.keep(self._by_request, request, converter))

    # ------------------------------------------------------------------ arrays in keywords

    def spec_for(self, name: str, value: Value) -> Spec:
        """Return the spec of the array that a keyword takes."""
        try:
            return self.registry.recognition.describe(value)
        except UnknownValueError:
            msg = (
                f"{name}= takes an array, and {type(value).__qualname__} is not one interop knows."
            )
            raise UnknownValueError(msg) from None

    def labels(self, like: object) -> bool:
        """Return whether results take labels from the value in ``like=``."""
        if like is None:
            return False
        spec = self.registry.recognition.describe(like)
        return self.registry.formats[spec.format].labels is not None

    def _resolved_like(self, keywords: Keywords) -> tuple[Keywords, frozenset[str]]:
        """Return keywords with the format and the device of ``like=``, and how it is divided."""
        like = keywords.like
        if keywords.to is not None:
            msg = "both to= and like= were given; pass one of them."
            raise BadRequestError(msg)
        if isinstance(like, (str, type, ModuleType)):
            msg = "like= takes an array; what names a format is for to=."
            raise BadRequestError(msg)
        spec = self.spec_for("like", like)
        if self.registry.formats[spec.format].protocol:
            namespace = getattr(like, "__array_namespace__", None)
            adopt(self.registry, type(like) if namespace is None else namespace())
            spec = self.registry.recognition.describe(like)
        version, format_ = self.registry.version, self.registry.formats[spec.format]
        address_of = format_.advanced.address
        if address_of is not None and self.knows(type(like), format_):
            tell = _likeness(address_of, is_on_host=format_.devices == ("cpu",))
            self.keep(self.likes, type(like), tell, version)
        likeness = spec.traits & LIKENESS
        # Each part of a divided value is on a device of its own.
        device = device_type(spec.device) if likeness & DIVISIONS else ordinary(spec.device)
        return (
            keywords._replace(to=spec.format, like=None, device=keywords.device or device),
            likeness,
        )


def _likeness(address_of: ValueFunction, *, is_on_host: bool) -> ValueFunction:
    """Return what tells of a plain value in ``like=`` what decides the request; None of others."""
    if is_on_host:
        return lambda like: (type(like), like.dtype) if address_of(like) else None
    return lambda like: (type(like), like.dtype, like.device) if address_of(like) else None


def _settings(
    formats: Mapping[str, Format], request: Request
) -> tuple[tuple[Callable[[], Any], ...], tuple[Callable[[], Any], ...]]:
    """Return what tells of frameworks' settings that a request's plans depend on.

    They may change which dtypes formats hold, and which ones numbers get. Each of the first returns
    the dtypes that a format cannot hold now, each of the second those of numbers without a dtype.
    Plans are kept apart by these answers.
    """
    # A wrapper holds the dtypes of the format that it wraps, which may be any.
    wraps = any(name in formats and formats[name].wrapper for name in request.formats)
    dtypes = tuple(
        partial(format_.limits.unsupported_now, request.device or format_.devices[0])
        for name, format_ in formats.items()
        if (wraps or name in request.formats) and format_.limits.unsupported_now is not None
    )
    numbers = tuple(
        partial(_default_dtypes, default_dtype)
        for name in request.formats
        if name in formats and (default_dtype := formats[name].default_dtype) is not None
    )
    return dtypes, numbers


def _default_dtypes(default_dtype: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(map(default_dtype, NUMBERS))


def _logged(error: RefusedError) -> RefusedError:
    """Log an error and return it, so that no variable of the caller's frame holds it.

    The traceback holds the frame, and would keep everything in it alive.
    """
    log.debug("refused: %s", error)
    return error
