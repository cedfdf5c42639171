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

from interop._planning.policy import watch

if TYPE_CHECKING:
    from .fast_path import Shortcut

__all__ = ["Shortcuts", "fixed_front", "front"]


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


#: Shortcuts kept. A program that makes classes as it goes does without, after so many.
_MOST = 4096

#: Answers `NotImplemented` for a value that is not plain. None stands for the value itself.
Shortcut = Callable[[Any], Any] | None


class Shortcuts:
    """The shortcuts that were learned, by target and by type of value.

    They serve the default policy and leave no receipt. So the tables are empty while a ``policy``
    or ``trace`` block is open anywhere: to find nothing costs those who look no question.

    Attributes
    ----------
    tables : dict
        For a target, the table of shortcuts by type. A table stays the same object for good.
    """

    def __init__(self) -> None:
        self.tables: dict[Any, dict[type, Shortcut]] = {}
        self._learned: dict[tuple[Any, type], Shortcut] = {}
        watch.tell(self)

    def table(self, target: Any) -> dict[type, Shortcut]:
        """Return the table of a target, which is filled and emptied in place."""
        return self.tables.setdefault(target, {})

    def learn(
        self,
        target: Any,
        kind: type,
        shortcut: Shortcut,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take up a shortcut; of formats that share a type, the first that has one counts.

        None is taken up if what it was learned from does not hold any more.
        """
        table = self.table(target)
        with watch.lock:
            if not holds() or len(self._learned) >= _MOST:
                return
            found = self._learned.setdefault((target, kind), shortcut)
            if not watch.blocks:
                table[kind] = found

    def clear(self) -> None:
        """Forget all of them."""
        with watch.lock:
            self._learned.clear()
            self.watched(True)

    def watched(self, on: bool) -> None:
        """Empty the tables, or fill them again."""
        for table in list(self.tables.values()):
            table.clear()
        if not on:
            for (target, kind), shortcut in self._learned.items():
                self.tables[target][kind] = shortcut
