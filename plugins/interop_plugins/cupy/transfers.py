"""Copies between the host and devices, complete on return: by the driver, or in stages.

What the stream in question has queued is waited for first, by the caller alone.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from interop.kit import SMALL_LEAF, STAGED_FROM, fetch_staged, send_staged

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
    staged = _is_for_stages(out) and fetch_staged(_bytes(out), *_settled(source, stream))
    if not staged and out.size:
        source.get(stream=stream, out=out, blocking=True)


def send(out: CupyArray, value: NDArray[Any], stream: CupyStream) -> None:
    """Copy an array of the host into one block on a device after what a stream has queued.

    The stream is of the device, which is current.
    """
    staged = _is_for_stages(value) and send_staged(_bytes(value), *_settled(out, stream))
    if not staged and value.size:
        out.set(value, stream=stream)
        stream.synchronize()


def fetch_all(values: list[CupyArray], stream: CupyStream) -> list[NDArray[Any]] | None:
    """Return copies of arrays of one device on the host, if that pays for all together.

    They are gathered into one block on the device, which crosses. `cross_at_once` has to be true.
    """
    import cupy
    import numpy as np

    block = cupy.concatenate([value.ravel() for value in values])
    if block.nbytes < STAGED_FROM:
        flat = block.get(stream=stream)
        return [
            flat[start:end].reshape(value.shape).copy() for start, end, value in _places(values)
        ]
    outs = [np.empty(value.shape, value.dtype) for value in values]
    return outs if fetch_staged([*map(_bytes, outs)], *_settled(block, stream)) else None


def send_all(values: list[NDArray[Any]], stream: CupyStream) -> list[CupyArray] | None:
    """Return copies of blocks of the host on the current device, if that pays for all together.

    They cross as one block, and are copied out of it there, so that each owns its memory.
    """
    import cupy
    import numpy as np

    if _is_page_locked(values[0].ctypes.data):
        return None
    block = cupy.empty(sum(value.size for value in values), values[0].dtype)
    if block.nbytes < STAGED_FROM:
        block.set(np.concatenate([value.reshape(-1) for value in values]), stream=stream)
    elif not send_staged([*map(_bytes, values)], *_settled(block, stream)):
        return None
    parts = [block[start:end].copy().reshape(value.shape) for start, end, value in _places(values)]
    stream.synchronize()
    return parts


def cross_at_once(values: list[Any]) -> bool:
    """Tell whether arrays are of one dtype, and together large, or each small."""
    nbytes = sum(value.nbytes for value in values)
    pays = nbytes >= STAGED_FROM or 0 < nbytes <= SMALL_LEAF * len(values)
    return pays and len({value.dtype for value in values}) == 1


def _places(values: list[Any]) -> Any:
    """Return where each of some arrays begins and ends if their elements lie one after another."""
    ends = [*accumulate(value.size for value in values)]
    return zip([0, *ends[:-1]], ends, values, strict=True)


def _settled(block: CupyArray, stream: CupyStream) -> tuple[int, int]:
    """Return where a block lies, and on which device, once a stream has nothing queued any more."""
    stream.synchronize()
    return block.data.ptr, block.data.device_id


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
