"""Ranking: the order of preference between routes."""

from __future__ import annotations

from itertools import permutations

from interop._model.provenance import HERE
from interop._planning.ranking import Rank
from interop._planning.step import Step
from interop.plugin import make_spec


def test_a_rank_is_the_documented_order() -> None:
    """Ranks compare refusals, losses, copying, sharing, imports, order, time, steps and names."""
    quick = Rank(seconds=1.0, steps=2, names=("a", "b"))
    ordered = [
        quick,
        quick._replace(names=("a", "c")),
        quick._replace(steps=3, names=("a",)),
        quick._replace(seconds=9.0, steps=1),
        quick._replace(reorders=1, steps=1),
        quick._replace(imports=1, steps=1),
        quick._replace(sharing=1, steps=1),
        quick._replace(copied=True, steps=1),
        Rank(losses=1),
        Rank(third_parties=1),
        Rank(refused=1),
    ]
    assert sorted([*ordered[5:], *ordered[:5]]) == ordered


def step(label: str, **fields: object) -> Step:
    """Return a step of one second that shares memory."""
    before = make_spec("a", "float32", shape=(3, 4))
    plain = Step(label, HERE, before, before, frozenset(), 1.0, 0.0, False, True, print)
    return plain._replace(**fields)  # type: ignore[arg-type]


def test_a_rank_grows_with_every_step() -> None:
    """Each step adds to the fields of a rank, and none takes anything away."""
    steps = [
        step("view"),
        step("detach", effects=frozenset({"detach", "copy"}), writes=True, aliases=False),
        step("pack", writes=True),
    ]
    for order in permutations(steps):
        extended = Rank()
        for addition in order:
            label = addition.label
            longer = extended.extended(
                addition, refused=label == "view", imports=True, reorders=label == "pack"
            )
            assert extended < longer
            extended = longer
        assert extended._replace(seconds=0.0, names=()) == Rank(
            1, 0, 1, 0, 0, True, 1, 3, 1, 0.0, 3
        )
        assert extended.names == tuple(chosen.label for chosen in order)


def test_memory_shared_by_a_detour_ranks_below_memory_of_its_own() -> None:
    """Where bytes are copied, a detour that shares some of them is the worst."""
    shared = Rank().extended(step("copy", writes=True), 0, False)
    fresh = Rank().extended(step("copy", writes=True, aliases=False), 0, False)
    assert shared < fresh < shared.by_detour()
