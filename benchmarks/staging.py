"""Staging: copies between host and device through page-locked buffers that are used again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

__all__ = ["Staging"]

Array = np.ndarray[Any, Any]


class Staging:
    """Two page-locked buffers, so that one is filled while the other is sent.

    The driver copies memory that is not page-locked through buffers of its own, one after the
    other. An expert would write this class to be faster; interop's transfers are compared with it.

    Parameters
    ----------
    chunk : int
        Bytes of each buffer.
    depth : int
        Number of buffers.
    """

    def __init__(self, chunk: int = 1 << 25, depth: int = 2) -> None:
        self._chunk = chunk
        self._buffers = [
            torch.empty(chunk, dtype=torch.uint8, pin_memory=True) for _ in range(depth)
        ]
        self._events = [torch.cuda.Event() for _ in range(depth)]

    def _spans(self, size: int) -> Iterator[tuple[int, int, int]]:
        for number, start in enumerate(range(0, size, self._chunk)):
            yield number % len(self._buffers), start, min(start + self._chunk, size)

    def to_host(self, x: Any) -> Array:
        """Return the elements of a contiguous tensor on the device as a new array."""
        source = x.detach().view(-1).view(torch.uint8)
        out = np.empty(source.numel(), np.uint8)
        waiting: list[tuple[int, int, int]] = []
        for slot, start, stop in self._spans(out.size):
            if len(waiting) == len(self._buffers):
                self._drain(out, *waiting.pop(0))
            self._buffers[slot][: stop - start].copy_(source[start:stop], non_blocking=True)
            self._events[slot].record()
            waiting.append((slot, start, stop))
        for span in waiting:
            self._drain(out, *span)
        return out

    def _drain(self, out: Array, slot: int, start: int, stop: int) -> None:
        self._events[slot].synchronize()
        out[start:stop] = self._buffers[slot].numpy()[: stop - start]

    def to_device(self, array: Array) -> Any:
        """Return the bytes of a contiguous array as a new tensor on the device."""
        source = array.reshape(-1).view(np.uint8)
        out = torch.empty(source.size, dtype=torch.uint8, device="cuda")
        for slot, start, stop in self._spans(source.size):
            self._events[slot].synchronize()  # an event that was never recorded is done
            self._buffers[slot].numpy()[: stop - start] = source[start:stop]
            out[start:stop].copy_(self._buffers[slot][: stop - start], non_blocking=True)
            self._events[slot].record()
        torch.cuda.synchronize()
        return out
