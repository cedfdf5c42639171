"""Traces: receipts of what each conversion really did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from interop._model.blame import brief
from interop._model.spec import Spec
from interop._model.text import duration, html_table, readable, text_table
from interop._model.typing import Value
from interop._planning.plan import Plan, facts
from interop._planning.step import Step, without_dropped
from interop._request.policy import Block, Opening, block
from interop._text import json_text
from interop.errors import BadRequestError, HandOffError

if TYPE_CHECKING:
    from interop._registry.registry import Registry

_Result = TypeVar("_Result")

#: Address and bytes of each stretch of memory.
Extents: TypeAlias = tuple[tuple[int, int], ...]

_SHARES = {True: "yes", False: "no", None: "unknown"}
_HEADS = ("value", "steps", "effects", "result", "time", "shares memory")
_STEP_FIELDS = ("step", "seconds", "written", "declared_by")


class Receipt(NamedTuple):
    """The facts of one conversion, as it was carried out.

    Conversions that its steps make, such as those of the elements of a list, are part of it.

    Parameters
    ----------
    source, result : Spec
    steps : tuple of str
        Names of the steps that were carried out, in order.
    effects : frozenset of str
    seconds : tuple of float
        Measured time of each step. A step that leaves work to a device is timed until its call
        returns.
    nbytes : int
        Bytes of the result.
    aliased : bool or None
        Whether the result's memory overlaps the source's, by their addresses; None where a
        format does not tell its addresses.
    written : tuple of int
        Bytes that each step wrote; 0 for a view.
    declared_by : tuple of str
        For each step, the distribution that declared it.
    """

    source: Spec
    result: Spec
    steps: tuple[str, ...]
    effects: frozenset[str]
    seconds: tuple[float, ...]
    nbytes: int
    aliased: bool | None
    written: tuple[int, ...] = ()
    declared_by: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as JSON can hold it.

        Returns
        -------
        dict
            Its fields by name. ``steps`` is a list of dicts with ``step``, ``seconds``,
            ``written`` and ``declared_by``; ``seconds`` is the sum.
        """
        steps = zip(self.steps, self.seconds, self.written, self.declared_by, strict=True)
        return {
            "source": self.source.as_dict(),
            "result": self.result.as_dict(),
            "steps": [dict(zip(_STEP_FIELDS, step, strict=True)) for step in steps],
            "effects": sorted(self.effects),
            "seconds": sum(self.seconds),
            "nbytes": self.nbytes,
            "aliased": self.aliased,
        }

    def _row(self) -> tuple[str, ...]:
        return (
            str(self.source),
            " → ".join(self.steps) or "returned as it is",
            ", ".join(sorted(self.effects)) or "view",
            readable(self.nbytes),
            duration(sum(self.seconds)),
            _SHARES[self.aliased],
        )


