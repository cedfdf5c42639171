"""Staging: large transfers between the host and a device, by way of page-locked chunks.

A device reads and writes page-locked memory at the speed of its link, and other memory at a tenth
of that: the driver copies it through a buffer of its own, with one thread, which takes the page
faults of fresh memory as well. Here several threads do so. Each has a chunk of page-locked memory:
it lets the device fill the chunk and copies the bytes out, or fills it and lets the device fetch
them, piece after piece. Meanwhile the device works on the chunks of the others. The host's side may
be several blocks, such as the leaves of a tree. They share chunks, so that the driver copies as
often as for one block.

The chunks are made when they are first needed, kept for the process, and used by all libraries in
turn. The threads live no longer than the transfer. No piece is queued on a chunk whose last one has
not ended, so that an error or an interruption leaves nothing behind.
"""

from __future__ import annotations

import logging
import os
from _thread import start_new_thread
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Protocol

from .threads import idle_cores, threads

if TYPE_CHECKING:
    from typing import TypeAlias

    #: An array of bytes, one C-ordered block.
    Bytes: TypeAlias = Any

#: Bytes from which on a transfer may be staged: what is smaller gains little, or loses.
STAGED_FROM = 2**24
#: Bytes of a chunk, and how many there are at most: 64 MiB in all.
_CHUNK, _MOST = 2**23, 8
#: Bytes of a piece of what has fewer pieces than there are chunks. The calls for pieces of a
#: quarter of this take longer than their copies.
_SMALL_PIECE = 2**22

#: Seconds after which a waiting caller looks whether it was interrupted: not every system wakes it.
_GLANCE = 0.05

_log = logging.getLogger("interop")


class Link(Protocol):
    """What a library does for the transfer of one block of a device's memory.

    `copy` is called by several threads at a time, none of which is the caller's.
    """

    def allocate(self, nbytes: int) -> Bytes:
        """Return page-locked memory that every device can reach, as a NumPy array of bytes.

        It raises MemoryError or RuntimeError if there is none.
        """

    @staticmethod
    def trim() -> None:
        """Give the page-locked memory that the library keeps, and nobody uses, to the system."""

    def copy(self, chunk: Bytes, start: int) -> None:
        """Copy between a whole chunk and the bytes of the block from `start` on.

        Whatever was queued on the block before the transfer comes first. When this returns, or
        raises, the device has done with the chunk.
        """


def fetch_staged(out: Bytes | Sequence[Bytes], connect: Callable[[], Link]) -> bool:
    """Copy a block of a device's memory to the host if that pays, and tell whether it was done.

    It pays from 16 MiB on, with two idle cores. Where it is not done, nothing was.

    Parameters
    ----------
    out : numpy.ndarray or sequence of numpy.ndarray
        Bytes of the host, as many as the block has: one C-ordered block that may be written to, or
        several which the bytes fill one after another.
    connect : callable
        Returns the `Link`, which copies from the device into a chunk.

    Returns
    -------
    bool
        Whether all bytes have been copied. The device has then done with them.
    """
    return _transfer(out, connect, _fetch)


def send_staged(source: Bytes | Sequence[Bytes], connect: Callable[[], Link]) -> bool:
    """Copy bytes of the host into a block of a device's memory, as `fetch_staged` does the reverse.

    Parameters
    ----------
    source : numpy.ndarray or sequence of numpy.ndarray
        Bytes of the host, as many as the block has: one C-ordered block, or several whose bytes
        are sent one after another.
    connect : callable
        Returns the `Link`, which copies from a chunk to the device.

    Returns
    -------
    bool
        Whether all bytes have been copied. They may then be overwritten.
    """
    return _transfer(source, connect, _send)


def free_staging_buffers() -> None:
    """Give back the page-locked memory by way of which large transfers are made, 64 MiB at most.

    The next large transfer makes it anew, which takes some 25 milliseconds. Memory that a transfer
    uses at this moment is kept.

    Examples
    --------
    >>> free_staging_buffers()
    """
    _ring.clear()


class _Host:
    """Blocks of the host, end to end."""

    def __init__(self, blocks: Sequence[Bytes]) -> None:
        self._blocks = blocks
        self._ends = [*accumulate(map(len, blocks))]
        self.nbytes = sum(map(len, blocks))

    def parts(self, start: int, stop: int) -> Iterator[tuple[slice, Bytes]]:
        """Yield the parts of blocks between two places, each with its place after the first."""
        first, place = start, bisect_right(self._ends, start)
        while start < stop:
            block, end = self._blocks[place], self._ends[place]
            length, offset = min(end, stop) - start, start - end + len(block)
            yield slice(start - first, start - first + length), block[offset : offset + length]
            start, place = start + length, place + 1


def _fetch(link: Link, chunk: Bytes, host: _Host, start: int) -> None:
    link.copy(chunk, start)
    for place, part in host.parts(start, start + len(chunk)):
        part[...] = chunk[place]


