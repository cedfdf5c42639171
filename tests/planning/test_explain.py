"""Explanations: warnings of a route, and refusals that no keyword would permit."""

from __future__ import annotations

import re
from typing import Any

import pytest

import interop
from interop import Cost, Interop
from interop._execution import converter
from interop.errors import ComplexWarning, RefusedError
from interop.plugin import Limits, Result, make_spec
from tests.cases import together
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
    """A target of another number of axes is refused, and the formats with as many axes are named."""
    empty.register(
        toy("a"), toy("b", ndims=frozenset({1})), toy("b.plane", ndims=frozenset({2, 3}))
    )
    empty.register(view("a", "b"), view("a", "b.plane"), toy("b.gone"))
    empty.register(toy("b.parts"), view("a", "b.parts", like={"sharded"}))  # only with like=
    line, plane, cube = (make_spec("a", "float32", shape=(3,) * axes) for axes in (1, 2, 4))
    assert labels(empty.plan(line, to="b")) == ["a_to_b"]
    assert empty.plan(plane, to=["b", "b.plane"]).result.format == "b.plane"
    with pytest.raises(
        RefusedError, match=r"b holds arrays of 1 axis, not of 2; ask for b\.plane\.$"
    ):
        empty.plan(plane, to="b")
    with pytest.raises(RefusedError, match="2 to 3 axes, not of 4; reshape it first"):
        empty.plan(cube, to="b.plane")
    odd = make_spec("b", "float32", shape=(3, 3))  # what a value already is, it can be
    assert empty.plan(odd, to="b").steps == ()


def test_a_route_that_needs_more_than_a_nearer_one_is_not_named() -> None:
    """What one permission opens is said once, not again with two that open a longer way round."""
    spec = interop.make_spec("torch", "float32", shape=(3,), traits="grad")
    with pytest.raises(RefusedError) as caught:
        interop.plan(spec, to="numpy", forbid=set(interop.EFFECTS))
    assert str(caught.value).count("\n  - ") == 1
    assert str(caught.value).endswith("To permit the nearest, leave out forbid='detach'.")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"dtype": "int4"}, "torch does not hold int4; ask for one of these with dtype=: bool, "),
        ({"device": "mps"}, "To permit the nearest, pass allow={'narrow'} or dtype='float32'."),
        (
            {"to": "array"},
            "array is a protocol by which values are read and not made; name a framework.",
        ),
    ],
    ids=str,
)
def test_refusals_of_a_dtype_list_those_that_the_format_holds(words: Any, reason: str) -> None:
    """A dtype it has not, one that it has not on a device, and a protocol, which holds nothing."""
    spec = interop.make_spec("numpy", "float64", shape=(3,))
    with pytest.raises(RefusedError) as caught:
        interop.plan(spec, **{"to": "torch", **words})
    assert reason in str(caught.value)
    assert str(caught.value).count(", ") <= 14


def test_a_format_that_holds_nothing_says_so(empty: Interop) -> None:
    """Where there is no dtype to ask for, the message lists none."""
    empty.register(toy("a"), toy("b", dtypes=()), view("a", "b"))
    with pytest.raises(RefusedError, match="ask for one of these with dtype=: none"):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b")


def test_a_device_without_float64_is_reached_by_the_cast_that_the_refusal_names() -> None:
    """A device without float64 is reached by the cast that the refusal names."""
    spec = interop.make_spec("numpy", "float64", shape=(3,))
    route = interop.plan(spec, to="torch", device="mps", allow="narrow")
    assert (route.result.dtype, route.result.device) == ("float32", "mps")


def test_a_tensor_without_data_is_told_to_get_some(empty: Interop) -> None:
    """If no route takes a value without data, the refusal says so, and how to give it data."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,), traits=frozenset({"meta"}))
    with pytest.raises(RefusedError, match=r"give it data first \(in its own framework"):
        empty.plan(spec, to="b")


def test_the_nearest_routes_need_different_keywords(empty: Interop) -> None:
    """Of refused routes each needs another keyword, the one that needs least comes first."""
    empty.register(toy("a"), toy("b"))
    masked = view("a", "b", name="drop", effects=frozenset({"drop_mask"}))
    both = copy("a", "b", name="both", effects=frozenset({"copy", "gather"}))
    empty.register(masked, both, copy("a", "b", name="collect", effects=frozenset({"gather"})))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError) as refused:
        empty.plan(spec, to="b", copy=False)
    lines = [line for line in str(refused.value).splitlines() if line.startswith("  - ")]
    assert [line.split()[1] for line in lines] == ["collect", "drop"]
    assert lines[0].endswith("leave out copy=False and pass allow={'gather'}")
    assert lines[1].endswith("pass allow={'drop_mask'}")
    assert refused.value.effects == {"gather"}


def test_the_refusal_names_the_nearest_of_several_alternatives_first(
    empty: Interop,
) -> None:
    """Of two that need no keyword more than the nearest the one that copies nothing is nearer."""
    empty.register(toy("a"), toy("b"))
    empty.register(
        copy("a", "b", name="nearest", effects={"copy", "gather"}),
        copy("a", "b", name="an_apart", effects={"copy", "drop_mask"}),
        view("a", "b", name="the_view", effects={"gather", "drop_mask"}),
    )
    with pytest.raises(RefusedError) as refused:
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b", copy=False)
    lines = [line for line in str(refused.value).splitlines() if line.startswith("  - ")]
    assert [line.split()[1] for line in lines] == ["nearest", "the_view", "an_apart"]


def test_a_target_that_can_never_be_written_to_is_refused_at_once(empty: Interop) -> None:
    """If every way into a format locks its result, copy='writable' is refused, and says why."""
    locked = frozenset({"immutable"})
    empty.register(toy("a"), toy("b", carries=locked), copy("a", "b", adds=locked))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError, match="b arrays cannot be written to; leave out copy='wri"):
        empty.plan(spec, to="b", copy="writable")
    empty.register(copy("a", "b", name="thaw", cost=Cost(1.0)))
    assert labels(empty.plan(spec, to="b", copy="writable")) == ["thaw"]


def test_memory_that_only_views_lead_to_is_not_called_locked(empty: Interop) -> None:
    """That a format cannot be written to is said of copy='writable' alone."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,))
    assert labels(empty.plan(spec, to="b")) == ["a_to_b"]
    with pytest.raises(RefusedError, match="nothing copies it; leave out copy=True"):
        empty.plan(spec, to="b", copy=True)


