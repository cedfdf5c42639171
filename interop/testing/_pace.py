"""Pace: whether a step takes about as long as its declaration says."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from time import perf_counter, thread_time
from typing import Any

from interop._execution.memory import give_back
from interop._planning.step import Step

__all__ = ["judged_cost"]

#: How many times longer or shorter than declared a call may take: an order of magnitude, and as
#: much again as machines differ from the one it was measured on.
_FACTOR = 30.0
#: Seconds that calling anything takes, and that no declaration can be blamed for.
_CALL = 1e-6
#: The sides of the values that it is tried on. The largest is so large that it counts most how fast
#: bytes go.
_SIDES = (4, 256, 1500)
_ROUNDS = 5
#: Seconds for one call beyond which a larger value is not tried.
_TOO_LONG = 0.3

_Prepared = Callable[[tuple[int, ...]], tuple[Any, Step]]


def judged_cost(label: str, prepared: _Prepared) -> str:
    """Say how a step's declared cost is wrong; "" if it is about right.

    The least time of several rounds counts, which a busy machine does not raise by much. What looks
    wrong is measured once more.

    Parameters
    ----------
    label : str
    prepared : callable
        ``prepared(shape)`` gives a value and the step on it.
    """
    grows = 0.0
    for side in _SIDES:
        # What takes that long already would take minutes on more.
        if grows * side * side > _TOO_LONG:
            break
        value, step = prepared((side, side))
        # Smaller results lie in memory used before: costs tell caches and fresh memory apart.
        seconds, problem = _judged(label, value, step, fresh=side == _SIDES[-1])
        if problem:
            return problem
        grows = seconds / (side * side) if side > _SIDES[0] else 0.0
    return ""


def _judged(label: str, value: Any, step: Step, *, fresh: bool) -> tuple[float, str]:
    """Return the seconds that a step takes, and what is wrong with its declared cost."""
    seconds = ratio = 0.0
    for attempt in range(3):
        first, seconds, busy = _least(partial(step.call, value), attempt, fresh=fresh)
        # A framework may keep what it has once converted; while others keep the processor busy, a
        # thread that waits has not taken longer by itself.
        ratio = (max(first, seconds) + _CALL) / (step.seconds + _CALL)
        if ratio < 1 and step.aliases and step.writes:
            return seconds, ""  # it was lucky, and could share
        if ratio > 1:
            ratio = max(1.0, (min(busy, seconds) + _CALL) / (step.seconds + _CALL))
        if 1 / _FACTOR < ratio < _FACTOR:
            return seconds, ""
    wrong = f"{ratio:.0f} times as long as" if ratio > 1 else f"a {1 / ratio:.0f}th of"
    said = f"{_shown(seconds)} where {_shown(step.seconds)} are declared"
    return seconds, f"{label} takes {wrong} its declared cost ({said}; {step.before})"


def _least(call: Callable[[], Any], attempt: int, *, fresh: bool) -> tuple[float, float, float]:
    """Return the seconds of the first call, of later ones at least, and those they are busy."""
    first, _ = _both(call, 1)  # it may have to import or to compile
    once = _both(call, 1)
    if once[0] > _TOO_LONG:
        return first, *once
    # Of several calls in a row only the first would find the memory given back.
    number = 1 if fresh else max(1, min(200, int(5e-4 / max(once[0], 1e-7))))
    gc.collect(0)
    rounds = [once, *(_both(call, number, fresh) for _ in range(_ROUNDS * (attempt + 1)))]
    return first, min(wall for wall, _ in rounds), min(busy for _, busy in rounds)


def _both(call: Callable[[], Any], number: int, fresh: bool = False) -> tuple[float, float]:
    """Return the seconds a call takes by the clock and by the processor, of some calls in a row."""
    if fresh:  # or its result would lie in what the one before has left, which is faster
        give_back()
    start, busy = perf_counter(), thread_time()
    for _ in range(number):
        call()
    return (perf_counter() - start) / number, (thread_time() - busy) / number


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
