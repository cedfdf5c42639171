"""Derived effects: what follows from the specs before and after a step, and how it is permitted."""

from __future__ import annotations

from typing import Any

import pytest

import interop
from interop import Format, Interop
from interop._planning.derived import derived_effects, shared_traits
from interop.errors import RefusedError
from interop.plugin import Cost, Limits, Wrapper, make_spec
from tests.toys import copy, labels, toy, view


def test_a_narrowing_cast_needs_consent(empty: Interop) -> None:
    """A cast to a narrower dtype is refused, unless narrow is allowed or dtype= asks for it."""
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float32"})))
    empty.register(view("a", "b"), copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    spec = make_spec("a", "float64", shape=(3,))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b")
    assert empty.plan(spec, to="b", allow="narrow").result.dtype == "float32"
    assert "narrow" not in empty.plan(spec, to="b", dtype="float32").effects


def test_a_dtype_that_a_device_does_not_support_needs_consent_too(empty: Interop) -> None:
    """A dtype that the target holds elsewhere, and not on that device, is refused or narrowed."""
    empty.register(
        toy("a", devices=("cpu", "mps"), limits=Limits(unsupported={"mps": frozenset({"float64"})}))
    )
    move = copy(
        "a", "a", name="move", changes=frozenset({"device"}), effects=frozenset({"transfer"})
    )
    empty.register(move, copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    spec = make_spec("a", "float64", shape=(3,))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="a", device="mps")
    route = empty.plan(spec, to="a", device="mps", dtype="float32")
    assert labels(route) == ["cast", "move"]


def test_a_lossless_widening_needs_none(empty: Interop) -> None:
    """A target without the dtype gets the narrowest dtype that holds every value."""
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float32", "float64"})))
    empty.register(view("a", "b"), copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")
    assert route.result.dtype == "float32"
    assert route.effects == {"copy"}


def test_read_only_memory_is_copied_rather_than_shared_unflagged(empty: Interop) -> None:
    """By default, read-only memory is not shared with a target that cannot carry the flag."""
    takes = frozenset({"readonly", "immutable"})
    empty.register(
        toy("a", carries=takes), toy("b"), view("a", "b", takes=takes), copy("a", "b", takes=takes)
    )
    spec = make_spec("a", "float32", shape=(3,), traits={"readonly"})
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    shared = empty.plan(spec, to="b", allow={"share_readonly"})
    assert labels(shared) == ["a_to_b"]
    assert shared.effects == {"share_readonly"}
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b", copy=False)


def test_immutable_memory_is_shared_unless_forbidden(empty: Interop) -> None:
    """By default, an immutable framework's memory is shared, and the effect is shown."""
    takes = frozenset({"immutable"})
    empty.register(
        toy("a", carries=takes), toy("b"), view("a", "b", takes=takes), copy("a", "b", takes=takes)
    )
    spec = make_spec("a", "float32", shape=(3,), traits={"immutable"})
    assert empty.plan(spec, to="b").effects == {"alias_immutable"}
    assert labels(empty.plan(spec, to="b", forbid={"alias_immutable"})) == ["copy_a_to_b"]


def test_labels_that_a_conversion_keeps_are_left_only_where_a_caller_says_so(
    empty: Interop,
) -> None:
    """Where the way that keeps them is refused, no other that drops them is taken in its place."""
    labels_too = frozenset({"labelled"})
    empty.register(toy("a", carries=labels_too), toy("b", carries=labels_too), view("a", "b"))
    bare = view("a", "b", requires=labels_too, drops=labels_too, effects={"drop_labels"})
    empty.register(copy("a", "b", takes=labels_too, name="kept"), bare._replace(name="bare"))
    plain = make_spec("a", "float32", shape=(3,))
    labelled = plain._replace(traits=labels_too)
    assert labels(empty.plan(labelled, to="b")) == ["kept"]
    with pytest.raises(RefusedError):
        empty.plan(labelled, to="b", copy=False)
    assert labels(empty.plan(labelled, to="b", copy=False, allow="drop_labels")) == ["bare"]
    assert labels(empty.plan(plain, to="b", copy=False)) == ["a_to_b"]


def test_a_round_trip_over_the_host_is_refused(empty: Interop) -> None:
    """A way from a device through the host to a device is refused until it is allowed."""
    everywhere = frozenset({"cpu", "cuda"})
    empty.register(
        toy("a", devices=("cpu", "cuda")), toy("b", devices=("cpu", "cuda")), view("a", "b")
    )
    for name in ("a", "b"):
        empty.register(
            copy(
                name,
                name,
                name=f"move_{name}",
                changes=frozenset({"device"}),
                devices=everywhere,
                effects=frozenset({"transfer"}),
            )
        )
    spec = make_spec("a", "float32", device="cuda:0", shape=(3,))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(spec, to="b")
    route = empty.plan(spec, to="b", allow="host_round_trip")
    assert labels(route) == ["move_a", "a_to_b", "move_b"]
    assert route.result.device == "cuda:0"


def test_read_only_memory_stays_so_by_way_of_an_immutable_framework(empty: Interop) -> None:
    """A framework on the way that never writes gives nobody leave to write to read-only memory."""
    flags = frozenset({"readonly", "immutable"})
    empty.register(
        toy("a", carries=flags), toy("m", carries=flags), toy("b"), toy("m.x", carries=flags)
    )
    empty.register(
        view("a", "m", takes=flags, adds=frozenset({"immutable"})),
        view("m", "b", takes=flags),
        view("m", "m.x", takes=flags),
    )
    locked = make_spec("a", "float32", shape=(3,), traits={"readonly"})
    with pytest.raises(RefusedError):
        empty.plan(locked, to="b")
    assert empty.plan(locked, to="b", allow="share_readonly").effects == {"share_readonly"}
    plain = make_spec("a", "float32", shape=(3,))
    assert empty.plan(plain, to="b").effects == {"alias_immutable"}
    assert empty.plan(plain, to="m.x").result.traits == {"immutable"}  # flagged as it was


def test_the_rule_by_itself() -> None:
    """A derived effect depends on the specs and the target's traits, and on nothing else."""
    plain, flagged = toy("b"), toy("b", carries=frozenset({"readonly"}))
    spec = make_spec("a", "float64", shape=(3,))

    def effects(trait: str, target: interop.Format, *, aliases: bool = True) -> frozenset[str]:
        before = spec._replace(traits=frozenset({trait}))
        return derived_effects(before, spec, target, safe=False, aliases=aliases)

    assert effects("readonly", plain) == {"share_readonly"}
    assert effects("immutable", plain) == {"alias_immutable"}
    assert effects("readonly", plain, aliases=False) == frozenset()
    assert effects("readonly", flagged) == effects("immutable", flagged) == frozenset()
    for dtype, safe, expected in (
        ("float32", False, {"narrow"}),
        ("float32", True, set()),
        ("complex128", False, set()),
        ("int64", False, {"narrow"}),
        ("float64", False, set()),
    ):
        cast = spec._replace(dtype=dtype)
        assert derived_effects(spec, cast, plain, safe=safe, aliases=False) == expected
    assert effects("labelled", plain, aliases=False) == {"drop_labels"}


def test_numbers_that_a_dtype_does_not_tell() -> None:
    """To leave several dtypes for one narrows, unless the caller or the step looks after that."""
    plain = toy("a")

    def effects(trait: str, after: interop.Spec, *, safe: bool = False) -> frozenset[str]:
        before = spec._replace(traits=frozenset({trait}))
        return derived_effects(before, after, plain, safe=safe, aliases=False)

    spec = make_spec("a", "float64", shape=(3,))
    assert effects("mixed", spec) == {"narrow"}
    assert effects("mixed", spec, safe=True) == frozenset()
    assert effects("mixed", spec._replace(traits=frozenset({"mixed"}))) == frozenset()


def test_a_checked_cast_does_not_narrow(empty: Interop) -> None:
    """A cast that refuses numbers that do not fit needs no permission, and is taken before others."""
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float32"})))
    cast = copy("a", "b", name="cast", changes=frozenset({"dtype"}), cost=Cost(1e-9))
    empty.register(cast)
    spec = make_spec("a", "float64", shape=(3,))
    with pytest.raises(RefusedError):
        empty.plan(spec, to="b")
    checked = {"name": "checked", "checked": True, "dtypes": frozenset({"float64"})}
    empty.register(copy("a", "b", changes=frozenset({"dtype"}), **checked))
    for allow in ((), "narrow"):
        route = empty.plan(spec, to="b", allow=allow)
        assert [step.label for step in route.steps] == ["checked"]
        assert "narrow" not in route.effects


def test_traits_of_shared_memory() -> None:
    """Flags go where the target cannot carry them, and memory that never changes is flagged."""
    traits = frozenset({"immutable", "grad"})
    readonly = frozenset({"readonly"})
    assert shared_traits(traits, frozenset()) == {"grad"}
    assert shared_traits(traits, readonly) == {"readonly", "grad"}
    assert shared_traits(traits, readonly, within=True) == {"grad"}
    assert shared_traits(traits, frozenset({"immutable"})) == traits


def _effects(empty: Interop, source: Format, target: Format, **fields: Any) -> frozenset[str]:
    """Return the effects of a step between two formats, about which its author says no more."""
    empty.register(source, target, view(source.name, target.name, **fields))
    spec = make_spec(source.name, "float32", shape=(3,))
    return empty.plan(spec._replace(nnz=1), to=target.name, device=_device(target)).effects


def _device(target: Format) -> str:
    return target.devices[0]


SPARSE = {"index_dtypes": {"int32"}}
FOLLOWING = [
    ("densify", toy("a", **SPARSE), toy("b"), {}),
    ("materialize", toy("a", lazy=True), toy("b"), {}),
    ("transfer", toy("a"), toy("b", devices=("cuda",)), {"changes": {"device"}}),
]


@pytest.mark.parametrize(("effect", "source", "target", "fields"), FOLLOWING)
def test_effects_follow_from_the_formats_whether_or_not_they_are_declared(
    effect: str, source: Format, target: Format, fields: dict[str, Any]
) -> None:
    """A step has the effect, its memory is taken for its own, and a refusal names the effect."""
    spec = make_spec("a", "float32", shape=(3,))._replace(nnz=1)
    for declared in (set[str](), {effect, "detach"}):
        made = Interop(plugins=False)
        effects = declared | {effect}
        assert _effects(made, source, target, **fields, effects=declared) == effects
        (step,) = made.conversions()
        assert step.conversion.effects == effects
        assert not step.conversion.aliases
        with pytest.raises(RefusedError) as caught:
            made.plan(spec, to="b", device=_device(target), forbid=effect)
        assert caught.value.effects == {effect}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (toy("a", **SPARSE), toy("b", **SPARSE)),
        (toy("a", lazy=True), toy("b", lazy=True)),
        (toy("a", **SPARSE, lazy=True), toy("b", wrapper=Wrapper(lambda box: box))),
        (toy("a"), toy("b", lazy=True, **SPARSE)),
    ],
)
def test_nothing_follows_where_the_result_is_as_sparse_and_as_lazy(
    empty: Interop, source: Format, target: Format
) -> None:
    """Between sparse formats, between lazy ones, into a wrapper and into either a step shares."""
    assert _effects(empty, source, target) == set()


def test_a_step_from_an_exporter_has_the_effects_of_its_format(empty: Interop) -> None:
    """A conversion from a protocol computes what a lazy format exports by it."""
    exports = {"protocol": {"float32"}}
    empty.register(toy("a", lazy=True, exports=exports), toy("b", exports=exports), toy("c"))
    empty.register(view("protocol", "c"))
    for name, effects in (("a", {"materialize"}), ("b", set())):
        assert empty.plan(make_spec(name, "float32", shape=(3,)), to="c").effects == effects
