"""Copies and casts of middle sizes, while other programs take the cores.

A team of threads waits for its slowest member, and that for its turn on a core. So the mean counts
here, by the clock on the wall.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from timeit import Timer
from typing import Any

import torch

import interop

from .table import Table, from_rows
from .timing import Row, interleaved

__all__ = ["tables"]

_SPIN = "while True: pass"
_POWERS = (17, 18, 20)
#: Name, keywords of `convert`, NumPy's statement, and the dtype of the tensor.
_CASES: tuple[tuple[str, dict[str, Any], str, torch.dtype], ...] = (
    ("f32 → f64", {"dtype": "float64"}, "x.numpy().astype('f8')", torch.float32),
    ("i64 → f32", {"dtype": "float32"}, "x.numpy().astype('f4')", torch.int64),
    ("copy", {"copy": True}, "x.numpy().copy()", torch.float32),
)


@contextmanager
def _taken(count: int) -> Iterator[None]:
    """Run processes that never wait for anything."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _SPIN]))
            stack.callback(process.kill)
        yield


def tables(only: Collection[str] | None = None, rounds: int = 300) -> Iterator[Table]:
    """Yield the table, measured beside one spinning process for each core."""
    rows = []
    with _taken(os.cpu_count() or 1):
        for case, keywords, by_hand, dtype in _CASES:
            for power in _POWERS:
                name = f"{case}, 2^{power}"
                if only is None or name in only:
                    value = torch.ones(2**power, dtype=dtype)
                    # As much work for each row: the scheduler interrupts all equally often.
                    often = rounds * 2 ** (_POWERS[-1] - power)
                    rows.append(_row(name, value, keywords, by_hand, often))
    note = (
        "Beside one spinning process for each core: the mean of a call, by the clock on the wall, "
        "against the mean of NumPy's own statement."
    )
    title = "torch → numpy, copies and casts while other programs take the cores"
    yield Table("busy", title, note, from_rows(rows, "NumPy"), short="busy cores")


def _row(
    name: str, value: torch.Tensor, keywords: dict[str, Any], by_hand: str, rounds: int
) -> Row:
    timers = {
        "ours": Timer(lambda: interop.convert(value, "numpy", **keywords)),
        "theirs": Timer(by_hand, globals={"x": value}),
    }
    ours, theirs = interleaved(timers, rounds=rounds, budget=0).values()
    means = statistics.fmean(ours), statistics.fmean(theirs)
    # Rounds that met a scheduler's slice differ by a hundred from the others.
    return Row(name, *means, means[0] / means[1], spread=2.0)
