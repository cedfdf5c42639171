"""What follows from the specs before and after a step: its derived effects, and its traits."""

from __future__ import annotations

from collections.abc import Set

from interop._model.dtype import preserves
from interop._model.format import Format
from interop._model.spec import LABELLED, Spec

#: The traits of memory that must not be written to.
LOCKED = frozenset({"readonly", "immutable"})

#: The dtypes in which numbers without one of their own may arrive, by the dtypes they are given.
_WEAKER = {"int64": "int32", "float64": "float32", "complex128": "complex64"}

#: The flags of memory that only some targets can carry.
_FLAGS = LOCKED | {"pinned"}


def derived_effects(
    before: Spec, after: Spec, target: Format, *, consented: bool, aliases: bool
) -> frozenset[str]:
    """Return the effects, which nobody declares, of a step from one spec to another.

    `consented` says that the caller named the dtype, so that a cast to it is no loss; `aliases`
    that the result shares the value's memory.
    """
    effects: frozenset[str] = frozenset()
    if not consented and _narrows(before, after):
        effects |= {"narrow"}
    if not LABELLED.isdisjoint(before.traits - after.traits):
        effects |= {"drop_labels"}
    if aliases and LOCKED.isdisjoint(target.carries):
        if "immutable" in before.traits:
            effects |= {"alias_immutable"}
        elif "readonly" in before.traits:
            effects |= {"share_readonly"}
    return effects


def _narrows(before: Spec, after: Spec) -> bool:
    """Tell whether a step may lose numbers."""
    if "mixed" in before.traits - after.traits:
        return True
    if "weak" in before.traits and after.dtype == _WEAKER.get(before.dtype or ""):
        return False
    return after.dtype != before.dtype and not preserves(before.dtype, after.dtype)


def shared_traits(
    traits: frozenset[str], carries: Set[str], *, within: bool = False
) -> frozenset[str]:
    """Return `traits` as they stand when a target that can carry some shares the memory.

    Memory that never changes is flagged read-only where the target can say so, and the flags that
    the target cannot carry are gone: whether that is permitted is the policy's business. Within
    one framework memory is flagged as it was.
    """
    if "immutable" in traits and "readonly" in carries and not within:
        traits |= {"readonly"}
    return traits - (_FLAGS - carries)
