"""Pace: a step takes about as long as its declaration says."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from time import perf_counter, sleep, thread_time

from interop._execution.memory import give_back
from interop._model.typing import Value
from interop._planning.step import Step

#: The factor by which a call may miss its declared cost: an order of magnitude, times three for the
#: difference between this machine and the one where the cost was measured.
_FACTOR = 30.0
#: Seconds that any call takes, which are no fault of the declaration.
_CALL = 1e-6
#: Lengths of the axes of the values that are tried. The largest shows the time for each byte.
_SIDES = (4, 256, 1500)
_ROUNDS = 5
#: Seconds for one call beyond which a larger value is not tried.
_TOO_LONG = 0.3
#: Seconds to rest before a suspicious time is measured again. Whoever has rested is let run at
#: once, and for longer than a round takes, also where others keep all processors busy.
_REST = 0.1

_Prepared = Callable[[tuple[int, ...]], tuple[Value, Step]]


def problem_of_cost(label: str, prepared: _Prepared) -> str:
    """Say how a step's declared cost is wrong; "" if it is about right.

    The least time of several rounds counts, because a busy machine hardly raises it, less what
    other programs take of it. A suspicious time is measured again.

    Parameters
    ----------
    label : str
    prepared : callable
        ``prepared(shape)`` returns a value and the step on it.
    """
    per_element = 0.0
    for side in _SIDES:
        # Such a slow call would take minutes on a larger value.
        if per_element * side * side > _TOO_LONG:
            break
        value, step = prepared((side, side))
        # Only the largest result needs fresh memory, which costs tell from caches.
        few, fresh = side == _SIDES[0], side == _SIDES[-1]
        seconds, problem = _compared(label, value, step, few=few, fresh=fresh)
        if problem:
            return problem
        per_element = seconds / (side * side) if side > _SIDES[0] else 0.0
    return ""


def _compared(label: str, value: Value, step: Step, *, few: bool, fresh: bool) -> tuple[float, str]:
    """Return the seconds that a step takes, and what is wrong with its declared cost."""
    seconds = ratio = 0.0
    for attempt in range(3):
        sleep(attempt * _REST)
        first, seconds, busy = _least(partial(step.call, value), attempt, fresh=fresh)
        # The first call counts as well, because a framework may cache what it converts.
        ratio = (max(first, seconds) + _CALL) / (step.seconds + _CALL)
        if ratio < 1 and step.aliases and step.writes:
            return seconds, ""  # it could share memory this time
        if ratio > 1:
            # Processor time leaves out the time in which others kept the processor busy, but also
            # that in which a call sleeps. On tiny values that is told apart.
            own = seconds * _share(seconds) if few else min(busy, seconds)
            ratio = max(1.0, (own + _CALL) / (step.seconds + _CALL))
        if 1 / _FACTOR < ratio < _FACTOR:
            return seconds, ""
    proportion = f"{ratio:.0f} times as long as" if ratio > 1 else f"a {1 / ratio:.0f}th of"
    facts = f"{_shown(seconds)} where {_shown(step.seconds)} are declared; {step.before}"
    return seconds, f"{label} takes {proportion} its declared cost ({facts})"


def _least(call: Callable[[], Value], attempt: int, *, fresh: bool) -> tuple[float, float, float]:
    """Return the seconds of the first call, the least of later ones, and the least busy time."""
    first, _ = _seconds(call, 1)  # the first call may import or compile
    second = _seconds(call, 1)
    if second[0] > _TOO_LONG:
        return first, *second
    # Only the first of several calls in a row would get fresh memory.
    calls = 1 if fresh else max(1, min(200, int(5e-4 / max(second[0], 1e-7))))
    gc.collect(0)
    rounds = [second, *(_seconds(call, calls, fresh) for _ in range(_ROUNDS * (attempt + 1)))]
    return first, min(wall for wall, _ in rounds), min(busy for _, busy in rounds)


def _seconds(call: Callable[[], Value], calls: int, fresh: bool = False) -> tuple[float, float]:
    """Return the seconds of one call of several, by the clock and by the processor."""
    if fresh:  # memory that the last result has left would be faster
        give_back()
    start, busy = perf_counter(), thread_time()
    for _ in range(calls):
        call()
    return (perf_counter() - start) / calls, (thread_time() - busy) / calls


def _share(seconds: float) -> float:
    """Return the share of some seconds in which a processor is this thread's, at best."""

    def share() -> float:
        start, busy = perf_counter(), thread_time()
        while perf_counter() - start < seconds:
            pass
        return (thread_time() - busy) / (perf_counter() - start)

    return max(share() for _ in range(_ROUNDS))


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
