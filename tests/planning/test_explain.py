"""Explanations: warnings of a route, and refusals that no keyword would permit."""

from __future__ import annotations

import pytest

import interop
from interop import Cost, Interop
from interop._execution import converter
from interop.errors import ComplexWarning, RefusedError
from interop.plugin import Limits, Result, make_spec
from tests.toys import Box, copy, labels, toy, view


def test_a_route_with_a_warning_has_no_fast_path(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route with a warning takes no fast path, so that the warning is given."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda value: Box("b", [])))
    monkeypatch.setattr(converter, "imaginary_loss_of", lambda steps: ComplexWarning("beware"))
    for _ in range(2):
        with pytest.warns(ComplexWarning, match="beware"):
            assert empty.convert(Box("a", [1.0]), to="b").numbers == [1.0]
    assert empty._converters.calls["b"].fast == {}
    monkeypatch.undo()
    empty.register(toy("c"))
    empty.convert(Box("a", [1.0]), to="b")
    assert list(empty._converters.calls["b"].fast) == [Box]


# ---------------------------------------------------------------------- what no keyword permits


def test_axes_that_a_target_does_not_have(empty: Interop) -> None:
    """A target of another number of axes is refused."""
    empty.register(
        toy("a"), toy("b", ndims=frozenset({1})), toy("b.plane", ndims=frozenset({2, 3}))
    )
    empty.register(view("a", "b"), view("a", "b.plane"), toy("b.gone"))
    empty.register(toy("b.parts"), view("a", "b.parts", like={"sharded"}))  # only with like=
    line, plane, cube = (make_spec("a", "float32", shape=(3,) * axes) for axes in (1, 2, 4))
    assert labels(empty.plan(line, to="b")) == ["a_to_b"]
    assert empty.plan(plane, to=["b", "b.plane"]).result.format == "b.plane"
    with pytest.raises(RefusedError):
        empty.plan(plane, to="b")
    with pytest.raises(RefusedError):
        empty.plan(cube, to="b.plane")
    odd = make_spec("b", "float32", shape=(3, 3))  # what a value already is, it can be
    assert empty.plan(odd, to="b").steps == ()


def test_a_device_without_float64_is_reached_by_the_cast_that_the_refusal_names() -> None:
    """A device without float64 is reached by the cast that the refusal names."""
    spec = interop.make_spec("numpy", "float64", shape=(3,))
    route = interop.plan(spec, to="torch", device="mps", allow="narrow")
    assert (route.result.dtype, route.result.device) == ("float32", "mps")


def test_a_target_that_can_never_be_written_to_is_refused_at_once(empty: Interop) -> None:
    """If every way into a format locks its result, copy='writable' is refused."""
    locked = frozenset({"immutable"})
    empty.register(toy("a"), toy("b", carries=locked), copy("a", "b", adds=locked))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError):
        empty.plan(spec, to="b", copy="writable")
    empty.register(copy("a", "b", name="thaw", cost=Cost(1.0)))
    assert labels(empty.plan(spec, to="b", copy="writable")) == ["thaw"]


def test_memory_that_only_views_lead_to_is_not_called_locked(empty: Interop) -> None:
    """That a format cannot be written to is said of copy='writable' alone."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,))
    assert labels(empty.plan(spec, to="b")) == ["a_to_b"]
    with pytest.raises(RefusedError):
        empty.plan(spec, to="b", copy=True)


def test_bits_that_are_carried_are_not_carried_again(empty: Interop) -> None:
    """A value whose bits are carried already meets a second step that would carry them, in vain."""
    carry, restore = Result(bits="carry"), Result(bits="restore")
    empty.register(
        toy("a"), toy("b", dtypes={"uint16"}), toy("c", dtypes={"uint16"}), toy("d"),
        view("a", "b", result=carry), view("b", "c"), view("b", "c", name="again", result=carry),
        view("c", "d", result=restore),
    )  # fmt: skip
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="d")
    assert labels(route) == ["a_to_b", "b_to_c", "c_to_d"]
    assert (route.result.dtype, route.result.carrier) == ("bfloat16", None)


def test_one_hint_of_several_is_chosen_by_the_names_of_traits(empty: Interop) -> None:
    """Of a format's hints for traits, the first by name is given, whatever order a set has."""
    traits = ("mixed", "packed", "biased", "uncoalesced", "weak", "per_block")
    limits = Limits(refusal_hints={trait: f"undo {trait}." for trait in traits})
    empty.register(toy("a", carries=frozenset(traits), limits=limits), toy("b"), view("a", "b"))
    for number in range(2, len(traits) + 1):
        spec = make_spec("a", "float32", shape=(3,), traits=traits[-number:])
        with pytest.raises(RefusedError, match=rf"undo {min(traits[-number:])}\.$"):
            empty.plan(spec, to="b")
