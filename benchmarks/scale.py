"""Scale: the cost of planning with many formats, shapes and threads."""

from __future__ import annotations

import gc
import statistics
import threading
import tracemalloc
from collections.abc import Callable, Collection
from random import Random
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
import torch

import interop
from interop import Interop, Spec
from interop.plugin import make_spec

from .crowd import (
    COUNTS,
    EACH,
    bundled,
    bundled_spec,
    crowd,
    enlarge,
    forget,
    forget_graph,
    kept_routes,
    star,
)
from .table import Listing, Ratio, duration
from .timing import against, interleaved, small

__all__ = ["tables"]

#: Source, target, and the device of the source.
_PAIRS = (
    ("torch", "numpy", "cpu"),
    ("numpy", "torch", "cpu"),
    ("torch", "scipy.csr", "cpu"),
    ("scipy.csr", "torch", "cpu"),
    ("torch.sparse_coo", "numpy", "cpu"),
    ("torch.sparse_csr", "torch.sparse_coo", "cpu"),
)
#: Pairs of distant formats, whose routes take longest to plan.
_FAR = (
    ("sparse.coo", "numpy", "cpu"),
    ("jax.bcoo", "torch", "cpu"),
    ("torch.sparse_csr", "jax", "cpu"),
    ("scipy.coo", "scipy.csr", "cpu"),
    ("torch.sparse_csr", "scipy.csr", "cuda:0"),
)
_THREADS = 16


def _seconds(call: Callable[[], object]) -> float:
    """Return the seconds of processor time that a call takes in this thread."""
    start = thread_time()
    call()
    return thread_time() - start


