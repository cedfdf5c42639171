"""The planner, on toy frameworks, from specs alone."""

from __future__ import annotations

import itertools

import pytest

import interop
from interop import Conversion, Cost, Interop, make_spec
from interop._planning.bound import EACH
from interop._planning.planner import Planner
from interop._planning.search import Label
from interop.errors import RefusedError
from interop.plugin import Limits, Result
from tests.toys import copy, toy, view


def labels(route: interop.Route) -> list[str]:
    """Return the names of a route's steps."""
    return [step.label for step in route.steps]


def test_the_value_that_is_what_was_asked_for_needs_no_step(empty: Interop) -> None:
    """Same format, no further wish: the route has no step and copies nothing."""
    empty.register(toy("a"))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="a")
    assert route.steps == ()
    assert route.zero_copy
    assert route.aliases


def test_a_longer_way_without_a_copy_beats_a_shorter_one_with(empty: Interop) -> None:
    """No bytes copied comes before estimated time and before the number of steps."""
    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(
        copy("a", "c", cost=Cost(1e-9, 1e15)),
        view("a", "b", cost=Cost(1e-3)),
        view("b", "c", cost=Cost(1e-3)),
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert labels(route) == ["a_to_b", "b_to_c"]


def test_of_two_copies_the_faster_for_this_size_wins(empty: Interop) -> None:
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


def test_a_trait_nobody_takes_is_refused_and_named(empty: Interop) -> None:
    """A conversion takes only the traits that it names."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,), traits={"entangled"})
    with pytest.raises(interop.errors.RefusedError, match="'entangled'"):
        empty.plan(spec, to="b")


def test_a_trait_that_the_target_could_carry_must_still_be_taken(empty: Interop) -> None:
    """That both ends know a trait does not mean that the step between them keeps it."""
    entangled = frozenset({"entangled"})
    empty.register(toy("a", carries=entangled), toy("b", carries=entangled), view("a", "b"))
    spec = make_spec("a", "float32", shape=(3,), traits={"entangled"})
    with pytest.raises(
        interop.errors.RefusedError, match="cannot take a value with the trait 'entangled'"
    ):
        empty.plan(spec, to="b")
    empty.register(view("a", "b", takes=entangled, name="careful"))
    assert labels(empty.plan(spec, to="b")) == ["careful"]


def test_copy_false_is_enforced_over_the_whole_route(empty: Interop) -> None:
    """One copying step anywhere refuses the route, and the message names step and keyword."""
    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    spec = make_spec("a", "float32", shape=(3,))
    with pytest.raises(
        interop.errors.RefusedError, match=r"copy_b_to_c.*'copy'.*leave out copy=False"
    ) as info:
        empty.plan(spec, to="c", copy=False)
    assert info.value.effects == {"copy"}


def test_copy_true_asks_for_fresh_memory_where_it_is_cheapest(empty: Interop) -> None:
    """A view alone will not do; of two places to copy, the cheaper is taken, once."""
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


def test_a_narrowing_cast_needs_consent(empty: Interop) -> None:
    """A target without the dtype is refused as narrow, unless allowed or asked for by dtype=."""
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float32"})))
    empty.register(view("a", "b"), copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    spec = make_spec("a", "float64", shape=(3,))
    with pytest.raises(interop.errors.RefusedError, match=r"allow=\{'narrow'\} or dtype='float32'"):
        empty.plan(spec, to="b")
    assert empty.plan(spec, to="b", allow="narrow").result.dtype == "float32"
    assert "narrow" not in empty.plan(spec, to="b", dtype="float32").effects


def test_what_a_device_lacks_needs_consent_too(empty: Interop) -> None:
    """A dtype that the target holds elsewhere, but not on that device, is narrowed or refused."""
    empty.register(
        toy("a", devices=("cpu", "mps"), limits=Limits(unsupported={"mps": frozenset({"float64"})}))
    )
    move = copy(
        "a", "a", name="move", changes=frozenset({"device"}), effects=frozenset({"transfer"})
    )
    empty.register(move, copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    spec = make_spec("a", "float64", shape=(3,))
    with pytest.raises(interop.errors.RefusedError, match=r"allow=\{'narrow'\} or dtype='float32'"):
        empty.plan(spec, to="a", device="mps")
    route = empty.plan(spec, to="a", device="mps", dtype="float32")
    assert labels(route) == ["cast", "move"]


def test_a_lossless_widening_needs_none(empty: Interop) -> None:
    """A target without the dtype gets the narrowest one that holds every value."""
    empty.register(toy("a"), toy("b", dtypes=frozenset({"float32", "float64"})))
    empty.register(view("a", "b"), copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")
    assert route.result.dtype == "float32"
    assert route.effects == {"copy"}


def test_bits_are_carried_through_a_format_without_the_dtype(empty: Interop) -> None:
    """bfloat16 crosses a hand-off that knows only uint16, and arrives as bfloat16, uncopied."""
    empty.register(toy("a"), toy("b"), view("a", "b", dtypes=frozenset({"uint16"})))
    empty.register(
        view("a", "a", result=Result(bits="pack"), name="pack"),
        view("b", "b", result=Result(bits="unpack"), name="unpack"),
    )
    route = empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")
    assert labels(route) == ["pack", "a_to_b", "unpack"]
    assert route.result.dtype == "bfloat16"
    assert route.zero_copy


def test_carried_bits_never_reach_the_user(empty: Interop) -> None:
    """Without a way to take the bits up again, there is no route."""
    empty.register(toy("a"), toy("b"), view("a", "b", dtypes=frozenset({"uint16"})))
    empty.register(view("a", "a", result=Result(bits="pack"), name="pack"))
    with pytest.raises(interop.errors.RefusedError, match="bfloat16"):
        empty.plan(make_spec("a", "bfloat16", shape=(3,)), to="b")


def test_read_only_memory_is_copied_rather_than_shared_unflagged(empty: Interop) -> None:
    """By default read-only memory is not shared with a target that cannot carry the flag."""
    takes = frozenset({"readonly", "immutable"})
    empty.register(
        toy("a", carries=takes), toy("b"), view("a", "b", takes=takes), copy("a", "b", takes=takes)
    )
    spec = make_spec("a", "float32", shape=(3,), traits={"readonly"})
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    shared = empty.plan(spec, to="b", allow={"share_readonly"})
    assert labels(shared) == ["a_to_b"]
    assert shared.effects == {"share_readonly"}
    with pytest.raises(interop.errors.RefusedError, match="share_readonly"):
        empty.plan(spec, to="b", copy=False)


def test_immutable_memory_is_shared_unless_forbidden(empty: Interop) -> None:
    """An immutable framework's memory is shared by default, and the effect is shown."""
    takes = frozenset({"immutable"})
    empty.register(
        toy("a", carries=takes), toy("b"), view("a", "b", takes=takes), copy("a", "b", takes=takes)
    )
    spec = make_spec("a", "float32", shape=(3,), traits={"immutable"})
    assert empty.plan(spec, to="b").effects == {"alias_immutable"}
    assert labels(empty.plan(spec, to="b", forbid={"alias_immutable"})) == ["copy_a_to_b"]


def test_a_round_trip_over_the_host_is_refused(empty: Interop) -> None:
    """Device to host to device is possible and refused until it is allowed."""
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
    with pytest.raises(interop.errors.RefusedError, match="host_round_trip"):
        empty.plan(spec, to="b")
    route = empty.plan(spec, to="b", allow="host_round_trip")
    assert labels(route) == ["move_a", "a_to_b", "move_b"]
    assert route.result.device == "cuda:0"


def test_data_stay_where_they_are_unless_the_target_cannot_live_there(empty: Interop) -> None:
    """No device asked for: the value's own, or else the target's first."""
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
    """Of several acceptable formats the preferred route decides."""
    empty.register(toy("a"), toy("b"), toy("c"), copy("a", "b"), view("a", "c"))
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to=["b", "c"]).result.format == "c"


