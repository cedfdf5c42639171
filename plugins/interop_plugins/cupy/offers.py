"""Hand-offs on CUDA devices without an order of streams, where both sides work on one stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from interop.kit import extent, stream_handle, take_offer

from .dense import copy
from .loans import borrow, lend, let_wait
from .streams import joined, working

if TYPE_CHECKING:
    from typing import Any

    from interop.kit.devices import Offer, StreamOf

    from .describe import CupyArray, DType
    from .hand_offs import CudaInterface
    from .streams import CupyStream, Stream

#: What a stream is called that orders nothing.
_UNORDERED = -1


@cache
def _current_stream() -> Callable[[int], CupyStream]:
    import cupy

    function: Callable[[int], CupyStream] = cupy.cuda.get_current_stream
    return function


@cache
def _share() -> Callable[[object], CupyArray]:
    import cupy

    function: Callable[[object], CupyArray] = cupy.from_dlpack
    return function


def _handle(index: int) -> int:
    """Return the handle of CuPy's current stream on a device."""
    handle: int = _current_stream()(index).ptr
    return handle


def offer(value: CupyArray, stream_of: StreamOf, waits: bool, block: int = 0) -> Offer | Any:
    """Return a capsule of an array that lies forwards, or `NotImplemented`: see `Advanced`."""
    data = value.data
    if (
        not value.size
        or data.ptr % value.itemsize
        or (not value.flags.c_contiguous and (block or min(value.strides) < 0))
        or (block and data.ptr % block)
    ):
        return NotImplemented
    index = data.device_id
    handle = stream_of(index)
    if handle == _handle(index):
        return value.__dlpack__(stream=_UNORDERED), index, True
    # CuPy orders its stream of the current device. The legacy default stream has other names there.
    if not waits or handle < 1 or _current_device() != index:
        return NotImplemented
    return value.__dlpack__(stream=handle), index, False


def _current_device() -> int:
    import cupy

    index: int = cupy.cuda.runtime.getDevice()
    return index


def adopt(offer: Callable[..., Any], value: object, *, stream: Stream = None) -> Any:
    """Return an array over the memory that is offered of a value, or `NotImplemented`."""
    taken = take_offer(offer, value, _share(), _handle, stream)
    if taken is NotImplemented:
        return taken
    array, index, together = taken
    if stream is None:
        return array if together else lend(array, value, _current_stream()(index))
    named = joined(array.data.device, stream)
    return array if together else lend(array, value, named)


def copy_adopted(offer: Callable[..., Any], value: object, *, stream: Stream = None) -> Any:
    """Return a copy of the memory that is offered of a value, or `NotImplemented`."""
    taken = take_offer(offer, value, _share(), _handle, stream)
    if taken is NotImplemented:
        return taken
    array, _, together = taken
    with working(array.data.device, stream) as current:
        try:
            return array.copy(order="C")
        finally:
            if not together:
                let_wait(value, current)


def adopt_interface(
    offer: Callable[..., Any], value: CudaInterface, *, stream: Stream = None
) -> Any:
    """Return an array over the memory of an interface that was asked for and checked."""
    import cupy

    interface = offer(value)
    # For a stream that the interface names CuPy itself makes the host wait.
    if interface is NotImplemented or interface.get("stream") is not None:
        return NotImplemented
    address, _ = interface["data"]
    shape, strides = interface["shape"], interface.get("strides")
    dtype = _dtype(interface["typestr"])
    length = prod(shape) * dtype.itemsize
    if strides is not None:
        _, length = extent(address, shape, strides, dtype.itemsize)
    memory = cupy.cuda.UnownedMemory(address, length, borrow(value))  # which asks for the device
    if memory.device_id < 0:  # it is the host's, and the next kernel that reads it would fail
        return NotImplemented
    if stream is not None:  # there is nothing for which one would have to wait
        stream_handle(stream)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


@cache
def _dtype(typestr: str) -> DType:
    import numpy as np

    return np.dtype(typestr)


def copy_adopted_interface(
    offer: Callable[..., Any], value: CudaInterface, *, stream: Stream = None
) -> Any:
    """Return a copy of the memory of an interface that was asked for and checked."""
    array = adopt_interface(offer, value)
    return array if array is NotImplemented else copy(array, stream=stream)
