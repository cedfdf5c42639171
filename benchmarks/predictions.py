"""Predicted against measured time, for routes between all formats that are installed."""

from __future__ import annotations

import math
import random
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from scipy.stats import spearmanr

from interop import Interop, InteropError
from interop._planning.plan import StepDeclined, run
from interop.testing._sample import NoSample, Recipe, sample

__all__ = ["Prediction", "Summary", "rows", "summary"]

_SIDES = (8, 300, 2000)
#: Routes that take more seconds than the first are left out; each is timed for the second.
_TOO_LONG, _BUDGET = 0.5, 0.02


class Prediction(NamedTuple):
    """A route, with the time that its plan estimates and the time that it takes."""

    name: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """The factor by which the estimate is off."""
        return math.exp(abs(math.log(self.predicted / self.measured)))


class Summary(NamedTuple):
    """The accuracy of predictions.

    Parameters
    ----------
    count : int
    rank_correlation : float
        Spearman's.
    median_ratio, worst_ratio : float
        The factor by which estimates are off.
    worst : str
        The route that is the furthest off.
    """

    count: int
    rank_correlation: float
    median_ratio: float
    worst_ratio: float
    worst: str


def rows(most: int = 300) -> list[Prediction]:
    """Return predictions for up to `most` routes, always the same ones."""
    interop = Interop()
    formats = [
        f.format
        for f in interop.formats()
        if f.state != "missing" and "cpu" in f.format.devices and not f.format.protocol
    ]
    cases = [
        (side, source.name, target.name, keywords)
        for side in _SIDES
        for source in formats
        for target in formats
        for keywords in ({}, {"dtype": "float64"}, {"copy": True})
    ]
    random.Random(0).shuffle(cases)
    predictions: list[Prediction] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            if len(predictions) == most:
                break
            predictions += _measured(interop, *case)
    return predictions


def _measured(
    interop: Interop, side: int, source: str, target: str, keywords: dict[str, Any]
) -> list[Prediction]:
    """Return the prediction for one route, if there is a route and it is not too long."""
    sparse = any(interop._registry.formats[name].index_dtypes for name in (source, target))
    request = Recipe(source, "float32", (side, side), density=0.03 if sparse else 1.0)
    try:
        value = sample(interop, request)
        route = interop.plan(value, to=target, **keywords)
        call = partial(run, route.steps)
        call(value)
        seconds = _seconds(call, value)
    except (NoSample, InteropError, StepDeclined):
        return []
    if not route.steps or max(route.cost, seconds) > _TOO_LONG:
        return []
    labels = " → ".join(step.label for step in route.steps)
    return [Prediction(f"{source} {side}²: {labels}", route.cost, seconds)]


def _seconds(call: Callable[[Any], Any], value: Any) -> float:
    """Return the median time of a few runs."""
    times: list[float] = []
    start = perf_counter()
    while len(times) < 3 or (perf_counter() - start < _BUDGET and len(times) < 200):
        before = perf_counter()
        call(value)
        times.append(perf_counter() - before)
    return statistics.median(times)


def summary(predictions: list[Prediction]) -> Summary:
    """Return the accuracy of predictions."""
    ranks = spearmanr(
        [p.predicted for p in predictions], [p.measured for p in predictions]
    ).statistic
    worst = max(predictions, key=lambda p: p.ratio)
    median = statistics.median(p.ratio for p in predictions)
    return Summary(len(predictions), float(ranks), median, worst.ratio, worst.name)