def test_the_name_of_a_framework_without_a_dense_format_means_any_of_its(empty: Interop) -> None:
    """``to="b"`` takes the cheapest of b.x and b.y, but exactly b where that exists."""
    empty.register(toy("a"), toy("b.x"), toy("b.y"), copy("a", "b.x"), view("a", "b.y"))
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b.y"
    empty.register(toy("b"), copy("a", "b"))
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b"


def test_conversions_from_a_protocol_serve_every_format_that_speaks_it(empty: Interop) -> None:
    """One consumer of a protocol and one producer make a hand-off neither knows of."""
    empty.register(
        toy("a", exports={"proto": frozenset({"float32"})}), toy("b"), toy("proto", types=())
    )
    empty.register(view("proto", "b"))
    assert labels(empty.plan(make_spec("a", "float32", shape=(3,)), to="b")) == ["proto_to_b"]
    with pytest.raises(interop.errors.RefusedError, match="float64"):
        empty.plan(make_spec("a", "float64", shape=(3,)), to="b")


def test_ties_are_broken_by_name_whatever_the_order_of_registration() -> None:
    """Equal routes in any order of registration give the same choice."""
    chosen = set()
    ways = [view("a", "b", name="one"), view("a", "b", name="two", takes=frozenset({"grad"}))]
    for order in itertools.permutations(ways):
        mine = Interop(plugins=False)
        mine.register(
            toy("a"), toy("b"), *(w._replace(ndims=frozenset({1, i})) for i, w in enumerate(order))
        )
        chosen.add(tuple(labels(mine.plan(make_spec("a", "float32", shape=(3,)), to="b"))))
    assert chosen == {("one",)}


