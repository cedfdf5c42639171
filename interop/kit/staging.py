"""Staging: large transfers between the host and a device, by way of page-locked chunks.

A device reads and writes page-locked memory at the speed of its link, and other memory at a tenth
of that: the driver copies it through a buffer of its own, with one thread, which takes the page
faults of fresh memory as well. Here several threads do so. For each piece one takes a chunk of
page-locked memory: it lets the device fill the chunk and copies the bytes out, or fills it and lets
the device fetch them. Meanwhile the device works on the chunks of the others. The host's side may
be several blocks, such as the leaves of a tree. They share chunks, so that the driver copies as
often as for one block.

The chunks are one stretch of memory, locked when it is first needed, kept for the process, and used
by all libraries in turn. The threads live no longer than the transfer. Each piece has a stream of
its own for as long as it is copied, so that nothing is queued behind the work of others; no piece
is left when a transfer has ended, not even after an error or an interruption.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from threading import Condition
from typing import TYPE_CHECKING, Any

from interop._model.log import log

from . import driver
from .arrays import address
from .threads import Team, cores, idle_cores

if TYPE_CHECKING:
    from typing import TypeAlias

    #: An array of bytes, one C-ordered block.
    Bytes: TypeAlias = Any

#: Bytes from which on a transfer may be staged: what is smaller gains little, or loses.
STAGED_FROM = 2**24
#: Bytes that the leaves of a tree may have on average so that gathering them into one block pays
#: although that is not staged: to cross alone takes as long as to copy some more.
SMALL_LEAF = 2**17
#: Bytes of a chunk, and how many there are at most: 64 MiB in all.
_CHUNK, _MOST = 2**23, 8
#: Bytes of a piece of what has fewer pieces than there are chunks. The calls for pieces of a
#: quarter of this take longer than their copies.
_SMALL_PIECE = 2**22


def fetch_staged(out: Bytes | Sequence[Bytes], there: int, index: int) -> bool:
    """Copy a block of a device's memory to the host if that pays, and tell whether it was done.

    It pays from 16 MiB on, with two idle cores. Where it is not done, nothing was.

    Parameters
    ----------
    out : numpy.ndarray or sequence of numpy.ndarray
        Bytes of the host, as many as the block has: one C-ordered block that may be written to, or
        several which the bytes fill one after another.
    there : int, in bytes
        Address of the block, of which nothing is waited for: what has been queued on it must have
        ended.
    index : int
        The device's.

    Returns
    -------
    bool
        Whether all bytes have been copied. The device has then done with them.
    """
    return _transfer(out, there, index, _fetch)


def send_staged(source: Bytes | Sequence[Bytes], there: int, index: int) -> bool:
    """Copy bytes of the host into a block of a device's memory, as `fetch_staged` does the reverse.

    Parameters
    ----------
    source : numpy.ndarray or sequence of numpy.ndarray
        Bytes of the host, as many as the block has: one C-ordered block, or several whose bytes
        are sent one after another.
    there : int, in bytes
        Address of the block, of which nothing is waited for: what has been queued on it must have
        ended.
    index : int
        The device's.

    Returns
    -------
    bool
        Whether all bytes have been copied. They may then be overwritten.
    """
    return _transfer(source, there, index, _send)


def free_staging_buffers() -> None:
    """Give back the page-locked memory by way of which large transfers are made, 64 MiB at most.

    The next large transfer makes it anew, which takes some 25 milliseconds. While a transfer uses
    it, it is kept until that has ended.

    Examples
    --------
    >>> import interop
    >>> interop.free_staging_buffers()
    """
    _ring.clear()


class _Host:
    """Blocks of the host, end to end."""

    def __init__(self, blocks: Sequence[Bytes]) -> None:
        self._blocks = blocks
        self._ends = [*accumulate(map(len, blocks))]
        self.nbytes = sum(map(len, blocks))

    def parts(self, start: int, stop: int) -> Iterator[tuple[slice, Bytes]]:
        """Yield the parts of blocks between two addresses, each with its slice of them."""
        first, number = start, bisect_right(self._ends, start)
        while start < stop:
            block, end = self._blocks[number], self._ends[number]
            length, offset = min(end, stop) - start, start - end + len(block)
            yield slice(start - first, start - first + length), block[offset : offset + length]
            start, number = start + length, number + 1


def _fetch(host: _Host, start: int, chunk: Bytes, there: int, index: int) -> None:
    driver.fetch(address(chunk), there + start, len(chunk), index)
    for span, part in host.parts(start, start + len(chunk)):
        part[...] = chunk[span]


def _send(host: _Host, start: int, chunk: Bytes, there: int, index: int) -> None:
    for span, part in host.parts(start, start + len(chunk)):
        chunk[span] = part
    driver.send(there + start, address(chunk), len(chunk), index)


def _transfer(
    blocks: Bytes | Sequence[Bytes],
    there: int,
    index: int,
    move: Callable[[_Host, int, Bytes, int, int], None],
) -> bool:
    """Do the work of `fetch_staged` or of `send_staged`."""
    host = _Host(blocks if isinstance(blocks, (list, tuple)) else (blocks,))
    nbytes = host.nbytes
    if nbytes < STAGED_FROM:
        return False
    piece = _CHUNK if nbytes >= _CHUNK * _MOST else _SMALL_PIECE
    starts = range(0, nbytes, piece)
    workers = min(len(starts), _ring.room(), cores(), idle_cores())
    if workers < 2:
        return False

    def work(start: int) -> None:
        with _ring.chunk() as chunk:
            move(host, start, chunk[: min(piece, nbytes - start)], there, index)

    with _ring.opened(index) as is_open:
        return is_open and Team(work, zip(starts)).run(workers)


class _Ring:
    """The chunks of the process, in one stretch of page-locked memory."""

    def __init__(self) -> None:
        self._changed = Condition()
        #: The memory, and the device by way of which it was locked.
        self._memory: tuple[Bytes, int] | None = None
        self._free: list[Bytes] = []
        #: How many transfers use it, and whether it is to be given back when none does.
        self._users = 0
        self._ends = False
        #: Whether it is a parent's, which this process must not touch.
        self._is_of_parent = False

    def room(self) -> int:
        """Return how many chunks nobody uses."""
        with self._changed:
            if self._is_of_parent:
                return 0
            return _MOST if self._memory is None else len(self._free)

    @contextmanager
    def opened(self, index: int) -> Iterator[bool]:
        """Let a transfer use the chunks, which are made if there are none; tell whether it may."""
        with self._changed:
            is_open = self._memory is not None or self._is_made(index)
            self._users += is_open
        try:
            yield is_open
        finally:
            with self._changed:
                self._users -= is_open
                self._end()

    def _is_made(self, index: int) -> bool:
        memory = _pages(_CHUNK * _MOST)
        try:
            driver.lock_pages(address(memory), len(memory), index)
        except RuntimeError as error:
            log.debug("no page-locked memory for a transfer: %s", error)
            return False
        self._memory = memory, index
        self._free = [memory[_CHUNK * n : _CHUNK * (n + 1)] for n in range(_MOST)]
        return True

    @contextmanager
    def chunk(self) -> Iterator[Bytes]:
        """Lend a chunk for one piece, as soon as there is one. The device has done with it then."""
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            chunk = self._free.pop()
        try:
            yield chunk
        finally:
            with self._changed:
                self._free.append(chunk)
                self._changed.notify()

    def clear(self) -> None:
        """Give the memory back, at once or when the last transfer that uses it has ended."""
        with self._changed:
            self._ends = True
            self._end()

    def _end(self) -> None:
        if not self._ends or self._users:
            return
        self._ends = False
        if self._memory is not None:
            (memory, index), self._memory, self._free = self._memory, None, []
            driver.unlock_pages(address(memory), index)

    def close(self) -> None:
        """Leave everything to the parent process, and stage nothing any more if there is any."""
        self._changed = Condition()  # another thread may have held it
        if self._memory is not None:
            _keep_for_ever(self._memory)
            self._memory, self._is_of_parent = None, True


def _pages(nbytes: int) -> Bytes:
    """Return memory of whole pages, huge ones if the system has them, that no child inherits.

    After a fork, a page that parent and child have in common would be replaced by a copy as soon as
    one of them writes to it, and the device would go on with the old one.
    """
    import numpy as np

    pages = mmap.mmap(-1, nbytes)
    for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
        if hasattr(mmap, advice):
            with suppress(OSError):  # a kernel may be built without
                pages.madvise(getattr(mmap, advice))
    return np.frombuffer(pages, np.uint8)


def _keep_for_ever(value: object) -> None:
    """Let nothing free a value, not even the end of the process."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_ring = _Ring()
if hasattr(os, "register_at_fork"):
    # The driver maps page-locked memory into one process alone, and can free it in no other.
    os.register_at_fork(after_in_child=_ring.close)
