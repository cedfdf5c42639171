"""Calibration: what every declared conversion costs here, measured on real samples.

Each conversion is timed on three samples of its source: a tiny one, one that fits in the caches,
and one whose result needs fresh memory. Conversions of one sample are timed in turn, round after
round. The least time of all rounds counts, because a busy machine can only add to it.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import fmean, geometric_mean
from time import perf_counter
from timeit import Timer
from typing import TYPE_CHECKING, NamedTuple

from interop._api.inspection import Inspection
from interop._execution.memory import give_back
from interop._model.cost import CACHED, Cost
from interop._model.dtype import bit_carrier, itemsize
from interop._model.typing import Value
from interop._planning.conversion import ResolvedConversion
from interop._planning.step import Step
from interop._registry.declared import Declared
from interop._registry.installed import not_installed
from interop._registry.registry import Registry

from ._sample import (
    REFUSALS,
    NoSample,
    Recipe,
    fitted,
    preferred,
    recipe_for,
    sample,
    step_on,
)

if TYPE_CHECKING:
    from interop._api.interop import Interop

Progress = Callable[[int, int, str], None]

#: How many dtypes are tried before a sample is given up.
_TRIES = 5
#: Lengths of the axes of the three samples, of dense and of sparse values.
_SMALL, _MIDDLE, _LARGE = _SIDES = 4, 384, 3072
_DENSITY = 0.05  # of sparse values; small ones have half, so that they have any elements
#: Bytes of the largest block that an allocator may hand out again instead of asking the system.
_RECYCLED = 2**25

#: Seconds for all rounds of one conversion on one sample, and the most rounds.
_BUDGET, _ROUNDS = 0.05, 20
#: Seconds for one call beyond which a conversion is not tried on a larger sample.
_TOO_LONG = 0.12


class Calibration(NamedTuple):
    """The costs that were measured.

    Parameters
    ----------
    costs : dict of str to Cost
        By `Declared.key`; the costs of packing composite values by the names of their formats.
    skipped : dict of str to str
        Why the others were not measured.
    seconds : float
    """

    costs: dict[str, Cost]
    skipped: dict[str, str]
    seconds: float


class _Case(NamedTuple):
    """One conversion, on one kind of sample, to one dtype."""

    key: str
    conversion: ResolvedConversion
    recipe: Recipe
    dtype: str | None

    def at(self, side: int) -> Recipe:
        """Return the recipe of a sample with axes of a length."""
        shape = fitted((side, side), self.conversion)
        if shape and side == _LARGE and self.conversion.target.is_dense:
            # Large enough that a result of this dtype cannot lie in memory that was used before.
            width = itemsize(self.dtype or self.recipe.dtype)
            longer = max(1, -(-_RECYCLED // (side * side * width)))
            shape = (shape[0] * longer, *shape[1:])
        density = 0.5 if side == _SMALL and self.recipe.density < 1 else self.recipe.density
        return self.recipe._replace(shape=shape, density=density)


class _Timed(NamedTuple):
    """A conversion that is ready to be timed, and the number of calls in one round."""

    step: Step
    timer: Timer
    calls: int


class _Measured(NamedTuple):
    """Bytes and seconds of one conversion on one sample."""

    nbytes: int
    seconds: float


def calibrate(
    interop: Interop, progress: Progress | None = None, *, budget: float = 50.0
) -> Calibration:
    """Measure what every conversion in force costs on this machine.

    Parameters
    ----------
    interop : Interop
    progress : callable, optional
        ``progress(done, total, what)``, called before each sample and at the end.
    budget : float
        Seconds after which no further value is made. Conversions that were not measured at every
        size keep their declared costs.

    Returns
    -------
    Calibration
    """
    start = perf_counter()
    bench = _Bench(interop, start + budget)
    groups = bench.groups()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, ((side, recipe), cases) in enumerate(groups.items()):
            if progress:
                progress(number, len(groups), f"{recipe.format} {recipe.dtype}")
            bench.measure(side, recipe, cases)
        costs = {**dict(_pack_costs(interop)), **bench.costs()}
    if progress:
        progress(len(groups), len(groups), "")
    skipped = {key: reason for key, reason in bench.skipped.items() if key not in costs}
    return Calibration(costs, skipped, perf_counter() - start)


# ---------------------------------------------------------------------- what to measure


def _cases(interop: Interop, skipped: dict[str, str]) -> Iterator[_Case]:
    """Yield the cases that can be measured here, and note why the others cannot."""
    registry = Inspection(interop).registry
    for declared in registry.conversions:
        try:
            yield from _cases_of(interop, declared.key, _resolved(registry, declared))
        except NoSample as reason:
            skipped[declared.key] = str(reason)


def _resolved(registry: Registry, declared: Declared) -> ResolvedConversion:
    """Return a conversion from its source or, if that is a protocol, from an exporter of it."""
    conversion, formats = declared.conversion, registry.formats
    absent = {conversion.source, conversion.target} - registry.sources
    if absent:
        msg = f"{min(absent)} is not registered"
        raise NoSample(msg)
    exporters = (other for other in formats.values() if conversion.source in other.exports)
    source = formats.get(conversion.source) or next(exporters)
    target = formats[conversion.target]
    if problem := not_installed(source) or not_installed(target):
        raise NoSample(problem)
    return ResolvedConversion(declared, source, target)


def _cases_of(interop: Interop, key: str, conversion: ResolvedConversion) -> Iterator[_Case]:
    """Yield the cases of one conversion.

    Raises
    ------
    NoSample
        No value that it takes can be made here.
    """
    recipe = recipe_for(conversion, _DENSITY)
    devices = _devices(conversion)
    failure = None if devices else NoSample("it does not run on the host, or does not end there")
    for device in devices:
        for first in preferred(conversion.dtypes)[:_TRIES]:
            cases = [
                _Case(key, conversion, recipe._replace(dtype=dtype, device=device), target)
                for dtype, target in _pairs(conversion, first)
            ]
            try:
                sample(interop, cases[0].at(_SMALL))
            except NoSample as reason:
                failure = reason
            else:
                yield from cases
                break
    if failure:
        raise failure


def _devices(conversion: ResolvedConversion) -> list[str]:
    declared = conversion.conversion
    devices = [
        d for d in conversion.source.devices if declared.devices is None or d in declared.devices
    ]
    if "device" not in declared.changes:
        return ["cpu"] if "cpu" in devices else []
    # A result on the host is sure to be complete when the call returns.
    ends = declared.result.devices or conversion.target.devices
    return [device for device in devices if device != "cpu" and "cpu" in ends]


def _pairs(conversion: ResolvedConversion, first: str) -> list[tuple[str, str | None]]:
    """Return up to three typical pairs of dtypes, the first of which starts from `first`."""
    result, target = conversion.conversion.result, conversion.target
    if conversion.bits == "restore":
        carried = preferred(dtype for dtype in target.dtypes if bit_carrier(dtype) == first)
        return [(first, dtype) for dtype in carried[:1]]
    if "dtype" not in conversion.conversion.changes:
        return [(first, None)]
    targets = preferred(target.dtypes if result.dtypes is None else result.dtypes)
    others = [dtype for dtype in preferred(conversion.dtypes) if dtype != first][:1]
    return [
        *((first, dtype) for dtype in targets[:2]),
        *((other, next((dtype for dtype in targets if dtype != other), None)) for other in others),
    ]


# ---------------------------------------------------------------------- measuring


class _Bench:
    """The conversions to measure before a deadline, and the measurements so far."""

    def __init__(self, interop: Interop, deadline: float) -> None:
        self.skipped: dict[str, str] = {}
        self._interop = interop
        self._deadline = deadline
        cases = _cases(interop, self.skipped)
        self._points: dict[_Case, list[_Measured]] = {case: [] for case in cases}
        #: How many measurements are still to come.
        self._remaining = len(self._points) * len(_SIDES)

    def groups(self) -> dict[tuple[int, Recipe], list[_Case]]:
        """Return the conversions in groups that share a sample, small samples first."""
        groups: dict[tuple[int, Recipe], list[_Case]] = {}
        for side in _SIDES:
            for case in self._points:
                groups.setdefault((side, case.at(side)), []).append(case)
        return groups

    def measure(self, side: int, recipe: Recipe, cases: list[_Case]) -> None:
        """Measure the conversions of one sample."""
        self._remaining -= len(cases)
        cases = [case for case in cases if self._is_worthwhile(case, side)]
        if not cases:
            return
        if perf_counter() > self._deadline:
            self._skip(cases, "there was no time left")
            return
        try:
            value = sample(self._interop, recipe)
        except NoSample as reason:
            self._skip(cases, str(reason))
        else:
            self._time(value, cases, fresh=side == _LARGE)

    def _skip(self, cases: Iterable[_Case], reason: str) -> None:
        for case in cases:
            self.skipped[case.key] = reason
            self._points[case].clear()

    def _is_worthwhile(self, case: _Case, side: int) -> bool:
        """Tell whether to measure a conversion at a size, judging by the smaller sizes."""
        if side == _SMALL:
            return True
        points = self._points[case]
        if case.conversion.conversion.cost.bandwidth is None or not points:
            return False
        return side == _MIDDLE or points[-1].seconds * (_LARGE / _MIDDLE) ** 2 < _TOO_LONG

    def _time(self, value: Value, cases: list[_Case], *, fresh: bool) -> None:
        """Time several conversions of one value in turn."""
        spec = self._interop.spec(value)
        timed: dict[_Case, _Timed] = {}
        for case in cases:
            step = step_on(case.conversion, spec, case.dtype, "cpu")
            if step is None:
                self._skip([case], f"it does not take {spec}")
                continue
            try:
                if not self._points[case]:
                    step.call(value)  # the first call may have to import
                seconds = Timer(partial(step.call, value)).timeit(1)
            except REFUSALS as reason:
                self._skip([case], f"it refused {spec}: {reason}".partition("\n")[0])
            else:
                # Only the first of several calls gets fresh memory. Other rounds take 1 ms.
                calls = 1 if fresh else max(1, min(1000, int(1e-3 / max(seconds, 1e-7))))
                timed[case] = _Timed(step, Timer(_repeated_call(case, step, value)), calls)
        # Leave time for the measurements that come last.
        share = (self._deadline - perf_counter()) / (self._remaining + len(cases))
        for case, seconds in _in_turn(timed, min(_BUDGET, share), fresh=fresh).items():
            nbytes = spec.nbytes + timed[case].step.after.nbytes
            self._points[case].append(_Measured(nbytes, seconds))

    def costs(self) -> dict[str, Cost]:
        """Return what the measurements come to."""
        costs: dict[str, list[Cost]] = {}
        for case, points in self._points.items():
            if points:
                declared = case.conversion.conversion.cost
                costs.setdefault(case.key, []).append(_fitted(declared, points))
        return {key: _mean(measured) for key, measured in costs.items()}


def _repeated_call(case: _Case, step: Step, value: Value) -> Callable[[], Value]:
    """Return the call that a route with this step makes once it is planned: its fast path, if any.

    The cost of a protocol's conversion holds for all formats that export by it, but its fast path
    serves foreign values only.
    """
    fast_path = None if case.conversion.source.protocol else step.fast_path
    if fast_path is not None and fast_path(value) is not NotImplemented:
        return partial(fast_path, value)
    return partial(step.call, value)


def _in_turn(timed: dict[_Case, _Timed], budget: float, *, fresh: bool) -> dict[_Case, float]:
    """Return the least time of each conversion over rounds in which all take turns.

    Rounds go on for `budget` seconds a conversion. With `fresh`, no result lies in memory that an
    earlier result has left in the allocator.
    """
    seconds: dict[_Case, list[float]] = {case: [] for case in timed}
    gc.collect(0)
    start = perf_counter()
    for number in range(_ROUNDS):
        for case, (_, timer, calls) in timed.items():
            if not _is_settled(seconds[case]):
                if fresh:
                    give_back()
                seconds[case].append(timer.timeit(calls) / calls)
        if number and perf_counter() - start > budget * len(timed):
            break
    return {case: min(rounds) for case, rounds in seconds.items()}


def _is_settled(rounds: list[float]) -> bool:
    """Tell whether the two least times agree, which means that nothing disturbed them."""
    return len(rounds) > 2 and sorted(rounds)[1] < 1.1 * min(rounds)


def _fitted(declared: Cost, points: list[_Measured]) -> Cost:
    """Return the cost that fits the measurements."""
    latency = max(points[0].seconds, 1e-9)
    if len(points) == 1:
        return Cost(latency, declared.bandwidth)
    few = min(points[1].nbytes, CACHED)
    cached = _rate(points[1].nbytes, points[1].seconds - latency)
    if len(points) == 2:
        return Cost(latency, cached)
    large = points[2]
    bandwidth = _rate(large.nbytes - few, large.seconds - latency - few / cached)
    return Cost(latency, bandwidth, cached)


def _rate(nbytes: int, seconds: float) -> float:
    """Return bytes per second, limited to a speed that memory can have."""
    return min(max(nbytes, 1) / max(seconds, 1e-9), 2e11)


def _mean(costs: list[Cost]) -> Cost:
    columns = dict(zip(Cost._fields, zip(*costs, strict=True), strict=True))
    numbers = {name: [n for n in column if n is not None] for name, column in columns.items()}
    return Cost(**{name: geometric_mean(column) for name, column in numbers.items() if column})


def _pack_costs(interop: Interop) -> Iterator[tuple[str, Cost]]:
    """Yield the costs of unpacking or packing a composite value, by format."""
    for format_ in Inspection(interop).registry.formats.values():
        components = format_.components
        if components is None:
            continue
        dtype = next(iter(preferred(format_.holds("cpu"))), "")
        try:
            value = sample(interop, Recipe(format_.name, dtype, (_SMALL, _SMALL), density=0.5))
            calls = (
                partial(components.unpack, value),
                partial(components.pack, components.unpack(value)),
            )
            gc.collect(0)
            seconds = [min(Timer(call).repeat(_ROUNDS, 100)) / 100 for call in calls]
        except (NoSample, *REFUSALS):
            continue
        yield format_.name, Cost(fmean(seconds))