def test_a_longer_way_than_the_slack_is_found_when_nothing_else_is_feasible(empty: Interop) -> None:
    """The limit on hand-offs is dropped rather than failing."""
    names = "abcdef"
    empty.register(*(toy(n) for n in names), *(view(x, y) for x, y in itertools.pairwise(names)))
    empty.register(view("a", "f", name="closed", requires=frozenset({"never"})))
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="f")
    assert len(route.steps) == 5


def test_formats_whose_framework_is_missing_are_not_passed_through(empty: Interop) -> None:
    """An intermediate format needs its framework; a target may be planned without it."""
    empty.register(toy("a"), toy("b", requires="no_such_framework"), toy("c"))
    empty.register(view("a", "b"), view("b", "c"))
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(make_spec("a", "float32", shape=(3,)), to="c")
    assert empty.plan(make_spec("a", "float32", shape=(3,)), to="b").result.format == "b"
    from tests.toys import Box

    with pytest.raises(interop.errors.NotInstalledError, match="no_such_framework"):
        empty.convert(Box("a", [1.0]), to="b")


def test_a_framework_nobody_asked_for_is_imported_only_for_a_reason(empty: Interop) -> None:
    """A quicker way through a framework not yet imported loses to a slower one without it."""
    # turtledemo stands for a framework that is installed and not imported.
    empty.register(toy("a"), toy("b"), toy("c", requires="turtledemo"))
    empty.register(copy("a", "b", cost=Cost(1e-3, 1e6)), copy("a", "c"), copy("c", "b"))
    spec = make_spec("a", "float32", shape=(1000,))
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    empty.register(view("a", "c"), view("c", "b"))
    assert labels(empty.plan(spec, to="b")) == ["a_to_c", "c_to_b"]


def test_the_label_is_the_documented_order() -> None:
    """Refusals, losses, copying, sharing, imports, turning, time, steps and names, in this order."""
    ordered = [
        Label(0, 0, False, 0, 0, 0, 1.0, 2, ("a", "b")),
        Label(0, 0, False, 0, 0, 0, 1.0, 2, ("a", "c")),
        Label(0, 0, False, 0, 0, 0, 1.0, 3, ("a",)),
        Label(0, 0, False, 0, 0, 0, 9.0, 1, ("a",)),
        Label(0, 0, False, 0, 0, 1, 1.0, 1, ("a",)),
        Label(0, 0, False, 0, 1, 0, 1.0, 1, ("a",)),
        Label(0, 0, False, 1, 0, 0, 1.0, 1, ("a",)),
        Label(0, 0, True, 0, 0, 0, 1.0, 1, ("a",)),
        Label(0, 1, False, 0, 0, 0, 0.0, 0, ()),
        Label(1, 0, False, 0, 0, 0, 0.0, 0, ()),
    ]
    assert sorted(ordered) == ordered


GAPS = frozenset({"noncontiguous"})
CAST = {"takes": GAPS, "changes": frozenset({"dtype"})}
KEPT = {"name": "cast_in_order", "requires": GAPS, "adds": GAPS, "cost": Cost(1e-3)}


