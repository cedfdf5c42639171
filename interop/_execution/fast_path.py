"""The fast path: plain values, which end here.

A conversion that shares memory takes a few hundred nanoseconds, so that a dozen of Python's
instructions before it are felt.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from interop._model.typing import TargetLike, Value, ValueFunction
from interop._planning.cache import FastPath

__all__ = ["with_fast_paths", "with_fast_paths_to"]


def with_fast_paths(
    full: Callable[..., Value],
    tables: dict[Any, dict[type, FastPath]],
    block: ContextVar[Any],
) -> Callable[..., Value]:
    """Return `full` behind the fast paths of every target.

    State in cells is what is cheapest to reach. `block` holds None where the default policy is in
    force and no trace is open.
    """

    @wraps(full)
    def convert(x: Value, /, to: TargetLike | None = None, **keywords: Any) -> Value:
        if not keywords and block.get() is None:
            try:
                fast_path = tables[to][type(x)]
            except (KeyError, TypeError):
                pass  # converted below, so that no KeyError stands in the traceback of what follows
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        return full(x, to, **keywords)

    return convert


def with_fast_paths_to(
    full: ValueFunction, table: dict[type, FastPath], block: ContextVar[Any]
) -> ValueFunction:
    """Return `full`, which takes a value alone, behind the fast paths of its target."""

    def converted(x: Value, /) -> Value:
        if block.get() is None:
            try:
                fast_path = table[type(x)]
            except KeyError:
                pass
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        return full(x)

    return converted
