"""The object behind the functions of the package, which holds all state."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from interop._execution.converter import Converter, Converters
from interop._model.blame import brief, misuse
from interop._model.conversion import Conversion, Cost
from interop._model.extension import Declaration
from interop._model.spec import Spec, make_spec
from interop._model.text import Listing
from interop._model.typing import (
    CopyLike,
    EffectNames,
    OrderLike,
    TargetLike,
    Value,
    ValueFunction,
)
from interop._planning.derived import complete
from interop._planning.plan import Plan
from interop._planning.planner import Planner
from interop._recognition.installed import framework_state, importable
from interop._registry.declared import Declared, DeclaredFormat
from interop._registry.registry import Registry
from interop._request.keywords import Keywords, checked
from interop._request.naming import (
    check_format,
    lengths,
    named_device,
    named_dtype,
    named_traits,
)
from interop._request.policy import Policy, adjusted, set_default

from .front import among_of, converted, fast_first, small_first
from .kept import kept_calls, kept_converter, kept_plan

if TYPE_CHECKING:
    from interop._registry.plugins import Plugin

    from .leaves import Lists, Others

_Function = TypeVar("_Function", bound=Callable[..., Value])

#: Every instance of this process, by its `id`: unlike a `WeakSet`, it can be listed while it grows.
_instances: WeakValueDictionary[int, Interop] = WeakValueDictionary()


class Interop:
    """A registry of formats and conversions, a planner over it, and the caches of both.

    The functions of the package are the methods of one instance of this class. A library or a
    test that wants to keep its registrations to itself makes its own.

    Parameters
    ----------
    plugins : bool, default True
        Whether to load the installed plugins, at the first need.
    costs : mapping of str to Cost, optional
        Costs of conversions, by `Declared.key`, instead of those that their plugins declare.

    Examples
    --------
    >>> import interop
    >>> mine = interop.Interop()
    >>> mine.convert([1, 2, 3], to="numpy")
    array([1, 2, 3])
    """

    @brief
    def __init__(self, *, plugins: bool = True, costs: Mapping[str, Cost] | None = None) -> None:
        self._registry = registry = Registry(costs, plugins=plugins)
        self._planner = planner = Planner(registry, importable)
        self._converters = converters = Converters(registry, planner)
        # What the front looks into.
        self._calls, self._likes, self._fills = converters.calls, converters.likes, converters.fills
        _instances[id(self)] = self
        registry.loader.on_start = partial(_keep_compilers_out, registry)

    def __reduce__(self) -> str | tuple[Any, ...]:
        msg = (
            "an instance of Interop, and what it makes, belongs to its process, because its "
            "registrations do; make another one there, or use the functions of the package, such "
            "as interop.converter."
        )
        raise TypeError(msg)

    def __repr__(self) -> str:
        formats = len(self._registry.formats)
        return f"<{type(self).__qualname__} of {formats} formats>"

    # ------------------------------------------------------------------ converting

    @fast_first
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
        order: OrderLike = None,
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
            ``__array_interface__``, the buffer protocol, ``__arrow_c_array__``,
            ``__arrow_c_stream__`` or ``__array__``; a Python scalar or nested list.
        to : str, type, module or sequence of these
            A format (``"torch"``, ``"scipy.csr"``), a framework's array type (``np.ndarray``) or
            its module (``np``). A sequence means the cheapest of its targets. The name of a
            framework that has only sparse formats means any of them.
        like : object, optional
            Instead of `to`: a value whose format and device the result gets. The result also gets
            its labels, if the shapes agree and `x` has no labels. If the value is divided over
            devices or processes, a result of another format is divided likewise where a
            conversion can do so.
        dtype : str, dtype or mapping, optional
            dtype of the result, by NumPy's or ml_dtypes' name or as a framework's dtype object.
            Asking for it is consent to the cast. By default the dtype of `x`, or the narrowest
            that holds all its values if the target does not know the dtype of `x`. A mapping names
            dtypes of results by the dtypes of values, or by their kinds in the array API standard
            (``{"real floating": "float32", "integral": "int64"}``); the narrower of two keys
            counts. The default is for values of other dtypes.
        device : str, optional
            ``"cpu"``, ``"cuda"``, ``"cuda:1"`` …; ``"cpu:2"`` for a target that divides the host;
            ``"cuda_host"`` for page-locked memory of the host, which serves ``"cpu"`` as well.
            By default the data stay where they are if the target can be there.
        copy : bool or "writable", optional
            None: share memory if at all possible. True: the result owns fresh writable memory.
            False: never copy, in any step; raise instead. "writable": share memory unless it is
            read-only or an immutable framework's, so that the result can be written to.
        order : {"C", "F"}, optional
            The order in which the elements of a dense result lie in memory, as for `numpy.asarray`:
            they are copied only if they do not lie so. By default any, so that memory can be
            shared. Tables, lists, sparse and lazy arrays serve as "C", and are refused as "F".
        out : array, optional
            An array into which the result is written; it is returned. It decides format, dtype
            and device, so `to`, `like`, `dtype`, `device`, `order` and ``copy=False`` are refused
            beside it. It is consent to narrow to its dtype, unless ``forbid="narrow"``. After an
            error its numbers are undefined.
        allow, forbid : str or iterable of str
            Effects permitted or refused in this call.
        stream : int or object, optional
            The stream on which the consumer will use the result, if the target has streams: its
            handle, or a framework's object.

        Returns
        -------
        array
            It has the requested format. It shares memory with `x` unless `copy` is True or every
            route copies; that depends on the spec of `x` and on the request alone. A value that
            already is as requested is returned as it is.

        Raises
        ------
        UnknownValueError, UnknownTargetError
            `x` or `to` is not known (TypeErrors).
        BadRequestError, RefusedError
            The request or a list makes no sense, or no route is permitted (ValueErrors).
        HandOffError
            A producer's memory is not as the protocol demands (a BufferError).
        DoesNotFitError
            The result does not fit in memory (a MemoryError), for example the dense form of a
            sparse array.
        NotInstalledError
            The target's framework is not installed (an ImportError).
        ConversionError, DeviceError
            A step failed, or the device is missing (RuntimeErrors).
        PluginError
            A plugin cannot describe `x`, or no plugin is installed (a RuntimeError).

        Warns
        -----
        ComplexWarning
            A cast keeps only the real parts of complex numbers.

        Examples
        --------
        >>> import interop, numpy as np
        >>> interop.convert(np.arange(3), to="python")
        [0, 1, 2]
        >>> interop.convert([1, 2], to="numpy", dtype="float32")
        array([1., 2.], dtype=float32)
        """
        keywords = Keywords(to, like, dtype, device, copy, out, allow, forbid, order, stream)
        return converted(self._converters, x, keywords)

    @brief
    def converter(
        self,
        to: TargetLike | None = None,
        *,
        like: object = None,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        order: OrderLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
    ) -> ValueFunction:
        """Resolve a request once, for hot loops.

        The converter keeps the policy that is in force when it is made.

        Parameters
        ----------
        to, like, dtype, device, copy, order, allow, forbid, stream
            As for `convert`, which also takes `out`.

        Returns
        -------
        callable
            ``converter(x)`` does what ``convert(x, ...)`` would do. It shares the plans of this
            instance, and holds the value in `like`. It is pickled by its request, policy included,
            if it was not made for a `stream`.

        Raises
        ------
        UnknownValueError, UnknownTargetError, BadRequestError
            As for `convert`, because of the keywords.

        Examples
        --------
        >>> import interop
        >>> to_floats = interop.converter("numpy", dtype="float32")
        >>> to_floats([1, 2])
        array([1., 2.], dtype=float32)
        """
        given = Keywords(to, like, dtype, device, copy, None, allow, forbid, order, stream)
        converter = kept_converter(self, checked(given))
        return converter.__call__  # to call that takes as long as a function

    @small_first
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
        order: OrderLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
        cast_all: bool = False,
        others: Others = "keep",
        lists: Lists = "open",
        progress: bool = False,
        consume: bool = False,
    ) -> Value:
        """Convert every array in nested containers.

        Dicts, lists, tuples, namedtuples, deques and their subclasses, dataclasses, all other
        mappings, and containers that plugins open (the pytrees of JAX, instances of attrs classes,
        pydantic models, TensorDicts) are traversed. `others` says what happens to numbers, strings
        and everything else that is not an array of numbers.

        Parameters
        ----------
        tree : object
            It is left as it is, unless `consume` is set.
        to, like, dtype, device, copy, order, allow, forbid, stream
            As for `convert`, for every array; but no array gets the labels of `like`, and `dtype`
            is for the arrays of its kind: of floats, of integers, of bools or of complex numbers.
            Arrays of another kind keep their dtype, so that a cast of weights leaves token ids and
            masks as they are.
        cast_all : bool, default False
            Whether `dtype` is for the arrays of other kinds, too.
        others : {"keep", "convert", "refuse"}, default "keep"
            The fate of leaves that are not arrays of numbers. "keep": they pass through. "convert":
            they pass through, but Python's numbers become 0-d arrays. "refuse": the first of them
            is refused, unless it is None.
        lists : {"open", "arrays"}, default "open"
            The fate of lists. "arrays": a list of numbers or of arrays, to any depth, is one array,
            as for `convert`; all others are opened, and so are tuples.
        progress : bool, default False
            Whether to show a bar on standard error; needs ``rich``.
        consume : bool, default False
            Whether to empty the dicts, lists and deques of the tree before converting, so that
            each array can be freed as soon as it is converted. If a conversion then fails, they
            are filled again: with the results so far, and with the arrays that are left.

        Returns
        -------
        object
            New containers of the same types around the converted arrays; a dict stands for a file,
            a Dataset of xarray and records, which hold no other arrays than their own. An array
            that occurs twice is one array in the result. Two contiguous arrays of one type, dtype
            and shape over the same memory (tied weights) stay tied: they become one copy, or views
            over that memory. At most the tree and the result are in memory at once.

        Raises
        ------
        InteropError
            As for `convert`. The message begins with the path of the leaf
            (``model/layers/3/weight``), which is also the error's `where`.
        RefusedLeavesError
            Several leaves are refused: a `RefusedError` and an `ExceptionGroup` of the first ten.
        UnknownValueError
            A model, an iterator, a set or a view holds arrays that would come back unconverted.
        BadRequestError
            A container holds itself, or has no means to be made anew around other arrays; or the
            tree is too deep.
        NotInstalledError
            A target's framework is missing, or ``rich`` for `progress`.

        Examples
        --------
        >>> import interop, numpy as np
        >>> batch = {"pixels": [np.ones(2), np.ones(1)], "ids": np.arange(2), "split": "train"}
        >>> interop.convert_tree(batch, to="numpy", dtype="float32")["pixels"]
        [array([1., 1.], dtype=float32), array([1.], dtype=float32)]
        >>> interop.convert_tree(batch, to="numpy", dtype="float32")["ids"]
        array([0, 1])
        """
        given = Keywords(to, like, dtype, device, copy, None, allow, forbid, order, stream)
        keywords = checked(given)
        converter = self._converters.converter(keywords, among=among_of(cast_all))
        from .leaves import Trees  # imported for the first tree

        return Trees(self._converters).converted(
            tree, converter, keywords, others, lists, progress=progress, consume=consume
        )

    @brief
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
        lists: bool = False,
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a function that is written for one framework take the arrays of any.

        Parameters
        ----------
        to : str, type or module
            The format that the function is written for. ``@accepts`` without parentheses takes it
            from the array types among the function's annotations.
        dtype, device, copy, allow, forbid
            As for `convert`, for every array among the arguments; `allow` and `forbid` hold for
            those in the result, too.
        grad : bool, default False
            Whether the function takes part in the caller's reverse-mode differentiation. Both
            frameworks must be ones that a plugin differentiates; arrays of others are constants.
            Without it a call that would cut a history, while one is being recorded, is refused,
            unless ``allow="detach"`` permits that.
        lists : bool, default False
            Whether lists of numbers or of arrays among the arguments are arrays, too. They name no
            framework: a result goes back to the first other array, or stays as it is.

        Returns
        -------
        callable
            A decorator. The function that it returns converts the arrays among its arguments, also
            those inside lists, tuples and mappings. It gives the arrays in the result back on the
            device and in the framework of the first array of numbers: a sparse result in the format
            of the same layout, if there is one, every other result as a dense array. If the shapes
            agree, the result gets the labels of that argument; one of as many rows gets those of
            the rows, where the framework aligns by them. A result for whose number of axes the
            framework has no format is given back as it is. Everything that is not an array of
            numbers passes through, and so do results of text and the result of a call without
            arrays; but a table among the arguments that has columns of text is refused.

        Raises
        ------
        UnknownTargetError, BadRequestError
            As for `convert`.
        BadRequestError
            The function is a coroutine or a generator; or, when it is called with `grad`, no
            plugin differentiates functions of its framework.
        RefusedError
            When it is called: as for `convert`, and for an array with a history (see `grad`).

        Notes
        -----
        Without ``copy=True`` the function is given the caller's memory where that can be shared,
        and must not write to it. Only floating-point and complex arrays are differentiated, and
        only once: neither the pullback nor forward mode is differentiable.

        Examples
        --------
        >>> import interop, torch
        >>> @interop.accepts("numpy")
        ... def centred(x):
        ...     return x - x.mean()
        >>> centred(torch.tensor([1.0, 3.0]))
        tensor([-1.,  1.])
        """
        from .accepts import accepting, accepting_later, annotated_target

        # The package of a plugin decorates its own functions.
        is_early = self._registry.loader.is_loading()
        if callable(to) and not isinstance(to, type):  # the decorator stands without parentheses
            if is_early:
                return accepting_later(to, partial(self.accepts, to))
            keywords = Keywords(annotated_target(self._registry.loaded(), to))
            return accepting(kept_calls(self, to, False, False, keywords))
        keywords = checked(Keywords(to, None, dtype, device, copy, None, allow, forbid))
        if not is_early:
            self._converters.converter(keywords)  # so that mistakes show here
        return lambda function: accepting(kept_calls(self, function, grad, lists, keywords))

    @brief
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
        order: OrderLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        stream: object = None,
    ) -> Plan:
        """Return the plan that `convert` would carry out, without touching the data.

        Parameters
        ----------
        x_or_spec : object or Spec
            A value, or the spec of one; no framework and no device is needed to plan from a spec.
        to, like, dtype, device, copy, order, allow, forbid, stream
            As for `convert`, which also takes `out`.

        Returns
        -------
        Plan
            It prints as a table. Calling it with a value carries it out. Its `explain` plans again,
            to find the routes that were refused.

        Raises
        ------
        UnknownValueError, UnknownTargetError, BadRequestError, RefusedError, PluginError
            As for `convert`.

        Examples
        --------
        >>> import interop
        >>> spec = interop.make_spec("torch", "float32", device="cuda:0", shape=(3,))
        >>> interop.plan(spec, to="numpy").effects
        frozenset({'transfer'})
        """
        self._registry.loader.load_all()
        given = Keywords(to, like, dtype, device, copy, None, allow, forbid, order, stream)
        keywords = checked(given)
        self._converters.converter(keywords)  # so that mistakes show before those of the value
        spec = x_or_spec if isinstance(x_or_spec, Spec) else self.spec(x_or_spec)
        return kept_plan(self, spec, keywords)

    @brief
    def spec(self, x: Value, /) -> Spec:
        """Return the facts of `x` that are known without touching its data.

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
            A producer's memory is not as the protocol demands.
        PluginError
            The `describe` of a plugin failed, or no plugin is installed.

        Examples
        --------
        >>> import interop, numpy as np
        >>> print(interop.spec(np.ones((2, 3))))
        numpy float64 2x3 on cpu
        """
        return self._registry.recognition.describe(x)

    @brief
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
        >>> import interop
        >>> interop.make_spec("torch", "bf16", device="cuda:0", shape=(4096, 4096)).nbytes
        33554432
        """
        registry = self._registry.loaded()
        check_format(registry, format)
        dtype, device = named_dtype(registry, dtype), named_device(registry, device)
        device = registry.formats[format].home(device) or device
        shape, traits = lengths(shape), named_traits(registry, traits)
        return make_spec(format, dtype, device=device, shape=shape, traits=traits)

    # ------------------------------------------------------------------ what is registered

    @brief
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

        Examples
        --------
        >>> import interop
        >>> [d.name for d in interop.formats() if d.format.framework == "jax"]
        ['jax', 'jax.ref', 'jax.bcoo', 'jax.bcsr']
        """
        registry = self._registry.loaded()
        return Listing(
            DeclaredFormat(
                name, format_, registry.provenance[name], framework_state(format_.requires)
            )
            for name, format_ in registry.formats.items()
        )

    @brief
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

        Examples
        --------
        >>> import interop
        >>> ends = [d.conversion[:2] for d in interop.conversions()]
        >>> ("torch", "numpy") in ends
        True
        """
        registry = self._registry.loaded()
        sources = registry.sources

        def entry(declared: Declared) -> Declared:
            conversion = declared.conversion
            ends = conversion.source, conversion.target
            state = "ready" if sources.issuperset(ends) else "dormant"
            source, target = (registry.formats.get(name) for name in ends)
            if source is not None and target is not None:
                conversion = complete(conversion, source, target)
            return declared._replace(declaration=conversion, state=state)

        return Listing(map(entry, registry.conversions))

    @brief
    def plugins(self) -> Listing[Plugin]:
        """Return the plugins that were found: their distributions, and whether they are loaded.

        Returns
        -------
        tuple of Plugin
            Each has `name`, `distribution`, `version`, `state`, `reason`, the numbers of its
            `formats` and `conversions`, and `replaces`. It is shown as a table.

        Raises
        ------
        PluginError
            As for `formats`.

        Examples
        --------
        >>> import interop
        >>> [plugin.state for plugin in interop.plugins() if plugin.name == "numpy"]
        ['loaded']
        """
        return Listing(self._registry.loaded().loader.plugins)

    @brief
    def register(self, *declarations: Declaration) -> None:
        """Register formats, conversions and all other declarations of plugins at run time.

        This clears all plans of the instance. Other threads may plan and convert meanwhile; their
        next plans use the declarations.

        Parameters
        ----------
        *declarations : Format, Conversion or any other `Declaration`
            All of them are registered, or none.

        Raises
        ------
        PluginError
            A declaration is malformed.
        ConflictError
            Another distribution has declared something in the same place, and the declaration does
            not say that it `replaces` that distribution.

        Examples
        --------
        >>> import interop
        >>> mine = interop.Interop()
        >>> mine.register(interop.Format("mylib", types=("mylib:Array",), dtypes={"float32"}))
        >>> mine.formats()[-1].name
        'mylib'
        """
        registry = self._registry.loaded()
        with registry.loader.lock:
            registry.register(declarations)

    @brief
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
        >>> import interop
        >>> mine = interop.Interop()  # what is registered in the package is there for all
        >>> @mine.conversion("numpy", "mylib", effects={"copy"})
        ... def numpy_to_mylib(array): ...
        >>> [d.state for d in mine.conversions() if d.conversion.target == "mylib"]
        ['dormant']
        """
        if not declaration.keys() <= {*Conversion._fields}:
            raise misuse(Conversion, (source, target), declaration)

        def decorated(function: _Function) -> _Function:
            self.register(Conversion(source, target, function, **declaration))
            return function

        return decorated


#: The functions that take values, into which no compiler must trace.
_TAKES_VALUES = (
    Interop.convert,
    Interop.convert_tree,
    Interop.plan,
    Interop.spec,
    converted,
    Converter.__call__,
    Converter.convert,
    Converters.convert,
)


def _keep_compilers_out(registry: Registry) -> None:
    """Have frameworks' compilers not trace into an instance's functions that take values."""
    for function in _TAKES_VALUES:
        registry.untraced(function)


def _living() -> list[Interop]:
    """Return the instances of this process."""
    instances = (reference() for reference in _instances.valuerefs())
    return [instance for instance in instances if instance is not None]


@brief
def set_default_policy(allow: EffectNames = (), forbid: EffectNames = ()) -> None:
    """Change, for a whole program, which effects conversions may have.

    An application calls this once, when it starts. A library never does: its users decide what may
    happen to their numbers, and it has `policy` and the keywords for its own calls.

    Parameters
    ----------
    allow, forbid : str or iterable of str
        Names of effects (see :data:`EFFECTS`). Effects that are not named have the defaults of
        `interop`, whatever an earlier call has said.

    Raises
    ------
    BadRequestError
        A name is not an effect, or stands in both lists.

    Notes
    -----
    It holds in all threads and tasks, for all later calls outside of `policy` blocks that are open
    already. Blocks and keywords overrule it. Other processes have a default of their own.

    Examples
    --------
    >>> import interop
    >>> import numpy as np
    >>> interop.set_default_policy(allow="narrow")
    >>> interop.convert(np.array([0.5, 0.1]), to="jax")
    Array([0.5, 0.1], dtype=float32)
    >>> interop.set_default_policy()
    """
    set_default(adjusted(Policy(), allow, forbid))
    for instance in _living():  # their plans are those of the policy before
        with instance._registry.loader.lock:
            instance._registry.changed()


def _after_fork() -> None:
    # The threads that held the locks did not survive the fork.
    for instance in _living():
        loader, converters = instance._registry.loader, instance._converters
        for part in (loader, instance._planner, converters, converters.engine):
            part.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
