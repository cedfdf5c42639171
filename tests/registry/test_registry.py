"""The registry: what is declared again, what conflicts, and that all is registered or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, DtypeNames, Format, Interop
from interop._model.provenance import Provenance
from interop._registry.registry import Registry
from interop._request.naming import adopt
from interop.errors import ConflictError
from interop.plugin import Autodiff, Container, Copy, Declaration, make_spec
from interop.plugin.advanced import Namespaces, NoTrace, Problems
from tests.toys import Box, copy, labels, toy, view

ONE, TWO = Provenance("p", "one", "1.0"), Provenance("q", "two", "2.0")


def test_what_one_distribution_registers_again_overwrites() -> None:
    """The latest declaration counts, and the steps of an earlier format go with it."""
    registry = Registry()
    first = toy("a", unary=(Copy(list, name="first"),))
    second = toy("a", devices=("cpu", "cuda"), unary=(Copy(list, name="second"),))
    names = DtypeNames("builtins:int", str), DtypeNames("builtins:int", repr)
    registry.register([first, toy("b"), view("a", "b", cost=Cost(1.0)), names[0]])
    registry.register([second, view("a", "b", cost=Cost(2.0)), names[1]])
    assert registry.formats["a"].devices == ("cpu", "cuda")
    assert {d.conversion.label for d in registry.conversions} == {"a_to_b", "second"}
    assert {d.conversion.cost.latency for d in registry.conversions} >= {2.0}
    assert registry.dtype_names == [names[1]]


def test_functions_of_other_names_are_other_conversions() -> None:
    """Two functions between the same formats are no repetition of one, though neither is named."""
    registry = Registry()
    registry.register([Conversion("a", "b", list), Conversion("a", "b", tuple, takes={"masked"})])
    assert [d.conversion.label for d in registry.conversions] == ["list", "tuple"]
    registry.register([Conversion("a", "b", list, takes={"readonly"})])
    assert [d.conversion.takes for d in registry.conversions] == [{"masked"}, {"readonly"}]


def test_a_conversion_gives_way_to_an_equal_step_of_a_format_registered_later() -> None:
    """The step stays with its format, whichever came first."""
    registry = Registry()
    step = {"effects": {"copy"}, "takes": set(), "name": "copied"}
    registry.register([Conversion("a", "a", list, **step)])
    registry.register([toy("a", unary=(Copy(tuple, name="copied"),))])
    assert [d.conversion.function for d in registry.conversions] == [tuple]


SHARED = view("a", "b")


@pytest.mark.parametrize(
    ("first", "second", "move"),
    [
        (toy("a"), toy("a", devices=("cuda",)), "INTEROP_DISABLE"),
        (SHARED, SHARED, "replaces={'one'}"),
        (Autodiff("a", print, print), Autodiff("a", repr, print), r"counts\. Block one of"),
        (DtypeNames("builtins:int", str), DtypeNames("builtins:int", repr), r" counts\. Block one"),
    ],
)
def test_what_two_distributions_declare_is_a_conflict(
    first: Declaration, second: Declaration, move: str
) -> None:
    """The second is refused, even if it is equal; both distributions are named, and a move."""
    registry = Registry()
    registry.register([toy("a"), first], origin=ONE)

    def declared() -> str:
        return repr(
            (registry.formats, registry.conversions, registry.autodiffs, registry.dtype_names)
        )

    before = declared()
    with pytest.raises(ConflictError, match=rf"one 1\.0.*two 2\.0.*{move}"):
        registry.register([second], origin=TWO)
    assert declared() == before


def test_a_conversion_replaces_that_of_the_distribution_that_it_names() -> None:
    """It counts whichever came first, and registering the other again changes nothing."""
    registry = Registry()
    strong, weak = view("a", "b", replaces=frozenset({"one"})), view("a", "b")
    registry.register([weak], origin=ONE)
    registry.register([strong], origin=TWO)
    assert [d.conversion for d in registry.conversions] == [strong]
    registry.register([weak], origin=ONE)
    assert [d.conversion for d in registry.conversions] == [strong]


def test_all_or_nothing_is_registered() -> None:
    """One malformed declaration among good ones leaves the registry as it was."""
    registry = Registry()
    with pytest.raises(interop.errors.PluginError):
        registry.register([toy("a"), copy("a", "a", effects=frozenset({"explode"}))])
    assert registry.formats == {}
    assert registry.conversions == ()


def test_the_first_plugin_that_knows_a_module_declares_it() -> None:
    """What it declares is its own; a module that names a format is not asked about again."""
    registry = Registry()
    modules: list[ModuleType] = []

    def declare(module: ModuleType) -> list[Format]:
        modules.append(module)
        return [toy("json")]

    registry.register([Namespaces(lambda module: []), Namespaces(declare)], ONE)
    for _ in range(2):
        adopt(registry, json)
    assert modules == [json]
    assert registry.provenance == {"json": ONE}


def test_declarations_of_every_kind_may_be_mixed() -> None:
    """One list holds all kinds in any order, and an equal one is not kept twice."""
    registry = Registry()
    kinds = [
        NoTrace(print),
        view("a", "b"),
        Container("toys", print),
        toy("a"),
        DtypeNames("builtins:int", str),
        Problems(list),
        Namespaces(list),
        Autodiff("a", print, print),
    ]
    for _ in range(2):
        registry.register(iter(kinds))
    assert list(registry.formats) == ["a"]
    assert len(registry.conversions) == 1
    assert (registry.no_trace, registry.containers()) == ([kinds[0]], [kinds[2]])
    assert (registry.dtype_names, registry.autodiffs) == ([kinds[4]], [kinds[7]])


def test_registering_is_announced() -> None:
    """Every change of the registry raises its version and calls those who keep what follows."""
    registry, calls = Registry(), []
    registry.on_change.append(lambda: calls.append(registry.version))
    registry.register([toy("a")])
    registry.replace([])
    assert calls == sorted(set(calls))
    assert len(calls) == 2


def test_the_decorator_registers_and_returns_the_function(empty: Interop) -> None:
    """``@conversion`` leaves the function callable and its declaration registered."""
    empty.register(toy("a"), toy("b"))

    @empty.conversion("a", "b", takes={"grad"})
    def a_to_b(box: Box) -> Box:
        return Box("b", box.numbers)

    assert a_to_b(Box("a", [1.0])).kind == "b"
    assert empty.convert(Box("a", [1.0]), to="b").kind == "b"
    assert empty.conversions()[0].conversion.takes == {"grad"}


def test_a_framework_that_is_installed_meanwhile_is_found(
    empty: Interop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does what the refusal says need not start the process again."""
    monkeypatch.syspath_prepend(tmp_path)
    empty.register(toy("a"), toy("late", requires="late_framework"), copy("a", "late"))
    for _ in range(2):
        with pytest.raises(interop.errors.NotInstalledError):
            empty.convert(Box("a", [1.0]), to="late")
    (tmp_path / "late_framework.py").touch()
    assert empty.convert(Box("a", [1.0]), to="late").kind == "late"


