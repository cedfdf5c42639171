"""A ring: the last numbers of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np


class Ring:
    """The last numbers of a stream, in a block of memory that is written round and round.

    Parameters
    ----------
    numbers : array
        The block: one axis of contiguous, writable float32 or float64.
    oldest : int
        The position in the block of the oldest number, which is overwritten next.
    """

    def __init__(self, numbers: np.ndarray[Any, Any], oldest: int = 0) -> None:
        if numbers.dtype not in (np.float32, np.float64):
            raise TypeError(f"a ring holds float32 or float64, not {numbers.dtype}")
        if numbers.ndim != 1 or not numbers.flags.carray:
            raise ValueError("a ring needs one axis of contiguous, writable memory")
        self.numbers = numbers
        self.oldest = oldest
        self.dtype = numbers.dtype
        self.shape = numbers.shape

    def push(self, number: float) -> None:
        """Overwrite the oldest number."""
        self.numbers[self.oldest] = number
        self.oldest = (self.oldest + 1) % len(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Ring({self.numbers}, oldest={self.oldest})"

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.oldest:
            raise BufferError("the oldest number of the ring does not come first")
        return self.numbers.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(x: Any) -> Ring:
    """Return a ring over the memory of an array of any library."""
    return Ring(np.from_dlpack(x))
