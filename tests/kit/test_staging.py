"""Staging: every byte arrives, each chunk has one user, and nothing is left behind.

A device is stood in for by memory of the host, and its queue by a thread that copies one piece
after another, later than it was asked to.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import fetch_staged, send_staged, staging

MIB = 2**20
LEAST = 16 * MIB


def pattern(nbytes: int, start: int = 0) -> Any:
    """Return bytes in which no two pieces are alike."""
    return np.arange(start, start + nbytes // 4 + 1, dtype=np.uint32).view(np.uint8)[:nbytes].copy()


class Device:
    """A device with one block of memory, and a queue that its own thread works through."""

    def __init__(self, nbytes: int, *, seconds: float = 0.0) -> None:
        self.memory = pattern(nbytes)
        self.seconds = seconds
        self.queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        #: The chunks that are being copied from or to, by address.
        self.in_use: set[int] = set()
        #: Where each piece began, its length, and the thread that asked for it.
        self.pieces: list[tuple[int, int, int]] = []
        self.fails_at = self.interrupts_at = -1
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (copy := self.queue.get()) is not None:
            time.sleep(self.seconds)
            copy()
            del copy  # which has the chunk

    def copy(self, out: Any, value: Any) -> None:
        """Queue a copy, and wait until it has been made."""
        done = threading.Event()

        def work() -> None:
            np.copyto(out, value)
            done.set()

        self.queue.put(work)
        assert done.wait(20)

    def close(self) -> None:
        self.queue.put(None)
        self._thread.join()


class Link:
    """What a plugin gives: asynchronous copies that it waits for."""

    def __init__(self, device: Device, *, down: bool) -> None:
        self._device, self._down = device, down

    def allocate(self, nbytes: int) -> Any:
        made.append(nbytes)
        return np.zeros(nbytes, np.uint8)

    @staticmethod
    def trim() -> None:
        trimmed.append(len(made))

    def copy(self, chunk: Any, start: int) -> None:
        device = self._device
        place = device.memory[start : start + len(chunk)]
        address = chunk.ctypes.data
        assert address not in device.in_use, "a chunk has two users"
        device.in_use.add(address)
        device.copy(*((chunk, place) if self._down else (place, chunk)))
        device.in_use.remove(address)
        device.pieces.append((start, len(chunk), threading.get_ident()))
        if len(device.pieces) == device.interrupts_at:
            os.kill(os.getpid(), signal.SIGINT)
        if start == device.fails_at:
            raise OSError("the link is down")


#: The chunks that have been made, and how many there were when the libraries were told to trim.
made: list[int] = []
trimmed: list[int] = []


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> staging._Ring:
    """Let there be a new ring, and eight idle cores."""
    ring = staging._Ring()
    monkeypatch.setattr(staging, "_ring", ring)
    cores(monkeypatch, 8)
    made.clear()
    trimmed.clear()
    return ring


def cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(staging, "idle_cores", lambda: count)
    monkeypatch.setattr(staging, "threads", lambda: count)


@pytest.fixture
def device() -> Iterator[Callable[..., Device]]:
    """Return a function that makes devices, which end with the test."""
    devices: list[Device] = []

    def make(nbytes: int, **fields: Any) -> Device:
        devices.append(Device(nbytes, **fields))
        return devices[-1]

    yield make
    for one in devices:
        one.close()


def threads() -> set[int]:
    return {*sys._current_frames()}


SIZES = [LEAST, LEAST + 1, 40 * MIB + 12_345, 64 * MIB, 100 * MIB - 1]


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_is_fetched(device: Callable[..., Device], nbytes: int) -> None:
    """The host has the device's bytes when the call returns, each fetched once, and no thread is left."""
    there, out = device(nbytes), np.zeros(nbytes, np.uint8)
    before = threads()
    assert fetch_staged(out, lambda: Link(there, down=True))
    wait_for(lambda: threads() <= before)
    assert np.array_equal(out, there.memory)
    assert sum(length for _, length, _ in there.pieces) == nbytes


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_is_sent(device: Callable[..., Device], nbytes: int) -> None:
    """The device has the host's bytes when the call returns, so that these may be overwritten."""
    there, source = device(nbytes), pattern(nbytes, start=1)
    expected = source.copy()
    assert send_staged(source, lambda: Link(there, down=False))
    source[:] = 0
    assert np.array_equal(there.memory, expected)
    assert sum(length for _, length, _ in there.pieces) == nbytes


#: The lengths of blocks, each with how many pieces of the device's memory all of them are.
LEAVES = {
    "64 of 4 MiB": ([4 * MIB] * 64, 32),
    "1,000 of 64 KiB": ([64 * 1024] * 1000, 16),
    "of any length": ([1, 0, 9 * MIB + 3, 5, 12 * MIB, 0, 77], 6),
}


