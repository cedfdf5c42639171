"""The planner: which route is preferred, on toy frameworks, from specs alone."""

from __future__ import annotations

import itertools

import pytest

import interop
from interop import Cost, Interop, Spec
from interop._request.request import Request
from interop.plugin import make_spec
from tests.toys import copy, labels, toy, view


def test_a_longer_route_without_a_copy_beats_a_shorter_one_with_a_copy(empty: Interop) -> None:
    """To copy nothing is preferred to less time and to fewer steps."""
    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(
        copy("a", "c", cost=Cost(1e-9, 1e15)),
        view("a", "b", cost=Cost(1e-3)),
        view("b", "c", cost=Cost(1e-3)),
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert labels(route) == ["a_to_b", "b_to_c"]


def test_the_planner_takes_the_faster_of_two_copies_for_the_size(empty: Interop) -> None:
    """Latency decides for small values and bandwidth for large ones."""
    empty.register(toy("a"), toy("b"))
    empty.register(
        copy("a", "b", cost=Cost(1e-6, 1e8), name="quick_start"),
        copy("a", "b", cost=Cost(1e-3, 1e10), name="fast_run"),
    )
    small, large = (make_spec("a", "float32", shape=(n,)) for n in (10, 10**8))
    assert labels(empty.plan(small, to="b")) == ["quick_start"]
    assert labels(empty.plan(large, to="b")) == ["fast_run"]


def test_losing_less_beats_copying_less(empty: Interop) -> None:
    """A route that keeps autograd is preferred to one that drops it, though it copies."""
    empty.register(toy("a", carries=frozenset({"grad"})), toy("b", carries=frozenset({"grad"})))
    empty.register(
        view(
            "a",
            "b",
            requires=frozenset({"grad"}),
            drops=frozenset({"grad"}),
            effects=frozenset({"detach"}),
        ),
        copy("a", "b", takes=frozenset({"grad"})),
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,), traits={"grad"}), to="b")
    assert labels(route) == ["copy_a_to_b"]


def test_copy_false_is_enforced_over_the_whole_route(empty: Interop) -> None:
    """One copying step anywhere refuses the route, and the message names step and keyword."""
    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(interop.errors.RefusedError) as info:
        empty.plan(spec, to="c", copy=False)
    assert info.value.effects == {"copy"}


def test_copy_true_asks_for_fresh_memory_where_it_is_cheapest(empty: Interop) -> None:
    """The bytes are copied once, at the cheaper of two places."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    empty.register(copy("a", "a", cost=Cost(1e-6, 1e8)), copy("b", "b", cost=Cost(1e-6, 1e10)))
    route = empty.plan(make_spec("a", "float32", shape=(10**7,)), to="b", copy=True)
    assert labels(route) == ["a_to_b", "copy_b_to_b"]
    assert not route.aliases


@pytest.mark.parametrize(("dtype", "first"), [("bfloat16", "cast"), ("float64", "move")])
def test_a_cast_goes_on_the_side_where_it_saves_bytes(
    empty: Interop, dtype: str, first: str
) -> None:
    """Narrowing before the transfer and widening after it move fewer bytes."""
    everywhere = frozenset({"cpu", "cuda"})
    empty.register(toy("a", devices=("cpu", "cuda")))
    empty.register(
        copy(
            "a",
            "a",
            name="cast",
            changes=frozenset({"dtype"}),
            devices=everywhere,
            cost=Cost(1e-6, 1e11),
        ),
        copy(
            "a",
            "a",
            name="move",
            changes=frozenset({"device"}),
            devices=everywhere,
            effects=frozenset({"transfer"}),
            cost=Cost(1e-5, 1e9),
        ),
    )
    spec = make_spec("a", "float32", device="cuda:0", shape=(10**7,))
    route = empty.plan(spec, to="a", dtype=dtype, device="cpu")
    assert labels(route)[0] == first
    assert len(route.steps) == 2


def test_data_stay_where_they_are_unless_the_target_cannot_live_there(empty: Interop) -> None:
    """Without device=, the result is on the value's device, or else on the target's first."""
    move = copy(
        "a",
        "a",
        name="move",
        changes=frozenset({"device"}),
        devices=None,
        effects=frozenset({"transfer"}),
    )
    empty.register(
        toy("a", devices=("cpu", "cuda")), toy("b"), view("a", "b"), view("b", "a"), move
    )
    assert (
        empty.plan(make_spec("a", "float32", device="cuda:1", shape=(3,)), to="b").result.device
        == "cpu"
    )
    assert empty.plan(make_spec("b", "float32", shape=(3,)), to="a").result.device == "cpu"
    assert (
        empty.plan(make_spec("b", "float32", shape=(3,)), to="a", device="cuda").result.device
        == "cuda"
    )


def test_a_sequence_of_targets_gives_the_cheapest(empty: Interop) -> None:
    """Of several acceptable formats, the one of the preferred route is taken."""
    empty.register(toy("a"), toy("b"), toy("c"), copy("a", "b"), view("a", "c"))
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to=["b", "c"]).result.format == "c"


def test_a_frameworks_name_without_a_dense_format_means_one_of_its_formats(empty: Interop) -> None:
    """``to="b"`` is the value's own format, else the first of b.x and b.y, or b where that exists."""
    empty.register(toy("a"), toy("b.x"), toy("b.y"), copy("a", "b.x"), view("a", "b.y"))
    empty.register(copy("b.y", "b.y"), copy("b.y", "b.x", cost=Cost(1e-9)))
    spec = make_spec("a", "float32", shape=(3,))
    assert empty.plan(spec, to="b").result.format == "b.x"
    assert empty.plan(spec._replace(format="b.y"), to="b", copy=True).result.format == "b.y"
    empty.register(toy("b"), copy("a", "b"))
    assert empty.plan(spec, to="b").result.format == "b"


