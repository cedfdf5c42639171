"""Importing and planning: what is paid once."""

from __future__ import annotations

import statistics
import subprocess
import sys
from random import Random
from time import perf_counter

from interop import Conversion, Cost, Format, Interop, make_spec

__all__ = ["main"]


def import_seconds(runs: int = 9) -> float:
    """Return the median seconds of ``import interop`` in a fresh process."""
    program = "import time; s = time.perf_counter(); import interop; print(time.perf_counter() - s)"
    command = [sys.executable, "-c", program]
    times = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(runs)]
    return statistics.median(map(float, times))


def _cold(planner: Interop, source: str, target: str) -> float:
    planner._requests.clear()
    planner._planner._composites.forget()
    spec = make_spec(source, "float32", shape=(4096, 4096))
    if "." in source:  # one element in a hundred is stored
        nnz = spec.size // 100
        index = "int64" if source.endswith("coo") else "int32"
        spec = spec._replace(nbytes=12 * nnz, nnz=nnz, index_dtype=index)
    start = perf_counter()
    planner.plan(spec, to=target)
    return perf_counter() - start


def bundled() -> dict[str, float]:
    """Return the median seconds of a cold plan for some pairs of bundled formats."""
    mine = Interop()
    mine.formats()
    pairs = [
        ("torch", "numpy"),
        ("numpy", "torch"),
        ("torch", "scipy.csr"),
        ("scipy.csr", "torch"),
        ("torch.sparse_coo", "numpy"),
        ("torch.sparse_csr", "torch.sparse_coo"),
    ]
    return {f"{a} → {b}": statistics.median(_cold(mine, a, b) for _ in range(21)) for a, b in pairs}


def crowd(count: int, each: int = 10) -> float:
    """Return the median seconds of a cold plan among `count` formats with `each` conversions."""
    rng = Random(0)
    mine = Interop(plugins=False)
    names = [f"f{n}" for n in range(count)]
    dtypes = frozenset({"float32"})
    mine.register(*(Format(name, dtypes=dtypes) for name in names))
    mine.register(
        *(
            Conversion(name, rng.choice(names), print, cost=Cost(rng.random() * 1e-6), name=f"c{i}")
            for name in names
            for i in range(each)
        )
    )
    _cold(mine, "f0", "f1")
    return statistics.median(_cold(mine, "f0", f"f{rng.randrange(1, count)}") for _ in range(21))


def main() -> None:
    """Print what is paid once."""
    print(f"\nimport interop: {import_seconds() * 1e3:.1f} ms")
    for name, seconds in bundled().items():
        print(f"cold plan, bundled plugins, {name}: {seconds * 1e3:.2f} ms")
    for count in (10, 100, 1000):
        print(f"cold plan, {count} formats with 10 conversions each: {crowd(count) * 1e3:.2f} ms")
