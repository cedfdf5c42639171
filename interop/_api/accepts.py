"""Functions written for one framework that accept the arrays of any."""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial, wraps
from inspect import (
    Parameter,
    get_annotations,
    isasyncgenfunction,
    iscoroutinefunction,
    isgeneratorfunction,
    signature,
)
from types import MappingProxyType
from typing import Any, TypeAlias, get_origin

from interop._execution.converter import Converter, Converters
from interop._model.blame import shortened
from interop._model.device import ordinary
from interop._model.extension import Autodiff, Pullback
from interop._model.format import Format
from interop._model.spec import Spec, summary
from interop._model.text import listed
from interop._model.typing import SCALARS, Value, ValueFunction
from interop._planning.goals import keeps_elements
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.naming import named
from interop._request.policy import block, effect_names
from interop.errors import BadRequestError, InteropError, RefusedError

from .leaves import Located, is_array, is_list_of_numbers, is_of_numbers, reader
from .tree import Tree, joined

#: The names that lead to a leaf.
_Path: TypeAlias = tuple[Any, ...]

#: The containers that are opened among arguments; other objects pass as they are.
_CONTAINERS = (Mapping, list, tuple, deque, UserList)
#: The kinds of functions that give their results later, and what tells them apart.
_LATER = {
    iscoroutinefunction: "a coroutine",
    isgeneratorfunction: "a generator",
    isasyncgenfunction: "an asynchronous generator",
}
#: For how many combinations of argument types a function keeps its fast calls.
_FLAT_CALLS = 64


@dataclass(slots=True)
class _Flat:
    """What is done with the arrays among arguments that are arrays and scalars of some types.

    The arrays are of one type. Arguments are counted through, those with keywords last.
    """

    #: The numbers of the arrays that are converted.
    converted: tuple[int, ...]
    path: Any
    #: Tells of an array whether its history is recorded, which the path would drop; see `Autodiff`.
    recorded: ValueFunction | None
    #: The number of the first array.
    first: int
    #: Converts results.
    back: Converter
    #: Whether a result is on the device of the first array only if that is compared.
    compares: bool
    #: Those that results of some types have taken; None for what is given back as it is.
    results: dict[type, Any]


def accepting(calls: Calls) -> Callable[..., Value]:
    """Return a function with its arguments converted, and its results back."""
    function = calls.function

    # Keep every closure variable picklable: `cloudpickle` pickles a script's functions by value.
    @wraps(function)
    def accepted(*args: Any, **kwargs: Any) -> Value:
        # This is the whole overhead if no argument needs converting.
        innermost = calls.block.get()
        if innermost is None or not innermost.traces:
            is_alone = len(args) == 1 and not kwargs
            types = type(args[0]) if is_alone else (*map(type, args), *map(type, kwargs.values()))
            flat = calls.flat.get(types if innermost is None else (innermost.policy, types))
            if flat is not None:
                if not flat.converted:
                    result = function(*args, **kwargs)
                    own = flat.results.get(type(result), NotImplemented) is None
                    return result if own else calls.back(result, flat, (*args, *kwargs.values()))
                if is_alone:
                    result = calls.fast_alone(flat, args[0])
                else:
                    result = calls.fast(flat, (*args, *kwargs.values()), len(args), kwargs)
                if result is not NotImplemented:
                    return result
        try:
            return calls.planned(args, kwargs)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error
        except (AttributeError, TypeError) as error:  # the function may have expected arrays
            calls.remark(error, args, kwargs)
            raise

    return accepted


def accepting_later(
    function: Callable[..., Value], decorated: Callable[[], Callable[..., Value]]
) -> Callable[..., Value]:
    """Return a function that is decorated when it is first called, by then with all plugins."""
    decorated_once = cache(decorated)

    @wraps(function)
    def accepted(*args: Any, **kwargs: Any) -> Value:
        return decorated_once()(*args, **kwargs)

    return accepted