def test_a_frameworks_name_means_ragged_rows_for_values_that_may_have_them(empty: Interop) -> None:
    """All others become its other format, whatever that costs, unless they ask for the ragged one."""
    nested = frozenset({"nested"})
    empty.register(toy("a"), toy("rows", carries=nested), toy("b.x"), toy("b.y", carries=nested))
    for source in ("a", "rows"):
        empty.register(copy(source, "b.x"), view(source, "b.y", takes=nested))
    plain, ragged = (make_spec(name, "float32", shape=(3, 2)) for name in ("a", "rows"))
    ragged = ragged._replace(traits=nested)
    for spec, to, result in ((plain, "b", "b.x"), (plain, "b.y", "b.y"), (ragged, "b", "b.y")):
        assert empty.plan(spec, to=to).result.format == result


def test_ties_are_broken_by_name_whatever_the_order_of_registration() -> None:
    """Of equal routes the choice does not depend on the order of registration."""
    chosen = set()
    ways = [view("a", "b", name="one"), view("a", "b", name="two", takes=frozenset({"grad"}))]
    for order in itertools.permutations(ways):
        instance = Interop(plugins=False)
        instance.register(
            toy("a"), toy("b"), *(w._replace(ndims=frozenset({1, i})) for i, w in enumerate(order))
        )
        chosen.add(tuple(labels(instance.plan(make_spec("a", "float32", shape=(3,)), to="b"))))
    assert chosen == {("one",)}


def test_an_unrequested_framework_is_imported_only_for_a_reason(empty: Interop) -> None:
    """A quicker route through a framework that is not imported loses to a slower one without it."""
    # turtledemo stands for a framework that is installed and not imported.
    empty.register(toy("a"), toy("b"), toy("c", requires="turtledemo"))
    empty.register(copy("a", "b", cost=Cost(1e-3, 1e6)), copy("a", "c"), copy("c", "b"))
    spec = make_spec("a", "float32", shape=(1000,))
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    empty.register(view("a", "c"), view("c", "b"))
    assert labels(empty.plan(spec, to="b")) == ["a_to_c", "c_to_b"]


GAPS = frozenset({"noncontiguous"})


@pytest.mark.parametrize("dear", ["kept", "turned"])
def test_a_cast_keeps_the_order_of_elements_whatever_it_costs(empty: Interop, dear: str) -> None:
    """A cast keeps the order of elements where the target has strides, and only there."""
    dtypes = frozenset({"float32", "float64"})
    empty.register(toy("a", carries=GAPS, dtypes=dtypes), toy("b", dtypes=dtypes))
    costs = {"kept": Cost(1e-9), "turned": Cost(1e-9), dear: Cost(1e-3)}
    cast = copy("a", "a", name="cast", takes=GAPS, changes={"dtype", "order"})
    empty.register(cast._replace(cost=costs["kept"], across=costs["turned"]), view("a", "b"))
    for traits in (GAPS, frozenset()):
        spec = make_spec("a", "float32", shape=(3, 4), traits=traits)
        (step,) = empty.plan(spec, to="a", dtype="float64").steps
        assert step.after.traits == traits
        plan = empty.plan(spec, to="b", dtype="float64")
        assert labels(plan) == ["cast", "a_to_b"]
        assert plan.steps[0].after.traits == frozenset()