class Trace(list[Receipt]):
    """The receipts of the conversions inside a ``with interop.trace()`` block, in order.

    Printing it shows a table.

    Parameters
    ----------
    on_receipt : callable, optional
        Called with each receipt, which is then not kept here.
    """

    def __init__(self, on_receipt: Callable[[Receipt], object] | None = None) -> None:
        super().__init__()
        #: Takes up a receipt.
        self.take: Callable[[Receipt], object] = on_receipt or self.append

    def as_json(self, indent: int | None = None) -> str:
        """Return the receipts as a list in JSON.

        Parameters
        ----------
        indent : int, optional
            As in ``json.dumps``.
        """
        return json_text([receipt.as_dict() for receipt in self], indent)

    def _rows(self) -> list[tuple[str, ...]]:
        return [receipt._row() for receipt in self]

    def __str__(self) -> str:
        return "\n".join(text_table(_HEADS, self._rows()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("Receipts", _HEADS, self._rows())


@brief
def trace(on_receipt: Callable[[Receipt], object] | None = None) -> Opening[Trace]:
    """Collect, inside a ``with`` block, a receipt of every conversion of this thread or task.

    Parameters
    ----------
    on_receipt : callable, optional
        ``on_receipt(receipt)`` is called after each conversion, and the receipt is not kept: for
        blocks that last, and to hand receipts to a monitoring system. An exception that it raises
        comes out of the conversion.

    Yields
    ------
    Trace
        A list of `Receipt`, which prints as a table. If blocks are nested, each of them gets the
        receipts.

    Raises
    ------
    BadRequestError
        `on_receipt` is not callable.

    Examples
    --------
    >>> import interop
    >>> with interop.trace() as receipts:
    ...     array = interop.convert([1.0, 2.0], to="numpy")
    >>> receipts[0].nbytes
    16
    """
    receiver: Value = on_receipt
    if receiver is not None and not callable(receiver):
        msg = f"on_receipt={on_receipt!r} is not a function; it is called with each receipt."
        raise BadRequestError(msg)
    receipts = Trace(on_receipt)
    return Opening(lambda outer: Block(outer.policy, (*outer.traces, receipts)), lambda _: receipts)


def under(innermost: Block, traces: tuple[Trace, ...], work: Callable[[], _Result]) -> _Result:
    """Do some work whose receipts go to some traces instead of those of the `innermost` block."""
    token = block.set(innermost._replace(traces=traces))
    try:
        return work()
    finally:
        block.reset(token)


class Recorder:
    """Notes what one conversion does."""

    def __init__(self, traces: Sequence[Trace], registry: Registry) -> None:
        self._registry = registry
        self._traces = traces
        self._steps: list[Step] = []
        self._seconds: list[float] = []
        self._written: list[int] = []
        self._last = perf_counter()

    def note(self, step: Step, result: Value) -> None:
        """Note a step that was carried out."""
        self._seconds.append(perf_counter() - self._last)
        self._steps.append(step)
        # The specs in a route are those of a class of sizes, not those of this very value.
        describe = self._registry.recognition.describe
        self._written.append(describe(result).nbytes if step.writes else 0)
        self._last = perf_counter()

    def record(self, x: Value, spec: Spec, result: Value, plan: Plan) -> None:
        """Leave a receipt of the conversion of `x` to `result`, which was planned as `plan`."""
        steps = tuple(self._steps)
        describe = self._registry.recognition.describe
        after = spec if result is x else without_dropped(describe(result), steps)
        aliased = shares_memory(self._registry, x, result, (spec, after))
        labels, effects, declared_by = plan._facts if steps == plan.steps else facts(steps)
        receipt = Receipt(
            spec,
            after,
            labels,
            effects,
            tuple(self._seconds),
            after.nbytes,
            aliased,
            tuple(self._written),
            declared_by,
        )
        for trace in self._traces:
            trace.take(receipt)


def shares_memory(
    registry: Registry, source: Value, result: Value, specs: tuple[Spec, Spec] | None = None
) -> bool | None:
    """Return whether two values overlap in memory, or None if one of them does not tell.

    Specs that are not passed are worked out.
    """
    if source is result:
        return True
    spec, other = specs or (None, None)
    first, second = extents(registry, source, spec), extents(registry, result, other)
    if not first or not second:
        return None
    return overlap(first, second)


def overlap(first: Extents, second: Extents) -> bool:
    """Return whether two sets of extents have a byte in common."""
    for address, nbytes in first:
        for start, length in second:
            if nbytes and length and address < start + length and start < address + nbytes:
                return True
    return False


def extents(registry: Registry, value: Value, spec: Spec | None) -> Extents | None:
    """Return where a value lies, or None if its format does not tell."""
    if spec is None or spec.wrapped is not None:
        wrapper = registry.recognition.format_of(value).wrapper
        # It has the memory of the wrapped value.
        wrapped = None if wrapper is None else wrapper.unwrap(value)
        value = value if wrapped is None else wrapped
        try:
            spec = registry.recognition.describe(value)
        except HandOffError:  # some values can be exported only once
            return None
    memory = registry.formats[spec.format].memory
    return None if memory is None else memory(value)
