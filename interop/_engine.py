"""The engine: finds the route for a value, carries it out, and holds it to what was planned."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from ._device import matches
from ._dtype import itemsize
from ._memory import available_memory, readable
from ._planner import Planner
from ._policy import Policy
from ._refusal import alternatives, refusal
from ._registry import Registry
from ._request import Request
from ._runner import Halt, Runner
from ._spec import Spec, representative, spec_class
from ._trace import Receipt, current_trace, shares_memory
from .errors import ConversionError, DensifyMemoryError, NotInstalledError, RefusedError

__all__ = ["Engine", "framework_state", "importable"]

#: Bytes that fit anywhere: to ask how much memory is left takes as long as to fill a few MiB.
_SMALL = 2**26


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
                raise refusal(self._planner, spec, request, nearest)
        runner = request.routes[key] = Runner(tuple(found[1]))
        return runner

    def run(self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any) -> Any:
        """Carry out the steps on `x`, leaving a receipt if a trace is open."""
        run = self.carry_out if current_trace() is None else self._traced
        return run(x, spec, request, runner, stream)

    def carry_out(self, x: Any, spec: Spec, request: Request, runner: Runner, stream: Any) -> Any:
        """Carry out the steps on `x`."""
        if runner.densifies:
            _check_memory(spec, runner)
        try:
            result = runner(x, stream)
        except Halt as halt:
            return self._go_on(halt, request, stream, frozenset())
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

    def _go_on(self, halt: Halt, request: Request, stream: Any, without: frozenset[object]) -> Any:
        """Plan again from where a step has declined, without that step."""
        without |= {halt.step.place}
        expected = halt.step.before
        spec = self._registry.describe(halt.value)
        if expected.carrier:  # the value itself does not know whose bits it carries
            spec = spec._replace(dtype=expected.dtype, carrier=expected.carrier)
        with self._lock:
            found = self._planner.route(spec, request, without)
            if found is None:
                nearest = list(alternatives(self._planner, spec, request, without))
                error = refusal(self._planner, spec, request, nearest)
                msg = f"{halt.step.label} declined: {halt}. Without it: {error}"
                raise RefusedError(msg, error.effects) from halt.reason
        try:
            return Runner(tuple(found[1]))(halt.value, stream)
        except Halt as again:
            return self._go_on(again, request, stream, without)

    def _verify(self, spec: Spec, result: Any, runner: Runner) -> None:
        """Compare the first result of a route with what the plan promised."""
        planned, got = runner.steps[-1].after, self._registry.describe(result)
        forgets = self._registry.formats[planned.format].forgets
        same = (
            got.format == planned.format
            and (got.dtype == planned.dtype or "dtype" in forgets)
            and (got.shape == spec.shape or "shape" in forgets)
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
        receipts = current_trace()
        seconds: list[float] = []
        timed = Runner(tuple(s._replace(call=_timed(s.call, seconds)) for s in runner.steps))
        result = self.carry_out(x, spec, request, timed, stream)
        after = self._registry.describe(result)
        receipt = Receipt(
            spec,
            after,
            tuple(step.label for step in runner.steps),
            frozenset(effect for step in runner.steps for effect in step.effects),
            tuple(seconds),
            after.nbytes,
            shares_memory(self._registry, x, result),
        )
        if receipts is not None:
            receipts.append(receipt)
        return result


def _check_memory(spec: Spec, runner: Runner) -> None:
    """Refuse to make a sparse array dense on the host if that does not fit there."""
    for step in runner.steps:
        needed = spec.size * itemsize(step.after.dtype)
        if needed > _SMALL and "densify" in step.effects and step.after.device == "cpu":
            available = available_memory()
            if available is not None and needed > available:
                msg = (
                    f"the dense form of {spec} takes {readable(needed)}, and "
                    f"{readable(available)} of memory are available; ask for a sparse format or "
                    "a narrower dtype=, or convert it in parts."
                )
                raise DensifyMemoryError(msg)


def _timed(call: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def timed(value: Any, **keywords: Any) -> Any:
        start = perf_counter()
        result = call(value, **keywords)
        seconds.append(perf_counter() - start)
        return result

    return timed


def framework_state(module: str) -> str:
    """Tell whether a framework is ``"imported"``, ``"installed"`` or ``"missing"``."""
    if not module or module in sys.modules:
        return "imported"
    return "installed" if importable(module) else "missing"


_found: dict[str, bool] = {}


def importable(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    found = _found.get(module)
    if found is None:
        from importlib.util import find_spec

        try:
            found = find_spec(module) is not None
        except (ImportError, ValueError):
            found = False
        _found[module] = found
    return found
