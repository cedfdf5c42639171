"""The engine: carries plans out, and holds values to what was planned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from math import prod

from interop._model.blame import warn_caller
from interop._model.device import device_type
from interop._model.dtype import DTYPES, imaginary_loss, itemsize, preserves
from interop._model.format import LINES, Format
from interop._model.log import log
from interop._model.spec import Spec, shape_text, summary
from interop._model.text import listed, readable
from interop._model.typing import Value
from interop._planning.explain import explanation, nearest_refused, refusal
from interop._planning.plan import FILLING, Note, Plan, StepDeclined, run
from interop._planning.planner import Planner
from interop._planning.search import first
from interop._planning.step import Step, without_dropped
from interop._recognition.installed import not_installed
from interop._registry.registry import Registry
from interop._request.policy import Policy, block
from interop._request.request import Request
from interop._text import lines
from interop.errors import (
    Declined,
    DensifyMemoryError,
    DoesNotFitError,
    NotInstalledError,
    RefusedError,
)

from .fast import SMALL
from .memory import available_memory
from .trace import Recorder, under
from .verification import FirstRun

#: How many times as many bytes a value may have that takes the path of another: see `size_class`.
_SIZES = 4
#: Bytes that always fit. Nobody asks the system about fewer, because the question takes as long as
#: filling a few MiB. No result of a fast path is larger.
_FITTING = _SIZES * SMALL
#: Elements that always fit, whatever their dtype: the widest has 32 bytes.
_FEW = _FITTING // 32
#: How many of the steps that decline for one reason a message names.
_DECLINED_LABELS = 2


class Engine:
    """Carries plans out.

    Parameters
    ----------
    registry : Registry
    planner : Planner
    plan_of : callable
        ``plan_of(request, spec)`` returns the plan for a spec.
    """

    def __init__(
        self, registry: Registry, planner: Planner, plan_of: Callable[[Request, Spec], Plan]
    ) -> None:
        self._registry = registry
        self._planner = planner
        self._plan_of = plan_of
        #: Held while a plan is looked for, so that no two threads look for one.
        self.lock = threading.RLock()

    def run(
        self, plan: Plan, x: Value, spec: Spec, request: Request, keywords: Mapping[str, object]
    ) -> Value:
        """Carry out the steps on `x`, leaving a receipt if a trace is open.

        The `keywords` are for the steps: the consumer's stream and the value in ``like=``.
        """
        innermost = block.get()
        if innermost is None or not innermost.traces:
            return self.carry_out(plan, x, spec, request, keywords)
        recorder = Recorder(innermost.traces, self._registry)
        result = under(
            innermost, (), lambda: self.carry_out(plan, x, spec, request, keywords, recorder.note)
        )
        recorder.record(x, spec, result, plan)
        return result

    def carry_out(  # noqa: PLR0917 - on the way of every conversion
        self,
        plan: Plan,
        x: Value,
        spec: Spec,
        request: Request,
        keywords: Mapping[str, object],
        note: Note | None = None,
    ) -> Value:
        """Carry out the steps on `x`."""
        writes_much = plan._fills_host and (spec.size > _FEW or spec.nbytes > _FITTING)
        if writes_much or plan._allocates or plan._warning:
            self._check(plan.steps, spec, plan._warning)
        try:
            if plan._verified:
                return run(plan.steps, x, keywords, note)
            result = run(plan.steps, x, keywords, FirstRun(self._registry, spec, note))
        except StepDeclined as declined:
            value = declined.instead
            if value is None:
                return self._replan(declined, spec, request, keywords, note)
            spec = self._registry.recognition.describe(value)
            plan = self._plan_of(request, spec)
            return self.carry_out(plan, value, spec, request, keywords, note)
        except NotInstalledError:
            self.check_installed(request)  # says how to install the target's framework
            raise
        plan._verified = True
        return result

    def write(  # noqa: PLR0917 - called in one place
        self,
        x: Value,
        spec: Spec,
        out: Value,
        out_spec: Spec,
        request: Request,
        keywords: Mapping[str, object],
    ) -> bool:
        """Let the step that writes the result write it into `out`; return whether it could.

        If a trace is open, that leaves a receipt.
        """
        innermost = block.get()
        try:
            if innermost is None or not innermost.traces:
                return self._write(x, spec, out, out_spec, request, keywords) is not None
            recorder = Recorder(innermost.traces, self._registry)
            plan = under(
                innermost,
                (),
                lambda: self._write(x, spec, out, out_spec, request, keywords, recorder.note),
            )
        except (StepDeclined, RefusedError):
            return False
        if plan is not None:
            recorder.record(x, spec, out, plan)
        return plan is not None

    def _write(  # noqa: PLR0917 - as `write`
        self,
        x: Value,
        spec: Spec,
        out: Value,
        out_spec: Spec,
        request: Request,
        keywords: Mapping[str, object],
        note: Note | None = None,
    ) -> Plan | None:
        """Carry out what writes `x` into `out` and return it, or do nothing if no step does.

        Only views may follow the step that writes. `out` is handed over, without a copy, to the
        format that it writes.
        """
        steps = self._plan_of(request, spec).steps
        last = max((n for n, step in enumerate(steps) if step.writes), default=-1)
        step = steps[last] if last >= 0 else None
        if step is None or step.into is None or step.after.carrier:
            return None
        view = Request((step.after.format,), copy=False, policy=Policy(frozenset()))
        plan = self._plan_of(view, out_spec)
        memory = self.carry_out(plan, out, out_spec, view, keywords)
        self._check(steps[:last], spec)
        steps = (*steps[:last], step._replace(call=_writing(step.into, memory)))
        run(steps, x, keywords, note)
        return Plan(spec, request, steps)

    def _replan(
        self,
        declined: StepDeclined,
        start: Spec,
        request: Request,
        keywords: Mapping[str, object],
        note: Note | None,
        *,
        before: tuple[Step, ...] = (),
        without: frozenset[object] = frozenset(),
        reasons: tuple[tuple[str, str], ...] = (),
    ) -> Value:
        """Plan the rest of the way from where a step has declined, without that step.

        The steps count that were taken `before`, by other plans. If all routes end like this, the
        error gives each reason, the preferred route's first.
        """
        without |= {declined.step.origin}
        reasons = (*reasons, (declined.step.label, str(declined)))
        expected = declined.step.before
        taken = before + declined.taken
        spec = without_dropped(self._registry.recognition.describe(declined.value), taken)
        if expected.carrier:  # the value itself does not know whose bits it carries
            spec = spec._replace(dtype=expected.dtype, carrier=expected.carrier)
        state = self._planner.state_after(start, taken)._replace(spec=spec)
        with self.lock:
            searches = self._planner.searches(start, request, state)
            route = first(searches, without)
            is_sparse = all(self._registry.formats[name].is_sparse for name in request.formats)
            fills = route is not None and any(step.effects & FILLING for step in route[1])
            # What was to stay sparse is not filled in, because one step has declined.
            stays = is_sparse and fills and not (declined.step.effects | _effects(taken)) & FILLING
            if route is None or stays:
                nearest = [] if stays else list(nearest_refused(searches, request, without))
                if not nearest:
                    msg = f"cannot convert {summary(start)} to {request}: {_declined(reasons)}."
                    raise RefusedError(msg) from _foreign(declined)
                reason = explanation(self._planner, spec, request, nearest)
                error = refusal(spec, request, reason)
                pronoun = "it" if len({label for label, _ in reasons}) == 1 else "them"
                msg = f"{_declined(reasons)}. Without {pronoun}: {error}"
                raise RefusedError(lines(msg.split("\n")), error.effects) from _foreign(declined)
        steps = tuple(route[1])
        log.debug(
            "%s declined (%s); going on by %s", declined.step.label, declined, names_of(steps)
        )
        self._check(steps, spec)
        try:
            return run(steps, declined.value, keywords, FirstRun(self._registry, spec, note))
        except StepDeclined as again:
            return self._replan(
                again,
                start,
                request,
                keywords,
                note,
                before=taken,
                without=without,
                reasons=reasons,
            )

    def compare(self, plan: Plan, spec: Spec, result: Value) -> None:
        """Compare what a plan gave in a batch with what was planned for the spec of the value."""
        FirstRun(self._registry, spec, None)(plan.steps[-1], result)

    def check_installed(self, request: Request) -> None:
        """Refuse a request if none of its frameworks is installed."""
        formats = [self._registry.formats[name] for name in request.formats]
        missing = [not_installed(format_) for format_ in formats]
        if missing and all(missing):
            raise NotInstalledError(missing[0], name=formats[0].requires)

    def _check(self, steps: tuple[Step, ...], spec: Spec, warning: Warning | None = None) -> None:
        """Warn of what is lost, and refuse steps of which a result does not fit in memory."""
        if warning:
            warn_caller(warning)
        if problem := self._index_problem(steps, spec):
            raise RefusedError(problem)
        step, problem = self.shortage(steps, spec)
        if step is not None:
            raise (DensifyMemoryError if step.effects & FILLING else DoesNotFitError)(problem)

    def _index_problem(self, steps: Iterable[Step], spec: Spec) -> str:
        """Say that a shape needs wider indices than a format has room for; "" if it does not."""
        for step in steps:
            before, after = step.before.index_dtype, step.after.index_dtype
            if before is None or after is None or preserves(before, after):
                continue
            format_ = self._registry.formats[step.after.format]
            # Where the format holds them, a step narrows them only if the shape permits.
            if before in format_.index_dtypes - format_.unsupported(step.after.device):
                continue
            digits = DTYPES[after].digits
            if any(length >= 2**digits for length in spec.shape):
                hint = format_.limits.refusal_hints.get(before, "ask for another format.")
                return (
                    f"indices into {shape_text(spec.shape)} do not fit in {digits + 1} bits; {hint}"
                )
        return ""

    def problem(self, steps: Iterable[Step], spec: Spec) -> str:
        """Say why steps cannot be carried out on a value, as far as its spec tells; "" if not."""
        return self._index_problem(steps, spec) or self.shortage(steps, spec)[1]

    def shortage(self, steps: Iterable[Step], spec: Spec) -> tuple[Step | None, str]:
        """Return the first step whose result does not fit on the host, and what to say of it.

        The system promises more memory than it has. The allocators of devices refuse what they
        lack, so that nobody asks them before.
        """
        if spec.size <= _FEW and spec.nbytes <= _FITTING:
            return None, ""
        large = [(step, n) for step in steps if (n := self._written(step, spec)) > _FITTING]
        available = available_memory() if large else None
        for step, needed in large:
            if available is not None and needed > available:
                return step, _shortage(step, spec, needed, available)
        return None, ""

    def _written(self, step: Step, spec: Spec) -> int:
        """Return the bytes that a step writes on the host, 0 if that is not known before."""
        if not step.writes or device_type(step.after.device) != "cpu":
            return 0
        formats = self._registry.formats
        source, target = formats.get(step.before.format), formats.get(step.after.format)
        if target is None or target.lazy:
            return 0
        if target.is_dense:
            return spec.size * itemsize(step.after.dtype)
        # The chunks of a lazy sparse array tell how much they store only when they are computed.
        if source is None or source.is_dense or source.lazy:
            return 0
        return spec.nbytes + _pointers(source, target, spec)


def _effects(steps: Iterable[Step]) -> frozenset[str]:
    return frozenset().union(*(step.effects for step in steps))


def _foreign(declined: StepDeclined) -> BaseException | None:
    """Return what made a step decline, if more than the reason that the message gives."""
    cause: BaseException | None = declined.reason
    while isinstance(cause, (Declined, StepDeclined)):
        cause = cause.__cause__
    return cause


def _writing(into: Callable[..., None], out: Value) -> Callable[..., Value]:
    """Return the call of a step that writes into `out` and returns that."""

    def call(value: Value, **keywords: object) -> Value:
        into(out, value, **keywords)
        return out

    return call


def _pointers(source: Format, target: Format, spec: Spec) -> int:
    """Return the bytes of the pointers that compressing a value adds, of which each line has one.

    A value that stores little may have many lines.
    """
    layouts = [f.components.layout for f in (source, target) if f.components is not None]
    axis = LINES.get(layouts[-1]) if target.components else None
    if axis is None or len(spec.shape) < 2 or len(set(layouts)) < len(layouts):
        return 0
    lines = [length for at, length in enumerate(spec.shape) if at != len(spec.shape) + axis]
    return prod(lines) * itemsize(spec.index_dtype or "int32")


def names_of(steps: tuple[Step, ...]) -> str:
    """Return the names of steps as one text."""
    return " → ".join(step.label for step in steps) or "returned as it is"


def _declined(reasons: Iterable[tuple[str, str]]) -> str:
    """Say which steps have declined a value and why, each reason once."""
    by_reason: dict[str, dict[str, None]] = {}
    for label, reason in reasons:  # two formats on the way may have steps of one name
        by_reason.setdefault(reason.removesuffix("."), {})[label] = None
    return "; ".join(
        f"{listed([*labels], _DECLINED_LABELS)} declined: {reason}"
        for reason, labels in by_reason.items()
    )


def _shortage(step: Step, spec: Spec, needed: int, available: int) -> str:
    """Say that the result of a step does not fit, and what to do about it."""
    subject, move = "a copy of", "ask for"
    if "materialize" in step.effects:
        subject, move = "the result of", "ask for a lazy format or"
    elif "densify" in step.effects:
        subject, move = "the dense form of", "ask for a sparse format or"
    elif "pad" in step.effects:
        subject, move = "the padded form of", "ask for a ragged format or"
    elif step.after.nnz is not None and needed > spec.nbytes:
        subject, move = "the compressed form of", "ask for a format of coordinates or"
    return (
        f"{subject} {summary(spec)} takes {readable(needed)}, but only {readable(available)} of "
        f"memory is available; {move} a narrower dtype=, or convert it in parts."
    )


def imaginary_loss_of(steps: Iterable[Step]) -> Warning | None:
    """Return the warning for steps of which one loses imaginary parts, or None."""
    losses = (imaginary_loss(step.before.dtype, step.after.dtype) for step in steps)
    return next((loss for loss in losses if loss is not None), None)
