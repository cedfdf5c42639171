"""The machine's limit: the fastest copy here of as many bytes as a conversion reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

import interop
from interop.kit.threads import threads

__all__ = ["Copy", "limiting"]

#: How many parts each thread gets, so that none waits long for another. Bytes that are read only
#: are copied in pieces of this size to memory that stays in a cache.
_PARTS, _PIECE = 8, 2**18

#: The source of all copies, as large as the largest copy so far needed.
_source = np.ones(0, np.uint8)


class Copy(NamedTuple):
    """A copy that reads and writes given numbers of bytes.

    Parameters
    ----------
    read, written : int, in bytes
        If more bytes are written than read, zeros are written. If more are read, they are dropped.
    out : numpy.ndarray or None
        The array to write into. None: fresh NumPy memory, in huge pages if the system has
        them.
    threads : int
        How many threads share the work, whether cores are idle or not.
    """

    read: int
    written: int
    out: np.ndarray[Any, Any] | None = None
    threads: int = 1

    def __call__(self) -> np.ndarray[Any, Any]:
        """Make the copy, and return the array that was written."""
        out = np.empty(self.written, np.uint8) if self.out is None else self.out
        source, total = _source_of(self.read), max(self.read, self.written)
        count = self.threads * _PARTS if self.threads > 1 else 1
        edges = [total * part // count for part in range(count + 1)]
        _shared_out(partial(self._part, out, source), edges, self.threads)
        return out

    def _part(
        self, out: np.ndarray[Any, Any], source: np.ndarray[Any, Any], start: int, stop: int
    ) -> None:
        common = min(max(self.read, start), max(self.written, start), stop)
        np.copyto(out[start:common], source[start:common])
        out[common:stop] = 0
        rest, nowhere = source[common:stop], np.empty(_PIECE, np.uint8)
        for place in range(0, len(rest), _PIECE):
            piece = rest[place : place + _PIECE]
            np.copyto(nowhere[: len(piece)], piece)


def _source_of(nbytes: int) -> np.ndarray[Any, Any]:
    global _source  # noqa: PLW0603 - hundreds of MiB, touched only once
    if len(_source) < nbytes:
        _source = np.ones(nbytes, np.uint8)
    return _source[:nbytes]


def _shared_out(work: Callable[[int, int], None], edges: list[int], count: int) -> None:
    """Do all parts of a piece of work in `count` threads, the caller's among them."""
    parts = iter(list(pairwise(edges)))

    def take() -> None:
        for start, stop in parts:  # the iterator of a list is advanced under the GIL
            work(start, stop)

    helpers = [Thread(target=take) for _ in range(count - 1)]
    for helper in helpers:
        helper.start()
    take()
    for helper in helpers:
        helper.join()


def limiting(value: Any, keywords: dict[str, Any]) -> list[Copy]:
    """Return copies of as many bytes as a conversion reads and writes, for numbers of threads.

    The fastest of them is the limit. Bytes that are only shared do not count.
    """
    with interop.trace() as receipts:
        result = interop.convert(value, **keywords)
    receipt, out = receipts[-1], None
    written = max(receipt.written, default=0) or receipt.nbytes
    if keywords.get("out") is not None:
        out = np.ones(interop.spec(result).nbytes, np.uint8)
        written = out.nbytes
    counts = (2**n for n in range(threads().bit_length()))
    return [Copy(receipt.source.nbytes, written, out, count) for count in counts]