@pytest.mark.slow
def test_a_route_can_be_shown_at_every_size(loaded: Interop) -> None:
    """Between every pair of formats, the route of a class of sizes can be shown at each of its sizes."""
    declared_formats = [item for item in loaded.formats() if not item.format.protocol]
    formats = {declared.name: declared.format for declared in declared_formats}
    sizes = ((0, 0), (40, 50), (10**5, 10**8))
    routes = 0
    for row, (source, format_) in enumerate(formats.items()):
        device = format_.devices[0] if format_.devices[0] == "cpu" else f"{format_.devices[0]}:0"
        for column, target in enumerate(formats):
            side, nnz = sizes[
                (row + column) % 3
            ]  # each format, as source and target, at every size
            spec = make_spec(source, "float32", device=device, shape=(side, side))
            if format_.layout == "affine":
                spec = spec._replace(nbytes=side * side, code_dtype="uint8")
            elif not format_.is_dense:
                spec = spec._replace(nbytes=12 * nnz, nnz=nnz, index_dtype="int32")
            try:
                route = loaded.plan(spec, to=target, allow={"narrow", "host_round_trip"})
            except interop.errors.RefusedError:
                continue
            assert route.result.shape == spec.shape
            assert route.result.format == target
            routes += 1
    assert routes > len(formats) ** 2 / 2


def test_replanning_leaves_out_what_it_is_told(empty: Interop) -> None:
    """A step whose origin is in `without` is left out."""
    empty.register(
        toy("a"),
        toy("b"),
        view("a", "b", name="first"),
        view("a", "b", name="second", cost=Cost(2e-6)),
    )
    spec, request = make_spec("a", "float32", shape=(3,)), Request(("b",))
    route = empty._planner.route(spec, request)
    assert route is not None
    again = empty._planner.route(spec, request, frozenset({route[1][0].origin}))
    assert again is not None
    assert [s.label for s in again[1]] == ["second"]


def test_whether_memory_is_shared_does_not_depend_on_size(empty: Interop) -> None:
    """Of two routes that copy, the one that shares some memory wins at every size."""
    empty.register(toy("a"), toy("b"))
    keeps = copy("a", "b", shares=True, cost=Cost(1e-3, 1e6), name="keeps_values")
    empty.register(keeps, copy("a", "b", cost=Cost(1e-9, 1e12), name="all_fresh"))
    for n in (1, 10**3, 10**8):
        route = empty.plan(make_spec("a", "float32", shape=(n,)), to="b")
        assert labels(route) == ["keeps_values"]
        assert route.aliases
        assert not route.zero_copy


def test_memory_is_shared_by_way_of_a_format_of_the_requested_framework(empty: Interop) -> None:
    """Where bytes are copied anyway, a longer and slower way within it that shares some is taken."""
    empty.register(toy("a"), toy("b"), toy("b.x"), copy("a", "b", cost=Cost(1e-9), name="direct"))
    empty.register(view("a", "b.x"), copy("b.x", "b", cost=Cost(1.0), shares=True, name="partly"))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b")
    assert labels(route) == ["a_to_b.x", "partly"]


@pytest.mark.parametrize("slow", [1e-9, 1.0])
def test_memory_is_not_shared_by_way_of_an_unrequested_framework(
    empty: Interop, slow: float
) -> None:
    """Where bytes are copied anyway, a detour that shares some of them is not taken, at any cost."""
    empty.register(toy("a"), toy("b"), toy("third"))
    empty.register(
        copy("a", "b", cost=Cost(slow), name="direct"),
        view("a", "third", cost=Cost(1e-6)),
        copy("third", "b", cost=Cost(1e-6), shares=True),
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b")
    assert [step.label for step in route.steps] == ["direct"]


def test_any_device_of_a_type_means_where_the_value_is(loaded: Interop) -> None:
    """Of routes that are alike in all else, the one that keeps the number of the device is taken."""
    shape, nnz = (4096, 4096), 167_772
    spec = Spec("jax.bcoo", "complex128", "cuda:0", shape, nbytes=24 * nnz, nnz=nnz)
    route = loaded.plan(spec._replace(index_dtype="int32"), to="torch.sparse_csc", device="cuda")
    assert {step.after.device for step in route.steps} == {"cuda:0"}
