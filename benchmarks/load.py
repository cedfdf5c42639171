"""``python -m benchmarks.load [SECONDS]``: threads, registrations, forks and tasks.

It says how many calls were made in so many seconds, and fails if one raised an error, gave a wrong
value or left memory behind. ``python -m tests.properties.shortage`` tries what does not fit.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array

import interop
from interop.errors import RefusedError

#: Bytes that a process may have grown by after a part: the allocator keeps some.
GROWN = 48 * 2**20
#: Tasks that are under way at once, and how long a child may take, in seconds.
TASKS, PATIENCE = 1000, 60

ARRAY = np.arange(6.0).reshape(2, 3)
TENSOR = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
SPARSE = csr_array(ARRAY)
FRAME = pd.DataFrame(ARRAY, columns=["a", "b", "c"])


@interop.accepts("numpy")
def doubled(array: Any) -> Any:
    """Return an array of twice the numbers."""
    return array * 2


#: Calls whose results, as NumPy reads them, are the numbers of `ARRAY`.
CALLS: dict[str, Callable[[], Any]] = {
    "share": lambda: interop.convert(ARRAY, to="torch"),
    "back": lambda: interop.convert(TENSOR, to="numpy"),
    "copy": lambda: interop.convert(ARRAY, to="torch", copy=True),
    "cast": lambda: interop.convert(ARRAY, to="torch", dtype="float32"),
    "list": lambda: interop.convert([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], to="numpy"),
    "densify": lambda: interop.convert(SPARSE, to="numpy", allow="densify"),
    "frame": lambda: interop.convert(FRAME, to="numpy"),
    "tree": lambda: interop.convert_tree({"x": [TENSOR]}, to="numpy")["x"][0],
    "out": lambda: interop.convert(TENSOR, out=np.empty((2, 3))),
    "accepts": lambda: doubled(TENSOR) / 2,
}


def resident() -> int:
    """Return the bytes of memory that the process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Crowd:
    """Threads that make all calls in turn, and compare what they give."""

    def __init__(self, threads: int) -> None:
        self.ends = threading.Event()
        self.calls = [0] * threads
        self.faults: list[str] = []
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(threads)]

    def _work(self, number: int) -> None:
        while not self.ends.is_set():
            for name, call in CALLS.items():
                try:
                    result = np.asarray(call())
                except Exception as error:  # noqa: BLE001 - it is what is looked for
                    self.faults.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                if not np.array_equal(result, ARRAY):
                    self.faults.append(f"{name} gave {result!r}")
                self.calls[number] += 1

    def __enter__(self) -> Crowd:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        for thread in self.threads:
            thread.join()
        assert not self.faults, "\n".join(self.faults[:5])


def threads(count: int, seconds: float, *, register: bool) -> None:
    """Let threads work, with a format registered each second."""
    registered = 0
    with Crowd(count) as crowd:
        begun = time.monotonic()
        before = after = 0
        while (elapsed := time.monotonic() - begun) < seconds:
            time.sleep(min(1.0, seconds / 4))
            if register:
                registered += 1
                name = f"load{time.monotonic_ns()}"
                interop.register(interop.Format(name, dtypes=frozenset({"float32"})))
            if not before and elapsed > seconds / 4:  # the caches are full
                before = resident()
        after = resident()
    total, grown = sum(crowd.calls), after - before
    made = f"{total:,} calls, {total / seconds:,.0f} a second, {grown / 2**20:+.0f} MiB"
    print(f"{count} threads, {registered} registrations: {made}")
    assert grown < GROWN, grown


def forks(seconds: float) -> None:
    """Fork beside four threads that convert; each child makes all calls once."""
    children = 0
    with Crowd(4):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            child = os.fork()
            if not child:
                signal.alarm(PATIENCE)  # ends a child that hangs
                right = all(np.array_equal(np.asarray(call()), ARRAY) for call in CALLS.values())
                os._exit(0 if right else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status == 0, f"child {children} ended with {status}"
            children += 1
    print(f"{children} forks beside 4 threads: none hung, none wrong")


async def _task(number: int) -> None:
    forbid = {"copy"} if number % 2 else set()
    with interop.policy(forbid=forbid), interop.trace() as receipts:
        for _ in range(2):
            try:
                interop.convert(ARRAY, to="torch", copy=None if number % 3 else True)
                assert number % 3 or not forbid
            except RefusedError:
                assert forbid
                assert not number % 3
            await asyncio.sleep(0)
        assert len(receipts) == (0 if forbid and not number % 3 else 2)


def tasks(seconds: float) -> None:
    """Run tasks of asyncio, each with a policy and a trace of its own."""

    async def all_at_once() -> None:
        await asyncio.gather(*map(_task, range(TASKS)))

    count, before = 0, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        asyncio.run(all_at_once())
        count += TASKS
        before = before or resident()
    grown = resident() - before
    print(f"{count:,} tasks: no policy and no receipt leaked, {grown / 2**20:+.0f} MiB")
    assert grown < GROWN, grown


def main(seconds: float) -> None:
    """Run every part for some time."""
    torch.set_num_threads(1)  # a fork may come while they run
    for call in CALLS.values():
        call()
    for count in (1, 2, 4):
        threads(count, seconds / 4, register=False)
    threads(8, seconds, register=True)
    tasks(seconds)
    forks(seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
