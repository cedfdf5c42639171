"""Timing: calls against each other on a noisy machine.

Small calls are timed by the processor time of their thread, which leaves out the time of other
programs. Large calls may use several threads, so they are timed by the clock on the wall.
"""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Mapping, Sequence
from time import thread_time
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np

from interop._execution.memory import give_back

__all__ = ["Row", "against", "back_memory", "compare", "interleaved", "small"]


#: Bytes of memory that a statement and its alternative may take at a time.
_TAKEN = 2**29


class Row(NamedTuple):
    """One comparison.

    Parameters
    ----------
    name : str
    ours, theirs : float
        Seconds for one call: the median over the rounds.
    ratio : float
        Median over the rounds of ours divided by theirs, each pair taken one after the other.
    spread : float
        The factor by which the middle four fifths of the rounds' ratios differ from it.
    limit : Row or None
        The comparison with this machine's limit, if that was measured.
    """

    name: str
    ours: float
    theirs: float
    ratio: float
    spread: float = 1.0
    limit: Row | None = None


def compare(
    name: str,
    ours: Timer,
    theirs: Timer,
    *,
    rounds: int = 21,
    budget: float = 0.01,
    fresh: bool = False,
    limits: Sequence[Timer] = (),
) -> Row:
    """Time two statements in turn, so that changes of the machine's speed affect both.

    Parameters
    ----------
    name : str
    ours, theirs : timeit.Timer
    rounds : int
        Pairs of measurements.
    budget : float
        Seconds that one measurement should take.
    fresh : bool
        Whether to give freed memory back to the system before each measurement. Otherwise memory
        that one statement leaves in the allocator would spare the next one its page faults.
    limits : sequence of timeit.Timer
        Copies; the fastest is the machine's limit.
    """
    timers = {"ours": ours, "theirs": theirs, **{f"limit {n}": t for n, t in enumerate(limits)}}
    times = interleaved(timers, rounds=rounds, budget=budget, fresh=fresh)
    ours_each, theirs_each, *limits_each = times.values()
    row = against(name, ours_each, theirs_each)
    if limits_each:
        fastest = min(limits_each, key=statistics.median)
        row = row._replace(limit=against(name, ours_each, fastest))
    return row


def interleaved(
    timers: Mapping[str, Timer], *, rounds: int = 21, budget: float = 0.01, fresh: bool = False
) -> dict[str, list[float]]:
    """Return the seconds of each statement in each round; in a round all take their turn."""
    # With fresh memory one call is timed: a second call would use the memory of the first.
    numbers = {name: 1 if fresh else _number(timer, budget) for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    if fresh:
        back_memory()
    for _ in range(rounds):
        gc.collect(0)
        for name, timer in timers.items():
            if fresh:
                give_back()
            times[name].append(timer.timeit(numbers[name]) / numbers[name])
    return times


def back_memory() -> None:
    """Touch as much memory as any statement takes, and give it back.

    On a virtual machine the host may have to provide freed blocks again, page by page, which takes
    ten times as long as clearing them. This does it before the measurements, so that it does not
    hit one of the statements by chance.
    """
    np.ones(_TAKEN, np.uint8)
    give_back()


def against(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    """Compare two lists of times, round by round."""
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    tenth = len(ratios) // 10
    spread = math.sqrt(ratios[-1 - tenth] / ratios[tenth])
    ratio = statistics.median(ratios)
    return Row(name, statistics.median(ours), statistics.median(theirs), ratio, spread)


def small(statement: str, names: Mapping[str, Any]) -> Timer:
    """Return the timer of a statement that takes microseconds, in one thread."""
    return Timer(statement, timer=thread_time, globals=dict(names))


def _number(timer: Timer, budget: float) -> int:
    once = min(timer.repeat(3, 1))
    return max(1, min(100_000, int(budget / max(once, 1e-8))))
