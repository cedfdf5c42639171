"""The methods behind the functions of the package, of one object that holds all state."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from interop._execution.engine import Engine
from interop._execution.fast_path import (
    SMALL,
    FastPaths,
    fast_fill,
    fast_tree,
    with_fast_paths,
    with_fast_paths_to,
)
from interop._execution.trace import shares_memory
from interop._model.caller import warn_caller
from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.device import device_type
from interop._model.display import Listing
from interop._model.dtype import imaginary_loss, same_kind
from interop._model.extension import Declaration
from interop._model.format import Format
from interop._model.spec import (
    SEVERAL,
    TRAITS,
    UNWRITABLE,
    Spec,
    make_spec,
    spec_class,
)
from interop._model.typing import CopyLike, EffectNames, TargetLike, Value, ValueFunction
from interop._planning.cache import PlanCache, PlanTable
from interop._planning.explain import refused_routes
from interop._planning.naming import (
    check_format,
    lengths,
    named_device,
    named_dtype,
    named_traits,
)
from interop._planning.planner import Planner
from interop._planning.policy import block, current_policy, is_traced, reusable
from interop._planning.request import check_copy, check_stream, resolved
from interop._planning.route import Route
from interop._planning.step import Step
from interop._registry.declared import Declared, DeclaredFormat
from interop._registry.installed import framework_state, importable, not_installed
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownValueError

if TYPE_CHECKING:
    from interop._registry.discovery import Plugin

    from .leaves import Others

_Function = TypeVar("_Function", bound=Callable[..., Value])

#: Every instance of this process, by its `id`: unlike a `WeakSet`, it can be listed while it grows.
_instances: WeakValueDictionary[int, Interop] = WeakValueDictionary()

#: The methods through which values enter.
_ENTRANCES = ("convert", "convert_tree", "plan", "spec", "_run")

#: What to give as ``out=`` in the place of a value that cannot be written into, by its trait.
_OTHER_OUT = {
    "grad": "pass it detached",
    "masked": "pass the array of its numbers",
    "traced": "convert outside of it",
}


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
        self._cache = PlanCache(self._registry)
        self._planner = Planner(self._registry, importable, self._cache)
        self._engine = Engine(self._registry, self._planner, self._cache)
        self._fast_paths = FastPaths(self._registry, self._planner, self._cache)
        self._lock = threading.RLock()
        self._has_to_load = plugins
        self._reads_costs = costs is None
        if costs:
            self._registry.price(costs)
        self._plugins: tuple[Plugin, ...] = ()
        _instances[id(self)] = self
        if not TYPE_CHECKING:
            self.convert = with_fast_paths(self.convert, self._cache, block, self._link)

    def __repr__(self) -> str:
        formats = len(self._registry.formats)
        return f"<{type(self).__qualname__} of {formats} formats>"

    # ------------------------------------------------------------------ converting

    def convert(
        self,
        x: Value,
        /,
        to: TargetLike | None = None,
        *,
        like: object = None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        out: Value = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
    ) -> Value:
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
            A value whose format and device the result is to have, instead of `to`, and whose
            labels, where the shapes agree and `x` has none of its own. If it is divided over
            devices or processes, a result of another format is divided likewise where a
            conversion can do so.
        dtype : str, dtype or mapping, optional
            dtype of the result, by NumPy's or ml_dtypes' name or as a framework's dtype object.
            Asking for it is consent to the cast. By default the dtype of `x`, or the narrowest
            that holds all its values if the target does not know that one. A mapping names dtypes
            of results by the dtypes of values; values of any other dtype follow the default.
        device : str, optional
            ``"cpu"``, ``"cuda"``, ``"cuda:1"`` …; ``"cpu:2"`` for a target that divides the host.
            By default the data stay where they are if the target can live there.
        copy : bool or "writable", optional
            None: share memory if at all possible. True: the result owns fresh writable memory.
            False: never copy, over the whole route; raise instead. "writable": share memory unless
            it is read-only or an immutable framework's, so that the result can be written to.
        out : array, optional
            An array to write the result into, which is returned. It decides format, dtype and
            device, so `to`, `like`, `dtype`, `device` and ``copy=False`` are refused beside it.
            It is consent to narrow to its dtype, unless ``forbid="narrow"``.
        allow, forbid : str or iterable of str
            Effects permitted or refused in this call.
        stream : int or object, optional
            The stream on which the consumer will use the result, where the target has streams: its
            handle, or a framework's object.

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
            The request or a list makes no sense, or no route is permitted (ValueErrors).
        HandOffError
            A producer's memory is not as the protocol says (a BufferError).
        DoesNotFitError
            The result does not fit in memory (a MemoryError), for example the dense form of a
            sparse array.
        NotInstalledError
            The target's framework is not installed (an ImportError).
        ConversionError, DeviceError
            A step failed for a reason of its own, or the device is missing (RuntimeErrors).
        PluginError
            A plugin cannot describe `x`, or no plugin is installed (a RuntimeError).

        Warns
        -----
        ComplexWarning
            A cast keeps only the real parts of complex numbers.
        NeedlessCopyWarning
            The bytes go through the host, which another request would avoid.

        Examples
        --------
        >>> import numpy as np
        >>> mine = Interop()
        >>> mine.convert(np.arange(3), to="python")
        [0, 1, 2]
        >>> mine.convert([1, 2], to="numpy", dtype="float32")
        array([1., 2.], dtype=float32)
        """
        if stream is not None:
            check_stream(stream)
        if out is not None:
            if copy is False:
                msg = "to write into out= is to copy; leave out copy=False."
                raise BadRequestError(msg)
            if not all(word is None for word in (to, like, dtype, device)):
                msg = (
                    "out= fixes the format, dtype and device; leave out to, like, dtype and device."
                )
                raise BadRequestError(msg)
            return self._fill(x, out, allow, forbid, stream)
        if dtype is not None and isinstance(dtype, Mapping):  # the check takes a while
            return self.converter(
                to,
                like=like,
                dtype=dtype,
                device=device,
                copy=copy,
                allow=allow,
                forbid=forbid,
                stream=stream,
            )(x)
        table = self._table(to, dtype, device, copy, allow, forbid, like)
        result = self._run(x, table, stream, like)
        return result if like is None else self._registry.relabelled(result, like)

    def converter(
        self,
        to: TargetLike | None = None,
        *,
        like: object = None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
    ) -> ValueFunction:
        """Resolve a request once, for hot loops.

        The policy in force now is the converter's for good.

        Parameters
        ----------
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`, which also takes `out`.

        Returns
        -------
        callable
            ``converter(x)`` returns what ``convert(x, ...)`` would, and raises what it would. It
            shares the plans of this instance, and holds the value given as `like`. It is not made
            to be pickled: make one in each process.

        Raises
        ------
        UnknownValueError, UnknownTargetError, BadRequestError
            As for `convert`, of the keywords.

        Examples
        --------
        >>> to_floats = Interop().converter("numpy", dtype="float32")
        >>> to_floats([1, 2])
        array([1., 2.], dtype=float32)
        """
        if stream is not None:
            check_stream(stream)
        if isinstance(dtype, Mapping):
            words = device, copy, reusable(allow, "allow"), reusable(forbid, "forbid"), like
            table_of = self._table_of(dtype, lambda name: self._table(to, name, *words))
            return self._registry.untraced(
                lambda x: _converted(self, table_of(self.spec(x)), stream, like, x)
            )
        table = self._table(to, dtype, device, copy, allow, forbid, like)
        convert: ValueFunction = partial(_converted, self, table, stream, like)
        if stream is None and not self._gives_labels(like):
            convert = with_fast_paths_to(convert, table.fast_paths, block)
        return self._registry.untraced(convert)

    def convert_tree(
        self,
        tree: Value,
        /,
        to: TargetLike | None = None,
        *,
        like: object = None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
        cast_all: bool = False,
        others: Others = "keep",
        progress: bool = False,
        consume: bool = False,
    ) -> Value:
        """Convert every array in nested containers.

        Dicts, lists, tuples, namedtuples, deques and their subclasses, dataclasses, types that a
        user has registered with ``optree``, and containers that plugins open (the pytrees of JAX)
        are traversed. `others` says what happens to numbers, strings and everything else that is
        not an array.

        Parameters
        ----------
        tree : object
            It is left as it is, unless `consume` is set.
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`, for every array; but no array gets the labels of `like`, and `dtype`
            is for the arrays of its kind: of reals, of integers, of bools or of complex numbers.
            The others keep theirs, so that a cast of weights leaves token ids and masks as they
            are.
        cast_all : bool, default False
            Whether `dtype` is for the arrays of other kinds, too.
        others : {"keep", "convert", "refuse"}, default "keep"
            What happens to leaves that are not arrays. "keep": they pass through. "convert": they
            pass through, but Python's numbers become 0-d arrays. "refuse": the first of them is
            refused, unless it is None.
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
            twice is one array in the result. Of two contiguous arrays of one dtype and shape over
            the same memory (tied weights) one copy is made, or views that share it as they do. At
            most the tree and the result are in memory at once.

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
        >>> batch = {"pixels": [np.ones(2), np.ones(1)], "ids": np.arange(2), "split": "train"}
        >>> mine.convert_tree(batch, to="numpy", dtype="float32")["pixels"]
        [array([1., 1.], dtype=float32), array([1.], dtype=float32)]
        >>> mine.convert_tree(batch, to="numpy", dtype="float32")["ids"]
        array([0, 1])
        """
        words = device, copy, reusable(allow, "allow"), reusable(forbid, "forbid"), like
        asks_no_more = others == "keep" and not (progress or consume)
        if asks_no_more and dtype is None and stream is None and not is_traced():
            result = fast_tree(tree, self._table(to, None, *words).leaf_paths, {})
            if result is not NotImplemented:
                return result
        from .leaves import check_others, convert_leaves, is_array
        from .tree import Tree

        check_others(others)
        if stream is not None:
            check_stream(stream)
        table_of = self._table_of(
            dtype, lambda name: self._table(to, name, *words), of_kind=not cast_all
        )
        registry = self._registry
        opened = Tree(tree, lambda x: is_array(registry, x), registry.containers)
        del tree
        leaves = convert_leaves(
            opened,
            registry,
            self._engine,
            table_of,
            partial(self._fast_paths.learn, version=registry.version),
            stream=stream,
            like=like,
            others=others,
            progress=progress,
            consume=consume,
        )
        return opened.rebuilt(leaves)

    def accepts(
        self,
        to: TargetLike | Callable[..., Value],
        *,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        grad: bool = False,
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a function that is written for one framework take the arrays of any.

        Parameters
        ----------
        to : str, type or module
            The format that the function is written for. Without parentheses, as ``@accepts``, it
            is that of the array types among the function's annotations.
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
            of the same layout, if there is one, every other as its dense array, under the labels of
            that argument if the shape is the same. An array with a number of axes that the
            framework has no format for is given back as it is. Everything that is not an array
            passes through, and so does the result of a call without arrays.

        Raises
        ------
        UnknownTargetError, BadRequestError
            As for `convert`.
        BadRequestError
            The function is a coroutine or a generator; or, when it is called with `grad`, no
            plugin differentiates functions of its framework.
        NotInstalledError
            ``optree`` is missing.

        Notes
        -----
        Without ``copy=True`` the function is given the caller's memory where that can be shared,
        and must not write to it. Only floating-point and complex arrays are differentiated, and
        only once: neither the pullback nor forward mode is differentiable.

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
        from .accepts import accepting, annotated_target

        if callable(to) and not isinstance(to, type):  # the decorator stands without parentheses
            return accepting(self, to, annotated_target(self._loaded(), to), {}, grad=False)
        allow, forbid = reusable(allow, "allow"), reusable(forbid, "forbid")  # type: ignore[assignment]
        # So that mistakes show here.
        self.converter(to, dtype=dtype, device=device, copy=copy, allow=allow, forbid=forbid)
        # Without the defaults, so that fast paths can be taken.
        keywords = {
            name: value
            for name, value, default in (
                ("dtype", dtype, None),
                ("device", device, None),
                ("copy", copy, None),
                ("allow", allow, ()),
                ("forbid", forbid, ()),
            )
            if value != default
        }
        return lambda function: accepting(self, function, to, keywords, grad=grad)

    def plan(
        self,
        x_or_spec: Value,
        /,
        to: TargetLike | None = None,
        *,
        like: object = None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
    ) -> Route:
        """Return the route that `convert` would take, without touching the data.

        Parameters
        ----------
        x_or_spec : object or Spec
            A value, or what would be known of one; no framework and no device is needed to plan
            from a spec.
        to, like, dtype, device, copy, allow, forbid, stream
            As for `convert`, which also takes `out`.

        Returns
        -------
        Route
            Prints as a table; calling it with a value carries it out. Its `explain` plans again,
            to find the routes that were refused.

        Raises
        ------
        UnknownValueError, UnknownTargetError, BadRequestError, RefusedError, PluginError
            As for `convert`.

        Examples
        --------
        >>> mine = Interop()
        >>> spec = mine.make_spec("torch", "float32", device="cuda:0", shape=(3,))
        >>> mine.plan(spec, to="numpy").effects
        frozenset({'transfer'})
        """
        if stream is not None:
            check_stream(stream)
        words = device, copy, reusable(allow, "allow"), reusable(forbid, "forbid"), like
        table_of = self._table_of(dtype, lambda name: self._table(to, name, *words))
        spec = x_or_spec if isinstance(x_or_spec, Spec) else self.spec(x_or_spec)
        table = table_of(spec)
        check_format(self._registry, spec.format)
        request, steps = table.request, self._planned_steps(spec, table)
        ends = (self._registry.formats[s.format] for s in (spec, *(step.after for step in steps)))
        return Route(
            spec,
            request,
            steps,
            lambda value: _converted(self, self._cache.table(request), stream, like, value),
            lambda: refused_routes(self._planner, spec, request),
            problem=self._engine.shortage(steps, spec)[1],
            missing=tuple(dict.fromkeys(filter(None, map(not_installed, ends)))),
        )

    def spec(self, x: Value, /) -> Spec:
        """Return what is known of `x` without touching its data.

        Parameters
        ----------
        x : object

        Returns
        -------
        Spec

        Raises
        ------
        UnknownValueError, BadRequestError
            No format and no protocol recognises `x`, or it is a list that is no array.
        HandOffError
            A producer's memory is not as the protocol says.
        PluginError
            The `describe` of a plugin failed, or no plugin is installed.
        """
        if not self._plugins:
            self._loaded()
        return self._registry.describe(x)

    def make_spec(
        self,
        format: str,  # noqa: A002 - the field's name
        dtype: object,
        *,
        device: object = "cpu",
        shape: tuple[int, ...] = (),
        traits: Set[str] = frozenset(),
    ) -> Spec:
        """Return the spec of a dense array that need not exist, to plan from.

        Parameters
        ----------
        format : str
        dtype : str or dtype
        device : str, default "cpu"
        shape : tuple of int, in elements
        traits : set of str
            Words of `TRAITS`, or of a plugin's.

        Returns
        -------
        Spec
            With `nbytes` worked out from dtype and shape.

        Raises
        ------
        UnknownValueError, BadRequestError
            No such format is registered, or a word names no dtype, device or trait.

        Examples
        --------
        >>> Interop().make_spec("torch", "bf16", device="cuda:0", shape=(4096, 4096)).nbytes
        33554432
        """
        registry = self._loaded()
        check_format(registry, format)
        dtype, device = named_dtype(registry, dtype), named_device(registry, device)
        device = registry.formats[format].home(device) or device
        shape, traits = lengths(shape), named_traits(registry, traits)
        return make_spec(format, dtype, device=device, shape=shape, traits=traits)

    # ------------------------------------------------------------------ what is registered

    def formats(self) -> Listing[DeclaredFormat]:
        """Return the formats that are registered, each with its plugin, distribution and state.

        Returns
        -------
        tuple of DeclaredFormat
            Each has `name`, `format`, `provenance` and `state`. It is shown as a table.

        Raises
        ------
        PluginError
            No plugin is installed, not even interop's own.
        """
        registry = self._loaded()
        return Listing(
            DeclaredFormat(
                name, format_, registry.provenance[name], framework_state(format_.requires)
            )
            for name, format_ in registry.formats.items()
        )

    def conversions(self) -> Listing[Declared]:
        """Return the conversions in force, each with its plugin, distribution and state.

        Returns
        -------
        tuple of Declared
            Each has `conversion`, `provenance` and `state`. It is shown as a table.

        Raises
        ------
        PluginError
            As for `formats`.
        """
        registry = self._loaded()
        sources = registry.sources
        return Listing(
            declared._replace(
                state="ready"
                if {declared.conversion.source, declared.conversion.target} <= sources
                else "dormant"
            )
            for declared in registry.conversions
        )

    def plugins(self) -> Listing[Plugin]:
        """Return the plugins that were found: their distributions, and whether they are loaded.

        Returns
        -------
        tuple of Plugin
            Each has `name`, `distribution`, `version`, `state`, `reason`, the numbers of its
            `formats` and `conversions`, and `overrides`. It is shown as a table.

        Raises
        ------
        PluginError
            As for `formats`.
        """
        self._loaded()
        return Listing(self._plugins)

    def register(self, *declarations: Declaration) -> None:
        """Register formats, conversions and whatever else plugins declare, at run time.

        This clears all plans of the instance. Other threads may plan and convert meanwhile; they
        use the declarations from their next plan on.

        Parameters
        ----------
        *declarations : Format, Conversion or any other `Declaration`
            All of them are registered, or none.

        Raises
        ------
        PluginError
            A declaration is malformed.
        ConflictError
            A distribution has declared something else in the same place, and the declaration has no
            larger `priority`.

        Examples
        --------
        >>> mine = Interop()
        >>> mine.register(Format("mylib", types=("mylib:Array",), dtypes={"float32"}))
        >>> mine.formats()[-1].name
        'mylib'
        """
        registry = self._loaded()
        with self._lock:
            registry.add(declarations)

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

        Raises
        ------
        PluginError, ConflictError
            As for `register`, when a function is decorated.
        TypeError
            A keyword is not a field of `Conversion`.

        Examples
        --------
        >>> mine = Interop()
        >>> @mine.conversion("numpy", "mylib", effects={"copy"})
        ... def numpy_to_mylib(array): ...
        >>> [d.state for d in mine.conversions() if d.conversion.target == "mylib"]
        ['dormant']
        """

        def decorated(function: _Function) -> _Function:
            self.register(Conversion(source, target, function, **declaration))
            return function

        return decorated

    # ------------------------------------------------------------------ inside

    def _renew_locks(self) -> None:
        """Take new locks, because the threads that hold the old ones did not survive a fork."""
        self._lock = threading.RLock()
        for part in (self._cache, self._planner, self._engine):
            part.lock = threading.RLock()

    def _loaded(self) -> Registry:
        if self._has_to_load:
            with self._lock:
                if self._has_to_load:
                    self._load()
        return self._registry

    def _load(self) -> None:
        """Load the installed plugins."""
        from interop._registry.discovery import check_not_loading, load

        check_not_loading()
        self._registry.forget()  # what a call that was interrupted anywhere below has loaded
        self._plugins = load(self._registry)
        entrances: list[Value] = [getattr(Interop, name) for name in _ENTRANCES]
        for function in (self.convert, _converted, *entrances):
            self._registry.untraced(function)
        if self._reads_costs:
            from interop._registry.costs import stored

            self._registry.price(stored())
        self._has_to_load = False

    def _adopt(self, to: object) -> None:
        """Let modules that name no format yet be targets, if a plugin knows how."""
        targets = to if isinstance(to, (list, tuple, set, frozenset)) else (to,)
        registry = self._loaded()
        for target in targets:
            if isinstance(target, ModuleType) and not registry.named(target):
                with self._lock:
                    registry.adopt(target)

    def _like(
        self, to: TargetLike | None, like: object, device: object
    ) -> tuple[str, object, frozenset[str]]:
        """Return the format and the device that ``like=`` asks for, and how it is divided."""
        if to is not None:
            msg = "both to= and like= were given; pass one of them."
            raise BadRequestError(msg)
        if isinstance(like, (str, type, ModuleType)):
            msg = "like= takes an array; what names a format is for to=."
            raise BadRequestError(msg)
        spec = self._spec_of("like", like)
        if self._registry.formats[spec.format].protocol and hasattr(like, "__array_namespace__"):
            self._adopt(like.__array_namespace__())
            spec = self.spec(like)
        version, format_ = self._registry.version, self._registry.formats[spec.format]
        if format_.fast_key is not None and self._registry.is_plain(type(like), format_):
            self._cache.keep(self._cache.fast_keys, type(like), format_.fast_key, version)
        division = spec.traits & SEVERAL  # of one in parts, each is on a device of its own
        return (
            spec.format,
            device or (device_type(spec.device) if division else spec.device),
            division,
        )

    def _spec_of(self, name: str, value: Value) -> Spec:
        """Return the spec of what a keyword was given, which has to be an array."""
        try:
            return self.spec(value)
        except UnknownValueError as error:
            msg = (
                f"{name}= takes an array, and {type(value).__qualname__} is not one interop knows."
            )
            raise UnknownValueError(msg) from error

    def _table(  # noqa: PLR0917 - on the way of every conversion
        self,
        to: TargetLike | None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: str | Iterable[str] | None = (),
        forbid: str | Iterable[str] | None = (),
        like: object = None,
    ) -> PlanTable:
        """Return the plans of the request that the keywords of a call make, under its policy."""
        division: frozenset[str] = frozenset()
        if like is not None:
            to, device, division = self._like(to, like, device)
        check_copy(copy)
        allow, forbid = reusable(allow, "allow"), reusable(forbid, "forbid")
        innermost = block.get()
        key = (to, dtype, device, copy, allow, forbid, innermost and innermost.policy, division)
        try:
            return self._cache.by_words[key]
        except KeyError:
            keep = True
        except TypeError:  # a list or a set of targets does not hash
            keep = False
        self._adopt(to)
        version = self._registry.version
        request = resolved(
            self._registry,
            to,
            dtype=dtype,
            device=device,
            copy=copy,
            allow=allow,
            forbid=forbid,
            base=current_policy(),
            like=division,
        )
        table = self._cache.table(request)
        return self._cache.keep(self._cache.by_words, key, table, version) if keep else table

    def _table_of(
        self, dtype: object, table: Callable[[object], PlanTable], *, of_kind: bool = False
    ) -> Callable[[Spec], PlanTable]:
        """Return what gives the plans for a spec, if a dtype may be for some values only.

        `table` gives those of one dtype. A mapping has dtypes by the dtypes of values; with
        `of_kind` a dtype is for values of its kind.
        """
        if isinstance(dtype, Mapping):
            tables = {named_dtype(self._loaded(), name): table(to) for name, to in dtype.items()}
            uncast = table(None)
            return lambda spec: tables.get(spec.dtype or "", uncast)
        cast = table(dtype)
        if not of_kind or dtype is None:
            return lambda spec: cast
        uncast, kind = table(None), cast.request.dtype
        return lambda spec: cast if same_kind(spec.dtype, kind) else uncast

    def _run(self, x: Value, table: PlanTable, stream: object, like: object = None) -> Value:
        """Carry out the plan for `x`."""
        registry = self._registry
        version = registry.version
        spec = registry.describe(x)
        key = spec_class(spec)
        if table.states:
            key = table.key(key)
        plan = table.plans.get(key) or self._engine.plan(spec, table)
        request = table.request
        result = self._engine.run(plan, x, spec, request, request.given(stream, like))
        self._fast_paths.learn(x, spec, plan, table, version)
        return result

    def _link(self, key: object, to: Any, keywords: Mapping[str, Any]) -> None:
        """Let calls like one that was carried out find the fast paths of their request."""
        try:
            if key in self._cache.fast_paths or self._gives_labels(keywords.get("like")):
                return
        except TypeError:  # a list of targets, a set of effects
            return
        effects = [keywords.get(name, ()) for name in ("allow", "forbid")]
        if not all(isinstance(names, (str, tuple, frozenset)) for names in effects):
            return  # an iterator, which is used up
        if isinstance(keywords.get("dtype"), Mapping):
            return
        version = self._registry.version
        names = keywords.keys() - {"out", "stream"}  # which are None here
        table = self._table(to, **{name: keywords[name] for name in names})
        self._cache.keep(self._cache.fast_paths, key, table.fast_paths, version)

    def _gives_labels(self, like: object) -> bool:
        """Tell whether results take labels from a value."""
        if like is None:
            return False
        return self._registry.formats[self.spec(like).format].labels is not None

    def _planned_steps(self, spec: Spec, table: PlanTable) -> tuple[Step, ...]:
        """Return the steps of a route as they are for `spec`."""
        while True:
            plan = self._engine.plan(spec, table, installed=False)
            steps = self._planner.replayed(spec, table.request, plan.steps)
            if steps is not None:
                return steps
            # Another thread has registered something meanwhile.
            table = self._cache.table(table.request)

    def _fill(
        self,
        x: Value,
        out: Value,
        allow: str | Iterable[str] | None,
        forbid: str | Iterable[str] | None,
        stream: object,
    ) -> Value:
        """Write `x` into `out`, which decides format, dtype and device."""
        is_default = not allow and not forbid and stream is None and block.get() is None
        out_spec, spec = self._spec_of("out", out), self.spec(x)
        allow, forbid = reusable(allow, "allow"), reusable(forbid, "forbid")
        target = self._registry.formats[out_spec.format]
        _check_writable(target, out, out_spec, spec.shape)
        name, device = out_spec.format, out_spec.device
        # What lies in the memory of `out` must all be read before any of it is written.
        apart = shares_memory(self._registry, x, out, (spec, out_spec)) is False
        holds = out_spec.dtype in target.dtypes  # otherwise `fill` reports why
        # On a device, a view of another library's memory might be read after it has changed.
        copy = None if device == "cpu" else True
        dtype = out_spec.dtype if holds else None
        request = self._table(name, dtype, device, copy, allow, forbid).request
        given = request.given(stream)
        if not (apart and holds and self._engine.write(x, spec, out, out_spec, request, given)):
            copy = None if apart else True
            table = self._table(name, dtype, device, copy, allow, forbid)
            # `fill` casts as it writes, unless the cast may be refused or comes in one with a copy.
            if request.consents and spec.dtype in target.dtypes:
                uncast = self._table(name, None, device, copy, allow, forbid)
                table = table if self._engine.plan(spec, uncast).writes else uncast
            assert target.fill is not None
            target.fill(out, self._run(x, table, stream))
        loss = imaginary_loss(spec.dtype, out_spec.dtype)
        if loss is not None:
            warn_caller(loss)
        elif is_default and spec.nbytes < SMALL and _is_alike(spec, out_spec):
            self._learn_fill(x, spec, out, self._table(name))
        return out

    def _learn_fill(self, x: Value, spec: Spec, out: Value, table: PlanTable) -> None:
        """Keep how to write values such as `x` into those such as `out`, by a fast path."""
        registry, types, version = self._registry, (type(x), type(out)), self._registry.version
        plan = table.plans.get(table.key(spec_class(spec)))
        source, target = registry.formats[spec.format], registry.formats[table.request.formats[0]]
        if not (_can_be_read_twice(source) and registry.is_plain(type(out), target)):
            return
        if plan is None or type(x) not in plan.fast_types:
            self._run(x, table, None)  # which keeps its fast path if there is one
        path = table.fast_paths.get(type(x), NotImplemented)
        # The fast path compares shapes as the values themselves tell them.
        tells_shape = getattr(out, "shape", None) == spec.shape
        if path is not NotImplemented and target.memory and target.fast_key and tells_shape:
            self._cache.keep(self._cache.fills, types, fast_fill(path, target), version)


def _can_be_read_twice(format_: Format) -> bool:
    """Tell whether to read a value changes nothing: others are computed, or hand memory over."""
    return format_.fast_key is not None


def _is_alike(spec: Spec, other: Spec) -> bool:
    """Tell whether two values have the same dtype, device and shape."""
    return (spec.dtype, spec.device, spec.shape) == (other.dtype, other.device, other.shape)


def _check_writable(format_: Format, out: Value, spec: Spec, shape: tuple[int, ...]) -> None:
    """Refuse an ``out=`` that cannot hold all numbers of a value, before anything is converted."""
    if format_.fill is None:
        msg = (
            f"{format_.name} values cannot be written into; use the result of a call without out=."
        )
        raise BadRequestError(msg)
    if spec.shape != shape:
        msg = f"out has shape {spec.shape}, but the value has {shape}; pass an out of that shape."
        raise BadRequestError(msg)
    if spec.traits & UNWRITABLE:
        trait = min(spec.traits & UNWRITABLE)
        move = _OTHER_OUT.get(trait, "pass an array with memory of its own, such as a copy")
        msg = f"out= of shape {shape} cannot be written into: {TRAITS[trait]}; {move}."
        raise BadRequestError(msg)
    if spec.dtype not in format_.dtypes:
        msg = f"out= has the non-numeric dtype {spec.dtype}; pass an array of numbers."
        raise BadRequestError(msg)
    unwritable = format_.limits.unwritable
    if unwritable is not None and (reason := unwritable(out)):
        msg = f"out= is {reason}"
        raise BadRequestError(msg)


def _converted(
    owner: Interop, table: PlanTable, stream: object, like: object, x: Value, /
) -> Value:
    """Convert under a request that was resolved before."""
    result = owner._run(x, table, stream, like)
    return result if like is None else owner._registry.relabelled(result, like)


def _living() -> list[Interop]:
    """Return the instances of this process."""
    instances = (reference() for reference in _instances.valuerefs())
    return [instance for instance in instances if instance is not None]


def locks() -> list[threading.RLock]:
    """Return the locks that are held while plugins are loaded, of every instance."""
    return [instance._lock for instance in _living()]


def _after_fork() -> None:
    for instance in _living():
        instance._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