@together(
    "words, refusal",
    [
        ({"order": "F"}, "flat values cannot lie in Fortran order; leave out order='F'."),
        ({"copy": True}, "nothing copies it; leave out copy=True."),
        ({"copy": "writable"}, "flat arrays cannot be written to; leave out copy='writable'."),
        ({"device": "cuda"}, "flat cannot be on cuda, only on cpu; leave out device='cuda'."),
        ({"device": "xpu", "to": "far"}, "nothing moves it to xpu; leave out device='xpu'."),
        ({"dtype": "float64"}, "nothing casts it to float64; leave out dtype='float64'."),
        ({"dtype": "int8"}, "flat does not hold int8; ask for one of these with dtype=: float"),
        ({"dtype": "int8", "device": "cuda"}, "flat cannot be on cuda; ask for device 'cpu', or"),
        ({"to": "a.row"}, "a.row holds arrays of 1 axis, not of 2; ask for a or a.plane or a.oth"),
    ],
)
def test_what_a_route_exists_without_is_to_be_left_out(
    empty: Interop, words: dict[str, Any], refusal: str
) -> None:
    """One keyword at a time is left out, and then another format is asked for; what works is said."""
    dtypes, immutable = {"float32", "float64"}, {"carries": {"immutable"}}
    empty.register(
        toy("a", dtypes=dtypes),
        toy("flat", dtypes=dtypes, **immutable),
        toy("far", devices=("cpu", "xpu")),
        toy("a.row", ndims={1}),
        toy("a.plane", ndims={2}),
        toy("a.other"),
        view("a", "flat", adds={"immutable"}),
        *(view("a", name) for name in ("far", "a.row", "a.plane", "a.other")),
    )
    spec = make_spec("a", "float32", shape=(3, 4))
    with pytest.raises(RefusedError, match=re.escape(refusal)):
        empty.plan(spec, **{"to": "flat", **words})


def test_the_only_sources_of_a_format_are_named(empty: Interop) -> None:
    """Where no conversion leads to a format, those are named that would, but none of the targets."""
    empty.register(toy("a"), toy("b"), toy("c"), toy("d"), toy("e"))
    empty.register(view("c", "b"), view("d", "b"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(RefusedError, match=r"from a leads to b or c; only d does\.$"):
        empty.plan(spec, to=["b", "c"])
    empty.register(view("e", "c"))
    with pytest.raises(RefusedError, match=r"from a leads to b or c; only d, e do\.$"):
        empty.plan(spec, to=["b", "c"])


def test_conversions_that_give_up_less_say_first_why_they_do_not_serve(empty: Interop) -> None:
    """Of those that do not take a value, views come first, and those that lose something last."""
    empty.register(
        toy("a"), toy("b"),
        view("a", "b", name="loses", dtypes={"int64"}, effects={"detach"}),
        copy("a", "b", name="copies", dtypes={"int64"}),
        copy("a", "b", name="copies_in_part", dtypes={"int64"}, shares=True),
        view("a", "b", name="views", dtypes={"int64"}),
    )  # fmt: skip
    with pytest.raises(RefusedError) as caught:
        empty.plan(make_spec("a", "float32", shape=(3,)), to="b")
    lines = [line for line in str(caught.value).splitlines() if line.startswith("  - ")]
    assert [line.split(":")[0] for line in lines] == [
        "  - views", "  - copies_in_part", "  - copies", "  - loses"
    ]  # fmt: skip


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


def test_the_dtypes_that_are_offered_are_those_of_the_device(loaded: Interop) -> None:
    """A refused dtype is answered with what the format holds where the value is."""
    there = make_spec("torch", "float32", device="mps:0", shape=(3,))
    with pytest.raises(RefusedError) as refused:
        loaded.plan(there, to="torch", dtype="float64")
    assert "torch does not hold float64" in str(refused.value)
    assert "float64" not in str(refused.value).partition("ask for one of these")[2]


def test_one_hint_of_several_is_chosen_by_the_names_of_traits(empty: Interop) -> None:
    """Of a format's hints for traits, the first by name is given, whatever order a set has."""
    traits = ("mixed", "packed", "biased", "uncoalesced", "weak", "per_block")
    limits = Limits(refusal_hints={trait: f"undo {trait}." for trait in traits})
    empty.register(toy("a", carries=frozenset(traits), limits=limits), toy("b"), view("a", "b"))
    for number in range(2, len(traits) + 1):
        spec = make_spec("a", "float32", shape=(3,), traits=traits[-number:])
        with pytest.raises(RefusedError, match=rf"undo {min(traits[-number:])}\.$"):
            empty.plan(spec, to="b")
