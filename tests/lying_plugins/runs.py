"""An honest plugin of a compressed array: it reports the memory of its lengths of runs, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.kit import extents
from interop.plugin import Conversion, Cost, Declaration, Format, Spec, hookimpl, make_spec


class Runs:
    """An array of one axis, as numbers and how often each is repeated."""

    def __init__(self, numbers: Any, lengths: Any, size: int) -> None:
        self.numbers, self.lengths, self.size = numbers, lengths, size


def describe(runs: Runs) -> Spec:
    """Return what is known of an array without repeating its numbers."""
    return make_spec("runs", runs.numbers.dtype.name, shape=(runs.size,))


def memory(runs: Runs) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory it lies in."""
    return extents((runs.lengths, runs.numbers))


def expand(runs: Runs) -> Any:
    """Return the numbers, each as often as it is repeated."""
    import numpy as np

    return np.repeat(runs.numbers, runs.lengths)


def compress(array: Any) -> Runs:
    """Return an array by its runs."""
    import numpy as np

    starts = np.flatnonzero(np.concatenate([[True], array[1:] != array[:-1]])[: array.size])
    lengths = np.diff(np.append(starts, array.size))
    return Runs(array[starts], lengths, array.size)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and its two conversions."""
    return [
        Format(
            "runs",
            types=(f"{__name__}:Runs",),
            describe=describe,
            dtypes={"float32", "float64"},
            ndims={1},
            memory=memory,
        ),
        Conversion("runs", "numpy", expand, effects={"copy"}, cost=Cost(2e-5, 1e9)),
        Conversion(
            *("numpy", "runs", compress),
            takes={"readonly", "noncontiguous"},
            effects={"copy"},
            cost=Cost(2e-5, 3e8),
        ),
    ]
