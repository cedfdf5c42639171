"""Liars beside formats and conversions: containers and namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop.plugin import Branch, Container, DtypeNames, Format
from interop.plugin.advanced import Namespaces, NoTrace, Problem, Problems
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.grid import conversions, grid_format


class Trio:
    """A container of three."""

    def __init__(self, children: list[Any]) -> None:
        self.children = children


def _opened(value: Any) -> Branch | None:
    if not isinstance(value, Trio):
        return None
    return Branch(range(len(value.children)), value.children, Trio)


def _changed(**changes: Any) -> Callable[[Any], Branch | None]:
    def opened(value: Any) -> Branch | None:
        branch = _opened(value)
        return None if branch is None else branch._replace(**changes)

    return opened


def _greedy(value: Any) -> Branch:
    return Branch(["it"], [value], lambda children: children[0])


def _raises(value: Any) -> Branch | None:
    return _opened(value) if value.children else None


def _in_place(value: Any) -> Branch | None:
    branch = _opened(value)

    def rebuild(children: list[Any]) -> Trio:
        value.children[:] = children
        return Trio(children)

    return None if branch is None else branch._replace(rebuild=rebuild)


def _two_of_three(value: Any) -> Branch | None:
    branch = _opened(value)
    return None if branch is None else branch._replace(names=[0, 1], children=value.children[:2])


def _container(name: str, lie: str, opened: Any, text: str) -> Liar:
    fate = Caught("container ", "container", text)
    return Liar(name, lie, fate, lambda: [Container("", opened, Trio)])


def _claims(module: Any) -> list[Format]:
    return [Format(f"{module.__name__}_arrays")]


def _claims_nothing_but_fails(module: Any) -> list[Format]:
    raise KeyError(module.__name__)


def _mark_once(function: Callable[..., Any]) -> None:
    if "marked" in vars(function):
        raise TypeError(function.__name__)
    vars(function)["marked"] = True


_KIND = "tests.lying_plugins.grid:Kind"


def _grid(*others: Any) -> Callable[[], list[Any]]:
    return lambda: [grid_format(), *conversions(), *others]


LIARS = table(
    globals(),
    _container("opens_everything", "Opens whatever it is given.", _greedy, "which is no container"),
    _container("fails_on_others", "Fails on what is not its own.", _raises, "AttributeError"),
    _container(
        "rebuilds_in_disorder",
        "Puts children back in the opposite order.",
        _changed(rebuild=lambda children: Trio(children[::-1])),
        "rebuilds with other children, or in disorder",
    ),
    _container(
        "rebuilds_a_list",
        "Rebuilds a list of the children.",
        _changed(rebuild=list),
        "rebuilds what it does not open",
    ),
    _container(
        "changes_what_it_opened",
        "Rebuilds into the container that was opened.",
        _in_place,
        "changes the container that it rebuilds from",
    ),
    _container(
        "loses_a_child", "Leaves out the last child.", _two_of_three, "other children than it"
    ),
    _container(
        "one_name_for_all",
        "Calls all children alike.",
        _changed(names=["it", "it", "it"]),
        "gives two children one name",
    ),
    _container(
        "too_few_names",
        "Names two of three.",
        _changed(names=[0, 1]),
        "gives 2 names to 3 children",
    ),
    Liar(
        "fails_on_dtypes",
        "Fails on the dtype of every grid.",
        Caught(f"dtype names {_KIND}", "dtype_names", "fails on the dtype of grid"),
        _grid(DtypeNames(_KIND, lambda kind: {}[kind])),
    ),
    Liar(
        "calls_all_int8",
        "Calls the dtype of every grid int8.",
        Caught(f"dtype names {_KIND}", "dtype_names", "calls the dtype of grid"),
        _grid(DtypeNames(_KIND, lambda kind: "int8")),
    ),
    Liar(
        "claims_math",
        "Makes a framework of every module.",
        Caught("namespaces", "namespaces", "claims the module math, which makes no arrays"),
        lambda: [grid_format(), *conversions(), Namespaces(_claims)],
    ),
    Liar(
        "fails_on_modules",
        "Fails on every module.",
        Caught("namespaces", "namespaces", "fails on the module math"),
        lambda: [grid_format(), *conversions(), Namespaces(_claims_nothing_but_fails)],
    ),
    Liar(
        "marks_once",
        "Fails on functions that it has marked before.",
        Caught("no trace", "no_trace", "fails on a function: TypeError", "mark of the NoTrace"),
        _grid(NoTrace(_mark_once)),
    ),
    Liar(
        "blames_a_stranger",
        "Finds a problem with a format that nobody declares.",
        Caught("problems", "problems", "concerns grind, which nobody declares"),
        _grid(Problems(lambda: [Problem("it creaks", "oil it", ("grind",))])),
    ),
    Liar(
        "finds_a_text",
        "Finds a text in place of a problem.",
        Caught("problems", "problems", "finds a str, which is no Problem"),
        _grid(Problems(lambda: ["it creaks"])),  # type: ignore[list-item]
    ),
)
