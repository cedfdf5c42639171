"""The planner, held to a model that tries every route: permitted, the best, always the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from interop import Conversion, Cost, Format
from interop.errors import RefusedError
from interop.plugin import make_spec
from interop.plugin.advanced import Advanced
from tests.properties.effort import SEED, cases, count
from tests.properties.reference import Reference, World, moves_of, world

#: The longest routes that the model tries.
MOST = 6


def check(drawn: World) -> bool:
    """Hold one plan to the model; tell whether there was a route."""
    model = Reference(drawn)
    best = model.best(MOST)
    try:
        route = drawn.plan()
    except RefusedError:
        assert best is None, f"the planner refuses, but {best.moves} leads there"
        return False
    moves = moves_of(route)
    way = model.replayed(moves)
    assert way is not None, f"{moves} is not permitted"
    assert model.arrives(way), f"{moves} does not arrive"
    assert best is not None or len(moves) > MOST
    if best is not None:
        # The last item, the names, decides between sums that are equal to the last bit.
        assert way.key[:-1] <= best.key[:-1], f"{moves} is not as good as {best.moves}"
        assert len(moves) > MOST or way.key[:-1] == best.key[:-1]
    return True


@cases(100)
@given(st.randoms(use_true_random=False))
def test_the_route_is_the_best_of_all(rng: Random) -> None:
    """Whatever is registered and requested, no route is better than the planned one."""
    drawn = world(rng)
    note(repr(drawn))
    try:
        check(drawn)
    except OverflowError:
        return


@pytest.mark.slow
def test_the_route_is_the_best_in_large_worlds() -> None:
    """In worlds of any size, many requests have a route, and each planned route is the best."""
    routes = tried = 0
    for seed in range(SEED, SEED + count(2000)):
        try:
            routes += check(world(Random(seed)))
            tried += 1
        except OverflowError:
            continue
        except AssertionError as error:
            error.add_note(f"seed {seed}: {world(Random(seed))}")
            raise
    assert routes > tried / 5


def test_a_loss_need_not_take_long() -> None:
    """If a loss that lies ahead writes no bytes, the bound reckons with no time for writing."""
    graph, hub = frozenset({"grad"}), Advanced(hub=True)
    take: dict[str, Any] = {"takes": graph, "cost": Cost(1e-6)}
    detach = {"drops": graph, "effects": frozenset({"detach"})}
    dense = {"effects": frozenset({"densify"}), "cost": Cost(1e-6, 1e6)}
    trap = World(
        tuple(Format(n, dtypes={"float32"}, carries=graph - {n}, advanced=hub) for n in "sacg"),
        (
            Conversion("s", "a", print, name="s_a", **take),
            Conversion("a", "g", print, name="a_g", **take, **detach),
            Conversion("s", "c", print, name="s_c", **{**take, **detach, "cost": Cost(1e-4)}),
            Conversion("c", "g", print, name="c_g", **take),
            Conversion("c", "a", print, name="c_a", **{**take, **dense}),
        ),
        make_spec("s", "float32", shape=(2**18,), traits=graph),
        ("g",),
        {"forbid": ()},
    )
    assert [move.name for move in moves_of(trap.plan())] == ["s_a", "a_g"]
    assert check(trap)


def test_the_order_of_registration_does_not_matter() -> None:
    """The same declarations in another order give the same route or the same refusal."""
    for seed in range(SEED, SEED + count(400)):
        rng = Random(seed)
        drawn = world(rng)
        order = list(range(len(drawn.formats) + len(drawn.conversions)))
        rng.shuffle(order)
        assert _outcome(drawn) == _outcome(drawn, order), f"seed {seed}: {drawn}"


def _outcome(drawn: World, order: list[int] | None = None) -> object:
    try:
        route = drawn.plan(order or ())
    except RefusedError as refusal:
        return sorted(refusal.effects)
    return moves_of(route), route.cost


def test_the_seed_of_hashes_does_not_matter(in_subprocess: Callable[..., str]) -> None:
    """Processes whose sets are in different orders find the same routes and give the same texts."""
    program = """
        import json
        from random import Random
        from interop.errors import RefusedError
        from tests.properties.reference import moves_of, world
        outcomes = []
        for seed in range(300):
            try:
                route = world(Random(seed)).plan()
                outcomes.append([moves_of(route), route.explain()])
            except RefusedError as refusal:
                outcomes.append(str(refusal))
        print(json.dumps(outcomes))
    """
    seeds = ("1", "2", "77")
    outcomes = [json.loads(in_subprocess(program, PYTHONHASHSEED=seed)) for seed in seeds]
    assert outcomes[0] == outcomes[1] == outcomes[2]
