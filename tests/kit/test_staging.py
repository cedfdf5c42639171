"""Staging: every byte arrives, each chunk has one user, and nothing is left behind.

The driver is that of `tests.cuda_driver`: a device is memory of the host, and a stream a thread.
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
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import fetch_staged, send_staged, staging
from tests.cuda_driver import CudaDriver, Stream, cores

pytestmark = pytest.mark.usefixtures("cuda_driver")

MIB = 2**20
LEAST = 16 * MIB


def pattern(nbytes: int, start: int = 0) -> Any:
    """Return bytes in which no two pieces are alike."""
    return np.arange(start, start + nbytes // 4 + 1, dtype=np.uint32).view(np.uint8)[:nbytes].copy()


def fetch(out: Any, there: Any, index: int = 0) -> bool:
    """Fetch what a device has."""
    return fetch_staged(out, there.ctypes.data, index)


def send(source: Any, there: Any, index: int = 0) -> bool:
    """Send to a device."""
    return send_staged(source, there.ctypes.data, index)


SIZES = [LEAST, LEAST + 1, 40 * MIB + 12_345, 64 * MIB, 100 * MIB - 1]


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_is_fetched(cuda_driver: CudaDriver, nbytes: int) -> None:
    """The host has the device's bytes when the call returns, each fetched once, and no thread is left."""
    there, out = pattern(nbytes), np.zeros(nbytes, np.uint8)
    before = cuda_driver.threads()
    assert fetch(out, there)
    wait_for(lambda: cuda_driver.threads() <= before)
    assert np.array_equal(out, there)
    assert sum(length for _, _, length, _ in cuda_driver.copies) == nbytes


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_is_sent(cuda_driver: CudaDriver, nbytes: int) -> None:
    """The device has the host's bytes when the call returns, so that these may be overwritten."""
    there, source = pattern(nbytes), pattern(nbytes, start=1)
    expected = source.copy()
    assert send(source, there)
    source[:] = 0
    assert np.array_equal(there, expected)
    assert sum(length for _, _, length, _ in cuda_driver.copies) == nbytes


#: The lengths of blocks, each with how many pieces of the device's memory all of them are.
LEAVES = {
    "64 of 4 MiB": ([4 * MIB] * 64, 32),
    "1,000 of 64 KiB": ([64 * 1024] * 1000, 16),
    "of any length": ([1, 0, 9 * MIB + 3, 5, 12 * MIB, 0, 77], 6),
}


@pytest.mark.parametrize(("lengths", "pieces"), LEAVES.values(), ids=LEAVES)
def test_blocks_share_chunks(cuda_driver: CudaDriver, lengths: list[int], pieces: int) -> None:
    """The device copies once for each piece of all blocks together, whatever their lengths are."""
    there = pattern(sum(lengths))
    blocks = [np.zeros(length, np.uint8) for length in lengths]
    assert fetch(blocks, there)
    assert np.array_equal(np.concatenate(blocks), there)
    assert len(cuda_driver.copies) == pieces
    there[:] = 0
    expected = np.concatenate(blocks)
    assert send(tuple(blocks), there)
    assert np.array_equal(there, expected)
    assert len(cuda_driver.copies) == 2 * pieces


@pytest.mark.parametrize(("nbytes", "piece"), [(LEAST, 4 * MIB), (64 * MIB, 8 * MIB)])
def test_pieces_are_smaller_where_few_would_be_large(
    cuda_driver: CudaDriver, nbytes: int, piece: int
) -> None:
    """From 64 MiB on a piece fills a chunk; below, it has 4 MiB."""
    assert fetch(np.empty(nbytes, np.uint8), pattern(nbytes))
    assert {length for _, _, length, _ in cuda_driver.copies} == {piece}


def test_memory_is_locked_once(cuda_driver: CudaDriver) -> None:
    """Transfers in both directions, of all devices, go through one stretch of 64 MiB."""
    there, host = pattern(100 * MIB), np.empty(100 * MIB, np.uint8)
    for index in (1, 0, 1):
        assert fetch(host, there, index)
        assert send(host, there, index)
    assert cuda_driver.log == ["lock"]
    assert [*cuda_driver.locked.values()] == [64 * MIB]


