"""Policy: the effects a conversion may have, and the blocks that change it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from interop._model.blame import brief
from interop._model.effect import EFFECTS
from interop._model.text import keyword, listed, suggestion
from interop._model.typing import EffectNames
from interop._text import quoted
from interop.errors import BadRequestError

_Entered_co = TypeVar("_Entered_co", covariant=True)

_ALLOWED = frozenset(name for name, effect in EFFECTS.items() if effect.allowed)


class Policy(NamedTuple):
    """The effects a conversion may have.

    Parameters
    ----------
    permitted : frozenset of str
    forbidden : frozenset of str
        The effects that callers have forbidden by name. Whoever asks for a dtype consents to
        narrowing, unless that is forbidden by name.
    allowed : frozenset of str
        The effects that callers have allowed by name. Tables leave names behind only if that is
        allowed by name.
    """

    permitted: frozenset[str] = _ALLOWED
    forbidden: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()


class Block(NamedTuple):
    """The sum of the ``with`` statements around a call of this thread or task.

    Parameters
    ----------
    policy : Policy
    traces : tuple of Trace
        Those that take the receipts of conversions.
    opening : Opening, optional
        The innermost of the statements.
    outer : Block, optional
        The sum of the other statements.
    """

    policy: Policy = Policy()
    traces: tuple[Any, ...] = ()
    opening: Opening[Any] | None = None
    outer: Block | None = None


#: The policy outside of all blocks.
_default = Policy()

#: The innermost block of this thread or task; None outside of all.
block: ContextVar[Block | None] = ContextVar("interop_block", default=None)


class Opening(AbstractContextManager[_Entered_co], ContextDecorator):
    """A ``with`` statement that opens a block, and closes it with all that was opened inside.

    It may be entered again, also within itself and by several threads.

    Parameters
    ----------
    change : callable
        ``change(outer)`` is the block inside a block.
    entered : callable
        ``entered(inner)`` is what the ``with`` statement yields.
    """

    def __init__(
        self, change: Callable[[Block], Block], entered: Callable[[Block], _Entered_co]
    ) -> None:
        self._change = change
        self._entered = entered

    def __enter__(self) -> _Entered_co:
        outer = block.get()
        changed = self._change(Block(_default) if outer is None else outer)
        entered = self._entered(changed)  # nothing runs once the block is open, but the return
        block.set(Block(changed.policy, changed.traces, self, outer))
        return entered

    def __exit__(self, *_: object) -> None:
        opened = block.get()
        while opened is not None and opened.opening is not self:
            opened = opened.outer
        if opened is not None:  # else an outer block has closed it
            block.set(opened.outer)


def is_traced() -> bool:
    """Return whether conversions leave receipts, here and now."""
    innermost = block.get()
    return innermost is not None and bool(innermost.traces)


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
    unknown = sorted(effects - EFFECTS.keys(), key=lambda effect: quoted(effect, str))
    if unknown:
        parts = frozenset(re.split(r"\W+", quoted(unknown[0], str)))
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
    return _adjusted(base, reusable(allow, "allow"), reusable(forbid, "forbid"))


@lru_cache(64)
def _adjusted(base: Policy, allow: Iterable[str], forbid: Iterable[str]) -> Policy:
    allowed, forbidden = effect_names(allow, "allow"), effect_names(forbid, "forbid")
    contradictory = sorted(allowed & forbidden)
    if contradictory:
        msg = (
            f"{contradictory[0]!r} is both allowed and forbidden; name it in one of "
            "allow= and forbid=."
        )
        raise BadRequestError(msg)
    policy = Policy(
        (base.permitted | allowed) - forbidden,
        (base.forbidden - allowed) | forbidden,
        (base.allowed | allowed) - forbidden,
    )
    return _unique(policy)


@lru_cache(64)
def _unique(policy: Policy) -> Policy:
    """Return one object for equal policies, because sets are slow to compare as keys."""
    return policy


def current_policy() -> Policy:
    """Return the policy in force in this thread or task."""
    innermost = block.get()
    return _default if innermost is None else innermost.policy


def set_default(policy: Policy) -> None:
    """Set the policy outside of all blocks, in all threads."""
    global _default  # noqa: PLW0603 - the one setting of the process
    _default = policy


@brief
def policy(allow: EffectNames = (), forbid: EffectNames = ()) -> Opening[Policy]:
    """Change, inside a ``with`` block, which effects conversions may have.

    The policy belongs to the current thread or asyncio task, and to the tasks that are started
    inside the block. It changes the one around it, or the default (see `set_default_policy`).
    Blocks nest: the innermost block that names an effect decides. The keywords of a call overrule
    the blocks around it.

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
    allowed, forbidden = reusable(allow, "allow"), reusable(forbid, "forbid")
    base = current_policy()
    likely = adjusted(base, allowed, forbidden)  # here, so that mistakes show here

    def change(outer: Block) -> Block:
        same = outer.policy is base
        new = likely if same else adjusted(outer.policy, allowed, forbidden)
        return Block(new, outer.traces)

    return Opening(change, lambda inner: inner.policy)
