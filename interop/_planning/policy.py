"""Policy: the effects a conversion may have, and the blocks that change it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

from interop._model.dialect import keyword
from interop._model.effect import EFFECTS
from interop._model.suggestion import listed, suggestion
from interop._model.typing import EffectNames
from interop.errors import BadRequestError

_ALLOWED = frozenset(name for name, effect in EFFECTS.items() if effect.allowed)


class Policy(NamedTuple):
    """The effects a conversion may have.

    Parameters
    ----------
    permitted : frozenset of str
    forbidden : frozenset of str
        The effects that callers have forbidden by name. Whoever asks for a dtype consents to
        narrowing, unless that is forbidden by name.
    """

    permitted: frozenset[str] = _ALLOWED
    forbidden: frozenset[str] = frozenset()


class Block(NamedTuple):
    """The sum of the ``with`` blocks around a call of this thread or task."""

    policy: Policy = Policy()
    trace: Any = None  # the `Trace` that takes the receipts, if a ``trace`` block is open


#: The innermost block of this thread or task; None outside of all.
block: ContextVar[Block | None] = ContextVar("interop_block", default=None)


def is_traced() -> bool:
    """Tell whether conversions leave receipts, here and now."""
    innermost = block.get()
    return innermost is not None and innermost.trace is not None


def reusable(
    names: str | Iterable[str] | None, name: str
) -> str | tuple[str, ...] | frozenset[str]:
    """Return names of effects so that they can be gone through more than once."""
    if isinstance(names, (str, tuple, frozenset)):
        return names
    try:
        if isinstance(names, Mapping):  # {"narrow": False} would permit it
            raise TypeError
        return frozenset(names or ())
    except TypeError:
        msg = f"{keyword(name, names)} does not name effects; {_choices(name)}"
        raise BadRequestError(msg) from None


def effect_names(names: str | Iterable[str] | None, name: str) -> frozenset[str]:
    """Return `names` as a set of effects, refusing any that is not an effect."""
    several = reusable(names, name)
    effects = frozenset((several,) if isinstance(several, str) else several)
    unknown = sorted(effects - EFFECTS.keys(), key=str)
    if unknown:
        parts = frozenset(re.split(r"\W+", str(unknown[0])))
        if parts <= EFFECTS.keys():
            move = f"write several as {keyword(name, parts)}."
        else:
            move = suggestion(unknown[0], EFFECTS.keys(), _choices(name))
        msg = f"{keyword(name, unknown[0])} is not an effect; {move}"
        raise BadRequestError(msg)
    return effects


def _choices(name: str) -> str:
    """Return the effects for which ``allow=`` or ``forbid=`` changes the default."""
    state, allowed = ("permitted", True) if name == "forbid" else ("refused", False)
    names = [effect.name for effect in EFFECTS.values() if effect.allowed is allowed]
    return f"the effects {state} by default are {listed(names)}."


def adjusted(
    base: Policy, allow: str | Iterable[str] | None, forbid: str | Iterable[str] | None
) -> Policy:
    """Return `base` with some effects added and others taken away."""
    allowed, forbidden = effect_names(allow, "allow"), effect_names(forbid, "forbid")
    contradictory = sorted(allowed & forbidden)
    if contradictory:
        msg = (
            f"{contradictory[0]!r} is both allowed and forbidden; name it in one of "
            f"{keyword('allow')} and {keyword('forbid')}."
        )
        raise BadRequestError(msg)
    policy = Policy((base.permitted | allowed) - forbidden, (base.forbidden - allowed) | forbidden)
    return _unique(policy)


@lru_cache(64)
def _unique(policy: Policy) -> Policy:
    """Return one object for equal policies, because sets are slow to compare as keys."""
    return policy


def current_policy() -> Policy:
    """Return the policy in force in this thread or task."""
    return (block.get() or Block()).policy


@contextmanager
def policy(allow: EffectNames = (), forbid: EffectNames = ()) -> Iterator[Policy]:
    """Change, inside a ``with`` block, which effects conversions may have.

    The policy belongs to the current thread or asyncio task, and to the tasks that are started
    inside the block. Blocks nest: the innermost block that names an effect decides. The keywords of
    a call overrule the blocks around it.

    Parameters
    ----------
    allow, forbid : str or iterable of str
        Names of effects (see :data:`EFFECTS`).

    Yields
    ------
    Policy
        The policy in force inside the block.

    Raises
    ------
    BadRequestError
        A name is not an effect, or stands in both lists.

    Examples
    --------
    >>> import interop
    >>> with interop.policy(forbid="copy"):
    ...     interop.plan([1.0], to="numpy", allow="copy").effects
    frozenset({'copy'})
    """
    before = block.get()
    outer = before or Block()
    inner = adjusted(outer.policy, allow, forbid)
    # Ctrl-C may come between any two lines: what has been set is undone wherever that is.
    try:
        block.set(outer._replace(policy=inner))
        yield inner
    finally:
        block.set(before)