def test_a_format_is_found_with_its_conversions() -> None:
    """A thread that finds a new format, while it is registered, finds the conversions to it."""
    found: list[tuple[bool, bool]] = []

    class Watched(Registry):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            tables = vars(self)
            pairs = [
                (d.conversion.source, d.conversion.target) for d in tables.get("conversions", ())
            ]
            found.append(("b" in tables.get("formats", ()), ("a", "b") in pairs))

    registry = Watched()
    registry.register([toy("a")])
    versions = registry.version
    registry.register([toy("b"), view("a", "b")])
    assert (True, True) in found
    assert (True, False) not in found
    assert registry.version > versions + 1  # a graph of a part of it is not that of the whole


def test_a_graph_with_a_new_format_has_its_conversions(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that another thread makes while a registration goes on is not that of the new formats."""
    empty.register(toy("a"))
    registry, planner = empty._registry, empty._planner
    with_guards, changed, results = registry._with_guards, registry.changed, []

    def meanwhile(kind: Any) -> Any:  # the tables are replaced one by one
        assert planner.graph.version == registry.version
        return with_guards(kind)

    def seen() -> None:  # the formats stand, and the change is not counted yet
        results.append(empty.plan(make_spec("a", "float32", shape=(3,)), to="b"))
        changed()

    monkeypatch.setattr(registry, "_with_guards", meanwhile)
    monkeypatch.setattr(registry, "changed", seen)
    empty.register(toy("b"), view("a", "b"))
    assert [labels(route) for route in results] == [["a_to_b"]]
