"""Traces: receipts of what each conversion really did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from interop._model.display import duration, html_table, readable, text_table
from interop._model.spec import Spec
from interop._model.typing import Value
from interop._planning.plan import Plan, facts
from interop._planning.policy import Block, Opening, block
from interop._planning.step import Step, without_dropped
from interop.errors import BadRequestError, HandOffError

from .memory import PeakMeter

if TYPE_CHECKING:
    from interop._registry.registry import Registry

_Result = TypeVar("_Result")

#: Address and bytes of each stretch of memory.
Extents: TypeAlias = tuple[tuple[int, int], ...]

_SHARES = {True: "yes", False: "no", None: "unknown"}
_HEADS = ("value", "steps", "effects", "result", "time", "peak", "shares memory")
_STEP_HEADS = ("", "step", "time", "written", "declared by")
_STEP_FIELDS = ("step", "seconds", "written", "declared_by")


class Receipt(NamedTuple):
    """The facts of one conversion, as it was carried out.

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
    peak : int or None
        Bytes by which the resident memory of the process rose, at most; None if it was not asked
        for (``trace(peak=True)``), or where the system cannot tell.
    started : int
        When it began, in nanoseconds since 1970.
    elapsed : int
        Nanoseconds it took, from when its route was known.
    first : bool
        Whether it was the first on its route, so that the times include what is done once, such as
        imports of frameworks.
    children : tuple of Receipt
        Those of the conversions that its steps called: of the elements of a list, or of the chunks
        of a lazy array. Their times and bytes are part of those above.
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
    peak: int | None = None
    started: int = 0
    elapsed: int = 0
    first: bool = False
    children: tuple[Receipt, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as JSON can hold it.

        Returns
        -------
        dict
            Its fields by name. ``steps`` is a list of dicts with ``step``, ``seconds``,
            ``written`` and ``declared_by``; ``seconds`` is the sum; ``children`` is a list of such
            dicts.
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
            "peak": self.peak,
            "started": self.started,
            "elapsed": self.elapsed,
            "first": self.first,
            "children": [child.as_dict() for child in self.children],
        }

    def filled(self, out: Spec, *, aliased: bool | None, elapsed: int, declared_by: str) -> Receipt:
        """Return the receipt of a conversion whose result was then written into an ``out=``.

        Parameters
        ----------
        out : Spec
        aliased : bool or None
            Whether that and the value overlap.
        elapsed : int
            Nanoseconds that it took to write.
        declared_by : str
            The distribution that declares its format.
        """
        return self._replace(
            result=out,
            steps=(*self.steps, "fill"),
            seconds=(*self.seconds, elapsed / 1e9),
            nbytes=out.nbytes,
            aliased=aliased,
            written=(*self.written, out.nbytes),
            declared_by=(*self.declared_by, declared_by),
            elapsed=self.elapsed + elapsed,
        )

    def _row(self) -> tuple[str, ...]:
        return (
            str(self.source),
            " → ".join(self.steps) or "returned as it is",
            ", ".join(sorted(self.effects)) or "view",
            readable(self.nbytes),
            f"{duration(sum(self.seconds))}{' (first)' if self.first else ''}",
            "—" if self.peak is None else readable(self.peak),
            _SHARES[self.aliased],
        )

    def _repr_html_(self) -> str:
        steps = zip(self.steps, self.seconds, self.written, self.declared_by, strict=True)
        rows = [
            (
                str(number),
                step,
                duration(seconds),
                readable(written) if written else "—",
                distribution,
            )
            for number, (step, seconds, written, distribution) in enumerate(steps, 1)
        ]
        source, _, effects, nbytes, _, peak, shares = self._row()
        facts = f"{source} → {self.result}; {effects}; {nbytes}; shares memory: {shares}"
        return html_table(facts if peak == "—" else f"{facts}; peak {peak}", _STEP_HEADS, rows)