@pytest.mark.parametrize("dear", ["cast", "cast_in_order"])
def test_an_order_is_kept_whatever_it_costs(empty: Interop, dear: str) -> None:
    """Where a format has strides, a cast keeps the order; where it has none, it does not."""
    strided = toy("a", carries=GAPS, dtypes=frozenset({"float32", "float64"}))
    empty.register(strided, toy("b", dtypes=frozenset({"float32", "float64"})))
    costs = {"cast": Cost(1e-9), "cast_in_order": Cost(1e-9), dear: Cost(1e-3)}
    empty.register(
        copy("a", "a", name="cast", **{**CAST, "cost": costs["cast"]}),
        copy("a", "a", **{**CAST, **KEPT, "cost": costs["cast_in_order"]}),
        view("a", "b"),
    )
    for traits, kept in ((GAPS, "cast_in_order"), (frozenset(), "cast")):
        spec = make_spec("a", "float32", shape=(3, 4), traits=traits)
        assert labels(empty.plan(spec, to="a", dtype="float64")) == [kept]
        assert labels(empty.plan(spec, to="b", dtype="float64")) == ["cast", "a_to_b"]


def test_a_cast_that_keeps_the_order_is_no_copy(empty: Interop) -> None:
    """Asked for memory of its own and no other dtype, a value is copied and not cast in order."""
    empty.register(toy("a", carries=GAPS))
    empty.register(
        copy("a", "a", name="copy", takes=GAPS, cost=Cost(1e-3)),
        copy("a", "a", **{**CAST, **KEPT, "cost": Cost(1e-9)}),
    )
    spec = make_spec("a", "float32", shape=(3, 4), traits=GAPS)
    assert labels(empty.plan(spec, to="a", copy=True)) == ["copy"]


def test_planning_agrees_with_brute_force(empty: Interop) -> None:
    """On every small random graph the search finds what enumerating all simple ways finds."""
    import random

    rng = random.Random(7)
    for _ in range(60):
        mine = Interop(plugins=False)
        names = "abcde"
        edges: list[Conversion] = []
        for source, target in itertools.permutations(names, 2):
            if rng.random() < 0.5:
                cost = Cost(rng.randint(1, 9) * 1e-6, 1e9)
                make = copy if rng.random() < 0.4 else view
                edges.append(
                    make(source, target, cost=cost if make is copy else Cost(cost.latency))
                )
        mine.register(*(toy(n) for n in names), *edges)
        assert _planned(mine) == _brute_force(edges)


def _planned(mine: Interop) -> tuple[str, ...] | None:
    try:
        return tuple(labels(mine.plan(make_spec("a", "float32", shape=(1000,)), to="e")))
    except interop.errors.RefusedError:
        return None


def _brute_force(edges: list[Conversion]) -> tuple[str, ...] | None:
    ways: list[list[Conversion]] = []

    def walk(at: str, way: list[Conversion]) -> None:
        if at == "e":
            ways.append(way)
            return
        for edge in edges:
            if edge.source == at and all(edge.target not in (w.source, w.target) for w in way):
                walk(edge.target, [*way, edge])

    walk("a", [])
    if not ways:
        return None
    shortest = min(map(len, ways))
    near = [way for way in ways if len(way) <= shortest + 2]
    spec = make_spec("a", "float32", shape=(1024,))

    def key(way: list[Conversion]) -> tuple[object, ...]:
        seconds = sum(e.cost.seconds(spec, spec) for e in way)
        names = tuple(e.name for e in way)
        seconds += EACH * len(way)
        return any("copy" in e.effects for e in way), round(seconds, 12), len(way), names

    return tuple(e.name for e in min(near, key=key))


def test_a_plan_can_be_read_at_every_size(loaded: Interop) -> None:
    """What was chosen for a class of specs can be drawn up for each of them, for every pair."""
    formats = {known.name: known.format for known in loaded.formats()}
    for source, one in formats.items():
        for side, nnz in ((0, 0), (40, 50), (10**5, 10**8)):
            device = one.devices[0] if one.devices[0] == "cpu" else f"{one.devices[0]}:0"
            spec = make_spec(source, "float32", device=device, shape=(side, side))
            if one.layout == "affine":
                spec = spec._replace(nbytes=side * side, code_dtype="uint8")
            elif not one.is_dense:
                spec = spec._replace(nbytes=12 * nnz, nnz=nnz, index_dtype="int32")
            for target in formats:
                try:
                    route = loaded.plan(spec, to=target)
                except interop.errors.RefusedError:
                    continue
                assert route.result.shape == spec.shape
                assert route.result.format == target