@pytest.mark.parametrize(("lengths", "pieces"), LEAVES.values(), ids=LEAVES)
def test_blocks_share_chunks(
    device: Callable[..., Device], lengths: list[int], pieces: int
) -> None:
    """The device copies once for each piece of all blocks together, whatever their lengths are."""
    there = device(sum(lengths))
    blocks = [np.zeros(length, np.uint8) for length in lengths]
    assert fetch_staged(blocks, lambda: Link(there, down=True))
    assert np.array_equal(np.concatenate(blocks), there.memory)
    assert len(there.pieces) == pieces
    there.memory[:] = 0
    expected = np.concatenate(blocks)
    assert send_staged(tuple(blocks), lambda: Link(there, down=False))
    assert np.array_equal(there.memory, expected)
    assert len(there.pieces) == 2 * pieces


@pytest.mark.parametrize(("nbytes", "piece"), [(LEAST, 4 * MIB), (64 * MIB, 8 * MIB)])
def test_pieces_are_smaller_where_few_would_be_large(
    device: Callable[..., Device], nbytes: int, piece: int
) -> None:
    """From 64 MiB on a piece fills a chunk; below, it has 4 MiB."""
    there = device(nbytes)
    assert fetch_staged(np.empty(nbytes, np.uint8), lambda: Link(there, down=True))
    assert {length for _, length, _ in there.pieces} == {piece}


def test_chunks_are_made_once(device: Callable[..., Device]) -> None:
    """Transfers in both directions use the same eight chunks of 8 MiB."""
    there, host = device(100 * MIB, seconds=0.002), np.empty(100 * MIB, np.uint8)
    for _ in range(3):
        assert fetch_staged(host, lambda: Link(there, down=True))
        assert send_staged(host, lambda: Link(there, down=False))
    assert made == [8 * MIB] * 8


def test_there_are_as_many_threads_as_idle_cores(
    device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread has one chunk, and the caller's thread copies nothing."""
    cores(monkeypatch, 3)
    there = device(64 * MIB, seconds=0.005)
    assert fetch_staged(np.empty(64 * MIB, np.uint8), lambda: Link(there, down=True))
    workers = {thread for _, _, thread in there.pieces}
    assert len(workers) == len(made) == 3
    assert threading.get_ident() not in workers


@pytest.mark.parametrize(("nbytes", "idle"), [(LEAST - 1, 8), (LEAST, 1), (LEAST, 0)])
def test_small_transfers_and_busy_machines_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, nbytes: int, idle: int
) -> None:
    """Below 16 MiB, or with one idle core, nothing is connected and nothing is copied."""
    cores(monkeypatch, idle)

    def connect() -> Link:
        raise AssertionError

    host = np.empty(nbytes, np.uint8)
    assert not fetch_staged(host, connect)
    assert not send_staged(host, connect)


