"""Functions written for one framework that accept the arrays of any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.extension import Autodiff, Pullback
from interop._model.spec import Spec
from interop._registry.registry import Registry
from interop.errors import BadRequestError

from .leaves import array_spec, located
from .tree import Tree

if TYPE_CHECKING:
    from .interop import Interop

__all__ = ["accepting"]


class _Home(NamedTuple):
    """What the caller's arrays are: the kind that results are given back as."""

    framework: str
    format: str
    device: str


def accepting(
    face: Interop,
    function: Callable[..., Any],
    to: str,
    words: Mapping[str, Any],
    *,
    grad: bool,
) -> Callable[..., Any]:
    """Return `function` with its arguments converted to `to`, and its results back."""
    if iscoroutinefunction(function) or isgeneratorfunction(function):
        msg = f"{function.__qualname__} gives its results later; convert them where they come up."
        raise BadRequestError(msg)
    registry = face._registry

    @wraps(function)
    def accepted(*args: Any, **kwargs: Any) -> Any:
        face._loaded()
        given = Tree((args, kwargs), lambda value: not _is_open(registry, value))
        specs = {n: array_spec(registry, leaf) for n, leaf in enumerate(given.leaves)}
        arrays = {n: spec for n, spec in specs.items() if spec is not None}
        if not arrays:
            return function(*args, **kwargs)
        call = _Call(face, function, to, words, given, arrays)
        return call.differentiated() if grad else call.plain()

    return accepted


def _is_open(registry: Registry, value: Any) -> bool:
    """Tell whether an argument is a container of Python's own; objects pass as they are."""
    ours = type(value).__module__ in ("builtins", "collections") or isinstance(value, tuple)
    return ours and array_spec(registry, value) is None


class _Call:
    """One call of a function that accepts arrays of any framework."""

    def __init__(  # noqa: PLR0917 - called in one place
        self,
        face: Interop,
        function: Callable[..., Any],
        to: str,
        words: Mapping[str, Any],
        given: Tree,
        arrays: Mapping[int, Spec],
    ) -> None:
        self.face, self.registry = face, face._registry
        self.function, self.to, self.words = function, to, words
        self.given, self.arrays = given, arrays
        self.home = _home(self.registry, next(iter(arrays.values())))
        #: The opened result of the last call of the function, and where arrays stand in it.
        self.result: Tree
        self.outputs: dict[int, Spec]

    def plain(self) -> Any:
        """Call the function, without its part in any differentiation."""
        return self._packed([self._back(one) for one in self._called(self._converted())])

    def differentiated(self) -> Any:
        """Call the function as a part of the caller's differentiation."""
        framework = self.registry.named(self.to)[0].partition(".")[0]
        if framework == self.home.framework:  # whose own graph goes through the call
            return self.plain()
        ours = self._autodiff(framework)
        theirs = next((a for a in self.registry.autodiffs if a.format == self.home.format), None)
        if theirs is None:
            return self.plain()
        places = [n for n, spec in self.arrays.items() if self._takes_part(n, spec)]

        def plain(arrays: Sequence[Any]) -> list[Any]:
            return [self._back(one) for one in self._called(self._converted(places, arrays))]

        def forward(arrays: Sequence[Any]) -> tuple[list[Any], Pullback]:
            return self._forward(ours, places, arrays)

        return self._packed(theirs.attach(plain, forward, [self.given.leaves[n] for n in places]))

    def _forward(
        self, ours: Autodiff, places: Sequence[int], arrays: Sequence[Any]
    ) -> tuple[list[Any], Pullback]:
        """Call the function; return its results, and the pullback, in the caller's arrays."""
        convert = self.face.convert
        leaves = self._converted(places, arrays)
        dtypes = [self.registry.describe(one).dtype for one in arrays]

        def function(inputs: Sequence[Any]) -> list[Any]:
            for n, one in zip(places, inputs, strict=True):
                leaves[n] = one
            return self._called(leaves)

        outputs, pull = ours.vjp(function, [leaves[n] for n in places])

        def pullback(cotangents: Sequence[Any]) -> list[Any]:
            given = [None if one is None else convert(one, ours.format) for one in cotangents]
            return [
                None if one is None else self._back(one, dtype=dtype)
                for one, dtype in zip(pull(given), dtypes, strict=True)
            ]

        return [self._back(one) for one in outputs], pullback

    def _autodiff(self, framework: str) -> Autodiff:
        for one in self.registry.autodiffs:
            if one.format == framework:
                return one
        known = ", ".join(one.format for one in self.registry.autodiffs)
        msg = f"no plugin differentiates functions of {framework}; grad=True works with {known}."
        raise BadRequestError(msg)

    def _takes_part(self, n: int, spec: Spec) -> bool:
        """Tell whether an argument is one of the caller's arrays, which may have a history."""
        if spec.format == self.home.format:
            return True
        if "grad" in spec.traits:
            with located(self.given.paths[n]):
                msg = (
                    f"{spec} has a history that grad=True would lose, because it is not of the "
                    f"first array's format, {self.home.format}; convert it first, or detach it."
                )
                raise BadRequestError(msg)
        return False

    def _converted(self, places: Sequence[int] = (), arrays: Sequence[Any] = ()) -> list[Any]:
        """Return the leaves of the arguments, with every array as the function wants it."""
        leaves = list(self.given.leaves)
        for n, one in zip(places, arrays, strict=True):
            leaves[n] = one
        for n in self.arrays:
            with located(self.given.paths[n]):
                leaves[n] = self.face.convert(leaves[n], self.to, **self.words)
        return leaves

    def _called(self, leaves: Sequence[Any]) -> list[Any]:
        """Call the function, and return the arrays in its result."""
        args, kwargs = self.given.rebuilt(leaves)
        registry = self.registry
        result = self.function(*args, **kwargs)
        self.result = Tree(result, lambda x: array_spec(registry, x) is not None)
        specs = {n: array_spec(registry, leaf) for n, leaf in enumerate(self.result.leaves)}
        self.outputs = {n: spec for n, spec in specs.items() if spec is not None}
        return [self.result.leaves[n] for n in self.outputs]

    def _back(self, value: Any, **words: Any) -> Any:
        """Return an array of the function's as the caller's kind."""
        spec = self.registry.describe(value)
        target = _counterpart(self.registry, self.home, spec)
        if target == spec.format:
            return value
        return self.face.convert(value, target, device=self.home.device, **words)

    def _packed(self, outputs: Sequence[Any]) -> Any:
        """Return the function's result with its arrays replaced."""
        leaves = self.result.leaves
        for n, one in zip(self.outputs, outputs, strict=True):
            leaves[n] = one
        return self.result.rebuilt(leaves)


def _home(registry: Registry, spec: Spec) -> _Home:
    """Return the caller's kind: of a sparse or quantized array, that of its components."""
    one = registry.formats[spec.format]
    dense = spec.format if one.is_dense else one.components or spec.format
    return _Home(one.framework, dense, spec.device)


def _counterpart(registry: Registry, home: _Home, spec: Spec) -> str:
    """Return the caller's format for a result: of the same layout if there is one."""
    layout = registry.formats[spec.format].layout
    if layout is not None:
        for one in registry.formats.values():
            if one.framework == home.framework and one.layout == layout:
                return one.name
    return home.format
