"""Shortcuts: what serves the plainest values of a type without a look at their specs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._policy import watch

__all__ = ["Shortcut", "Shortcuts"]

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
