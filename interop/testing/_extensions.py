"""Extensions: what plugins declare beside formats and conversions, tried on values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.dtype import DTYPES
from interop._model.extension import (
    Autodiff,
    Branch,
    Container,
    DtypeNames,
    Namespaces,
    NoTrace,
    Problem,
    Problems,
)
from interop._model.format import Format, package
from interop._model.typing import Value
from interop._recognition.installed import importable

from ._notes import Notes
from ._sample import REFUSALS, NoSample, Recipe, first_line, preferred
from ._subject import Bench, Promise
from ._table import check, judge
from ._trial import sampled
from ._truth import Truth, same

if TYPE_CHECKING:
    from ._truth import Array

#: Modules that make no arrays.
_OTHERS = (math, json)
#: Names of fields that dtypes have, and that no dtype has.
_DTYPE_FIELDS = ("dtype", "_dtype", "type")


class _Unknown:
    """A class of which no framework has heard."""


class ExtensionCase(NamedTuple):
    """A declaration beside formats and conversions, and the bench on which it is tried."""

    bench: Bench
    extension: Any
    name: str

    @property
    def activity(self) -> str:
        return f"{self.name} was tried"


def try_extension(bench: Bench, promise: Promise, notes: Notes) -> None:
    """Try what a declaration beside formats and conversions promises."""
    case = ExtensionCase(bench, promise.extension, promise.name)
    judge(type(promise.extension), case, notes, promise.name)


def _check(about: type, sentence: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the table, whose answers begin with the name of the declaration."""

    def register(function: Callable[[ExtensionCase], Iterator[str]]) -> Callable[..., Any]:
        @wraps(function)
        def answers(case: ExtensionCase) -> Iterator[str]:
            return (answer and f"{case.name} {answer}" for answer in function(case))

        return check(about, sentence)(answers)

    return register


# ---------------------------------------------------------------------- names of dtypes


@_check(DtypeNames, "the dtypes of values have the names that it gives, and nothing else has one")
def dtype_names(case: ExtensionCase) -> Iterator[str]:
    """Name the dtypes of values, and things that are no dtypes."""
    bench, names = case.bench, case.extension
    kind = _class_of(names.type)
    if kind is None:
        msg = f"{package(names.type)} is not installed"
        raise NoSample(msg)
    for thing in (_Unknown, _Unknown(), "text", 3.5, print):
        if isinstance(thing, kind) and (name := _name(names, thing)) in DTYPES:
            yield f"calls {thing!r} {name}"
    objects: dict[Any, str] = {}
    for format_ in bench.formats():
        for dtype in preferred(format_.holds("cpu")) if format_.is_dense else ():
            thing = _dtype_of(bench, format_, dtype)
            if not isinstance(thing, kind):
                continue
            try:
                name = str(names.name(thing))
            except REFUSALS as error:
                reason = f"{type(error).__name__}: {first_line(error)}"
                yield f"fails on the dtype of {format_.name} {dtype}: {reason}"
                continue
            if name in DTYPES:  # others name what no interop dtype is
                objects[thing] = dtype
            is_wrong = name in DTYPES and name != dtype
            yield f"calls the dtype of {format_.name} {dtype} {name}" if is_wrong else ""
    if not objects:
        msg = f"no value of the plugin's formats has a dtype that is a {names.type} and has a name"
        raise NoSample(msg)


def _class_of(name: str) -> Any:
    module, _, path = name.partition(":")
    return attrgetter(path)(import_module(module)) if importable(package(name)) else None


def _name(names: DtypeNames, thing: Value) -> str:
    try:
        return str(names.name(thing))
    except REFUSALS:
        return ""


def _dtype_of(bench: Bench, format_: Format, dtype: str) -> Value:
    """Return what a value of a dtype calls its dtype, or None."""
    try:
        value = sampled(bench.interop, Recipe(format_.name, dtype, (3, 4)))
    except NoSample:
        return None
    fields = (getattr(value, field, None) for field in _DTYPE_FIELDS)
    return next((field for field in fields if field is not None and not callable(field)), None)


# ---------------------------------------------------------------------- containers


@_check(Container, "it opens its containers, rebuilds them in order, and leaves all else alone")
def container(case: ExtensionCase) -> Iterator[str]:
    """Open what is no container, and a container that was made for it."""
    bench, container = case.bench, case.extension
    if container.requires and not importable(package(container.requires)):
        msg = f"{container.requires} is not installed"
        raise NoSample(msg)
    numbers = sampled(bench.interop, Recipe(Truth(bench.interop).hub, "float32"))
    things = (_Unknown(), 3, "text", None, print, _Unknown, numbers)
    yield from filter(None, (_problem_of_opening(container, thing) for thing in things))
    if container.make is None:
        msg = "no container was opened: declare make, which makes one of some children"
        raise NoSample(msg)
    children = [numbers, 3, numbers.copy()]
    value = container.make(list(children))
    branch = container.open(value)
    yield _problem_of_branch(branch, children)
    if branch is not None:
        yield _problem_of_rebuilding(container, branch, children[::-1])
        again = container.open(value)
        changed = again is None or not _are(again.children, children)
        yield "changes the container that it rebuilds from" if changed else ""