def test_replanning_leaves_out_what_it_is_told(empty: Interop) -> None:
    """A step named in `without` is not used again."""
    empty.register(
        toy("a"),
        toy("b"),
        view("a", "b", name="first"),
        view("a", "b", name="second", cost=Cost(2e-6)),
    )
    planner: Planner = empty._planner
    spec, request = make_spec("a", "float32", shape=(3,)), empty._requests.get("b")
    found = planner.route(spec, request)
    assert found is not None
    again = planner.route(spec, request, frozenset({found[1][0].place}))
    assert again is not None
    assert [s.label for s in again[1]] == ["second"]


def test_whether_memory_is_shared_does_not_depend_on_size(empty: Interop) -> None:
    """Of two routes that copy, the one that shares something wins at every size."""
    empty.register(toy("a"), toy("b"))
    keeps = copy("a", "b", shares=True, cost=Cost(1e-3, 1e6), name="keeps_values")
    empty.register(keeps, copy("a", "b", cost=Cost(1e-9, 1e12), name="all_fresh"))
    for n in (1, 10**3, 10**8):
        route = empty.plan(make_spec("a", "float32", shape=(n,)), to="b")
        assert labels(route) == ["keeps_values"]
        assert route.aliases
        assert not route.zero_copy


@pytest.mark.parametrize("slow", [1e-9, 1.0])
def test_memory_is_not_shared_by_way_of_a_framework_nobody_asked_for(
    empty: Interop, slow: float
) -> None:
    """Where bytes are copied anyway, a detour that saves some of them is none, whatever it costs."""
    empty.register(toy("a"), toy("b"), toy("third"))
    empty.register(
        copy("a", "b", cost=Cost(slow), name="direct"),
        view("a", "third", cost=Cost(1e-6)),
        copy("third", "b", cost=Cost(1e-6), shares=True),
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b")
    assert [step.label for step in route.steps] == ["direct"]


def test_what_is_not_passable_is_passed_through_only_where_there_is_no_other_way(
    empty: Interop,
) -> None:
    """A framework that is no help to others is a way station of nobody else's, but of its own."""
    empty.register(toy("a"), toy("b"), toy("c"), toy("m", transit=False), toy("m.x"))
    empty.register(view("a", "m", cost=Cost(1e-9)), view("m", "b", cost=Cost(1e-9)))
    empty.register(view("m.x", "m"), view("m", "c"))
    spec = make_spec("a", "float32", shape=(3,))
    assert labels(empty.plan(spec, to="b")) == ["a_to_m", "m_to_b"]
    empty.register(copy("a", "b"))
    assert labels(empty.plan(spec, to="b")) == ["copy_a_to_b"]
    own = make_spec("m.x", "float32", shape=(3,))
    assert labels(empty.plan(own, to="b")) == ["m.x_to_m", "m_to_b"]
    assert labels(empty.plan(spec, to="m")) == ["a_to_m"]


def test_axes_that_a_target_does_not_have(empty: Interop) -> None:
    """A format that holds so many axes only is no target for others, and names the format that is."""
    empty.register(
        toy("a"), toy("b", ndims=frozenset({1})), toy("b.plane", ndims=frozenset({2, 3}))
    )
    empty.register(view("a", "b"), view("a", "b.plane"), toy("b.gone"))
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


def test_locked_memory_is_not_opened_by_way_of_an_immutable_framework(empty: Interop) -> None:
    """That a framework on the way changes nothing does not unlock memory its owner had locked."""
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
    with pytest.raises(RefusedError, match="share_readonly"):
        empty.plan(locked, to="b")
    assert empty.plan(locked, to="b", allow="share_readonly").effects == {"share_readonly"}
    plain = make_spec("a", "float32", shape=(3,))
    assert empty.plan(plain, to="b").effects == {"alias_immutable"}
    assert empty.plan(plain, to="m.x").result.traits == {"immutable"}  # flagged as it was
