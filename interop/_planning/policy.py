"""Effects, and the policy that says which of them a conversion may have."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol
from weakref import WeakSet

from interop._model.effect import EFFECTS
from interop.errors import BadRequestError

__all__ = [
    "Policy",
    "adjust",
    "current_policy",
    "effect_names",
    "policy",
    "watch",
    "watched",
]


_DEFAULT = frozenset(name for name, effect in EFFECTS.items() if effect.allowed)


class Policy(NamedTuple):
    """The effects a conversion may have."""

    permitted: frozenset[str] = _DEFAULT

    def adjusted(self, allow: frozenset[str], forbid: frozenset[str]) -> Policy:
        """Return this policy with some effects added and others taken away."""
        return Policy((self.permitted | allow) - forbid)


_DEFAULT_POLICY = Policy()

_current: ContextVar[Policy] = ContextVar("interop_policy", default=_DEFAULT_POLICY)


class Watcher(Protocol):
    """Who wants to know whether any block is open."""

    def watched(self, on: bool) -> None:
        """Take notice; called under the watch's lock."""


class Watch:
    """Counts the open ``policy`` and ``trace`` blocks of all threads.

    While there is one, nothing may be done that suits the default policy only, or that leaves no
    receipt. To be told is much cheaper than to ask a context variable on every call.
    """

    def __init__(self) -> None:
        self.blocks = 0
        self.lock = threading.RLock()
        self._watchers: WeakSet[Watcher] = WeakSet()

    def tell(self, watcher: Watcher) -> None:
        """Tell `watcher`, for as long as it lives, when the first opens and the last closes."""
        with self.lock:
            self._watchers.add(watcher)

    def count(self, change: int) -> None:
        """Note that a block was opened or closed."""
        with self.lock:
            before, self.blocks = self.blocks, self.blocks + change
            if bool(before) != bool(self.blocks):
                for watcher in self._watchers:
                    watcher.watched(bool(self.blocks))


watch = Watch()


@contextmanager
def watched() -> Iterator[None]:
    """Keep shortcuts off inside a ``with`` block."""
    watch.count(1)
    try:
        yield
    finally:
        watch.count(-1)


def effect_names(names: str | Iterable[str], keyword: str) -> frozenset[str]:
    """Return `names` as a set of effects, refusing words that are not effects."""
    given = frozenset((names,)) if isinstance(names, str) else frozenset(names)
    unknown = sorted(given - EFFECTS.keys())
    if unknown:
        msg = f"{keyword}={unknown[0]!r} is not an effect; the effects are {', '.join(EFFECTS)}."
        raise BadRequestError(msg)
    return given


def adjust(base: Policy, allow: str | Iterable[str], forbid: str | Iterable[str]) -> Policy:
    """Return `base` adjusted by a caller's ``allow=`` and ``forbid=``."""
    allowed, forbidden = effect_names(allow, "allow"), effect_names(forbid, "forbid")
    both = sorted(allowed & forbidden)
    if both:
        msg = f"{both[0]!r} is both allowed and forbidden; name it in one of allow= and forbid=."
        raise BadRequestError(msg)
    return base.adjusted(allowed, forbidden)


def current_policy() -> Policy:
    """Return the policy in force in this thread or task."""
    return _current.get()


@contextmanager
def policy(allow: str | Iterable[str] = (), forbid: str | Iterable[str] = ()) -> Iterator[Policy]:
    """Change, inside a ``with`` block, which effects conversions may have.

    The policy belongs to the current thread or asyncio task. Blocks nest, the innermost word on
    an effect counts, and the keywords of one call overrule the block around it.

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
    """
    inner = adjust(_current.get(), allow, forbid)
    token = _current.set(inner)
    try:
        with watched():
            yield inner
    finally:
        _current.reset(token)