def _problem_of_opening(container: Container, thing: Value) -> str:
    try:
        branch = container.open(thing)
    except REFUSALS as error:
        return f"fails on {type(thing).__name__}: {type(error).__name__}: {first_line(error)}"
    return "" if branch is None else f"opens a {type(thing).__name__}, which is no container"


def _problem_of_branch(branch: Branch | None, children: list[Value]) -> str:
    if branch is None:
        return "does not open the container that make made"
    if len(branch.names) != len(branch.children):
        return f"gives {len(branch.names)} names to {len(branch.children)} children"
    if len(set(map(str, branch.names))) != len(branch.names):
        return "gives two children one name"
    return "" if _are(branch.children, children) else "gives other children than it was made of"


def _problem_of_rebuilding(container: Container, branch: Branch, children: list[Value]) -> str:
    """Put other children into a container, and open it again."""
    again = container.open(branch.rebuild(list(children)))
    if again is None:
        return "rebuilds what it does not open"
    return "" if _are(again.children, children) else "rebuilds with other children, or in disorder"


def _are(values: Any, others: list[Value]) -> bool:
    return len(values) == len(others) and all(map(lambda a, b: a is b, values, others))


# ---------------------------------------------------------------------- namespaces


@_check(Namespaces, "it claims no module that makes no arrays")
def namespaces(case: ExtensionCase) -> Iterator[str]:
    """Offer modules that make no arrays."""
    namespaces = case.extension
    for module in _OTHERS:
        try:
            claims = list(namespaces.declare(module))
        except REFUSALS as error:
            yield f"fails on the module {module.__name__}: {type(error).__name__}: {error}"
        else:
            yield f"claims the module {module.__name__}, which makes no arrays" if claims else ""


# ---------------------------------------------------------------------- differentiation


@_check(Autodiff, "gradients are those of the function, and of the pullback that a caller attaches")
def autodiff(case: ExtensionCase) -> Iterator[str]:
    """Differentiate squares, and a function that brings its own gradients."""
    bench, autodiff = case.bench, case.extension
    truth, interop = Truth(bench.interop), bench.interop
    recipe = Recipe(autodiff.format, "float32", (5,))
    x, ones = sampled(interop, recipe), interop.convert([1.0] * 5, autodiff.format, dtype="float32")
    reading = truth.read(x)
    if reading is None:
        msg = f"the numbers of {autodiff.format} cannot be read"
        raise NoSample(msg)
    number = reading.array

    def read(values: Any) -> Array | None:
        plain = [interop.convert(value, truth.hub, allow={"detach"}) for value in values]
        return plain[0] if len(plain) == 1 else None

    def squares(arrays: Any) -> list[Value]:
        return [arrays[0] * arrays[0]]

    def forward(arrays: Any) -> tuple[list[Value], Callable[[Any], list[Value]]]:
        return squares(arrays), lambda cotangents: [cotangents[0] * 3]

    def attached(arrays: Any) -> list[Value]:
        return list(autodiff.attach(squares, forward, arrays))

    for name, function, gradient in (("vjp", squares, 2 * number), ("attach", attached, None)):
        outputs, pullback = autodiff.vjp(function, [x])
        array = read(outputs)
        is_square = array is not None and same(array, number * number)
        yield "" if is_square else f"{name} returns other numbers than the function"
        for _ in range(2):
            array = read(pullback([ones]))
            wanted = 3 * number / number if gradient is None else gradient
            is_right = array is not None and same(array, wanted.astype("float32"))
            yield "" if is_right else f"{name} gives a wrong gradient of x * x"


# ---------------------------------------------------------------------- the process, the machine


@_check(NoTrace, "functions of every kind can be marked, and still do what they did")
def no_trace(case: ExtensionCase) -> Iterator[str]:
    """Mark functions, each twice, as two conversions may share one."""
    no_trace = case.extension

    def plain(number: int) -> int:
        return number + 1

    for function in (plain, lambda number: number + 1, _Counter.next_to):
        for _ in range(2):
            try:
                no_trace.mark(function)
            except REFUSALS as error:
                yield f"fails on a function: {type(error).__name__}: {first_line(error)}"
        yield "" if function(1) == 2 else "changes what a function returns"


class _Counter:
    """Has a function of a class, which other functions are not."""

    @staticmethod
    def next_to(number: int) -> int:
        """Return the next number."""
        return number + 1


@_check(Problems, "it finds problems with formats that exist, and says how to fix them")
def problems(case: ExtensionCase) -> Iterator[str]:
    """Look for problems with the framework as it is on this machine."""
    bench, problems = case.bench, case.extension
    frameworks = {format_.framework for format_ in bench.registry.formats.values()}
    try:
        findings: list[Any] = list(problems.find())
    except ModuleNotFoundError as error:
        raise NoSample(str(error)) from error  # it is asked once a format of its framework is used
    except REFUSALS as error:
        yield f"fails: {type(error).__name__}: {first_line(error)}"
        return
    yield ""
    for problem in findings:
        if not isinstance(problem, Problem):
            yield f"finds a {type(problem).__name__}, which is no Problem"
            continue
        named = (*problem.formats, *(problem.others or ()))
        unknown = [name for name in named if name.partition(".")[0] not in frameworks]
        yield f"concerns {unknown[0]}, which nobody declares" if unknown else ""
        yield "" if problem.problem and problem.fix else "finds a problem, but says too little"
