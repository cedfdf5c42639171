"""The face: what the functions of the package do, as methods of one object that holds all state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from interop._execution.engine import Engine
from interop._execution.fast_path import Shortcuts, fixed_front, front
from interop._execution.runner import Runner
from interop._execution.trace import shares_memory
from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.extension import DtypeFamily
from interop._model.format import Format, itself
from interop._model.spec import Spec, spec_class
from interop._planning.explain import refused_ways
from interop._planning.planner import Planner
from interop._planning.policy import watch
from interop._planning.request import Request, Requests
from interop._planning.route import Route
from interop._planning.step import Step
from interop._registry.declared import HERE, Declared, DeclaredFormat
from interop._registry.installed import framework_state, importable
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownValueError

if TYPE_CHECKING:
    from interop._registry.discovery import Plugin

__all__ = ["Interop"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Types that are remembered for one target; a program that makes classes as it goes starts over.
_MOST_TYPES = 4096
#: Sorts of calls that are remembered, by their words.
_MOST_WORDS = 4096

#: The methods through which values enter.
_ENTRANCES = ("convert", "convert_tree", "plan", "spec", "_run")


class Interop:
    """A registry of formats and conversions, a planner over it, and the caches of both.

    The functions of the package are the methods of one instance of this class. A library or a
    test that wants to keep its registrations to itself makes its own.

    Parameters
    ----------
    plugins : bool, default True
        Whether to load the installed plugins, at the first need.
    costs : mapping of str to Cost, optional
        What steps cost, by `Declared.key`, in the place of what their plugins declare. By default
        what ``interop calibrate`` has stored for this machine, read with the plugins; ``{}`` for
        what is declared and nothing else.

    Examples
    --------
    >>> mine = Interop()
    >>> mine.convert([1, 2, 3], to="numpy")
    array([1, 2, 3])
    """

    def __init__(self, *, plugins: bool = True, costs: Mapping[str, Cost] | None = None) -> None:
        self._registry = Registry()
        self._planner = Planner(self._registry, importable)
        self._engine = Engine(self._registry, self._planner)
        self._requests = Requests(self._registry)
        self._lock = threading.RLock()
        self._load = plugins
        self._measured = costs is None
        if costs:
            self._registry.price(costs)
        self._plugins: tuple[Plugin, ...] = ()
        #: What to call for the words of a call, and for a target alone if no shortcut serves.
        self._served: dict[tuple[Any, ...], Callable[[Any], Any]] = {}
        self._targets: dict[Any, Callable[[Any], Any]] = {}
        self._shortcuts = Shortcuts()
        if not TYPE_CHECKING:
            self.convert = front(self.convert, self._targets, self._shortcuts.tables)

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
        if out is not None:
            if copy is False or not all(word is None for word in (to, like, dtype, device)):
                msg = "out= decides the format, dtype and device, and is written; pass it alone."
                raise BadRequestError(msg)
            return self._fill(x, out, allow, forbid, stream)
        if stream is None and like is None and not watch.blocks:
            words = (to, dtype, device, copy, allow, forbid)
            try:
                served = self._served.get(words)
            except TypeError:
                pass  # a list or a set among them does not hash
            else:
                return (served or self._serve(words))(x)
        request = self._request(
            to, like, dtype=dtype, device=device, copy=copy, allow=allow, forbid=forbid
        )
        return self._run(x, request, stream)

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
        request = self._request(
            to, like, dtype=dtype, device=device, copy=copy, allow=allow, forbid=forbid
        )
        if stream is not None or like is not None or not request.is_default or not _hashable(to):
            return _planned(self, partial(self._requests.current, request), stream=stream)
        planned = _planned(self, partial(self._requests.current, request), to)
        return self._registry.shield(fixed_front(planned, self._shortcuts.table(to)))

    def convert_tree(
        self,
        tree: Any,
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
        strict: bool = False,
        progress: bool = False,
        consume: bool = False,
    ) -> Any:
        """Convert every array in nested containers.

        Opened are dicts, lists, tuples, namedtuples, deques and their subclasses, dataclasses,
        what a user has registered with ``optree``, and what plugins open (the pytrees of JAX).
        Numbers, strings and whatever else is no array pass through as they are.

        Parameters
        ----------
        tree : object
            It is left as it is, unless `consume` is set.
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`, for every array.
        strict : bool, default False
            Whether to refuse a leaf that is no array, other than None.
        progress : bool, default False
            Whether to show a bar on standard error; needs ``rich``.
        consume : bool, default False
            Whether to empty the dicts, lists and deques of the tree before converting, so that
            each array can be freed as soon as it is converted. If a conversion then fails, the
            tree stays empty. A refusal leaves it as it is.

        Returns
        -------
        object
            New containers of the same kinds around the converted arrays. An array that occurs
            twice is one array in the result, and so are two contiguous arrays of one dtype and
            shape over the same memory (tied weights). At most the tree and the result are in
            memory at once.

        Raises
        ------
        InteropError
            As for `convert`. The message begins with the path of the leaf
            (``model/layers/3/weight``), which is also the error's `where`.
        BadRequestError
            A container holds itself.
        NotInstalledError
            ``optree`` is missing, or ``rich`` for `progress`.

        Examples
        --------
        >>> import numpy as np
        >>> mine = Interop()
        >>> batch = {"ids": [np.arange(2), np.ones(1)], "split": "train"}
        >>> mine.convert_tree(batch, to="numpy", dtype="float32")
        {'ids': [array([0., 1.], dtype=float32), array([1.], dtype=float32)], 'split': 'train'}
        """
        from .leaves import array_spec, convert_leaves
        from .tree import Tree

        request = self._request(
            to, like, dtype=dtype, device=device, copy=copy, allow=allow, forbid=forbid
        )
        registry = self._registry
        opened = Tree(tree, lambda x: array_spec(registry, x) is not None, registry.containers)
        del tree
        leaves = convert_leaves(
            opened,
            registry,
            self._engine,
            request,
            stream=stream,
            strict=strict,
            progress=progress,
            consume=consume,
        )
        return opened.rebuilt(leaves)

    def accepts(
        self,
        to: str,
        /,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: str | Iterable[str] = (),
        forbid: str | Iterable[str] = (),
        grad: bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let a function that is written for one framework take the arrays of any.

        Parameters
        ----------
        to : str
            The format that the function is written for.
        dtype, device, copy, allow, forbid
            As for `convert`, for every array among the arguments.
        grad : bool, default False
            Whether the function takes part in the caller's reverse-mode differentiation. Both
            frameworks must be ones that a plugin differentiates; arrays of others are constants.

        Returns
        -------
        callable
            A decorator. The function it returns converts the arrays among its arguments, also
            those inside dicts, lists and tuples, and gives the arrays in the result back on the
            device and in the framework of the first array argument: a sparse result in its format
            of the same layout, if there is one, every other as its dense array. Whatever is no
            array passes as it is, and so does the result of a call without arrays.

        Raises
        ------
        BadRequestError
            The function is a coroutine or a generator; or, when it is called with `grad`, no
            plugin differentiates functions of its framework.

        Notes
        -----
        Without ``copy=True`` the function is given the caller's memory where that can be shared,
        and must not write to it. Differentiated are floating-point and complex arrays, once:
        neither the pullback nor forward mode is differentiable.

        Examples
        --------
        >>> mine = Interop()
        >>> @mine.accepts("numpy")
        ... def centred(x):
        ...     return x - x.mean()
        >>> import torch
        >>> centred(torch.tensor([1.0, 3.0]))
        tensor([-1.,  1.])
        """
        from .accepts import accepting

        words = {"dtype": dtype, "device": device, "copy": copy, "allow": allow, "forbid": forbid}
        usual = {"dtype": None, "device": None, "copy": None, "allow": (), "forbid": ()}
        asked = {name: value for name, value in words.items() if value != usual[name]}
        return lambda function: accepting(self, function, to, asked, grad=grad)

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
        request = self._request(
            to, like, dtype=dtype, device=device, copy=copy, allow=allow, forbid=forbid
        )
        spec = x_or_spec if isinstance(x_or_spec, Spec) else self.spec(x_or_spec)
        if spec.format not in self._registry.formats:
            msg = (
                f"no plugin that is loaded declares the format {spec.format!r}; see "
                "interop.plugins() for those that failed and why, and interop.formats()."
            )
            raise UnknownValueError(msg)
        steps = self._drawn_up(spec, request)
        return Route(
            spec,
            request,
            steps,
            lambda value: self._run(value, self._requests.current(request), stream),
            lambda: refused_ways(self._planner, spec, request),
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

    def formats(self) -> tuple[DeclaredFormat, ...]:
        """Return the formats that are registered, each with its plugin, distribution and state."""
        registry = self._loaded()
        return tuple(
            DeclaredFormat(name, one, registry.provenance[name], framework_state(one.requires))
            for name, one in registry.formats.items()
        )

    def conversions(self) -> tuple[Declared, ...]:
        """Return the conversions in force, each with its plugin, distribution and state."""
        registry = self._loaded()
        known = {*registry.formats, *(p for f in registry.formats.values() for p in f.speaks)}
        return tuple(
            declared._replace(state="ready" if {one.source, one.target} <= known else "dormant")
            for declared in registry.conversions
            for one in (declared.conversion,)
        )

    def plugins(self) -> tuple[Plugin, ...]:
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
            self._requests.clear()
            self._shortcuts.clear()

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
        >>> mine = Interop()
        >>> @mine.conversion("numpy", "mylib", effects={"copy"})
        ... def numpy_to_mylib(array): ...
        >>> [d.state for d in mine.conversions() if d.conversion.target == "mylib"]
        ['dormant']
        """
        sets: dict[str, Any] = {
            key: frozenset(value) if isinstance(value, (set, list)) else value
            for key, value in declaration.items()
        }

        def decorated(function: _Function) -> _Function:
            self.register(Conversion(source, target, function, **sets))
            return function

        return decorated

    # ------------------------------------------------------------------ inside

    def _loaded(self) -> Registry:
        if self._load:
            with self._lock:
                if self._load:
                    from interop._registry.discovery import load

                    try:
                        self._plugins = load(self._registry)
                    except BaseException:  # interrupted: the next call begins anew
                        self._registry.forget()
                        raise
                    entrances: list[Any] = [getattr(Interop, name) for name in _ENTRANCES]
                    for function in (self.convert, *entrances):
                        self._registry.shield(function)
                    if self._measured:
                        from interop._registry.costs import stored

                        self._registry.price(stored())
                    self._load = False
        return self._registry

    def _request(self, to: Any, like: Any = None, **words: Any) -> Request:
        """Return the request that the keywords of a call make."""
        self._loaded()
        if like is not None:
            if to is not None:
                msg = "both to= and like= were given; pass one of them."
                raise BadRequestError(msg)
            spec = self.spec(like)
            to = spec.format
            words["device"] = words.get("device") or spec.device
        return self._requests.get(to, **words)

    def _serve(self, words: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Return what to call for the words of a call, from now on."""
        to, dtype, device, copy, allow, forbid = words
        self._loaded()
        renew = partial(
            self._requests.get,
            to,
            dtype=dtype,
            device=device,
            copy=copy,
            allow=allow,
            forbid=forbid,
        )
        plain = renew().is_default and _hashable(to)
        served = _planned(self, renew, to if plain else None)
        if len(self._served) >= _MOST_WORDS:
            self._served.clear()
        self._served[words] = served
        if plain:
            self._targets[to] = served
        return served

    def _run(self, x: Any, request: Request, stream: Any) -> Any:
        """Carry out the route for `x`."""
        spec = self.spec(x)
        runner = request.routes.get(spec_class(spec)) or self._engine.route(spec, request)
        return self._engine.run(x, spec, request, runner, stream)

    def _drawn_up(self, spec: Spec, request: Request) -> tuple[Step, ...]:
        """Return the steps of a route as they are for `spec`."""
        while True:
            runner = self._engine.route(spec, request, installed=False)
            steps = self._planner.replayed(spec, request, runner.steps)
            if steps is not None:
                return steps
            # Another thread has registered something meanwhile.
            request = Request(*request.key)

    def _learn(self, to: Any, x: Any, spec: Spec, runner: Runner, version: int) -> None:
        """Take up the shortcut for values of the very type of `x`, if its route has one."""
        source, steps = self._registry.formats[spec.format], runner.steps
        if not runner.advice and self._registry.is_plain(type(x), source):
            found = self._planner.shortcut(steps) if steps else source.identity
            if found is not None:
                registry = self._registry
                # The front may be compiled, and then hides nothing that is called from it.
                shortcut = None if found is itself else registry.shield(found)
                self._shortcuts.learn(to, type(x), shortcut, lambda: registry.version == version)

    def _fill(
        self,
        x: Any,
        out: Any,
        allow: str | Iterable[str],
        forbid: str | Iterable[str],
        stream: Any,
    ) -> Any:
        """Write `x` into `out`, which decides format, dtype and device."""
        spec, into = self.spec(x), self.spec(out)
        target = self._registry.formats[into.format]
        if target.fill is None:
            msg = f"{target.name} values cannot be written into; leave out out=."
            raise BadRequestError(msg)
        if spec.shape != into.shape:
            msg = f"out has shape {into.shape}, the value {spec.shape}; give an out of that shape."
            raise BadRequestError(msg)
        if into.traits & {"readonly", "immutable"}:
            msg = "out is read-only; give an array that can be written."
            raise BadRequestError(msg)
        words = {"device": into.device, "allow": allow, "forbid": forbid}
        request = self._request(into.format, dtype=into.dtype, **words)
        # What lies in the memory of `out` must all be read before any of it is written.
        apart = shares_memory(self._registry, x, out) is False
        if not (apart and self._engine.write(x, spec, out, into, request, stream)):
            dtype = None if spec.dtype in target.dtypes else into.dtype
            copy = None if apart else True
            request = self._request(into.format, dtype=dtype, copy=copy, **words)
            target.fill(out, self._run(x, request, stream))
        return out


def _planned(
    face: Interop, renew: Callable[[], Request], to: Any = None, *, stream: Any = None
) -> Callable[[Any], Any]:
    """Return a function that converts under one request by its planned routes.

    Parameters
    ----------
    face : Interop
    renew : callable
        ``renew()`` returns the request that is meant now, with routes of what is registered now.
    to : str, type or module, optional
        The target, for which a shortcut is taken up once a route is known. None: no shortcut
        serves the request.
    stream : int, optional
    """
    seen: set[tuple[type, Runner]] = set()
    registry, engine = face._registry, face._engine
    # One thing, so that no thread ever sees one half of it without the other.
    held: tuple[int, Request | None] = (-1, None)

    def planned(x: Any, /) -> Any:
        nonlocal held
        if watch.blocks:
            return face._run(x, renew(), stream)
        version, request = held
        if request is None or registry.version != version:
            seen.clear()
            version = registry.version
            request = renew()
            held = version, request
        spec = registry.describe(x)
        runner = request.routes.get(spec_class(spec)) or engine.route(spec, request)
        result = engine.carry_out(x, spec, request, runner, stream)
        # The first route of a type may have no shortcut.
        if to is not None and (type(x), runner) not in seen:
            if len(seen) >= _MOST_TYPES:
                seen.clear()
            seen.add((type(x), runner))
            face._learn(to, x, spec, runner, version)
        return result

    return registry.shield(planned)


def _hashable(to: Any) -> bool:
    return isinstance(to, (str, type, ModuleType))
