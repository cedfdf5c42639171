"""Functions written for one framework that accept the arrays of any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from inspect import get_annotations, iscoroutinefunction, isgeneratorfunction, signature
from typing import TYPE_CHECKING, Any, NamedTuple, get_origin

from interop._model.extension import Autodiff, Pullback
from interop._model.format import Format
from interop._model.spec import Spec
from interop._model.typing import TargetLike, Value
from interop._registry.registry import Registry
from interop.errors import BadRequestError, InteropError

from .leaves import array_spec, is_array
from .tree import Tree, check_optree, joined

if TYPE_CHECKING:
    from .interop import Interop

__all__ = ["accepting", "annotated_target"]


class _Home(NamedTuple):
    """The kind of the caller's arrays, as which results are given back."""

    framework: str
    format: str
    device: str


def accepting(
    interop: Interop,
    function: Callable[..., Value],
    to: TargetLike,
    keywords: Mapping[str, Any],
    *,
    grad: bool,
) -> Callable[..., Value]:
    """Return `function` with its arguments converted to `to`, and its results back."""
    check_optree()
    if iscoroutinefunction(function) or isgeneratorfunction(function):
        msg = f"{function.__qualname__} gives its results later; convert them where they come up."
        raise BadRequestError(msg)

    @wraps(function)
    def accepted(*args: Any, **kwargs: Any) -> Value:
        registry = interop._loaded()
        arguments = Tree((args, kwargs), lambda value: not _is_container(registry, value))
        arrays = _array_specs(registry, arguments)
        if not arrays:
            return function(*args, **kwargs)
        call = _Call(interop, function, to, keywords, arguments, arrays)
        return call.differentiated() if grad else call.plain()

    return accepted


def annotated_target(registry: Registry, function: Callable[..., Value]) -> str:
    """Return the format that the annotations of a function name."""
    annotations: dict[str, Any] = {}
    with suppress(NameError):  # of what is imported for type checkers alone
        annotations = get_annotations(function, eval_str=True)
    types = [get_origin(kind) or kind for kind in annotations.values() if kind is not None]
    targets = {name for kind in types for name in registry.named(kind)}
    if len(targets) != 1:
        msg = (
            f"the annotations of {function.__qualname__} name no array type, or more than one; "
            "write @interop.accepts(to), with the format that it is written for."
        )
        raise BadRequestError(msg)
    return targets.pop()


@contextmanager
def _located(function: Callable[..., Value], path: tuple[Any, ...]) -> Iterator[None]:
    """Let an error say which parameter it is about."""
    try:
        yield
    except InteropError as error:
        error.locate(joined(_named(function, *path)))
        raise


def _named(
    function: Callable[..., Value], kind: int, key: Any, *rest: object
) -> tuple[object, ...]:
    """Return the path to an argument, from the name of its parameter."""
    if kind == 1:
        return (key, *rest)
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # a function of C
        return (kind, key, *rest)
    names = [p.name for p in parameters if p.kind <= p.VAR_POSITIONAL]
    fixed = sum(p.kind < p.VAR_POSITIONAL for p in parameters)
    inner = rest if key < fixed else (key - fixed, *rest)
    return ([*names, "arguments"][min(key, fixed)], *inner)


def _is_container(registry: Registry, value: Value) -> bool:
    """Tell whether an argument is a container of Python's own; objects pass as they are."""
    ours = type(value).__module__ in ("builtins", "collections") or isinstance(value, tuple)
    return ours and not is_array(registry, value)


def _array_specs(registry: Registry, tree: Tree) -> dict[int, Spec]:
    """Return the specs of the arrays among the leaves, by their places."""
    specs = {n: array_spec(registry, leaf) for n, leaf in enumerate(tree.leaves)}
    return {n: spec for n, spec in specs.items() if spec is not None}


