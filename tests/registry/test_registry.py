"""Registering, recognising and conflicts."""

from __future__ import annotations

import pytest

import interop
from interop import Conversion, DtypeNames, Format, Interop
from interop._registry.declared import Provenance
from interop._registry.registry import Registry
from interop.plugin import Components, Result
from tests.toys import Box, copy, toy, view

ONE, TWO = Provenance("p", "one", "1.0"), Provenance("q", "two", "2.0")


def test_the_same_again_is_harmless() -> None:
    """Declaring an equal format or conversion twice changes nothing."""
    registry = Registry()
    shared = view("a", "b")
    registry.add([toy("a")], [shared], provenance=ONE)
    registry.add([toy("a")], [shared], provenance=TWO)
    assert [d.provenance for d in registry.conversions] == [ONE]


def test_one_format_declared_differently_twice_names_both() -> None:
    """A format of another's name is refused, and both distributions are named."""
    registry = Registry()
    registry.add([toy("a")], provenance=ONE)
    with pytest.raises(interop.errors.ConflictError, match=r"one 1\.0.*two 2\.0.*INTEROP_DISABLE"):
        registry.add([toy("a", devices=("cuda",))], provenance=TWO)


def test_the_same_conversion_of_two_distributions_is_a_conflict() -> None:
    """Without a priority, neither is guessed to be right."""
    registry = Registry()
    registry.add([], [view("a", "b")], provenance=ONE)
    with pytest.raises(interop.errors.ConflictError, match=r"a → b.*one 1\.0.*two 2\.0.*priority"):
        registry.add([], [view("a", "b")], provenance=TWO)


@pytest.mark.parametrize("larger_first", [True, False])
def test_an_explicit_priority_settles_a_conflict(larger_first: bool) -> None:
    """The conversion of larger priority counts, whichever came first."""
    registry = Registry()
    strong, weak = view("a", "b", priority=1), view("a", "b")
    first, second = (strong, weak) if larger_first else (weak, strong)
    registry.add([], [first], provenance=ONE)
    registry.add([], [second], provenance=TWO)
    assert [d.conversion for d in registry.conversions] == [strong]


def test_all_or_nothing_is_registered() -> None:
    """One malformed declaration among good ones leaves the registry as it was."""
    registry = Registry()
    with pytest.raises(interop.errors.PluginError, match="effect 'explode'"):
        registry.add([toy("a")], [copy("a", "a", effects=frozenset({"explode"}))])
    assert registry.formats == {}
    assert registry.conversions == ()


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ("nonsense", "not a Conversion"),
        (Format(""), "not a named Format"),
        (Format("a", types=("torch.Tensor",)), "'module:Class'"),
        (Format("a", components=Components(layout="csr")), "lacks components"),
        (Conversion("a", "b", "not callable"), "cannot be called"),  # type: ignore[arg-type]
        (Conversion("a", "b", print, result=Result(bits="twist")), "bits='twist'"),
        (Conversion("a", "b", print, changes=frozenset({"shape"})), "shape"),
    ],
)
def test_malformed_declarations_are_refused(empty: Interop, declaration: object, said: str) -> None:
    """Each kind of malformed declaration is refused with what is wrong about it."""
    with pytest.raises(interop.errors.PluginError, match=said):
        empty.register(declaration)  # type: ignore[arg-type]


def test_a_subclass_is_recognised_by_its_nearest_base(empty: Interop) -> None:
    """Recognition walks the MRO."""

    class Special(Box):
        pass

    empty.register(toy("a"))
    assert empty.spec(Special("a", [1.0])).format == "a"


def test_a_stranger_is_recognised_by_its_protocol(empty: Interop) -> None:
    """An attribute of the type is enough where a format declares a protocol."""

    class Stranger:
        __proto__ = True

    empty.register(
        Format(
            "proto", protocol="__proto__", describe=lambda v: interop.make_spec("proto", "int64")
        )
    )
    assert empty.spec(Stranger()).format == "proto"
    with pytest.raises(
        interop.errors.UnknownValueError, match=r"builtins\.object.*register a Format"
    ):
        empty.spec(object())


def test_registering_invalidates_what_was_planned(empty: Interop) -> None:
    """A better conversion registered later is used at once."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    box = Box("a", [1.0])
    assert empty.convert(box, to="b").numbers is not box.numbers
    empty.register(view("a", "b"))
    assert empty.convert(box, to="b").numbers is box.numbers


def test_private_instances_do_not_see_each_other(empty: Interop) -> None:
    """What is registered in one instance stays there."""
    empty.register(toy("private"))
    assert all(one.name != "private" for one in interop.formats())


def test_the_decorator_registers_and_returns_the_function(empty: Interop) -> None:
    """``@conversion`` leaves the function callable and its declaration registered."""
    empty.register(toy("a"), toy("b"))

    @empty.conversion("a", "b", takes={"grad"})
    def a_to_b(box: Box) -> Box:
        return Box("b", box.numbers)

    assert a_to_b(Box("a", [1.0])).kind == "b"
    assert empty.convert(Box("a", [1.0]), to="b").kind == "b"
    assert empty.conversions()[0].conversion.takes == {"grad"}


def test_dtype_objects_are_named_by_their_family(empty: Interop) -> None:
    """A framework's dtype object means the name its family gives it."""

    class Kind:
        name = "float64"

    globals()["Kind"] = Kind
    try:
        empty.register(toy("a"), copy("a", "a", changes=frozenset({"dtype"})))
        empty.register(DtypeNames(f"{__name__}:Kind", lambda d: d.name))
        assert (
            empty.plan(
                interop.make_spec("a", "float32", shape=(2,)), to="a", dtype=Kind()
            ).result.dtype
            == "float64"
        )
    finally:
        del globals()["Kind"]
    with pytest.raises(interop.errors.BadRequestError, match="name it as a string"):
        empty.plan(interop.make_spec("a", "float32", shape=(2,)), to="a", dtype=object())
