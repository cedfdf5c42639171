"""The face: what the functions of the package do, as methods of one object that holds all state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from time import perf_counter
from types import ModuleType
from typing import Any, TypeVar

from ._conversion import Conversion
from ._device import device_name, matches
from ._dtype import itemsize
from ._format import DtypeFamily, Format
from ._memory import available_memory, readable
from ._planner import Planner
from ._policy import COPYING, Policy, Watch, adjust, current_policy
from ._refusal import described, refusal
from ._registry import HERE, Declared, Registry
from ._request import Request
from ._route import Route
from ._runner import Halt, Runner
from ._spec import Spec, representative, spec_class
from ._step import Step
from ._trace import Receipt, current_trace, shares_memory
from .errors import (
    BadRequestError,
    ConversionError,
    DensifyMemoryError,
    NotInstalledError,
    RefusedError,
    UnknownTargetError,
)

__all__ = ["Interop"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Requests kept, each with its routes. A program asks for a handful; a runaway one starts over.
_MOST_REQUESTS = 4096


class Interop:
    """A registry of formats and conversions, a planner over it, and the caches of both.

    The functions of the package are the methods of one instance of this class. A library or a
    test that wants to keep its registrations to itself makes its own.

    Parameters
    ----------
    plugins : bool, default True
        Whether to load the installed plugins, at the first need.

    Examples
    --------
    >>> mine = Interop()
    >>> mine.convert([1, 2, 3], to="numpy")
    array([1, 2, 3])
    """

    def __init__(self, *, plugins: bool = True) -> None:
        self._registry = Registry()
        self._planner = Planner(self._registry, _importable)
        self._lock = threading.RLock()
        self._load = plugins
        self._plugins: tuple[Any, ...] = ()
        self._shortcuts: dict[tuple[type, Any], Callable[[Any], Any]] = {}
        self._requests: dict[tuple[Any, ...], Request] = {}

    # ------------------------------------------------------------------ converting

    def convert(
        self,
        x: Any,
        /,
        to: Any = None,
        *,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        out: Any = None,
        allow: str | Iterable[str] = (),
        forbid: str | Iterable[str] = (),
        stream: Any = None,
    ) -> Any:
        """Convert `x` to another format by the cheapest correct route.

        Parameters
        ----------
        x : object
            Anything that holds an array: an array or tensor of a known framework, dense, sparse
            or quantized; any object with ``__dlpack__``, ``__cuda_array_interface__``,
            ``__array_interface__``, the buffer protocol or ``__array__``; a Python scalar or
            nested list.
        to : str, type, module or sequence of these
            A format (``"torch"``, ``"scipy.csr"``), a framework's array type (``np.ndarray``) or
            its module (``np``). Of a sequence, the cheapest. The name of a framework that has
            only sparse formats means any of them.
        like : object, optional
            A value whose format and device the result is to have, instead of `to`.
        dtype : str or dtype, optional
            dtype of the result, by NumPy's or ml_dtypes' name or as a framework's dtype object.
            Asking for it is consent to the cast. By default the dtype of `x`, or the narrowest
            that holds all its values if the target does not know that one.
        device : str, optional
            ``"cpu"``, ``"cuda"``, ``"cuda:1"`` … By default the data stay where they are if the
            target can live there.
        copy : bool, optional
            None: share memory if at all possible. True: the result owns fresh writable memory.
            False: never copy, over the whole route; raise instead.
        out : array, optional
            An array to write the result into; it decides format, dtype and device, and is
            returned.
        allow, forbid : str or iterable of str
            Effects permitted or refused in this call.
        stream : int, optional
            The stream on which the consumer will use the result, where the target has streams.

        Returns
        -------
        array
            Of the format asked for. It shares memory with `x` unless `copy` is True or no
            route without a copy exists; which of the two depends on the spec of `x` and on the
            request alone. A value that already is what was asked for is returned as it is.

        Raises
        ------
        UnknownValueError, UnknownTargetError
            `x` or `to` is not known (TypeErrors).
        BadRequestError, RefusedError
            The keywords contradict each other, or no route is permitted (ValueErrors).
        HandOffError
            A producer's memory is not as the protocol says (a BufferError).
        DensifyMemoryError
            The dense form of a sparse array does not fit in memory (a MemoryError).
        NotInstalledError
            The target's framework is not installed (an ImportError).
        ConversionError
            A step failed for a reason of its own (a RuntimeError).
        """
        if (
            like is dtype is device is copy is out is stream is None
            and allow == ()
            and forbid == ()
            and not Watch.blocks
        ):
            try:
                shortcut = self._shortcuts.get((type(x), to))
            except TypeError:  # a list of targets does not hash, and takes the long way
                shortcut = None
            if shortcut is not None:
                result = shortcut(x)
                if result is not NotImplemented:
                    return result
            return self._run(x, self._request(to, None, None, None, (), ()), None, to)
        if out is not None:
            return self._fill(x, to, like, dtype, device, copy, out, allow, forbid, stream)
        if like is not None:
            to, device = self._like(to, like, device)
        return self._run(x, self._request(to, dtype, device, copy, allow, forbid), stream)

    def converter(
        self,
        to: Any = None,
        *,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: str | Iterable[str] = (),
        forbid: str | Iterable[str] = (),
        stream: Any = None,
    ) -> Callable[[Any], Any]:
        """Resolve a request once, for hot loops.

        The policy in force now is the converter's for good.

        Parameters
        ----------
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`.

        Returns
        -------
        callable
            ``converter(x)`` returns what ``convert(x, ...)`` would.
        """
        if like is not None:
            to, device = self._like(to, like, device)
        request = self._request(to, dtype, device, copy, allow, forbid)
        plain = stream is None and self._is_default(request)
        shortcuts: dict[type, Callable[[Any], Any]] = {}
        registry, version = self._registry, self._registry.version

        def converted(x: Any, /) -> Any:
            shortcut = shortcuts.get(type(x))
            if shortcut is not None and not Watch.blocks and registry.version == version:
                result = shortcut(x)
                if result is not NotImplemented:
                    return result
            result = self._run(x, self._current(request), stream, to if plain else None)
            found = self._shortcuts.get((type(x), to)) if plain and _hashable(to) else None
            if found is not None:
                shortcuts[type(x)] = found
            return result

        return converted

    def plan(
        self,
        x_or_spec: Any,
        /,
        to: Any = None,
        *,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: str | Iterable[str] = (),
        forbid: str | Iterable[str] = (),
        stream: Any = None,
    ) -> Route:
        """Return the route that `convert` would take, without touching the data.

        Parameters
        ----------
        x_or_spec : object or Spec
            A value, or what would be known of one; no framework and no device is needed to plan
            from a spec.
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`.

        Returns
        -------
        Route
            Prints as a table; calling it with a value carries it out.

        Raises
        ------
        UnknownValueError, UnknownTargetError, BadRequestError, RefusedError
            As for `convert`.
        """
        if like is not None:
            to, device = self._like(to, like, device)
        request = self._request(to, dtype, device, copy, allow, forbid)
        spec = x_or_spec if isinstance(x_or_spec, Spec) else self.spec(x_or_spec)
        steps = self._replayed(spec, request, self._route(spec, request))
        return Route(
            spec,
            request,
            steps,
            lambda value: self._run(value, self._current(request), stream),
            lambda: self._refused_ways(spec, request),
        )

    def spec(self, x: Any, /) -> Spec:
        """Return what is known of `x` without touching its data.

        Parameters
        ----------
        x : object

        Returns
        -------
        Spec

        Raises
        ------
        UnknownValueError
            No format and no protocol recognises `x`.
        """
        if not self._plugins:
            self._loaded()
        return self._registry.describe(x)

    # ------------------------------------------------------------------ what is registered

    def formats(self) -> tuple[Format, ...]:
        """Return the formats that are registered."""
        return tuple(self._loaded().formats.values())

    def conversions(self) -> tuple[Declared, ...]:
        """Return the conversions in force, each with its plugin and distribution."""
        return self._loaded().conversions

    def plugins(self) -> tuple[Any, ...]:
        """Return the plugins that were found: their distributions, and whether they are loaded."""
        self._loaded()
        return self._plugins

    def register(self, *declarations: Conversion | Format | DtypeFamily) -> None:
        """Register conversions, formats or dtype families at run time.

        Parameters
        ----------
        *declarations : Conversion, Format or DtypeFamily
            All of them are registered, or none.

        Raises
        ------
        PluginError
            A declaration is malformed.
        ConflictError
            A distribution has declared something else in the same place.
        """
        registry = self._loaded()
        with self._lock:
            registry.add(
                [d for d in declarations if isinstance(d, Format)],
                [d for d in declarations if not isinstance(d, (Format, DtypeFamily))],
                [d for d in declarations if isinstance(d, DtypeFamily)],
                HERE,
            )
            self._forget()

    def conversion(
        self, source: str, target: str, **declaration: Any
    ) -> Callable[[_Function], _Function]:
        """Register the decorated function as a conversion.

        Parameters
        ----------
        source, target : str
            Names of formats.
        **declaration
            Further fields of `Conversion`.

        Returns
        -------
        callable
            A decorator that returns the function unchanged.

        Examples
        --------
        >>> @interop.conversion("mylib", "numpy", effects={"copy"})  # doctest: +SKIP
        ... def mylib_to_numpy(value): ...
        """
        sets: dict[str, Any] = {
            key: frozenset(value) if isinstance(value, (set, list)) else value
            for key, value in declaration.items()
        }

        def decorated(function: _Function) -> _Function:
            self.register(Conversion(source, target, function, **sets))
            return function

        return decorated

    # ------------------------------------------------------------------ requests

    def _loaded(self) -> Registry:
        if self._load:
            with self._lock:
                if self._load:
                    from ._plugins import load

                    self._plugins = load(self._registry)
                    self._load = False
        return self._registry

    def _forget(self) -> None:
        self._shortcuts.clear()
        self._requests.clear()

    def _current(self, request: Request) -> Request:
        """Return the request of the same key that holds routes of what is registered now."""
        return self._requests.setdefault(request.key, request)

    def _request(
        self,
        to: Any,
        dtype: Any,
        device: Any,
        copy: bool | None,
        allow: str | Iterable[str],
        forbid: str | Iterable[str],
    ) -> Request:
        policy = current_policy()
        raw: tuple[Any, ...] = (to, dtype, device, copy, allow, forbid, policy)
        try:
            known = self._requests.get(raw)
        except TypeError:  # a list or a set among them does not hash
            raw, known = (), None
        if known is None:
            self._loaded()
            known = self._resolved(to, dtype, device, copy, adjust(policy, allow, forbid))
            _check_copy(copy, allow)
            if len(self._requests) > _MOST_REQUESTS:
                self._requests.clear()
            known = self._requests.setdefault(known.key, known)
            if raw:
                self._requests[raw] = known
        return known

    def _resolved(
        self, to: Any, dtype: Any, device: Any, copy: bool | None, policy: Policy
    ) -> Request:
        if copy not in (None, True, False):
            msg = f"copy={copy!r} is none of None, True and False; pass one of these."
            raise BadRequestError(msg)
        return Request(
            self._targets(to),
            None if dtype is None else self._dtype(dtype),
            None if device is None else device_name(device),
            copy,
            policy,
        )

    def _targets(self, to: Any) -> tuple[str, ...]:
        """Return the formats that `to` accepts."""
        if isinstance(to, (list, tuple, set, frozenset)):
            return tuple(dict.fromkeys(name for one in to for name in self._targets(one)))
        found: tuple[str, ...] = ()
        if isinstance(to, str):
            found = self._registry.named(to)
        elif isinstance(to, type):
            found = self._registry.named_by_type(to)
        elif isinstance(to, ModuleType):
            found = self._registry.named(to.__name__.partition(".")[0])
        if not found:
            raise self._unknown_target(to)
        return found

    def _unknown_target(self, to: Any) -> UnknownTargetError:
        if to is None:
            return UnknownTargetError("no target was given; pass to= or like=.")
        from difflib import get_close_matches

        names = sorted(
            {*self._registry.formats, *(f.partition(".")[0] for f in self._registry.formats)}
        )
        close = get_close_matches(str(to), names, 1)
        move = f"did you mean {close[0]!r}?" if close else f"the formats are {', '.join(names)}."
        return UnknownTargetError(f"to={to!r} names no format that is registered; {move}")

    def _dtype(self, dtype: Any) -> str:
        if isinstance(dtype, str):
            aliases = {"bool_": "bool", "half": "float16", "float": "float64", "double": "float64"}
            return aliases.get(dtype, dtype)
        name = self._registry.dtype_name(dtype)
        if name is None:
            msg = f"dtype={dtype!r} is no dtype of a framework that is known; name it as a string."
            raise BadRequestError(msg)
        return name

    def _like(self, to: Any, like: Any, device: Any) -> tuple[str, Any]:
        if to is not None:
            msg = "both to= and like= were given; pass one of them."
            raise BadRequestError(msg)
        spec = self.spec(like)
        return spec.format, spec.device if device is None else device

    def _is_default(self, request: Request) -> bool:
        return request.key[1:] == (None, None, None, Policy())

    # ------------------------------------------------------------------ routes

    def _route(self, spec: Spec, request: Request) -> Runner:
        """Return the steps from the class of `spec` to the request, found once."""
        key = spec_class(spec)
        runner = request.routes.get(key)
        if runner is None:
            with self._lock:
                found = self._planner.route(representative(spec), request)
            if found is None:
                raise refusal(self._planner, spec, request)
            runner = request.routes[key] = Runner(tuple(found[1]))
        return runner

    def _replayed(self, spec: Spec, request: Request, runner: Runner) -> tuple[Step, ...]:
        """Return the steps of a route with the sizes of `spec` itself."""
        return self._planner.replayed(spec, request, runner.steps)

    def _refused_ways(self, spec: Spec, request: Request) -> str:
        lines = described(self._planner, spec, request)
        if not lines:
            return "No other route was refused."
        return "\n".join(["Refused:", *(f"  - {line}" for line in lines)])

    # ------------------------------------------------------------------ running

    def _run(self, x: Any, request: Request, stream: Any, to: Any = None) -> Any:
        """Carry out the route for `x`; `to` is given if a shortcut may be kept for it."""
        spec = self.spec(x)
        runner = request.routes.get(spec_class(spec))
        if runner is None:
            self._check_installed(request)
            runner = self._route(spec, request)
        if current_trace() is not None:
            return self._traced(x, spec, request, runner, stream)
        result = self._carried_out(x, spec, request, runner, stream)
        if to is not None:
            self._keep_shortcut(type(x), to, spec, request, runner)
        return result

    def _carried_out(
        self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any
    ) -> Any:
        if runner.densifies:
            self._check_memory(spec, request, runner)
        try:
            result = runner(x, stream)
        except Halt as halt:
            return self._from_here(halt, request, stream, frozenset())
        if not runner.verified:
            self._verify(spec, result, runner)
        return result

    def _from_here(
        self, halt: Halt, request: Request, stream: Any, without: frozenset[object]
    ) -> Any:
        """Plan again from where a step has declined, without that step."""
        without |= {halt.step.place}
        expected = halt.step.before
        spec = self.spec(halt.value)
        if expected.carrier:
            spec = spec._replace(dtype=expected.dtype, carrier=expected.carrier)
        with self._lock:
            found = self._planner.route(spec, request, without)
        if found is None:
            error = refusal(self._planner, spec, request)
            msg = f"{halt.step.label} declined: {halt}. Without it, {error}"
            raise RefusedError(msg, error.effects) from halt.reason
        try:
            return Runner(tuple(found[1]))(halt.value, stream)
        except Halt as again:
            return self._from_here(again, request, stream, without)

    def _verify(self, spec: Spec, result: Any, runner: Runner) -> None:
        """Compare the first result of a route with what the plan promised."""
        planned, got = runner.steps[-1].after, self.spec(result)
        same = (
            got.format == planned.format
            and got.dtype == planned.dtype
            and got.shape == spec.shape
            and matches(got.device, planned.device)
        )
        if not same:
            step = runner.steps[-1]
            msg = (
                f"{' → '.join(s.label for s in runner.steps)} promised {planned.format} "
                f"{planned.dtype} {spec.shape} on {planned.device} and gave {got}; report it to "
                f"{step.provenance.distribution}."
            )
            raise ConversionError(msg, step.label, step.provenance.distribution)
        runner.verified = True

    def _check_installed(self, request: Request) -> None:
        formats = [self._registry.formats[name] for name in request.formats]
        missing = [f for f in formats if f.requires and not _importable(f.requires)]
        if missing and len(missing) == len(formats):
            one = missing[0]
            install = one.install or f"pip install {one.requires}"
            msg = f"{one.name} needs {one.requires}, which is not installed; {install}"
            raise NotInstalledError(msg, name=one.requires)

    def _check_memory(self, spec: Spec, request: Request, runner: Runner) -> None:
        available = available_memory()
        for step in runner.steps:
            if "densify" in step.effects and step.after.device == "cpu":
                needed = spec.size * itemsize(step.after.dtype)
                if available is not None and needed > available:
                    raise DensifyMemoryError(
                        f"the dense form of {spec} takes {readable(needed)}, and "
                        f"{readable(available)} of memory are available; ask for a sparse "
                        "format, a narrower dtype=, or convert it in parts."
                    )

    def _keep_shortcut(
        self, type_: type, to: Any, spec: Spec, request: Request, runner: Runner
    ) -> None:
        """Keep the plugin's shortcut for values of this very type, if the route is its route."""
        if Watch.blocks or not self._is_default(request) or not _hashable(to):
            return
        source = self._registry.formats[spec.format]
        if not runner.steps:
            shortcut = source.identity
        else:
            target = runner.steps[-1].after.format
            shortcut = self._planner.shortcut(source, target, runner.steps)
        if shortcut is not None:
            self._shortcuts[type_, to] = shortcut

    def _traced(self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any) -> Any:
        receipts = current_trace()
        assert receipts is not None
        seconds: list[float] = []
        timed = Runner(tuple(s._replace(call=_timed(s.call, seconds)) for s in runner.steps))
        result = self._carried_out(x, spec, request, timed, stream)
        after = self.spec(result)
        receipts.append(
            Receipt(
                spec,
                after,
                tuple(step.label for step in runner.steps),
                frozenset(effect for step in runner.steps for effect in step.effects),
                tuple(seconds),
                after.nbytes,
                shares_memory(self._registry, x, result),
            )
        )
        return result

    def _fill(
        self,
        x: Any,
        to: Any,
        like: Any,
        dtype: Any,
        device: Any,
        copy: bool | None,
        out: Any,
        allow: str | Iterable[str],
        forbid: str | Iterable[str],
        stream: Any,
    ) -> Any:
        """Write `x` into `out`, which decides format, dtype and device."""
        if copy is False or any(word is not None for word in (to, like, dtype, device)):
            msg = "out= decides format, dtype and device, and writing is a copy; pass out= alone."
            raise BadRequestError(msg)
        spec, into = self.spec(x), self.spec(out)
        target = self._registry.formats[into.format]
        if target.fill is None:
            msg = f"{target.name} values cannot be written into; leave out out=."
            raise BadRequestError(msg)
        if spec.shape != into.shape:
            msg = (
                f"out has shape {into.shape} and the value {spec.shape}; give an out of that shape."
            )
            raise BadRequestError(msg)
        if into.traits & {"readonly", "immutable"}:
            msg = "out is read-only; give an array that can be written."
            raise BadRequestError(msg)
        held = spec.dtype in target.dtypes
        request = self._request(
            into.format, None if held else into.dtype, into.device, None, allow, forbid
        )
        target.fill(out, self._run(x, request, stream))
        return out


def _check_copy(copy: bool | None, allow: str | Iterable[str]) -> None:
    both = COPYING & frozenset((allow,) if isinstance(allow, str) else allow)
    if copy is False and both:
        msg = f"copy=False forbids {sorted(both)[0]!r}, which allow= permits; pass one of the two."
        raise BadRequestError(msg)


def _hashable(to: Any) -> bool:
    return isinstance(to, (str, type, ModuleType))


def _timed(call: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def timed(value: Any, **keywords: Any) -> Any:
        start = perf_counter()
        result = call(value, **keywords)
        seconds.append(perf_counter() - start)
        return result

    return timed


def _importable(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    found = _found.get(module)
    if found is None:
        from importlib.util import find_spec

        try:
            found = find_spec(module) is not None
        except (ImportError, ValueError):
            found = False
        _found[module] = found
    return found


_found: dict[str, bool] = {}