def wait_for(condition: Callable[[], bool]) -> None:
    """Give a thread that has released its last lock the time to disappear."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_transfers_at_once_share_the_chunks(device: Callable[..., Device]) -> None:
    """A transfer while another has all chunks is not staged, and none of both is wrong."""
    there, other = device(64 * MIB, seconds=0.02), device(LEAST)
    out = np.zeros(64 * MIB, np.uint8)
    first = threading.Thread(target=fetch_staged, args=(out, lambda: Link(there, down=True)))
    first.start()
    wait_for(lambda: len(made) == 8)
    assert not fetch_staged(np.empty(LEAST, np.uint8), lambda: Link(other, down=True))
    assert other.pieces == []
    first.join()
    assert np.array_equal(out, there.memory)
    assert fetch_staged(np.empty(LEAST, np.uint8), lambda: Link(other, down=True))


def test_many_transfers_at_once_are_right(
    device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that transfer in both directions at once never share a chunk or lose a byte."""
    cores(monkeypatch, 3)
    devices = [device(LEAST + 7 * n, seconds=0.001) for n in range(4)]
    failures: list[object] = []

    def run(there: Device, *, down: bool) -> None:
        for _ in range(6):
            host = np.empty(len(there.memory), np.uint8) if down else there.memory.copy()
            transfer = fetch_staged if down else send_staged
            staged = transfer(host, lambda: Link(there, down=down))
            if staged and not np.array_equal(host, there.memory):
                failures.append(there)

    callers = [
        threading.Thread(target=run, args=(there,), kwargs={"down": bool(n % 2)})
        for n, there in enumerate(devices)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []
    assert len(made) <= 8


@pytest.mark.parametrize("blocks", [1, 100])
def test_an_error_ends_the_transfer(
    device: Callable[..., Device], ring: staging._Ring, blocks: int
) -> None:
    """The first error is raised when all threads have ended, and its chunk is not used again."""
    there = device(100 * MIB, seconds=0.002)
    there.fails_at = 24 * MIB
    before, outs = threads(), [np.zeros(100 * MIB // blocks, np.uint8) for _ in range(blocks)]
    out = outs[0] if blocks == 1 else outs
    with pytest.raises(OSError, match="the link is down"):
        fetch_staged(out, lambda: Link(there, down=True))
    wait_for(lambda: threads() <= before)
    assert there.in_use == set()
    assert len(there.pieces) < 13
    assert ring.room() == 8
    there.fails_at = -1
    assert fetch_staged(out, lambda: Link(there, down=True))
    assert np.array_equal(np.concatenate(outs), there.memory)
    assert len(made) == 9


def test_an_interruption_ends_the_transfer(
    device: Callable[..., Device], ring: staging._Ring
) -> None:
    """After Ctrl-C no thread copies any more, all chunks are free, and the next transfer is right."""
    there, out = device(200 * MIB, seconds=0.1), np.zeros(200 * MIB, np.uint8)
    there.interrupts_at = 4
    before = threads()
    with pytest.raises(KeyboardInterrupt):
        fetch_staged(out, lambda: Link(there, down=True))
    assert there.in_use == set()
    assert 4 <= len(there.pieces) < 25
    assert ring.room() == 8
    wait_for(lambda: threads() <= before)
    there.seconds, there.interrupts_at = 0.0, -1
    assert fetch_staged(out, lambda: Link(there, down=True))
    assert np.array_equal(out, there.memory)


def test_no_page_locked_memory_is_no_error(
    device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch, ring: staging._Ring
) -> None:
    """Where the system locks no memory the transfer is not staged; the next one tries again."""

    def refuse(link: Link, nbytes: int) -> Any:
        raise MemoryError(nbytes)

    there = device(LEAST)
    with monkeypatch.context() as patch:
        patch.setattr(Link, "allocate", refuse)
        assert not fetch_staged(np.empty(LEAST, np.uint8), lambda: Link(there, down=True))
    assert there.pieces == []
    assert ring.room() == 8
    assert fetch_staged(np.empty(LEAST, np.uint8), lambda: Link(there, down=True))


def test_no_threads_are_no_error(
    device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system starts no thread the transfer is not staged."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(staging, "start_new_thread", refuse)
    assert not fetch_staged(np.empty(LEAST, np.uint8), lambda: Link(device(LEAST), down=True))


def test_the_chunks_can_be_given_back(device: Callable[..., Device], ring: staging._Ring) -> None:
    """Nothing holds a chunk afterwards, each library is told once, and the next transfer is right."""
    there, out = device(64 * MIB, seconds=0.002), np.zeros(64 * MIB, np.uint8)
    assert fetch_staged(out, lambda: Link(there, down=True))
    chunks = [weakref.ref(chunk) for chunk in ring._free]
    assert len(chunks) == len(made) > 1
    interop.free_staging_buffers()
    assert [chunk() for chunk in chunks if chunk() is not None] == []
    assert trimmed == [len(made)]
    assert fetch_staged(out, lambda: Link(there, down=True))
    assert np.array_equal(out, there.memory)


def test_nothing_keeps_the_memory_of_a_transfer(device: Callable[..., Device]) -> None:
    """Neither the link nor the host's bytes are kept once the call has returned."""
    there, out = device(LEAST), np.empty(LEAST, np.uint8)
    links: list[weakref.ref[Link]] = []

    def connect() -> Link:
        link = Link(there, down=True)
        links.append(weakref.ref(link))
        return link

    assert fetch_staged(out, connect)
    kept = weakref.ref(out)
    del out
    gc.collect()
    wait_for(lambda: kept() is links[0]() is None)


_FORK = """
import os
import numpy as np
from interop.kit import staging

staging.idle_cores = staging.threads = lambda: 4

class Memory(bytearray):
    def __init__(self, nbytes):
        super().__init__(nbytes)
        self.maker = os.getpid()

    def __del__(self):
        if os.getpid() != self.maker:
            os.write(1, b"freed in the child")

class Link:
    def allocate(self, nbytes):
        return np.frombuffer(Memory(nbytes), np.uint8)

    @staticmethod
    def trim():
        pass

    def copy(self, chunk, start):
        chunk[...] = 7

out = np.zeros(2**24, np.uint8)
{before}
child = os.fork()
if child == 0:
    staged = staging.fetch_staged(out, Link)
    staging.free_staging_buffers()
    os.write(1, b"staged" if staged else b"not staged")
else:
    os.waitpid(child, 0)
    assert staging.fetch_staged(out, Link)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("before", "said"),
    [("assert staging.fetch_staged(out, Link)", "not staged"), ("", "staged")],
    ids=["with chunks", "without"],
)
def test_a_forked_child_leaves_the_chunks_alone(before: str, said: str) -> None:
    """A child neither uses nor frees the chunks of its parent; without any it makes its own."""
    code = _FORK.replace("{before}", before)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.stdout, result.stderr, result.returncode) == (said, "", 0)
