"""Copies between the host and devices, complete on return: by the driver, or in stages."""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from interop.kit import STAGED_FROM, fetch_staged, send_staged

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from .describe import CupyArray
    from .streams import CupyStream


def fetch(out: NDArray[Any], value: CupyArray, stream: CupyStream) -> None:
    """Copy an array into one block of the host after what a stream has queued.

    The stream is of the array's device, which is current.
    """
    source = value if value.flags.c_contiguous else value.copy(order="C")
    staged = _is_for_stages(out) and fetch_staged(
        _bytes(out), lambda: _Link(source, stream, down=True)
    )
    if not staged and out.size:
        source.get(stream=stream, out=out, blocking=True)


def send(out: CupyArray, value: NDArray[Any], stream: CupyStream) -> None:
    """Copy an array of the host into one block on a device after what a stream has queued.

    The stream is of the device, which is current.
    """
    staged = _is_for_stages(value) and send_staged(
        _bytes(value), lambda: _Link(out, stream, down=False)
    )
    if not staged and value.size:
        out.set(value, stream=stream)
        stream.synchronize()


def fetch_all(outs: list[NDArray[Any]], values: list[CupyArray], stream: CupyStream) -> bool:
    """Copy arrays of one device and dtype into blocks of the host, if staging pays for all of them.

    They are gathered into one block on the device, which crosses.
    """
    import cupy

    blocks = [_bytes(out) for out in outs]
    flat = (value.ravel() for value in values)
    return fetch_staged(blocks, lambda: _Link(cupy.concatenate([*flat]), stream, down=True))


def send_all(values: list[NDArray[Any]], stream: CupyStream) -> list[CupyArray] | None:
    """Return copies of blocks of the host on the current device, if staging pays for all of them.

    They cross as one block, and are copied out of it there, so that each owns its memory.
    """
    import cupy

    if _is_page_locked(values[0].ctypes.data):
        return None
    block = cupy.empty(sum(value.size for value in values), values[0].dtype)
    blocks = [_bytes(value) for value in values]
    if not send_staged(blocks, lambda: _Link(block, stream, down=False)):
        return None
    ends = accumulate(value.size for value in values)
    parts = [
        block[end - value.size : end].copy().reshape(value.shape)
        for end, value in zip(ends, values, strict=True)
    ]
    stream.synchronize()
    return parts


def are_for_stages(values: list[Any]) -> bool:
    """Tell whether arrays are large together, and of one dtype."""
    nbytes = sum(value.nbytes for value in values)
    return nbytes >= STAGED_FROM and len({value.dtype for value in values}) == 1


def _is_for_stages(host: NDArray[Any]) -> bool:
    """Tell whether an array of the host is large, and slow for the driver to reach."""
    return (
        host.nbytes >= STAGED_FROM
        and host.flags.c_contiguous
        and not _is_page_locked(host.ctypes.data)
    )


def _is_page_locked(address: int) -> bool:
    from cupy.cuda import runtime

    try:
        return bool(runtime.pointerGetAttributes(address).type == runtime.memoryTypeHost)
    except runtime.CUDARuntimeError:  # ROCm's answer for memory that it does not know
        return False


def _bytes(block: NDArray[Any]) -> NDArray[Any]:
    """Return the memory of a C-ordered array as bytes."""
    return block.reshape(-1).view("u1")


class _Link:
    """Copies between page-locked chunks and an array on a device, on a stream of their own.

    That stream starts after `stream`, which may still be writing the array, or be using the memory
    that was given to it.
    """

    def __init__(self, there: CupyArray, stream: CupyStream, *, down: bool) -> None:
        self._there = there
        self._device = there.data.device
        self._down = down
        self._stream = _stream(there.data.device_id)
        self._stream.wait_event(stream.record())

    def allocate(self, nbytes: int) -> NDArray[Any]:
        """Return page-locked memory of CuPy's allocator for it."""
        import cupy
        import numpy as np

        with self._device:  # where none is current, the driver would start the first
            return np.frombuffer(cupy.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)

    @staticmethod
    def trim() -> None:
        """Let CuPy give the page-locked memory that it has in store to the system."""
        import cupy

        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def copy(self, chunk: NDArray[Any], start: int) -> None:
        """Copy between a chunk and the array's bytes from `start` on."""
        from cupy import cuda

        runtime, host, there = cuda.runtime, chunk.ctypes.data, self._there.data.ptr + start
        if self._down:
            ends, kind = (host, there), runtime.memcpyDeviceToHost
        else:
            ends, kind = (there, host), runtime.memcpyHostToDevice
        with self._device:
            done = cuda.Event(disable_timing=True)
            runtime.memcpyAsync(*ends, chunk.nbytes, kind, self._stream.ptr)
            done.record(self._stream)
            done.synchronize()


@cache
def _stream(index: int) -> CupyStream:
    """Return the stream on which transfers from and to a device are made, which is current."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)
