"""Traces: receipts of what each conversion really did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from ._memory import readable
from ._policy import watched
from ._route import table
from ._spec import Spec

if TYPE_CHECKING:
    from ._registry import Registry

__all__ = ["Receipt", "Trace", "current_trace", "shares_memory", "trace"]


class Receipt(NamedTuple):
    """What one conversion really did.

    Parameters
    ----------
    source, result : Spec
    steps : tuple of str
        Names of the steps, in order.
    effects : frozenset of str
    seconds : tuple of float
        Measured time of each step.
    nbytes : int
        Bytes of the result.
    aliased : bool or None
        Whether the result's memory overlaps the source's, by their addresses; None where a
        format does not tell its addresses.
    """

    source: Spec
    result: Spec
    steps: tuple[str, ...]
    effects: frozenset[str]
    seconds: tuple[float, ...]
    nbytes: int
    aliased: bool | None


class Trace(list[Receipt]):
    """The receipts of the conversions inside a ``with interop.trace()`` block, in order."""

    def __str__(self) -> str:
        rows = [
            (
                str(receipt.source),
                " → ".join(receipt.steps) or "returned as it is",
                ", ".join(sorted(receipt.effects)) or "view",
                readable(receipt.nbytes),
                f"{sum(receipt.seconds) * 1e6:.1f} µs",
                {True: "yes", False: "no", None: "unknown"}[receipt.aliased],
            )
            for receipt in self
        ]
        heads = ("value", "steps", "effects", "result", "time", "shares memory")
        return "\n".join(table(heads, rows))


_current: ContextVar[Trace | None] = ContextVar("interop_trace", default=None)


def current_trace() -> Trace | None:
    """Return the trace that is open in this thread or task."""
    return _current.get()


@contextmanager
def trace() -> Iterator[Trace]:
    """Collect, inside a ``with`` block, a receipt of every conversion.

    Yields
    ------
    Trace
        A list of `Receipt`, which prints as a table.
    """
    receipts = Trace()
    token = _current.set(receipts)
    try:
        with watched():
            yield receipts
    finally:
        _current.reset(token)


def shares_memory(registry: Registry, source: Any, result: Any) -> bool | None:
    """Tell whether two values overlap in memory, or None if a format does not tell."""
    if source is result:
        return True
    extents = []
    for value in (source, result):
        memory = registry.formats[registry.describe(value).format].memory
        if memory is None:
            return None
        extents.append(memory(value))
    return any(a < b + m and b < a + n for a, n in extents[0] for b, m in extents[1] if n and m)
