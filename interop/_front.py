"""The front: what a call of `convert` meets first, and for plain values last.

A conversion that shares memory takes a few hundred nanoseconds, so that a dozen of Python's
instructions before it are felt. This module is compiled by Cython where the package is built with a
C compiler at hand, and is imported as it stands where there is none. It holds nothing else, and
what it does is the same both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._shortcuts import Shortcut

__all__ = ["COMPILED", "fixed_front", "front"]

#: Whether it was compiled.
COMPILED = not __file__.endswith(".py")


def front(
    full: Callable[..., Any],
    targets: dict[Any, Callable[[Any], Any]],
    shortcuts: dict[Any, dict[type, Shortcut]],
) -> Callable[..., Any]:
    """Return `full`, with a front that costs less to call.

    To fill in ten keywords takes longer than some conversions do, and state in cells is what is
    cheapest to reach.

    Parameters
    ----------
    full : callable
        ``full(x, to, **words)``, which serves whatever the front does not.
    targets : dict
        What to call with `x` for a target of the default request.
    shortcuts : dict
        For a target, the table of shortcuts by type.
    """

    @wraps(full)
    def convert(x: Any, /, to: Any = None, **words: Any) -> Any:
        if not words:
            try:
                shortcut = shortcuts[to][type(x)]
                if shortcut is None:
                    return x
                result = shortcut(x)
                if result is not NotImplemented:
                    return result
            except (KeyError, TypeError):
                pass  # none is known, or the targets are a list
            try:
                target = targets[to]
            except (KeyError, TypeError):
                pass  # called below, so that no KeyError stands in the traceback of what follows
            else:
                return target(x)
        return full(x, to, **words)

    return convert


def fixed_front(
    planned: Callable[[Any], Any], shortcuts: dict[type, Shortcut]
) -> Callable[[Any], Any]:
    """Return `planned` behind the shortcuts of its target.

    Parameters
    ----------
    planned : callable
        ``planned(x)``, which serves what no shortcut does.
    shortcuts : dict
        The table of shortcuts by type.
    """

    def converted(x: Any, /) -> Any:
        try:
            shortcut = shortcuts[type(x)]
        except KeyError:
            pass  # as above
        else:
            if shortcut is None:
                return x
            result = shortcut(x)
            if result is not NotImplemented:
                return result
        return planned(x)

    return converted