def _send(link: Link, chunk: Bytes, host: _Host, start: int) -> None:
    for place, part in host.parts(start, start + len(chunk)):
        chunk[place] = part
    link.copy(chunk, start)


def _transfer(
    blocks: Bytes | Sequence[Bytes],
    connect: Callable[[], Link],
    move: Callable[[Link, Bytes, _Host, int], None],
) -> bool:
    """Do the work of `fetch_staged` or of `send_staged`."""
    host = _Host(blocks if isinstance(blocks, (list, tuple)) else (blocks,))
    nbytes = host.nbytes
    if nbytes < STAGED_FROM:
        return False
    piece = _CHUNK if nbytes >= _CHUNK * _MOST else _SMALL_PIECE
    starts = range(0, nbytes, piece)
    workers = min(len(starts), _ring.room(), threads(), idle_cores())
    if workers < 2:
        return False
    link = connect()

    def work(chunk: Bytes, start: int) -> None:
        move(link, chunk[: min(piece, nbytes - start)], host, start)

    team = _Team(work, link, iter(starts))
    team.run(workers)
    return not team.is_idle


class _Ring:
    """The chunks of the process: those that are free, and how many there are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._free: list[Bytes] = []
        self._made = 0
        #: How each library that has made a chunk gives memory to the system.
        self._trims: dict[type, Callable[[], None]] = {}

    def room(self) -> int:
        """Return how many threads can have a chunk."""
        with self._lock:
            return len(self._free) + _MOST - self._made

    def take(self, link: Link) -> Bytes | None:
        """Return a chunk that nobody uses; None if there can be none."""
        with self._lock:
            if self._free:
                return self._free.pop()
            if self._made >= _MOST:
                return None
            self._made += 1
            self._trims[type(link)] = link.trim
        try:
            return link.allocate(_CHUNK)
        except (MemoryError, RuntimeError) as error:
            self.lose()
            _log.debug("no page-locked memory for a transfer: %s", error)
            return None

    def give(self, chunk: Bytes) -> None:
        """Take back a chunk that its user has done with."""
        with self._lock:
            self._free.append(chunk)

    def lose(self) -> None:
        """Forget a chunk on which a copy has failed, or that could not be made."""
        with self._lock:
            self._made -= 1

    def clear(self) -> None:
        """Give back the chunks that are free."""
        with self._lock:
            chunks, self._free = self._free, []
            self._made -= len(chunks)
            trims = [*self._trims.values()]
        del chunks
        for trim in trims:
            trim()

    def close(self) -> None:
        """Leave everything to the parent process, and stage nothing any more if there is any."""
        self._lock = Lock()  # another thread may have held it
        if self._made:
            _keep_for_ever(self._free)
            self._free, self._made = [], _MOST


def _keep_for_ever(value: object) -> None:
    """Let nothing free a value, not even the end of the process."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_ring = _Ring()
if hasattr(os, "register_at_fork"):
    # The driver maps page-locked memory into one process alone, and can free it in no other.
    os.register_at_fork(after_in_child=_ring.close)


class _Team:
    """The threads of one transfer.

    The caller only waits, so that an interruption, which Python raises in the main thread, stops no
    copy halfway.
    """

    def __init__(
        self, work: Callable[[Bytes, int], None], link: Link, starts: Iterator[int]
    ) -> None:
        self._work = work
        self._link = link
        self._starts = starts
        self._taking = Lock()
        self._errors: list[BaseException] = []
        self._members: list[Event] = []
        #: Whether no member has found a chunk.
        self.is_idle = True

    def run(self, workers: int) -> None:
        """Do all of the work, or none if no thread or no chunk can be had.

        Raises
        ------
        BaseException
            The first error, once no member is at work.
        """
        try:
            for _ in range(workers):
                self._start()
            self._join()
        except BaseException as error:
            self._errors.append(error)
            self._join()
            raise
        if self._errors:
            raise self._errors[0]

    def _start(self) -> None:
        """Start a member, unless the system has no more threads."""
        done = Event()
        try:
            start_new_thread(self._take_part, (done,))
        except RuntimeError:
            return
        self._members.append(done)

    def _join(self) -> None:
        """Wait until every member has ended."""
        for done in self._members:
            while not done.wait(_GLANCE):
                pass

    def _take_part(self, done: Event) -> None:
        try:
            self._do_pieces()
        except BaseException as error:  # noqa: BLE001 - raised by `run`, once all have ended
            self._errors.append(error)
        finally:
            done.set()

    def _do_pieces(self) -> None:
        """Do piece after piece on one chunk, until none is left or one has failed."""
        chunk = _ring.take(self._link)
        if chunk is None:
            return
        self.is_idle = False
        try:
            while not self._errors and (start := self._next()) is not None:
                self._work(chunk, start)
        except BaseException:
            _ring.lose()
            raise
        _ring.give(chunk)

    def _next(self) -> int | None:
        with self._taking:  # without the GIL an iterator could give one piece to two threads
            return next(self._starts, None)