def _memory(call: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes that a call has allocated at its peak, and at its end."""
    gc.collect()
    tracemalloc.start()
    try:
        result = call()
        gc.collect()
        remaining, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del result
    return peak, remaining


def _bytes(count: float) -> str:
    return f"{count / 2**10:.1f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


# ---------------------------------------------------------------------- formats


class _Times(NamedTuple):
    """The seconds of each plan: without a graph, from a graph, and from the cache."""

    first: list[float]
    cold: list[float]
    warm: list[float]


def _plans(mine: Interop, pairs: list[tuple[Spec, str]]) -> _Times:
    times = _Times([], [], [])
    for spec, to in pairs:

        def plan(spec: Spec = spec, to: str = to) -> object:
            return mine.plan(spec, to=to)

        forget_graph(mine)
        times.first.append(_seconds(plan))
        forget(mine)
        times.cold.append(_seconds(plan))
        times.warm.append(_seconds(plan))
    return times


def _row(name: str, mine: Interop, pairs: list[tuple[Spec, str]]) -> tuple[tuple[str, ...], _Times]:
    times = _plans(mine, pairs)
    spec, to = pairs[-1]
    forget(mine)
    peak, remaining = _memory(lambda: mine.plan(spec, to=to))
    cold = times.cold
    medians = map(statistics.median, times)
    first, usual, warm = map(duration, medians)
    return (name, first, usual, duration(max(cold)), warm, _bytes(peak), _bytes(remaining)), times


def formats(rounds: int = 21) -> Listing:
    """Return the time and memory of plans among 10, 100 and 1,000 formats."""
    rows, totals = [], {}
    smallest: list[float] = []
    for count in COUNTS:
        mine, rng = crowd(count), Random(1)
        spec = make_spec("f0", "float32", shape=(4096, 4096))
        pairs = [(spec, f"f{rng.randrange(1, count)}") for _ in range(rounds)]
        text, times = _row(f"{count:,} formats, {EACH} conversions each", mine, pairs)
        rows.append(text)
        smallest = smallest or times.cold
        if times.cold is not smallest:
            ratio = against("", times.cold, smallest)
            totals[f"cold plan, {count:,} formats | {COUNTS[0]} formats"] = _ratio(ratio)
    spec = bundled_spec("torch")
    for count in COUNTS[1:]:
        mine = star(count)
        pairs = [(spec, "numpy"), *((spec, f"f{n}") for n in range(rounds - 1))]
        rows.append(
            _row(f"{count:,} formats around NumPy, beside the bundled plugins", mine, pairs)[0]
        )
    fresh = bundled()
    for source, to, device in (*_PAIRS, *_FAR):
        pairs = [(bundled_spec(source)._replace(device=device), to)] * rounds
        place = "" if device == "cpu" else f" on {device}"
        rows.append(_row(f"bundled plugins, {source}{place} → {to}", fresh, pairs)[0])
    heads = (
        *("", "first plan of all", "cold plan", "slowest", "warm plan"),
        *("memory at the peak", "memory kept"),
    )
    note = (
        "From specs, the plugins being loaded. `first`: there is no graph of the formats yet, as "
        "in a new process. `cold`: the route is not in the cache, and the graph is of the routes "
        "before; `warm`: the route is in the cache, and is drawn up for the size at hand. Medians."
    )
    return Listing("scale.formats", "planning among many formats", note, heads, tuple(rows), totals)


# ------------------------------------------------------------------- more formats


def growth(rounds: int = 21) -> Listing:
    """Return the times of everyday calls with the bundled plugins, and with more formats."""
    few, many = bundled(), enlarge(bundled())
    x = torch.zeros(3, 4)
    calls = {
        "`convert`, by the fast path": "mine.convert(x, to='numpy')",
        "`convert`, by the cached route": "mine.convert(x, to='numpy', copy=True)",
        "`convert_tree`, 100 leaves": "mine.convert_tree(tree, to='numpy')",
        "`spec`": "mine.spec(x)",
    }
    tree = {f"layer {n}": x.clone() for n in range(100)}
    rows, kept = [], {}
    for name, statement in calls.items():
        timers = {
            size: small(statement, {"mine": mine, "x": x, "tree": tree})
            for size, mine in (("few", few), ("many", many))
        }
        times = interleaved(timers, rounds=rounds)
        row = against(name, times["many"], times["few"])
        rows.append((name, duration(row.theirs), duration(row.ours), f"{row.ratio:.2f}"))
        kept[f"{name} | bundled plugins"] = _ratio(row)
    heads = ("", "bundled plugins", "and 1,000 formats more", "ratio")
    note = (
        "A small tensor to NumPy; every other format has a type, and conversions from and to NumPy."
    )
    title = "calls among many formats"
    return Listing("scale.growth", title, note, heads, tuple(rows), kept)


def _ratio(row: Any) -> Ratio:
    return Ratio(row.ratio, row.spread)


# ---------------------------------------------------------------------- shapes


def _views(first: int, last: int) -> list[np.ndarray[Any, Any]]:
    """Return arrays that all differ in shape."""
    base = np.zeros(120_000, "float32")
    sides = ((n % 997 + 2, n // 997 + 2) for n in range(first, last))
    return [base[: a * b].reshape(a, b) for a, b in sides]


def shapes(counts: tuple[int, ...] = (10, 1000, 100_000)) -> Listing:
    """Return the contents of the cache of routes after few and after many distinct shapes."""
    rows, mine, converted = [], bundled(), 0
    for count in counts:
        arrays, converted = _views(converted, count), count

        def convert_all(arrays: list[Any] = arrays) -> None:
            for array in arrays:
                mine.convert(array, to="torch", device="cpu")

        _, remaining = _memory(convert_all)
        seconds = _seconds(convert_all) / len(arrays)
        rows.append((f"{count:,}", str(kept_routes(mine)), _bytes(remaining), duration(seconds)))
    heads = ("distinct shapes so far", "routes in the cache", "memory kept by the last", "one call")
    note = (
        "`convert(x, to='torch', device='cpu')` of views of one array, which looks its route up. "
        "Routes are kept by class of spec, in which sizes are coarsened to powers of 4."
    )
    return Listing(
        "scale.shapes", "the cache of routes under many shapes", note, heads, tuple(rows)
    )


# ---------------------------------------------------------------------- threads


def _together(calls: list[Callable[[], object]]) -> float:
    """Return the seconds that some calls take, each in a thread of its own."""
    gate = threading.Barrier(len(calls) + 1)

    def run(call: Callable[[], object]) -> None:
        gate.wait()
        call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    gate.wait()
    start = perf_counter()
    for thread in threads:
        thread.join()
    return perf_counter() - start


def _loop(call: Callable[[Any], object], x: Any, times: int) -> Callable[[], None]:
    def loop() -> None:
        for _ in range(times):
            call(x)

    return loop


def _throughput(
    make: Callable[[int], list[Callable[[], object]]], rounds: int
) -> tuple[list[float], list[float]]:
    """Return seconds with one thread and with many for the same work, round by round."""
    single: list[float] = []
    many: list[float] = []
    for _ in range(rounds):
        single.append(_together(make(1)))
        many.append(_together(make(_THREADS)))
    return single, many


def _converting(call: Callable[[Any], object], calls: int = 32_000) -> Any:
    x = np.zeros((3, 4), "float32")
    return lambda count: [_loop(call, x, calls // count)] * count


def _planning() -> Any:
    """Return work of cold plans only, the same in every thread."""
    mine = bundled()
    pairs = [(bundled_spec(source), to) for source, to, _ in _PAIRS]

    def plan_all() -> None:
        for spec, to in pairs:
            mine.plan(spec, to=to)

    def work(count: int) -> list[Callable[[], object]]:
        forget(mine)
        return [plan_all] * count

    return work


def threads(rounds: int = 9) -> Listing:
    """Return the times of the same work in one thread and in 16."""
    converter = interop.converter("torch")
    works = {
        "convert, 32,000 in all": _converting(lambda x: interop.convert(x, to="torch")),
        "a converter, 32,000 in all": _converting(converter),
        f"{len(_PAIRS)} cold plans, the same in every thread": _planning(),
    }
    rows, totals = [], {}
    for name, make in works.items():
        single, many = _throughput(make, rounds)
        row = against(name, many, single)
        rows.append((name, duration(row.theirs), duration(row.ours), f"{row.ratio:.2f}"))
        # The system decides which thread runs when, so the check tolerates a large factor.
        totals[f"{name} | one thread"] = Ratio(row.ratio, max(row.spread, 2.5))
    heads = ("", "one thread", f"{_THREADS} threads", "ratio")
    note = (
        "The time until all is done. Conversions that copy nothing hold the interpreter's lock, so "
        "that 1 is as good as it gets. Each route is planned by one thread, while others that need "
        "it wait."
    )
    return Listing("scale.threads", "16 threads against one", note, heads, tuple(rows), totals)


def tables(only: Collection[str] | None = None, rounds: int = 21) -> list[Listing]:
    """Return all tables of scale; `only` has no effect."""
    interop.convert(np.zeros(2), to="torch")
    return [formats(rounds), growth(rounds), shapes(), threads(max(3, rounds // 2))]
