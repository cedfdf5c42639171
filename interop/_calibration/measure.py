"""Calibration: what every declared conversion costs here, measured on real samples.

Each conversion is made a step on a sample of its source, and its call is timed on a value of next
to no size, on one that fits in the caches, and on one whose result needs fresh memory. Conversions
from like samples are timed in turn, round after round, and of the rounds the least time counts:
what a busy machine adds is never negative.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import exp, log
from statistics import fmean
from time import perf_counter
from timeit import Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._execution.memory import give_back
from interop._model.cost import CACHED, Cost
from interop._model.dtype import bit_carrier, itemsize
from interop._model.format import Format
from interop._model.spec import Spec
from interop._planning.step import ResolvedConversion, Step, Wants
from interop._registry.declared import Declared
from interop._registry.installed import importable
from interop._registry.registry import Registry
from interop.errors import InteropError

from .sample import NoSample, Wanted, fitted, sample

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = ["REFUSALS", "Calibration", "calibrate", "preferred"]

Progress = Callable[[int, int, str], None]

#: What is measured of a conversion that takes several dtypes: those that people have.
_DTYPES = ("float32", "float64", "bfloat16", "float16", "complex64", "int32", "uint8", "uint16")
#: How many of them are tried before a sample is given up.
_TRIES = 5
#: Lengths of the axes of the three samples, of dense and of sparse values.
_SMALL, _MIDDLE, _LARGE = _SIDES = 4, 384, 3072
_DENSITY = 0.05  # of sparse values; small ones must have elements at all, and have half
#: Bytes of the largest block that an allocator may hand out again instead of asking the system.
_RECYCLED = 2**25

#: Seconds for all rounds of one conversion on one sample, and the most rounds.
_BUDGET, _ROUNDS = 0.05, 20
#: Seconds for one call beyond which a conversion is not tried on a larger sample.
_TOO_LONG = 0.12

#: What foreign functions raise that cannot serve a value after all.
REFUSALS = (
    InteropError,
    ArithmeticError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Calibration(NamedTuple):
    """What was measured.

    Parameters
    ----------
    costs : dict of str to Cost
        By `Declared.key`, and for the handling of composite formats by their names.
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
    edge: ResolvedConversion
    wanted: Wanted
    dtype: str | None

    def at(self, side: int) -> Wanted:
        """Return the sample wanted, of axes of a length."""
        shape = fitted((side, side), self.edge)
        if shape and side == _LARGE and self.edge.target.is_dense:
            # So large that the result of this very dtype cannot lie in memory used before.
            width = itemsize(self.dtype or self.wanted.dtype)
            longer = max(1, -(-_RECYCLED // (side * side * width)))
            shape = (shape[0] * longer, *shape[1:])
        density = 0.5 if side == _SMALL and self.wanted.density < 1 else self.wanted.density
        return self.wanted._replace(shape=shape, density=density)

    def step(self, spec: Spec) -> Step | None:
        """Return the conversion as a step on a sample of some spec."""
        if self.edge.bits == "unpack":  # the sample does not know whose bits it carries
            spec = spec._replace(dtype=self.dtype, carrier=spec.dtype)
        if not self.edge.takes_value(spec):
            return None
        dtypes = (self.dtype,) if self.dtype else ()
        steps = self.edge.steps(spec, Wants(dtypes, ("cpu",), True))
        fits = (s for s in steps if self.dtype is None or s.after.dtype == self.dtype)
        return next(fits, None)


class _Measured(NamedTuple):
    """Bytes and seconds of one conversion on one sample."""

    nbytes: int
    seconds: float


def calibrate(
    face: Interop, progress: Progress | None = None, *, budget: float = 50.0
) -> Calibration:
    """Measure what every conversion in force costs on this machine.

    Parameters
    ----------
    face : Interop
    progress : callable, optional
        ``progress(done, total, what)``, called before each kind of sample and at the end.
    budget : float
        Seconds after which no further value is made; what was not measured at every size keeps
        the cost that is declared.

    Returns
    -------
    Calibration
    """
    start = perf_counter()
    bench = _Bench(face, start + budget)
    work = [(side, *group) for side in _SIDES for group in bench.groups()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for done, (side, wanted, cases) in enumerate(work):
            if progress:
                progress(done, len(work), f"{wanted.format} {wanted.dtype}")
            bench.measure(side, cases)
        costs = dict(_handling(face))
    if progress:
        progress(len(work), len(work), "")
    costs |= bench.costs()
    skipped = {key: reason for key, reason in bench.skipped.items() if key not in costs}
    return Calibration(costs, skipped, perf_counter() - start)


# ---------------------------------------------------------------------- what to measure


def _cases(face: Interop, skipped: dict[str, str]) -> Iterator[_Case]:
    registry = face._loaded()
    for declared in registry.conversions:
        reason = _obstacle(registry, declared)
        if reason:
            skipped[declared.key] = reason
            continue
        one = declared.conversion
        source = _source(registry, one.source)
        edge = ResolvedConversion(declared, source, registry.formats[one.target])
        try:
            yield from _of_edge(face, declared.key, edge)
        except NoSample as reason:
            skipped[declared.key] = str(reason)


def _source(registry: Registry, name: str) -> Format:
    """Return the format that a conversion starts from, or one that speaks the protocol."""
    speakers = (one for one in registry.formats.values() if name in one.speaks)
    return registry.formats.get(name) or next(speakers)


def _obstacle(registry: Registry, declared: Declared) -> str:
    """Say why a conversion cannot be measured here, as far as its declaration tells."""
    one = declared.conversion
    known = {*registry.formats, *(p for f in registry.formats.values() for p in f.speaks)}
    missing = {one.source, one.target} - known
    if missing:
        return f"{min(missing)} is not registered"
    for name in (one.source, one.target):
        requires = registry.formats[name].requires if name in registry.formats else ""
        if requires and not importable(requires):
            return f"{requires} is not installed"
    if "device" in one.changes:
        # Only what ends on the host is sure to be complete when the call returns.
        return "" if _reaches_host(registry, declared) else "it does not end on the host"
    if one.devices is not None and "cpu" not in one.devices:
        return "it does not run on the host"
    return ""


def _reaches_host(registry: Registry, declared: Declared) -> bool:
    one = declared.conversion
    devices = one.to_devices or registry.formats[one.target].devices
    return "cpu" in devices and (one.devices is None or bool(one.devices - {"cpu"}))


def _of_edge(face: Interop, key: str, edge: ResolvedConversion) -> Iterator[_Case]:
    """Yield what to measure of one conversion.

    Raises
    ------
    NoSample
        No value that it takes can be made here.
    """
    devices = ["cpu"]
    if "device" in edge.conversion.changes:
        takes = edge.devices or set(edge.source.devices)
        devices = [d for d in edge.source.devices if d != "cpu" and d in takes]
    sparse = edge.source.index_dtypes or edge.target.index_dtypes
    wanted = Wanted(edge.source.name, "", (), edge.requires, density=_DENSITY if sparse else 1.0)
    reason: NoSample | None = None
    for device in devices:
        for dtype in preferred(edge.dtypes)[:_TRIES]:
            pairs = _pairs(edge, dtype)
            cases = [
                _Case(key, edge, wanted._replace(dtype=source, device=device), to)
                for source, to in pairs
            ]
            try:
                sample(face, cases[0].at(_SMALL))
            except NoSample as error:
                reason = error
            else:
                yield from cases
                break
    if reason:
        raise reason


def _pairs(edge: ResolvedConversion, first: str) -> list[tuple[str, str | None]]:
    """Return up to three pairs of dtypes, the first from `first`, that stand for all it takes."""
    one = edge.conversion
    if one.bits == "unpack":
        reals = preferred(d for d in edge.target.dtypes if bit_carrier(d) == first)
        return [(first, real) for real in reals[:1]]
    if "dtype" not in one.changes:
        return [(first, None)]
    targets = preferred(edge.target.dtypes if one.to_dtypes is None else one.to_dtypes)
    pairs: list[tuple[str, str | None]] = [(first, d) for d in targets[:2]]
    others = [d for d in preferred(edge.dtypes) if d != first]
    pairs += [(d, next((t for t in targets if t != d), None)) for d in others[:1]]
    return pairs


def preferred(dtypes: Iterable[str]) -> list[str]:
    """Return dtypes in order, those first that people have."""
    rank = {dtype: place for place, dtype in enumerate(_DTYPES)}
    return sorted(dtypes, key=lambda dtype: (rank.get(dtype, len(rank)), dtype))


# ---------------------------------------------------------------------- measuring


class _Bench:
    """The conversions to measure, and what was measured of each.

    Parameters
    ----------
    face : Interop
    deadline : float
        When to stop making large values.
    """

    def __init__(self, face: Interop, deadline: float) -> None:
        self.skipped: dict[str, str] = {}
        self._face = face
        self._deadline = deadline
        self._points: dict[_Case, list[_Measured]] = {c: [] for c in _cases(face, self.skipped)}
        self._left = len(self._points) * len(_SIDES)

    def groups(self) -> list[tuple[Wanted, list[_Case]]]:
        """Return the conversions in groups that share their samples."""
        groups: dict[Wanted, list[_Case]] = {}
        for case in self._points:
            groups.setdefault(case.wanted, []).append(case)
        return list(groups.items())

    def measure(self, side: int, cases: list[_Case]) -> None:
        """Measure conversions of like samples at one size."""
        by_sample: dict[Wanted, list[_Case]] = {}
        self._left -= len(cases)
        for case in cases:
            if self._worth_while(case, side):
                by_sample.setdefault(case.at(side), []).append(case)
        for wanted, alike in by_sample.items():
            late = perf_counter() > self._deadline
            try:
                value = None if late else sample(self._face, wanted)
            except NoSample as reason:
                self._skip(alike, str(reason))
            else:
                if late:
                    self._skip(alike, "there was no time left")
                else:
                    self._time(value, alike, fresh=side == _LARGE)

    def _skip(self, cases: Iterable[_Case], reason: str) -> None:
        for case in cases:
            self.skipped[case.key] = reason
            self._points[case].clear()

    def _worth_while(self, case: _Case, side: int) -> bool:
        """Tell whether a conversion is to be measured at a size, after those before."""
        if side == _SMALL:
            return True
        points = self._points[case]
        if case.edge.conversion.cost.bandwidth is None or not points:
            return False
        return side == _MIDDLE or points[-1].seconds * (_LARGE / _MIDDLE) ** 2 < _TOO_LONG

    def _time(self, value: Any, cases: list[_Case], *, fresh: bool) -> None:
        """Time several conversions of one value in turn."""
        spec = self._face.spec(value)
        timers: dict[_Case, tuple[Step, Timer, int]] = {}
        for case in cases:
            step = case.step(spec)
            if step is None:
                self._skip([case], f"it does not take {spec}")
                continue
            try:
                once = _seconds(step, value, known=bool(self._points[case]))
            except REFUSALS as reason:
                self._skip([case], f"it refused {spec}: {reason}".partition("\n")[0])
            else:
                call = _warm(step, value, protocol=bool(case.edge.source.protocol))
                timers[case] = step, Timer(call), 1 if fresh else _number(once)
        # Who comes last is to have time left.
        share = (self._deadline - perf_counter()) / (self._left + len(cases))
        for case, seconds in _in_turn(timers, min(_BUDGET, share), fresh=fresh).items():
            nbytes = spec.nbytes + timers[case][0].after.nbytes
            self._points[case].append(_Measured(nbytes, seconds))

    def costs(self) -> dict[str, Cost]:
        """Return what the measurements come to."""
        found: dict[str, list[Cost]] = {}
        for case, points in self._points.items():
            if points:
                found.setdefault(case.key, []).append(_fitted(case.edge, points))
        return {key: _mean(costs) for key, costs in found.items()}


def _seconds(step: Step, value: Any, *, known: bool) -> float:
    """Return the time of a call that is not the first, which may have to import."""
    if not known:
        step.call(value)
    start = perf_counter()
    step.call(value)
    return perf_counter() - start


def _warm(step: Step, value: Any, *, protocol: bool) -> Callable[[], Any]:
    """Return what a step comes to for such a value once its route is known.

    What a protocol's conversion costs holds for all formats that speak it, and its shortcut serves
    only strangers.
    """
    shortcut = None if protocol else step.shortcut
    if shortcut is not None and shortcut(value) is not NotImplemented:
        return partial(shortcut, value)
    return partial(step.call, value)


def _number(once: float) -> int:
    """Return how many calls take about a millisecond."""
    return max(1, min(1000, int(1e-3 / max(once, 1e-7))))


def _in_turn(
    timers: dict[_Case, tuple[Step, Timer, int]], budget: float, *, fresh: bool
) -> dict[_Case, float]:
    """Return the least time of each, over rounds in which all take their turn.

    There are rounds while there is time, `budget` seconds for each. With `fresh` no result lies in
    memory that an earlier one has left in the allocator.
    """
    taken: dict[_Case, list[float]] = {case: [] for case in timers}
    gc.collect(0)
    start = perf_counter()
    for turn in range(_ROUNDS):
        for case, (_, timer, number) in timers.items():
            if not _settled(taken[case]):
                if fresh:
                    give_back()
                taken[case].append(timer.timeit(number) / number)
        if turn and perf_counter() - start > budget * len(timers):
            break
    return {case: min(seconds) for case, seconds in taken.items()}


def _settled(taken: list[float]) -> bool:
    """Tell whether the least times agree, as they do once nothing else got in the way."""
    return len(taken) > 2 and sorted(taken)[1] < 1.1 * min(taken)


def _fitted(edge: ResolvedConversion, points: list[_Measured]) -> Cost:
    """Return the cost that goes through what was measured."""
    latency = max(points[0].seconds, 1e-9)
    if len(points) == 1:
        return Cost(latency, edge.conversion.cost.bandwidth)
    few = min(points[1].nbytes, CACHED)
    cached = _rate(points[1].nbytes, points[1].seconds - latency)
    if len(points) == 2:
        return Cost(latency, cached)
    large = points[2]
    bandwidth = _rate(large.nbytes - few, large.seconds - latency - few / cached)
    return Cost(latency, bandwidth, cached)


def _rate(nbytes: int, seconds: float) -> float:
    """Return bytes per second, within what memory can do."""
    return min(max(nbytes, 1) / max(seconds, 1e-9), 2e11)


def _mean(costs: list[Cost]) -> Cost:
    """Return the geometric mean of several costs."""
    columns = {
        name: [number for cost in costs if (number := getattr(cost, name)) is not None]
        for name in Cost._fields
    }
    means = {name: exp(fmean(map(log, column))) for name, column in columns.items() if column}
    return Cost(**means)


def _handling(face: Interop) -> Iterator[tuple[str, Cost]]:
    """Yield what it takes to take a composite value apart, or to put one together."""
    for one in face._registry.formats.values():
        if one.unpack is None or one.pack is None:
            continue
        dtype = preferred(one.holds("cpu"))[0] if one.holds("cpu") else ""
        wanted = Wanted(one.name, dtype, (_SMALL, _SMALL), density=0.5)
        try:
            value = sample(face, wanted)
            parts = one.unpack(value)
            timers = (
                Timer(partial(one.unpack, value)),
                Timer(partial(one.pack, parts)),
            )
            gc.collect(0)
            least = [min(timer.repeat(_ROUNDS, 100)) / 100 for timer in timers]
        except (NoSample, *REFUSALS):
            continue
        yield one.name, Cost(fmean(least))