def _check_function(function: Value) -> None:
    """Refuse anything but functions that give their results at once."""
    if isinstance(function, staticmethod):
        msg = f"accepts stands below @staticmethod, not above it, for {function.__qualname__}."
        raise BadRequestError(msg)
    if not callable(function) or isinstance(function, type):
        msg = f"accepts decorates functions, not {function!r}; of a class decorate its __init__."
        raise BadRequestError(msg)
    called = function
    while isinstance(called, partial):
        called = called.func
    for tells, kind in _LATER.items():
        if tells(called) or tells(type(called).__call__):
            msg = f"{_name(called)} is {kind} function; call interop.convert inside it."
            raise BadRequestError(msg)


def _name(function: Callable[..., Value]) -> str:
    """Return how messages call a function; a partial one has no name, nor has an object."""
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name


def annotated_target(registry: Registry, function: Callable[..., Value]) -> str:
    """Return the format that the annotations of a function name."""
    annotations: dict[str, Any] = {}
    with suppress(NameError):  # a name may be imported for type checkers alone
        annotations = get_annotations(function, eval_str=True)
    types = [get_origin(kind) or kind for kind in annotations.values() if kind is not None]
    targets = {name for kind in types for name in named(registry, kind)}
    if len(targets) != 1:
        msg = (
            f"the annotations of {_name(function)} do not name one array type; name the "
            "format that it is written for, as in @interop.accepts('<format>')."
        )
        raise BadRequestError(msg)
    return targets.pop()


def _parameters(function: Callable[..., Value]) -> Mapping[str, Parameter]:
    """Return the parameters of a function by name; a function of C does not tell them."""
    try:
        return signature(function).parameters
    except ValueError:
        return {}


def _named(function: Callable[..., Value], path: _Path) -> _Path:
    """Return the path to an argument with the name of its parameter."""
    kind, key, *rest = path
    if kind == 1:
        return (key, *rest)
    parameters = _parameters(function).values()
    if not parameters:  # a function of C
        return path
    names = [p.name for p in parameters if p.kind <= p.VAR_POSITIONAL]
    fixed = sum(p.kind < p.VAR_POSITIONAL for p in parameters)
    inner = rest if key < fixed else (key - fixed, *rest)
    return ([*names, "arguments"][min(key, fixed)], *inner)


def _is_object(owner: Value, value: Value) -> bool:
    """Return whether an argument passes as it is: a method's owner, and all but containers."""
    return value is owner or not isinstance(value, _CONTAINERS)


def _array_specs(
    registry: Registry, tree: Tree, named: Callable[[_Path], _Path] = tuple
) -> dict[int, Spec]:
    """Open the arrays among the leaves; return their specs by their indices."""
    read, specs = reader(registry), {}
    for index in tree.leaves:
        with Located(partial(tree.path, index), named):
            tree.values[index], spec = read(tree.values[index])
        if spec is not None:
            specs[index] = spec
    return specs


def _passes(spec: Spec, path: _Path) -> bool:
    """Return whether an array that is not of numbers passes as it is, as those in trees do.

    A table that is an argument itself may have columns of numbers, which the function is for.
    """
    _, _, *inner = path
    is_table = len(spec.shape) > 1 and "not_numbers" in spec.traits
    return bool(inner) or not is_table


