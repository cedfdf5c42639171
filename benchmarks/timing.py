"""Timing two things against each other on a noisy machine."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Iterable
from timeit import Timer
from typing import NamedTuple

__all__ = ["Row", "compare", "geometric_mean", "report"]


class Row(NamedTuple):
    """One comparison.

    Parameters
    ----------
    name : str
    ours, theirs : float
        Seconds for one call: the median over the rounds.
    ratio : float
        Median over the rounds of ours divided by theirs, each pair taken one after the other.
    """

    name: str
    ours: float
    theirs: float
    ratio: float


def compare(
    name: str,
    ours: Timer,
    theirs: Timer,
    *,
    rounds: int = 21,
    budget: float = 0.01,
) -> Row:
    """Time two statements in turn, so that a drift of the machine's speed meets both alike.

    Parameters
    ----------
    name : str
    ours, theirs : timeit.Timer
    rounds : int
        Pairs of measurements.
    budget : float
        Seconds that one measurement should take.
    """
    timers = ours, theirs
    numbers = [_number(timer, budget) for timer in timers]
    pairs = []
    for _ in range(rounds):
        gc.collect(0)
        pairs.append([t.timeit(n) / n for t, n in zip(timers, numbers, strict=True)])
    mine, other = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(name, statistics.median(mine), statistics.median(other), ratio)


def _number(timer: Timer, budget: float) -> int:
    once = min(timer.repeat(3, 1))
    return max(1, min(100_000, int(budget / max(once, 1e-8))))


def geometric_mean(rows: Iterable[Row]) -> float:
    """Return the geometric mean of the rows' ratios."""
    return math.exp(statistics.fmean(math.log(row.ratio) for row in rows))


def report(title: str, rows: list[Row], *, unit: float, name: str, inverse: bool = False) -> None:
    """Print rows as a table, times in `unit` seconds, and the geometric mean below."""
    width = max(len(row.name) for row in rows)
    print(f"\n{title}\n{'':{width}}  {'interop':>10}  {'by hand':>10}  ratio")
    for row in rows:
        ratio = 1 / row.ratio if inverse else row.ratio
        times = f"{row.ours / unit:8.1f} {name}  {row.theirs / unit:8.1f} {name}"
        print(f"{row.name:{width}}  {times}  {ratio:5.2f}")
    mean = geometric_mean(rows)
    print(f"{'geometric mean':{width}}  {'':>10}  {'':>10}  {1 / mean if inverse else mean:5.2f}")
