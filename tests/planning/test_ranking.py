"""Ranking: the order of preference between routes."""

from __future__ import annotations

from itertools import permutations

from interop._planning.ranking import WORST, Effort, Rank, Sacrifice
from interop._planning.step import Step
from interop._registry.declared import HERE
from interop.plugin import make_spec


def rank(refused: int, sacrifice: tuple[float, bool, int, int], *effort: object) -> Rank:
    """Return a rank from plain numbers."""
    return Rank(refused, Sacrifice(0, *sacrifice), Effort(*effort))  # type: ignore[arg-type]


def test_a_rank_is_the_documented_order() -> None:
    """Ranks compare refusals, losses, copying, sharing, imports, order, time, steps and names."""
    nothing = (0, False, 0, 0)
    ordered = [
        rank(0, nothing, 0, 1.0, 2, ("a", "b")),
        rank(0, nothing, 0, 1.0, 2, ("a", "c")),
        rank(0, nothing, 0, 1.0, 3, ("a",)),
        rank(0, nothing, 0, 9.0, 1, ("a",)),
        rank(0, nothing, 1, 1.0, 1, ("a",)),
        rank(0, (0, False, 0, 1), 0, 1.0, 1, ("a",)),
        rank(0, (0, False, 1, 0), 0, 1.0, 1, ("a",)),
        rank(0, (0, True, 0, 0), 0, 1.0, 1, ("a",)),
        rank(0, (1, False, 0, 0), 0, 0.0, 0, ()),
        rank(1, nothing, 0, 0.0, 0, ()),
    ]
    assert sorted([*ordered[5:], *ordered[:5]]) == ordered
    assert max(route.sacrifice for route in ordered) < WORST


def step(label: str, **fields: object) -> Step:
    """Return a step of one second that shares memory."""
    before = make_spec("a", "float32", shape=(3, 4))
    plain = Step(label, HERE, before, before, frozenset(), 1.0, 0.0, False, True, print)
    return plain._replace(**fields)  # type: ignore[arg-type]


def test_a_rank_grows_with_every_step() -> None:
    """Each step adds to the fields of a rank, and none takes anything away."""
    gaps = make_spec("a", "float32", shape=(3, 4), traits={"noncontiguous"})
    steps = [
        step("view"),
        step("detach", effects=frozenset({"detach", "copy"}), writes=True, aliases=False),
        step("pack", writes=True, before=gaps),
    ]
    for order in permutations(steps):
        extended = Rank()
        for addition in order:
            longer = extended.extended(addition, refused=addition.label == "view", imports=True)
            assert extended < longer
            assert extended.dominates(longer)
            assert not longer.dominates(extended)
            extended = longer
        assert extended.refused == 1
        assert extended.sacrifice == Sacrifice(0, 1, True, 1, 3)
        assert (extended.effort.reorders, extended.effort.steps) == (1, 3)
        assert extended.effort.names == tuple(chosen.label for chosen in order)


def test_memory_shared_by_a_detour_ranks_below_memory_of_its_own() -> None:
    """Where bytes are copied, a detour that shares some of them is the worst."""
    shared = Rank().extended(step("copy", writes=True), 0, False)
    fresh = Rank().extended(step("copy", writes=True, aliases=False), 0, False)
    assert shared < fresh < shared.by_detour()
