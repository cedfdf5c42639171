"""A CUDA driver for machines without one: devices are memory of the host, and streams threads.

Each stream has a queue, which its thread works through a while after it was asked to. So what
nobody waits for is not there yet, and whatever is queued behind other work is late.
"""

# ruff: noqa: N802 - the functions have the driver's names

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import Any

import pytest

from interop.kit import driver, staging


class Stream:
    """A queue of work, and the thread that does it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._queue: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            time.sleep(self.seconds)
            work()
            del work  # which has memory

    def put(self, work: Callable[[], Any]) -> None:
        self._queue.put(work)

    def synchronize(self) -> None:
        done = threading.Event()
        self._queue.put(done.set)
        assert done.wait(20)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


class CudaDriver:
    """The driver's functions that are called; each checks what the real one would refuse.

    Attributes
    ----------
    log : list of str
        Who waits for whom, and what is locked.
    copies : list of tuple
        Of each copy that is done: its direction, the address on the device, its bytes, and the
        thread that asked for it.
    retained : set of int
        The devices of which there is a context.
    hook : callable
        Called when somebody has waited for a copy, with its number, from 1 on; returns a status.
    """

    def __init__(self) -> None:
        #: How long a new stream waits before each piece of its work.
        self.seconds = 0.002
        self.log: list[str] = []
        self.copies: list[tuple[str, int, int, int]] = []
        self.retained: set[int] = set()
        self.hook: Callable[[int], int] = lambda number: 0
        self.refuses_to_lock = False
        #: How many bytes are locked, by address, and the chunks in use.
        self.locked: dict[int, int] = {}
        self.in_use: set[int] = set()
        self.owners: dict[int, int] = {}
        self.streams: dict[int, Stream] = {}
        self._recorded: dict[int, int] = {}
        self._handles = count(1000)
        self._waited = count(1)
        self._local = threading.local()

    @property
    def _contexts(self) -> list[int]:
        if not hasattr(self._local, "contexts"):
            self._local.contexts = []
        return self._local.contexts  # type: ignore[no-any-return]

    def cuDeviceGet(self, out: Any, ordinal: int) -> int:
        out._obj.value = ordinal
        return 0

    def cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> int:
        self.retained.add(device)
        out._obj.value = 500 + device
        return 0

    def cuCtxPushCurrent_v2(self, context: int) -> int:
        self._contexts.append(context)
        return 0

    def cuCtxPopCurrent_v2(self, out: Any) -> int:
        self._contexts.pop()
        return 0

    def cuStreamCreate(self, out: Any, flags: int) -> int:
        assert flags == 1, "it would wait for the legacy default stream"
        out._obj.value = handle = next(self._handles)
        self.streams[handle] = Stream(self.seconds)
        return 0 if self._contexts else 201

    def cuStreamSynchronize(self, stream: int) -> int:
        self.streams[stream].synchronize()
        return self.hook(next(self._waited))

    def cuEventCreate(self, out: Any, flags: int) -> int:
        assert flags == 2, "nobody asks for the time"
        out._obj.value = next(self._handles)
        return 0 if self._contexts else 201

    def cuEventRecord(self, event: int, stream: int) -> int:
        self._recorded[event] = stream
        return 0 if self._contexts else 201

    def cuStreamWaitEvent(self, waiting: int, event: int, flags: int) -> int:
        self.log.append(f"{waiting} waits for {self._recorded[event]}")
        return flags

    def cuMemHostRegister_v2(self, address: int, nbytes: int, flags: int) -> int:
        assert flags == 1, "only one device would reach it"
        assert self._contexts
        if self.refuses_to_lock:
            return 2
        self.locked[address] = nbytes
        self.log.append("lock")
        return 0

    def cuMemHostUnregister(self, address: int) -> int:
        assert not self.in_use, "a copy is under way"
        self.log.append("unlock")
        return 0 if self._contexts and self.locked.pop(address, 0) else 713

    def cuMemcpyDtoHAsync_v2(self, out: int, address: int, nbytes: int, stream: int) -> int:
        return self._copy("down", out, address, nbytes, stream)

    def cuMemcpyHtoDAsync_v2(self, address: int, source: int, nbytes: int, stream: int) -> int:
        return self._copy("up", source, address, nbytes, stream)

    def _copy(self, way: str, chunk: int, address: int, nbytes: int, stream: int) -> int:
        assert self._contexts, "no device is current in this thread"
        assert any(start <= chunk < start + size for start, size in self.locked.items())
        assert chunk not in self.in_use, "a chunk has two users"
        self.in_use.add(chunk)
        ends = (chunk, address) if way == "down" else (address, chunk)
        asked_by = threading.get_ident()

        def work() -> None:
            ctypes.memmove(*ends, nbytes)
            self.in_use.remove(chunk)
            self.copies.append((way, address, nbytes, asked_by))

        self.streams[stream].put(work)
        return 0

    def cuPointerGetAttribute(self, out: Any, attribute: int, address: int) -> int:
        assert attribute == 9
        index = self.owners.get(address)
        out._obj.value = -2 if index is None else index
        return 1 if index is None else 0

    def cuGetErrorName(self, status: int, out: Any) -> int:
        out._obj.value = b"CUDA_ERROR_OF_THE_TEST"
        return 0

    def threads(self) -> set[int]:
        """Return the threads of the process that are not those of streams."""
        streams = {stream._thread.ident for stream in self.streams.values()}
        return {ident for ident in sys._current_frames() if ident not in streams}

    def close(self) -> None:
        for stream in self.streams.values():
            stream.close()
        _forget()


def _forget() -> None:
    """Let the driver be asked anew for contexts and streams."""
    driver._context.cache_clear()
    driver.own_stream.cache_clear()


def installed(monkeypatch: pytest.MonkeyPatch) -> CudaDriver:
    """Let there be a driver, a new ring of chunks, and eight idle cores."""
    fake = CudaDriver()
    monkeypatch.setattr(driver, "_function", lambda name: getattr(fake, name))
    monkeypatch.setattr(driver, "_events", driver._Handles("cuEventCreate", 2))
    monkeypatch.setattr(driver, "_streams", driver._Handles("cuStreamCreate", 1))
    monkeypatch.setattr(staging, "_ring", staging._Ring())
    _forget()
    cores(monkeypatch, 8)
    return fake


def cores(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let so many cores be idle."""
    monkeypatch.setattr(staging, "idle_cores", lambda: number)
    monkeypatch.setattr(staging, "cores", lambda: number)
