"""Hand-offs on CUDA devices without an order of streams, where both sides work on one stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from interop.kit import extent

from .dense import copy
from .loans import lend

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .describe import CupyArray, DType
    from .hand_offs import CudaInterface
    from .streams import CupyStream

    #: Returns the handle of the stream that is current on a device.
    StreamOf: TypeAlias = Callable[[int], int]
    #: A capsule, the index of its device, and whether both sides work on one stream.
    Offer: TypeAlias = tuple[object, int, bool]

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


def offer(value: CupyArray, stream_of: StreamOf, waits: bool) -> Offer | Any:
    """Return a capsule of an array whose elements lie forwards, or `NotImplemented`.

    Parameters
    ----------
    value : cupy.ndarray
    stream_of : callable
        Returns the handle of the consumer's stream on a device.
    waits : bool
        Whether that stream is told to wait if it is not CuPy's.

    Returns
    -------
    tuple of capsule, int and bool
        With the index of the device, and whether that stream is CuPy's own.
    """
    data = value.data
    if (
        not value.size
        or data.ptr % value.itemsize
        or (not value.flags.c_contiguous and min(value.strides) < 0)
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


def adopt(offer: Callable[..., Any], value: object) -> Any:
    """Return an array over the memory that is offered of a value, or `NotImplemented`."""
    offered = offer(value, _handle, False)
    if offered is NotImplemented:
        return offered
    capsule, index, together = offered
    array = _share()(capsule)
    return array if together else lend(array, value, _current_stream()(index))


def copy_adopted(offer: Callable[..., Any], value: object) -> Any:
    """Return a copy of the memory that is offered of a value, or `NotImplemented`."""
    array = adopt(offer, value)
    return array if array is NotImplemented else copy(array)


def adopt_interface(offer: Callable[..., Any], value: CudaInterface) -> Any:
    """Return an array over the memory of an interface that was asked for and checked."""
    import cupy

    interface = offer(value)
    # For a stream that the interface names CuPy itself makes the host wait.
    if interface is NotImplemented or interface.get("stream") is not None:
        return NotImplemented
    address, _ = interface["data"]
    index = cupy.cuda.runtime.pointerGetAttributes(address).device
    shape, strides, dtype = (
        interface["shape"],
        interface.get("strides"),
        _dtype(interface["typestr"]),
    )
    length = prod(shape) * dtype.itemsize
    if strides is not None:
        _, length = extent(address, shape, strides, dtype.itemsize)
    memory = cupy.cuda.UnownedMemory(address, length, value, index)
    array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)
    return lend(array, value, _current_stream()(index))


@cache
def _dtype(typestr: str) -> DType:
    import numpy as np

    return np.dtype(typestr)


def copy_adopted_interface(offer: Callable[..., Any], value: CudaInterface) -> Any:
    """Return a copy of the memory of an interface that was asked for and checked."""
    array = adopt_interface(offer, value)
    return array if array is NotImplemented else copy(array)