def _once(convert: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that converts an array once, however often it is given."""
    converted: dict[int, tuple[Value, Value]] = {}

    def convert_once(x: Value, *spec: Spec) -> Value:
        if id(x) not in converted:
            result = convert(x, *spec)
            converted[id(x)] = x, result  # the array lives on, so that no other gets its `id`
        return converted[id(x)][1]

    return convert_once


class Calls:
    """The calls of a function, with its arguments converted and its results back.

    It is pickled by its request. What it has learnt of the arguments stays behind.

    Parameters
    ----------
    converters : Converters
        Those of an instance whose plugins are loaded.
    convert : callable
        `Interop.convert` of that instance.
    function : callable
    keywords : Keywords
    grad : bool
    lists : bool
        Whether lists of numbers or of arrays among the arguments are arrays, too.
    pickled : callable
        Returns what `__reduce__` has to.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        converters: Converters,
        convert: Callable[..., Value],
        function: Callable[..., Value],
        keywords: Keywords,
        grad: bool,
        lists: bool,
        pickled: Callable[[], tuple[Any, ...]],
    ) -> None:
        _check_function(function)
        self.function = function
        self.registry = converters.registry
        self.block = block
        self._converters = converters
        self._keywords = keywords
        self._grad = grad
        self._lists = lists
        self._pickled = pickled
        named = {
            name: value
            for name, value in keywords._asdict().items()
            if value is not Keywords._field_defaults[name]
        }
        self._convert_argument = partial(convert, **named)
        #: Of the request, results have the policy alone.
        self._policy = {name: named[name] for name in ("allow", "forbid") if name in named}
        self.convert_result = partial(convert, **self._policy) if self._policy else convert
        self._may_cut = "detach" in effect_names(keywords.allow, "allow")
        self._is_method = next(iter(_parameters(function)), None) in {"self", "cls"}
        self._has_one_request = not (grad or isinstance(keywords.dtype, Mapping))
        #: By the types of the arguments, in a block by its policy as well.
        self.flat: dict[Any, _Flat] = {}
        converters.used(self)

    def forget(self) -> None:
        """Forget what was learnt of types of arguments."""
        self.flat.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return self._pickled()

    def planned(self, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        """Return the function's result, with every array described and its conversion planned."""
        registry = self.registry
        passes = partial(_is_object, args[0] if self._is_method and args else None)
        arguments = Tree(
            (args, kwargs), self._is_array, registry.containers, passes=passes, lists=self._lists
        )
        arrays = _array_specs(registry, arguments, partial(_named, self.function))
        if not arrays:
            return self.function(*args, **kwargs)
        own = [index for index in arrays if type(arguments.values[index]) is not list]
        numbers = (index for index in own if is_of_numbers(registry, arrays[index]))
        first = next(numbers, next(iter(own or arrays)))
        spec = arrays[first]
        caller = _Caller(self, arguments.values[first], spec, arguments, arrays)
        if not own:  # lists name no framework to which the result could go back
            return caller.one_way()
        if self._grad:
            framework = named(registry, self._keywords.to)[0].partition(".")[0]
            return caller.differentiated(framework)
        result = caller.plain()
        if self._has_one_request:
            is_alone = len(args) == 1 and not kwargs
            self._keep(caller, (*args, *kwargs.values()), is_alone=is_alone)
        return result

    def remark(self, error: Exception, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
        """Add to an error of the function that an argument is a list, which was left as it is."""
        paths = [*((0, index) for index in range(len(args))), *((1, name) for name in kwargs)]
        for path, value in zip(paths, (*args, *kwargs.values()), strict=True):
            if not self._lists and is_list_of_numbers(self.registry, value):
                name = joined(_named(self.function, path))
                error.add_note(
                    f"{name} is a list, which {_name(self.function)} is given as it is; "
                    "@interop.accepts(…, lists=True) makes an array of it, or pass an array."
                )

    def _is_array(self, value: Value) -> bool:
        """Return whether a value among the arguments is converted."""
        is_list = self._lists and is_list_of_numbers(self.registry, value)
        return is_list or is_array(self.registry, value)

    def converted(self, value: Value, spec: Spec) -> Value:
        """Return an argument in the function's format, without cutting a history unasked."""
        answers = (a.recorded(value) for a in self._recorders if a.recorded)
        way = next(filter(None, answers), None) if "grad" in spec.traits else None
        if way is None:
            return self._convert_argument(value)
        forbid = effect_names(self._keywords.forbid, "forbid") | {"detach"}
        try:
            return self._convert_argument(value, forbid=forbid)
        except RefusedError as error:
            if "detach" not in error.effects:
                raise
            raise RefusedError(self._cut(spec, way), error.effects) from None

    @property
    def _recorders(self) -> Sequence[Autodiff]:
        """What tells of histories, unless the function's author lets them be cut."""
        return () if self._may_cut else self.registry.autodiffs

    def _cut(self, spec: Spec, way: str) -> str:
        """Say that a call would cut a history, and what author and caller can do about it."""
        target = named(self.registry, self._keywords.to)[0]
        able = [autodiff.format for autodiff in self.registry.autodiffs]
        keeps = "grad=True to keep it"
        if self._grad:
            keeps = "grad=True, which keeps that of the first array,"
        elif target.partition(".")[0] not in able:
            keeps += f" (if it is a function of {listed(able)})"
        return (
            f"{_name(self.function)} takes {target}, and {summary(spec)} would lose its history, "
            f"which is being recorded. The author of the function passes {keeps} or allow='detach' "
            f"to drop it; a caller who needs no gradient {way}."
        )

    def fast(
        self, flat: _Flat, values: tuple[Value, ...], count: int, kwargs: dict[str, Value]
    ) -> Value:
        """Return the function's result, or `NotImplemented` without having called it.

        The first `count` values are the arguments without keywords.
        """
        converted, path, made, recorded = list(values), flat.path, {}, flat.recorded
        assert path is not None
        try:
            for n in flat.converted:
                key = id(values[n])
                if key not in made:
                    if recorded is not None and recorded(values[n]):
                        return NotImplemented
                    made[key] = path(values[n])
                    if made[key] is NotImplemented:
                        return NotImplemented
                converted[n] = made[key]
        except InteropError:  # raised again by code that can say which argument it is
            return NotImplemented
        named = dict(zip(kwargs, converted[count:], strict=True)) if kwargs else kwargs
        return self.back(self.function(*converted[:count], **named), flat, values)

    def fast_alone(self, flat: _Flat, value: Value) -> Value:
        """Return what `fast` does for one array alone."""
        if flat.recorded is not None and flat.recorded(value):
            return NotImplemented
        try:
            converted = flat.path(value)
        except InteropError:  # raised again by code that can say which argument it is
            return NotImplemented
        if converted is NotImplemented:
            return converted
        result = self.function(converted)
        path = flat.results.get(type(result))
        if path is not None and not flat.compares:
            with suppress(InteropError):  # raised again by code that can say where
                returned = path(result)
                if returned is not NotImplemented:
                    return returned
        return self.back(result, flat, (value,))

    def back(self, result: Value, flat: _Flat, values: tuple[Value, ...]) -> Value:
        """Return the function's result, converted to the kind of the argument that is an array."""
        kind = type(result)
        path = flat.results.get(kind, NotImplemented)
        if path is NotImplemented:
            path = None if kind in SCALARS else _staying(flat.back, kind)
            if path is not NotImplemented:
                flat.results[kind] = path
        if path is None:
            return result
        array = values[flat.first]
        if path is not NotImplemented:
            try:
                returned = path(result)
            except InteropError:  # raised again by code that can say where
                returned = NotImplemented
            if returned is not NotImplemented and (
                not flat.compares or _are_together(returned, array)
            ):
                return returned
        return _Caller(self, array, self.registry.recognition.describe(array)).returned(result)

    def _keep(self, caller: _Caller, values: tuple[Value, ...], *, is_alone: bool) -> None:
        """Keep the fast paths for arguments of these types, if they can be taken.

        They leave arrays where they are, and know no labels. A result has to be on the device of
        the caller's arrays. Types tell that where one of the two formats is always on the host.
        Elsewhere the devices of both are compared.
        """
        registry, kind = self.registry, type(caller.array)
        innermost = block.get()
        is_traced = innermost is not None and innermost.traces
        if is_traced or caller.format.name not in registry.attainable:
            return
        version = registry.version
        converter = self._converters.converter(self._keywords)
        formats = [caller.format, registry.formats[converter.request.formats[0]]]
        is_on_host = any(f.devices == ("cpu",) for f in formats)
        types, path = tuple(map(type, values)), _staying(converter, kind)
        arrays = tuple(n for n, type_ in enumerate(types) if type_ is kind)
        if (
            path is NotImplemented
            or caller.format.labels is not None
            or not (is_on_host or hasattr(caller.array, "device"))
            or not arrays
            or not all(type_ is kind or type_ in SCALARS for type_ in types)
            or len(self.flat) >= _FLAT_CALLS
        ):
            return
        converted = () if path is None else arrays
        back = self._converters.converter(Keywords(caller.format.name, **self._policy))
        own = (a.recorded for a in self._recorders if a.format == caller.framework)
        flat = _Flat(converted, path, next(own, None), arrays[0], back, not is_on_host, {})
        with self._converters.lock:
            if version == registry.version:
                key: Any = types[0] if is_alone else types
                self.flat[key if innermost is None else (innermost.policy, key)] = flat


def _staying(converter: Converter, kind: type) -> Any:
    """Return the fast path of a type inside a tree, which leaves values where they are."""
    # Numbers and memory of Python's own count as arrays only outside of trees.
    learnt = None if kind.__module__ == "builtins" else converter.learnt.get(kind)
    return NotImplemented if learnt is None else learnt.staying


def _are_together(result: Value, array: Value) -> bool:
    """Return whether a result is where the caller's array is, as far as fast paths may tell."""
    return type(result) is type(array) and bool(result.device == array.device)


class _Caller:
    """One call of a function: its arguments, and the kind of arrays that its results become.

    If the caller's array is sparse or quantized, dense results get the kind of its components.

    Parameters
    ----------
    calls : Calls
    array, spec
        The caller's first array.
    arguments : Tree, optional
        Needed to call the function.
    arrays : mapping of int to Spec, optional
        The arrays among the leaves of `arguments`, by their indices.
    """

    def __init__(
        self,
        calls: Calls,
        array: Value,
        spec: Spec,
        arguments: Value = None,
        arrays: Mapping[int, Spec] = MappingProxyType({}),
    ) -> None:
        self._registry = calls.registry
        self._convert_argument = calls.converted
        self._convert = calls.convert_result
        self._function = calls.function
        self._arguments = arguments
        self._arrays = arrays
        #: The caller's first array.
        self.array = array
        self.device = ordinary(spec.device)
        format_ = self._registry.formats[spec.format]
        self.framework = format_.framework
        dense = spec.format if format_.is_dense else format_.component_format or spec.format
        self.format = self._registry.formats[dense]

    def returned(self, result: Value) -> Value:
        """Return the result of a function, with its arrays converted to the caller's kind."""
        tree = Tree(result, partial(is_array, self._registry), self._registry.containers)
        values, back = tree.values, _once(self.back)
        for index in _array_specs(self._registry, tree):
            with Located(partial(tree.path, index), self._named):
                values[index] = back(values[index])
        return tree.rebuilt()

    def _named(self, path: _Path) -> _Path:
        """Return the path to an array in the result, with the name of the function."""
        return (f"the result of {getattr(self._function, '__name__', 'the function')}", *path)

    def back(self, value: Value, *, dtype: str | None = None) -> Value:
        """Return an array from the function, converted to the caller's kind."""
        spec = self._registry.recognition.describe(value)
        target = self._counterpart(spec)
        if target is None or target == spec.format:
            return value
        formats = self._registry.formats
        if not is_of_numbers(self._registry, spec) and not keeps_elements(
            spec, formats[spec.format], formats[target]
        ):
            return value
        if dtype is None and spec.device == self.device:  # a target alone may take a fast path
            result = self._convert(value, target)
        else:
            result = self._convert(value, target, dtype=dtype, device=self.device)
        return self._registry.recognition.relabelled(result, self.array)

    def _counterpart(self, spec: Spec) -> str | None:
        """Return the caller's format for a result: one of the same layout if there is one.

        Otherwise it is the dense format, or another one of the framework that has as many axes. It
        is None where the caller's values are only ever read: what has no format but a protocol.
        """
        formats, attainable = self._registry.formats, self._registry.attainable
        layout = formats[spec.format].layout
        if layout is None and self.format.name in attainable and _has_axes(self.format, spec):
            return self.format.name
        own = [
            f for f in formats.values() if f.framework == self.framework and f.name in attainable
        ]
        same_layout = (f.name for f in own if layout is not None and f.layout == layout)
        own.sort(key=lambda f: f is not self.format)  # the caller's own comes first
        dense = (f.name for f in own if f.is_dense and _has_axes(f, spec))
        return next(same_layout, None) or next(dense, None)

    def plain(self) -> Value:
        """Call the function, without its part in any differentiation."""
        return self.returned(self.one_way())

    def one_way(self) -> Value:
        """Call the function, and return its result as it is."""
        args, kwargs = self._arguments.rebuilt(self._converted())
        return self._function(*args, **kwargs)

    def differentiated(self, framework: str) -> Value:
        """Call the function, written for a framework, as a part of the caller's differentiation."""
        if framework == self.framework:  # its own graph goes through the call
            return self.plain()
        ours = self._autodiff(framework)
        theirs = next((a for a in self._registry.autodiffs if a.format == self.format.name), None)
        if theirs is None:
            return self.plain()
        indices = [index for index, spec in self._arrays.items() if self._takes_part(index, spec)]

        def plain(arrays: Sequence[Value]) -> list[Value]:
            outputs = self._called(self._converted(indices, arrays))
            return [self.back(output) for output in outputs]

        def forward(arrays: Sequence[Value]) -> tuple[list[Value], Pullback]:
            return self._forward(ours, indices, arrays)

        leaves = [self._arguments.values[index] for index in indices]
        return self._rebuilt(theirs.attach(plain, forward, leaves))

    def _forward(
        self, ours: Autodiff, indices: Sequence[int], arrays: Sequence[Value]
    ) -> tuple[list[Value], Pullback]:
        """Call the function; return its results, and the pullback, in the caller's arrays."""
        values = self._converted(indices, arrays)
        dtypes = [self._registry.recognition.describe(array).dtype for array in arrays]

        def function(inputs: Sequence[Value]) -> list[Value]:
            for index, array in zip(indices, inputs, strict=True):
                values[index] = array
            return self._called(values)

        outputs, pull = ours.vjp(function, [values[index] for index in indices])

        def pullback(cotangents: Sequence[Value]) -> list[Value]:
            converted = [
                None if cotangent is None else self._convert(cotangent, ours.format)
                for cotangent in cotangents
            ]
            return [
                None if gradient is None else self.back(gradient, dtype=dtype)
                for gradient, dtype in zip(pull(converted), dtypes, strict=True)
            ]

        return [self.back(output) for output in outputs], pullback

    def _autodiff(self, framework: str) -> Autodiff:
        for autodiff in self._registry.autodiffs:
            if autodiff.format == framework:
                return autodiff
        formats = ", ".join(autodiff.format for autodiff in self._registry.autodiffs)
        msg = f"no plugin differentiates functions of {framework}; grad=True works with {formats}."
        raise BadRequestError(msg)

    def _takes_part(self, index: int, spec: Spec) -> bool:
        """Return whether an argument is one of the caller's arrays, which may have a history."""
        own = self.format.name
        if spec.format == own:
            return True
        if "grad" in spec.traits:
            path_of = partial(self._arguments.path, index)
            with Located(path_of, partial(_named, self._function)):
                msg = (
                    f"{summary(spec)} has a history that grad=True would lose, because it is not "
                    f"of the format of the first array, {own}; convert it first, or detach it."
                )
                raise BadRequestError(msg)
        return False

    def _converted(self, indices: Sequence[int] = (), arrays: Sequence[Value] = ()) -> list[Value]:
        """Return the values of the arguments, with every array in the function's format.

        The `arrays` stand in for those at some indices.
        """
        values = [*self._arguments.values]
        for index, array in zip(indices, arrays, strict=True):
            values[index] = array
        convert = _once(self._convert_argument)
        for index, spec in self._arrays.items():
            path_of = partial(self._arguments.path, index)
            with Located(path_of, partial(_named, self._function)):
                if is_of_numbers(self._registry, spec) or not _passes(spec, path_of()):
                    values[index] = convert(values[index], spec)
        return values

    def _called(self, values: list[Value]) -> list[Value]:
        """Call the function, and return the arrays in its result."""
        args, kwargs = self._arguments.rebuilt([*values])
        result = self._function(*args, **kwargs)
        self._result = Tree(result, partial(is_array, self._registry), self._registry.containers)
        self._outputs = _array_specs(self._registry, self._result)
        return [self._result.values[index] for index in self._outputs]

    def _rebuilt(self, outputs: Sequence[Value]) -> Value:
        """Return the function's result with its arrays replaced."""
        for index, array in zip(self._outputs, outputs, strict=True):
            self._result.values[index] = array
        return self._result.rebuilt()


def _has_axes(format_: Format, spec: Spec) -> bool:
    """Return whether values of a format can have as many axes as a spec has."""
    return format_.ndims is None or len(spec.shape) in format_.ndims