class Trace(list[Receipt]):
    """The receipts of the conversions inside a ``with interop.trace()`` block, in order.

    Printing it shows a table; notebooks show the same as HTML.

    Parameters
    ----------
    on_receipt : callable, optional
        Called with each receipt, which is then not kept here.
    peak : bool
        Whether peaks of memory are measured.
    """

    def __init__(
        self, on_receipt: Callable[[Receipt], object] | None = None, peak: bool = False
    ) -> None:
        super().__init__()
        self.peak = peak
        #: Takes up a receipt.
        self.take: Callable[[Receipt], object] = on_receipt or self.append

    def as_json(self, indent: int | None = None) -> str:
        """Return the receipts as a list in JSON.

        Parameters
        ----------
        indent : int, optional
            As in ``json.dumps``.
        """
        import json

        return json.dumps(
            [receipt.as_dict() for receipt in self], indent=indent, ensure_ascii=False
        )

    def __str__(self) -> str:
        return "\n".join(text_table(*self._columns()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        count = f"{len(self)} conversion{'' if len(self) == 1 else 's'}"
        return html_table(count, *self._columns())

    def _columns(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the heads and rows, without the column of peaks if there are none."""
        rows = [receipt._row() for receipt in self]
        if any(receipt.peak is not None for receipt in self):
            return _HEADS, rows
        peak = _HEADS.index("peak")
        heads = (*_HEADS[:peak], *_HEADS[peak + 1 :])
        return heads, [(*row[:peak], *row[peak + 1 :]) for row in rows]


def trace(
    on_receipt: Callable[[Receipt], object] | None = None, *, peak: bool = False
) -> Opening[Trace]:
    """Collect, inside a ``with`` block, a receipt of every conversion of this thread or task.

    Parameters
    ----------
    on_receipt : callable, optional
        ``on_receipt(receipt)`` is called after each conversion, and the receipt is not kept: for
        blocks that last, and to hand receipts to a monitoring system. An exception that it raises
        comes out of the conversion.
    peak : bool, default False
        Whether to measure by how much the resident memory of the process rises during each
        conversion. It is the high-water mark of Linux, which is set back each time, so that other
        readers of that mark (``ru_maxrss``) see less. Elsewhere the receipts say None.

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
    receipts = Trace(on_receipt, peak)
    return Opening(lambda outer: Block(outer.policy, (*outer.traces, receipts)), lambda _: receipts)


def collected(
    innermost: Block, work: Callable[[], _Result], *, peak: bool = False
) -> tuple[_Result, Trace]:
    """Return what some work gives, and the receipts of the conversions inside it.

    The traces of the `innermost` block do not get them. If an interruption keeps this from setting
    the block back, the statement that has opened it does.
    """
    receipts = Trace(peak=peak)
    policy, _, opening, outer = innermost
    token = block.set(Block(policy, (receipts,), opening, outer))
    try:
        return work(), receipts
    finally:
        block.reset(token)


class Recorder:
    """Notes what one conversion does, and measures what traces ask for."""

    def __init__(self, traces: Sequence[Trace], registry: Registry, *, first: bool) -> None:
        self._registry = registry
        self._first = first
        self._traces = traces
        self._steps: list[Step] = []
        self._seconds: list[float] = []
        self._written: list[int] = []
        self._meter = PeakMeter() if any(trace.peak for trace in traces) else None
        self._started, self._clock = time_ns(), perf_counter_ns()
        self._last = self._clock

    def note(self, step: Step, result: Value) -> None:
        """Note a step that was carried out."""
        self._seconds.append((perf_counter_ns() - self._last) / 1e9)
        self._steps.append(step)
        # The specs in a route are those of a class of sizes, not those of this very value.
        self._written.append(self._registry.describe(result).nbytes if step.writes else 0)
        self._last = perf_counter_ns()

    def record(
        self, x: Value, spec: Spec, result: Value, plan: Plan, children: Sequence[Receipt]
    ) -> None:
        """Leave a receipt of the conversion of `x` to `result`, which was planned as `plan`."""
        elapsed = perf_counter_ns() - self._clock
        peak = self._meter.rise() if self._meter else None
        steps = tuple(self._steps)
        after = spec if result is x else without_dropped(self._registry.describe(result), steps)
        aliased = shares_memory(self._registry, x, result, (spec, after))
        labels, effects, declared_by = plan.facts if steps == plan.steps else facts(steps)
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
            peak,
            self._started,
            elapsed,
            self._first,
            tuple(children),
        )
        for trace in self._traces:
            trace.take(receipt)


def shares_memory(
    registry: Registry, source: Value, result: Value, specs: tuple[Spec, Spec] | None = None
) -> bool | None:
    """Tell whether two values overlap in memory, or None if one of them does not tell.

    Specs that are not passed are worked out.
    """
    if source is result:
        return True
    spec, other = specs or (None, None)
    first, second = extents(registry, source, spec), extents(registry, result, other)
    if first is None or second is None:
        return None
    return overlap(first, second)


def overlap(first: Extents, second: Extents) -> bool:
    """Tell whether two sets of extents have a byte in common."""
    for address, nbytes in first:
        for start, length in second:
            if nbytes and length and address < start + length and start < address + nbytes:
                return True
    return False


def extents(registry: Registry, value: Value, spec: Spec | None) -> Extents | None:
    """Return where a value lies, or None if its format does not tell."""
    if spec is None or spec.wrapped is not None:
        wrapper = registry.format_of(value).wrapper  # it has the memory of the wrapped value
        wrapped = None if wrapper is None else wrapper.unwrap(value)
        value = value if wrapped is None else wrapped
        try:
            spec = registry.describe(value)
        except HandOffError:  # some values can be exported only once
            return None
    memory = registry.formats[spec.format].memory
    return None if memory is None else memory(value)