def test_no_other_device_is_touched(cuda_driver: CudaDriver) -> None:
    """A transfer with the second device makes no context on the first one."""
    assert fetch(np.empty(LEAST, np.uint8), pattern(LEAST), 1)
    assert cuda_driver.retained == {1}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinities")
@pytest.mark.parametrize("limit", ["OMP_NUM_THREADS", "affinity"])
def test_threads_that_compute_nothing_are_not_counted_as_such(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """torchrun sets OMP_NUM_THREADS to 1, which is no reason to wait for one core; affinity is."""
    from interop.kit import threads

    monkeypatch.setattr(staging, "cores", threads.cores)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {*range(8)})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if limit == "affinity":
        monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {0})
    assert fetch(np.empty(LEAST, np.uint8), pattern(LEAST)) is (limit != "affinity")


def test_there_are_as_many_threads_as_idle_cores(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's thread copies nothing."""
    cores(monkeypatch, 3)
    cuda_driver.seconds = 0.005
    assert fetch(np.empty(64 * MIB, np.uint8), pattern(64 * MIB))
    workers = {thread for *_, thread in cuda_driver.copies}
    assert len(workers) == 3
    assert threading.get_ident() not in workers


@pytest.mark.parametrize(("nbytes", "idle"), [(LEAST - 1, 8), (LEAST, 1), (LEAST, 0)])
def test_small_transfers_and_busy_machines_are_left_alone(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch, nbytes: int, idle: int
) -> None:
    """Below 16 MiB, or with one idle core, nothing is locked and nothing is copied."""
    cores(monkeypatch, idle)
    host = np.empty(nbytes, np.uint8)
    assert not fetch(host, host)
    assert not send(host, host)
    assert (cuda_driver.log, cuda_driver.copies) == ([], [])


def wait_for(condition: Callable[[], bool]) -> None:
    """Give a thread that has released its last lock the time to disappear."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_transfers_wait_for_nobody_elses_work(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads transfer in both directions while a stream has a backlog, and neither waits for it.

    Each piece has a stream of its own for as long as it is copied.
    """
    cores(monkeypatch, 3)
    backlog, begun = Stream(), threading.Event()
    backlog.put(lambda: begun.wait(20))
    cuda_driver.streams[7] = backlog
    there, hosts = [pattern(64 * MIB) for _ in range(2)], [pattern(64 * MIB, 9) for _ in range(2)]
    done: list[bool] = []
    callers = [
        threading.Thread(target=lambda: done.append(fetch(hosts[0], there[0]))),
        threading.Thread(target=lambda: done.append(send(hosts[1], there[1]))),
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert not begun.is_set()
    begun.set()
    assert done == [True, True]
    assert all(map(np.array_equal, hosts, there))
    assert cuda_driver.log == ["lock"]


def test_both_directions_are_under_way_at_once(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow copy up and a slow copy down are on two streams, and end at about the same time."""
    cores(monkeypatch, 2)
    cuda_driver.seconds, half = 0.05, 32 * MIB
    there, hosts = [pattern(half) for _ in range(2)], [pattern(half, 9) for _ in range(2)]
    callers = [
        threading.Thread(target=fetch, args=(hosts[0], there[0])),
        threading.Thread(target=send, args=(hosts[1], there[1])),
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert all(map(np.array_equal, hosts, there))
    ways = [way for way, *_ in cuda_driver.copies]
    assert {*ways[:6]} == {"down", "up"}


def test_transfers_at_once_share_the_chunks(cuda_driver: CudaDriver) -> None:
    """A transfer while another has all chunks is not staged, and none of both is wrong."""
    cuda_driver.seconds = 0.05
    there, out = pattern(64 * MIB), np.zeros(64 * MIB, np.uint8)
    first = threading.Thread(target=fetch, args=(out, there))
    first.start()
    wait_for(lambda: len(cuda_driver.in_use) == 8)
    assert not fetch(np.empty(LEAST, np.uint8), pattern(LEAST))
    first.join()
    assert np.array_equal(out, there)
    assert fetch(np.empty(LEAST, np.uint8), pattern(LEAST))


def test_many_transfers_at_once_are_right(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that transfer in both directions at once never share a chunk or lose a byte."""
    cores(monkeypatch, 3)
    cuda_driver.seconds = 0.001
    blocks = [pattern(LEAST + 7 * n) for n in range(4)]
    failures: list[object] = []

    def run(there: Any, *, down: bool) -> None:
        for _ in range(6):
            host = np.empty(len(there), np.uint8) if down else there.copy()
            if (fetch if down else send)(host, there) and not np.array_equal(host, there):
                failures.append(there)

    callers = [
        threading.Thread(target=run, args=(there,), kwargs={"down": bool(n % 2)})
        for n, there in enumerate(blocks)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []
    assert cuda_driver.log == ["lock"]


@pytest.mark.parametrize("blocks", [1, 100])
def test_an_error_ends_the_transfer(cuda_driver: CudaDriver, blocks: int) -> None:
    """The first error is raised when all threads have ended, and then every chunk is free again."""
    cuda_driver.seconds = 0.002
    cuda_driver.hook = lambda number: 700 if number == 3 else 0
    there = pattern(100 * MIB)
    before, outs = (
        cuda_driver.threads(),
        [np.zeros(100 * MIB // blocks, np.uint8) for _ in range(blocks)],
    )
    out = outs[0] if blocks == 1 else outs
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_OF_THE_TEST \(700\)"):
        fetch(out, there)
    wait_for(lambda: cuda_driver.threads() <= before)
    assert cuda_driver.in_use == set()
    assert len(cuda_driver.copies) < 13
    assert staging._ring.room() == 8
    cuda_driver.hook = lambda number: 0
    assert fetch(out, there)
    assert np.array_equal(np.concatenate(outs), there)


def interrupting(cuda_driver: CudaDriver, *numbers: int) -> None:
    """Let Ctrl-C be pressed when so many copies are done."""
    left = {*numbers}

    def hook(number: int) -> int:
        if number in left:
            left.discard(number)
            os.kill(os.getpid(), signal.SIGINT)
        return 0

    cuda_driver.hook = hook


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("presses", [1, 3])
def test_an_interruption_ends_the_transfer(cuda_driver: CudaDriver, presses: int) -> None:
    """After Ctrl-C, pressed again while the call ends or not, no thread copies, and chunks are free."""
    cuda_driver.seconds = 0.1
    there, out = pattern(200 * MIB), np.zeros(200 * MIB, np.uint8)
    interrupting(cuda_driver, *range(4, 4 + presses))
    before = cuda_driver.threads()
    with pytest.raises(KeyboardInterrupt):
        fetch(out, there)
    assert cuda_driver.in_use == set()
    assert 4 <= len(cuda_driver.copies) < 25
    assert staging._ring.room() == 8
    wait_for(lambda: cuda_driver.threads() <= before)
    cuda_driver.seconds, cuda_driver.hook = 0.0, lambda number: 0
    for stream in cuda_driver.streams.values():
        stream.seconds = 0.0
    assert fetch(out, there)
    assert np.array_equal(out, there)


def test_an_interruption_while_a_thread_starts_leaves_none_behind(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that has just started is waited for, although starting it was interrupted."""
    from interop.kit import threads

    start, members = threads.start_new_thread, []

    def interrupted(function: Any, arguments: Any) -> None:
        members.append(start(function, arguments))
        wait_for(lambda: bool(cuda_driver.in_use))
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "start_new_thread", interrupted)
    cuda_driver.seconds = 0.05
    out = np.zeros(64 * MIB, np.uint8)
    with pytest.raises(KeyboardInterrupt):
        fetch(out, pattern(64 * MIB, start=1))
    assert cuda_driver.in_use == set()
    assert len(members) == len(cuda_driver.copies) == 1
    written = out.copy()
    time.sleep(0.1)
    assert np.array_equal(out, written)


@pytest.mark.parametrize("why", ["refused", "no driver"])
def test_no_page_locked_memory_is_no_error(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Where the system locks no memory the transfer is not staged; the next one tries again."""
    cuda_driver.refuses_to_lock = True
    with monkeypatch.context() as patches:
        if why == "no driver":
            from interop.kit import driver as module

            patches.setattr(module, "_function", lambda name: module._library())
            patches.setattr(module, "_LIBRARY", "libnowhere.so")
            module._library.cache_clear()
        assert not fetch(np.empty(LEAST, np.uint8), pattern(LEAST))
    assert cuda_driver.copies == []
    assert staging._ring.room() == 8
    cuda_driver.refuses_to_lock = False
    assert fetch(np.empty(LEAST, np.uint8), pattern(LEAST))


def test_no_threads_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system starts no thread the transfer is not staged."""
    from interop.kit import threads

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", refuse)
    assert not fetch(np.empty(LEAST, np.uint8), pattern(LEAST))


def test_the_memory_can_be_given_back(cuda_driver: CudaDriver) -> None:
    """All of it is unlocked and free, none of it is in anybody's cache, and the next transfer is right."""
    there, out = pattern(64 * MIB), np.zeros(64 * MIB, np.uint8)
    assert fetch(out, there)
    memory = weakref.ref(staging._ring._free[0].base)
    interop.free_staging_buffers()
    gc.collect()
    assert memory() is None
    assert (cuda_driver.log, cuda_driver.locked) == (["lock", "unlock"], {})
    interop.free_staging_buffers()
    assert fetch(out, there)
    assert cuda_driver.log == ["lock", "unlock", "lock"]
    assert np.array_equal(out, there)


def test_memory_in_use_is_given_back_when_it_is_not(cuda_driver: CudaDriver) -> None:
    """A transfer that is under way goes on, and what it uses is unlocked at its end."""
    cuda_driver.seconds = 0.01
    there, out = pattern(100 * MIB), np.zeros(100 * MIB, np.uint8)
    caller = threading.Thread(target=fetch, args=(out, there))
    caller.start()
    wait_for(lambda: bool(cuda_driver.in_use))
    interop.free_staging_buffers()
    assert cuda_driver.log == ["lock"]
    caller.join()
    assert cuda_driver.log == ["lock", "unlock"]
    assert np.array_equal(out, there)


def test_nothing_keeps_the_memory_of_a_transfer(cuda_driver: CudaDriver) -> None:
    """Nobody keeps the host's bytes once the call has returned."""
    out = np.empty(LEAST, np.uint8)
    assert fetch(out, pattern(LEAST))
    kept = weakref.ref(out)
    del out
    gc.collect()
    wait_for(lambda: kept() is None)


_FORK = """
import os
import numpy as np
import pytest
from interop.kit import staging
from tests.cuda_driver import installed

with pytest.MonkeyPatch.context() as patches:
    fake = installed(patches)
    os.register_at_fork(after_in_child=staging._ring.close)
    there, out = np.ones(2**24, np.uint8), np.zeros(2**24, np.uint8)
    assert staging.fetch_staged(out, there.ctypes.data, 0)
    child = os.fork()
    if child == 0:
        fake.streams.clear()
        staged = staging.fetch_staged(out, there.ctypes.data, 0)
        staging.free_staging_buffers()
        os.write(1, b"staged" if staged else b"not staged")
        os.write(1, b", unlocked" if "unlock" in fake.log else b"")
        os._exit(0)
    os.waitpid(child, 0)
    assert staging.fetch_staged(out, there.ctypes.data, 0)
    assert out.all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_leaves_the_chunks_alone() -> None:
    """A child neither uses nor unlocks the chunks of its parent, and does not even have the memory."""
    result = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.stdout, result.stderr, result.returncode) == ("not staged", "", 0)
