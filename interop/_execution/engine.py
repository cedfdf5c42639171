"""The engine: finds the route for a value, carries it out, and holds it to what was planned."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from interop._model.device import matches
from interop._model.display import readable
from interop._model.dtype import itemsize
from interop._model.spec import Spec, representative, spec_class
from interop._planning.explain import advice, advise, alternatives, refusal
from interop._planning.planner import Planner
from interop._planning.policy import Policy
from interop._planning.request import Request
from interop._planning.step import Step
from interop._registry.installed import importable
from interop._registry.registry import Registry
from interop.errors import ConversionError, DensifyMemoryError, NotInstalledError, RefusedError

from .memory import available_memory
from .runner import FILLING, Halt, Runner
from .trace import Recorder, current_trace

__all__ = ["Engine"]

#: Bytes that fit anywhere: to ask how much memory is left takes as long as to fill a few MiB.
_SMALL = 2**26

_log = logging.getLogger("interop")

#: What is done to a runner before it is let run.
_Dress = Callable[[Runner], Runner]


class Engine:
    """Finds routes and carries them out.

    Parameters
    ----------
    registry : Registry
    planner : Planner
    """

    def __init__(self, registry: Registry, planner: Planner) -> None:
        self._registry = registry
        self._planner = planner
        self._lock = threading.RLock()
        self._views: dict[tuple[int, str], Request] = {}

    def route(self, spec: Spec, request: Request, *, installed: bool = True) -> Runner:
        """Return the steps from the class of `spec` to the request, found once.

        Raises
        ------
        NotInstalledError
            `installed` is set and the target's framework is missing.
        RefusedError
            There is no route.
        """
        if installed:
            self._check_installed(request)
        key = spec_class(spec)
        runner = request.routes.get(key)
        if runner is None:
            nearest = request.refusals.get(key)
            if nearest is not None:  # who tries, and does without, may try for every value
                raise refusal(self._planner, spec, request, nearest)
            runner = self._found(key, spec, request)
        return runner

    def _found(self, key: tuple[object, ...], spec: Spec, request: Request) -> Runner:
        """Find a route, or the nearest that are refused, and keep what was found."""
        one = representative(spec)
        with self._lock:
            runner = request.routes.get(key)
            if runner is not None:  # another thread has found it meanwhile
                return runner
            found = self._planner.route(one, request)
            if found is None:
                nearest = request.refusals[key] = list(alternatives(self._planner, one, request))
                error = refusal(self._planner, spec, request, nearest)
                _log.debug("refused: %s", error)
                raise error
            steps = tuple(found[1])
            runner = request.routes[key] = Runner(steps, advice(self._planner, one, request, steps))
        _log.debug("planned %s → %s: %s", spec, request, _Names(steps))
        return runner

    def run(self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any) -> Any:
        """Carry out the steps on `x`, leaving a receipt if a trace is open."""
        run = self.carry_out if current_trace() is None else self._traced
        return run(x, spec, request, runner, stream)

    def carry_out(  # noqa: PLR0917 - on the way of every conversion
        self,
        x: Any,
        spec: Spec,
        request: Request,
        runner: Runner,
        stream: Any,
        dress: _Dress | None = None,
    ) -> Any:
        """Carry out the steps on `x`."""
        if runner.wary:
            _take_care(spec, runner, self._registry)
        try:
            result = runner(x, stream)
        except Halt as halt:
            return self._go_on(halt, request, stream, dress)
        if not runner.verified:
            self._verify(spec, result, runner)
        return result

    def write(  # noqa: PLR0917 - called in one place
        self, x: Any, spec: Spec, out: Any, into: Spec, request: Request, stream: Any
    ) -> bool:
        """Let the step that would write the result write it into `out`, if it can.

        Only views may follow that step. `out` is then handed over, without a copy, to the format
        that the step writes.
        """
        try:
            steps = self.route(spec, request).steps
            last = max((n for n, step in enumerate(steps) if step.writes), default=-1)
            step = steps[last] if last >= 0 and current_trace() is None else None
            if step is None or step.into is None or step.after.carrier:
                return False
            view = self._view(step.after.format)
            place = self.carry_out(out, into, view, self.route(into, view), stream)
            Runner((*steps[:last], step._replace(call=partial(step.into, place))))(x, stream)
        except (Halt, RefusedError):
            return False
        return True

    def _view(self, target: str) -> Request:
        """Return the request for a view of ``out=``, to which nothing else may happen."""
        key = (self._registry.version, target)
        if key not in self._views:
            self._views = {key: Request((target,), copy=False, policy=Policy(frozenset()))}
        return self._views[key]

    def _go_on(
        self,
        halt: Halt,
        request: Request,
        stream: Any,
        dress: _Dress | None,
        *,
        without: frozenset[object] = frozenset(),
        declined: tuple[str, ...] = (),
    ) -> Any:
        """Plan again from where a step has declined, without that step.

        If all ways end, each reason is given, the first of them for the way that was preferred.
        """
        without |= {halt.step.place}
        declined = (*declined, f"{halt.step.label} declined: {halt}")
        expected = halt.step.before
        spec = self._registry.describe(halt.value)
        if expected.carrier:  # the value itself does not know whose bits it carries
            spec = spec._replace(dtype=expected.dtype, carrier=expected.carrier)
        with self._lock:
            found = self._planner.route(spec, request, without)
            if found is None:
                nearest = list(alternatives(self._planner, spec, request, without))
                error = refusal(self._planner, spec, request, nearest)
                those = "it" if len(declined) == 1 else "them"
                msg = f"{'; '.join(declined)}. Without {those}: {error}"
                raise RefusedError(msg, error.effects) from halt.reason
        runner = Runner(tuple(found[1]))
        _log.debug("%s declined (%s); going on by %s", halt.step.label, halt, _Names(runner.steps))
        try:
            return (dress(runner) if dress else runner)(halt.value, stream)
        except Halt as again:
            return self._go_on(again, request, stream, dress, without=without, declined=declined)

    def _verify(self, spec: Spec, result: Any, runner: Runner) -> None:
        """Compare the first result of a route with what the plan promised."""
        planned, got = runner.steps[-1].after, self._registry.describe(result)
        forgets = self._registry.formats[planned.format].forgets
        same = (
            got.format == planned.format
            and (got.dtype == planned.dtype or "dtype" in forgets)
            and (got.shape == spec.shape or "shape" in forgets or "unknown_shape" in spec.traits)
            and matches(got.device, planned.device)
        )
        if not same:
            step = runner.steps[-1]
            msg = (
                f"{' → '.join(s.label for s in runner.steps)} promised {planned.format} "
                f"{planned.dtype} {spec.shape} on {planned.device} and gave {got}; report it to "
                f"{step.provenance.distribution}."
            )
            raise ConversionError(msg, step.label, step.provenance.distribution)
        runner.verified = True

    def _check_installed(self, request: Request) -> None:
        formats = [self._registry.formats[name] for name in request.formats]
        missing = [one for one in formats if one.requires and not importable(one.requires)]
        if missing and len(missing) == len(formats):
            one = missing[0]
            install = one.install or f"pip install {one.requires}"
            msg = f"{one.name} needs {one.requires}, which is not installed; {install}"
            raise NotInstalledError(msg, name=one.requires)

    def _traced(self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        recorder = Recorder(trace, self._registry)
        watched = recorder.watching(runner)
        result = self.carry_out(x, spec, request, watched, stream, recorder.watching)
        trace.record(recorder.receipt(x, spec, result))
        return result


class _Names:
    """The names of some steps, put together only if somebody reads them."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps

    def __str__(self) -> str:
        return " → ".join(step.label for step in self._steps) or "returned as it is"


def _take_care(spec: Spec, runner: Runner, registry: Registry) -> None:
    """See to what has to be seen to before the first step."""
    if runner.advice:
        advise(runner.advice)
    if runner.fills:
        _check_memory(spec, runner, registry)


def _check_memory(spec: Spec, runner: Runner, registry: Registry) -> None:
    """Refuse to make an array dense, or to compute a lazy one, on the host if it does not fit."""
    for step in runner.steps:
        needed = spec.size * itemsize(step.after.dtype)
        if needed > _SMALL and step.effects & FILLING and step.after.device == "cpu":
            target = registry.formats[step.after.format]
            if target.lazy or not target.is_dense:
                continue
            available = available_memory()
            if available is not None and needed > available:
                lazy = "materialize" in step.effects
                what, kind = ("the result of", "lazy") if lazy else ("the dense form of", "sparse")
                msg = (
                    f"{what} {spec} takes {readable(needed)}, and {readable(available)} of memory "
                    f"are available; ask for a {kind} format or a narrower dtype=, or convert it "
                    "in parts."
                )
                raise DensifyMemoryError(msg)
