"""The planner is held to a model that tries everything: feasible, the best, and always the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from interop import Conversion, Cost, Format, make_spec
from interop.errors import RefusedError
from tests.trust.effort import SEED, cases, count
from tests.trust.reference import Reference, World, moves_of, world

#: The longest routes that the model tries.
MOST = 6


def check(one: World) -> bool:
    """Hold one plan to the model; tell whether there was a route."""
    model = Reference(one)
    best = model.best(MOST)
    try:
        route = one.plan()
    except RefusedError:
        assert best is None, f"the planner refuses, but {best.moves} leads there"
        return False
    moves = moves_of(route)
    taken = model.replayed(moves)
    assert taken is not None, f"{moves} is not permitted"
    assert model.arrives(taken), f"{moves} does not arrive"
    assert best is not None or len(moves) > MOST
    if best is not None:
        # The last item, the names, decides between sums that are equal to the last bit.
        assert taken.key[:-1] <= best.key[:-1], f"{moves} is not as good as {best.moves}"
        assert len(moves) > MOST or taken.key[:-1] == best.key[:-1]
    return True


@cases(200)
@given(st.randoms(use_true_random=False))
def test_the_route_is_the_best_of_all(rng: Random) -> None:
    """Whatever is registered and asked for, no route of all that there are is better."""
    one = world(rng)
    note(repr(one))
    try:
        check(one)
    except OverflowError:
        return


def test_the_route_is_the_best_in_large_worlds() -> None:
    """Of worlds drawn without regard to size, a good part has routes, and each is the best."""
    found = tried = 0
    for seed in range(SEED, SEED + count(2000)):
        try:
            found += check(world(Random(seed)))
            tried += 1
        except OverflowError:
            continue
        except AssertionError as error:
            error.add_note(f"seed {seed}: {world(Random(seed))}")
            raise
    assert found > tried / 5


def test_a_loss_need_not_take_long() -> None:
    """Where a loss is ahead that writes no bytes, no time for writing them is reckoned with."""
    graph = frozenset({"grad"})
    take: dict[str, Any] = {"takes": graph, "cost": Cost(1e-6)}
    detach = {"drops": graph, "effects": frozenset({"detach"})}
    dense = {"effects": frozenset({"densify"}), "cost": Cost(1e-6, 1e6)}
    one = World(
        tuple(Format(n, dtypes=frozenset({"float32"}), carries=graph - {n}) for n in "sacg"),
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
    assert [move.name for move in moves_of(one.plan())] == ["s_a", "a_g"]
    assert check(one)


@cases(200)
@given(st.randoms(use_true_random=False))
def test_the_order_of_registration_does_not_count(rng: Random) -> None:
    """The same declarations in another order give the same route or the same refusal."""
    one = world(rng)
    order = list(range(len(one.formats) + len(one.conversions)))
    rng.shuffle(order)
    assert _outcome(one) == _outcome(one, order)


def _outcome(one: World, order: list[int] | None = None) -> object:
    try:
        route = one.plan(order or ())
    except RefusedError as refusal:
        return sorted(refusal.effects)
    return moves_of(route), route.cost


def test_the_seed_of_hashes_does_not_count(in_subprocess: Callable[..., str]) -> None:
    """Processes whose sets are in another order find the same routes and write the same text."""
    program = """
        import json
        from random import Random
        from interop.errors import RefusedError
        from tests.trust.reference import moves_of, world
        found = []
        for seed in range(300):
            try:
                route = world(Random(seed)).plan()
                found.append([moves_of(route), route.explain()])
            except RefusedError as refusal:
                found.append(str(refusal))
        print(json.dumps(found))
    """
    told = [json.loads(in_subprocess(program, PYTHONHASHSEED=seed)) for seed in ("1", "2", "77")]
    assert told[0] == told[1] == told[2]