@dataclass
class _Call:
    """One call of a function that accepts arrays of any framework."""

    interop: Interop
    function: Callable[..., Value]
    to: TargetLike
    keywords: Mapping[str, Any]
    arguments: Tree
    arrays: Mapping[int, Spec]

    def __post_init__(self) -> None:
        self.registry = self.interop._registry
        self.home = _home(self.registry, next(iter(self.arrays.values())))
        #: The opened result of the last call of the function, and where arrays stand in it.
        self.result: Tree
        self.outputs: dict[int, Spec]

    def plain(self) -> Value:
        """Call the function, without its part in any differentiation."""
        return self._rebuilt([self._back(array) for array in self._called(self._converted())])

    def differentiated(self) -> Value:
        """Call the function as a part of the caller's differentiation."""
        framework = self.registry.named(self.to)[0].partition(".")[0]
        if framework == self.home.framework:  # whose own graph goes through the call
            return self.plain()
        ours = self._autodiff(framework)
        theirs = next((a for a in self.registry.autodiffs if a.format == self.home.format), None)
        if theirs is None:
            return self.plain()
        places = [n for n, spec in self.arrays.items() if self._takes_part(n, spec)]

        def plain(arrays: Sequence[Value]) -> list[Value]:
            return [self._back(array) for array in self._called(self._converted(places, arrays))]

        def forward(arrays: Sequence[Value]) -> tuple[list[Value], Pullback]:
            return self._forward(ours, places, arrays)

        leaves = [self.arguments.leaves[n] for n in places]
        return self._rebuilt(theirs.attach(plain, forward, leaves))

    def _forward(
        self, ours: Autodiff, places: Sequence[int], arrays: Sequence[Value]
    ) -> tuple[list[Value], Pullback]:
        """Call the function; return its results, and the pullback, in the caller's arrays."""
        convert = self.interop.convert
        leaves = self._converted(places, arrays)
        dtypes = [self.registry.describe(array).dtype for array in arrays]

        def function(inputs: Sequence[Value]) -> list[Value]:
            for n, array in zip(places, inputs, strict=True):
                leaves[n] = array
            return self._called(leaves)

        outputs, pull = ours.vjp(function, [leaves[n] for n in places])

        def pullback(cotangents: Sequence[Value]) -> list[Value]:
            converted = [
                None if cotangent is None else convert(cotangent, ours.format)
                for cotangent in cotangents
            ]
            return [
                None if gradient is None else self._back(gradient, dtype=dtype)
                for gradient, dtype in zip(pull(converted), dtypes, strict=True)
            ]

        return [self._back(output) for output in outputs], pullback

    def _autodiff(self, framework: str) -> Autodiff:
        for autodiff in self.registry.autodiffs:
            if autodiff.format == framework:
                return autodiff
        formats = ", ".join(autodiff.format for autodiff in self.registry.autodiffs)
        msg = f"no plugin differentiates functions of {framework}; grad=True works with {formats}."
        raise BadRequestError(msg)

    def _takes_part(self, n: int, spec: Spec) -> bool:
        """Tell whether an argument is one of the caller's arrays, which may have a history."""
        if spec.format == self.home.format:
            return True
        if "grad" in spec.traits:
            with _located(self.function, self.arguments.paths[n]):
                msg = (
                    f"{spec} has a history that grad=True would lose, because it is not of the "
                    f"first array's format, {self.home.format}; convert it first, or detach it."
                )
                raise BadRequestError(msg)
        return False

    def _converted(self, places: Sequence[int] = (), arrays: Sequence[Value] = ()) -> list[Value]:
        """Return the leaves of the arguments, with every array in the function's format."""
        leaves = list(self.arguments.leaves)
        for n, array in zip(places, arrays, strict=True):
            leaves[n] = array
        for n in self.arrays:
            with _located(self.function, self.arguments.paths[n]):
                leaves[n] = self.interop.convert(leaves[n], self.to, **self.keywords)
        return leaves

    def _called(self, leaves: Sequence[Value]) -> list[Value]:
        """Call the function, and return the arrays in its result."""
        args, kwargs = self.arguments.rebuilt(leaves)
        registry = self.registry
        result = self.function(*args, **kwargs)
        self.result = Tree(result, lambda x: is_array(registry, x))
        self.outputs = _array_specs(registry, self.result)
        return [self.result.leaves[n] for n in self.outputs]

    def _back(self, value: Value, **keywords: Any) -> Value:
        """Return an array of the function's as the caller's kind."""
        spec = self.registry.describe(value)
        target = _counterpart(self.registry, self.home, spec)
        if target is None or target == spec.format:
            return value
        result = self.interop.convert(value, target, device=self.home.device, **keywords)
        return self.registry.relabelled(result, self.arguments.leaves[next(iter(self.arrays))])

    def _rebuilt(self, outputs: Sequence[Value]) -> Value:
        """Return the function's result with its arrays replaced."""
        leaves = self.result.leaves
        for n, array in zip(self.outputs, outputs, strict=True):
            leaves[n] = array
        return self.result.rebuilt(leaves)


def _home(registry: Registry, spec: Spec) -> _Home:
    """Return the caller's kind: of a sparse or quantized array, that of its components."""
    format_ = registry.formats[spec.format]
    dense = spec.format if format_.is_dense else format_.component_format or spec.format
    return _Home(format_.framework, dense, spec.device)


def _counterpart(registry: Registry, home: _Home, spec: Spec) -> str | None:
    """Return the caller's format for a result: of the same layout if there is one.

    Otherwise it is the dense one, or another of the framework that has so many axes, if any.
    """
    layout, dense = registry.formats[spec.format].layout, registry.formats[home.format]
    if layout is None and _has_axes(dense, spec):
        return home.format
    formats = [f for f in registry.formats.values() if f.framework == home.framework]
    alike = (f.name for f in formats if layout is not None and f.layout == layout)
    fitting = (f.name for f in (dense, *formats) if f.is_dense and _has_axes(f, spec))
    return next(alike, None) or next(fitting, None)


def _has_axes(format_: Format, spec: Spec) -> bool:
    """Tell whether values of a format can have as many axes as that of a spec."""
    return format_.ndims is None or len(spec.shape) in format_.ndims
