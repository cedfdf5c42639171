"""Derived effects and traits: those that follow from a conversion's formats, or from specs."""

from __future__ import annotations

from collections.abc import Set

from interop._model.conversion import Conversion
from interop._model.dtype import preserves
from interop._model.format import Format
from interop._model.spec import ATTRIBUTES, LABELLED, Spec

#: The traits of memory that must not be written to.
WRITE_LOCKS = frozenset({"readonly", "immutable"})


def complete(conversion: Conversion, source: Format, target: Format) -> Conversion:
    """Return a conversion with the effects that follow from its formats, and from its `changes`.

    One that shares memory between devices that reach the same moves no bytes.
    A wrapper as the target adds neither `densify` nor `materialize`: it is as sparse and as lazy as
    the value in it.
    """
    moves = "device" in conversion.changes and not conversion.shares
    effects = {"transfer"} if moves else set()
    if target.wrapper is None:
        if source.is_sparse and target.is_dense:
            effects.add("densify")
        if source.lazy and not target.lazy:
            effects.add("materialize")
    if effects <= conversion.effects:
        return conversion
    return conversion._replace(effects=conversion.effects | effects)


def derived_effects(
    before: Spec, after: Spec, target: Format, *, safe: bool, aliases: bool
) -> frozenset[str]:
    """Return the effects of a step that follow from the specs before and after it.

    `safe` says that no cast loses anything that the caller has not consented to. `aliases` says
    that the result shares the value's memory.
    """
    effects: frozenset[str] = frozenset()
    if not safe and _narrows(before, after):
        effects |= {"narrow"}
    if not (LABELLED | ATTRIBUTES).isdisjoint(before.traits - after.traits):
        effects |= {"drop_labels"}
    if aliases and WRITE_LOCKS.isdisjoint(target.carries):
        if "immutable" in before.traits:
            effects |= {"alias_immutable"}
        elif "readonly" in before.traits:
            effects |= {"share_readonly"}
    return effects


def _narrows(before: Spec, after: Spec) -> bool:
    """Return whether a step may lose numbers."""
    if "mixed" in before.traits - after.traits:
        return True
    return after.dtype != before.dtype and not preserves(before.dtype, after.dtype)


def shared_traits(
    traits: frozenset[str], carries: Set[str], *, within: bool = False
) -> frozenset[str]:
    """Return the traits of a result that shares the value's memory, in a format that carries some.

    Memory that never changes becomes read-only in a target that has such a flag, except `within`
    one framework. Flags that the target cannot carry are lost; the policy decides whether they may
    be.
    """
    if "immutable" in traits and "readonly" in carries and not within:
        traits |= {"readonly"}
    return traits - (WRITE_LOCKS - carries)
