"""Devices and streams: where a step works, and after what.

Three rules hold in every step. Work is done on the device where the data is, which need not be the
current one. If the caller names a stream, work is done on it, after what CuPy's current stream was
doing, and the current stream then waits for it: the result is safe on both. Whatever crosses to
the host or to another device is complete when the step returns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interop.errors import BadRequestError, DeviceError
from interop.kit import queue_behind, stream_handle

from .describe import device_kind

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    #: A ``cupy.cuda.Device``.
    Device: TypeAlias = Any
    #: A ``cupy.cuda.Stream``.
    CupyStream: TypeAlias = Any
    #: As callers give it: a handle, the object of any framework, or None.
    Stream: TypeAlias = object

# Handles that are no addresses: the legacy default stream goes by two names.
_LEGACY = frozenset({0, 1})
#: The handle of the default stream of the thread in which it is used.
PER_THREAD = 2


def device_named(name: str) -> Device:
    """Return the device of a name; without an index it is the current one."""
    import cupy

    kind, _, index = name.partition(":")
    built_for = device_kind()
    if kind != built_for:
        msg = f"CuPy is installed for {built_for} here, and {name} is another; name {built_for}."
        raise DeviceError(msg)
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        number = int(index) if index else cupy.cuda.runtime.getDevice()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        msg = (
            f"CuPy finds no device that it can use on this machine ({error}); install the "
            "device's driver, or ask for a format of the host, such as 'numpy'."
        )
        raise DeviceError(msg) from None
    if number >= count:
        msg = f"CuPy finds {count} device(s), and {name} is not one of them; name one that is."
        raise BadRequestError(msg)
    return cupy.cuda.Device(number)


class _Handle:
    """A stream given as a number, with the protocol by which CuPy takes the streams of others."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._handle)


def _cupy_stream(stream: Stream, current: CupyStream) -> CupyStream:
    """Return CuPy's stream object for a stream of the current device: the current one if it can."""
    import cupy

    if isinstance(stream, cupy.cuda.Stream):
        return stream
    handle = stream_handle(stream)
    if handle == current.ptr:
        return current
    if handle in _LEGACY:
        return cupy.cuda.Stream.null
    owner = stream if hasattr(stream, "__cuda_stream__") else _Handle(handle)
    return cupy.cuda.Stream.from_external(owner)


def lasts(stream: object) -> bool:
    """Tell whether a stream is there for as long as a stream object of CuPy or torch is.

    CuPy destroys a stream that it has made with its object, and torch none that it has made. All
    that other objects have is a handle, which may be destroyed before they are. The number of a
    thread's default stream names another stream in another thread.
    """
    import cupy

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(stream, torch.cuda.Stream):
        # torch numbers its own streams, and takes the handle for the number of all others.
        return stream.cuda_stream in _LEGACY or bool(stream.stream_id != stream.cuda_stream)
    if stream_handle(stream) in _LEGACY:
        return True
    if isinstance(stream, cupy.cuda.Stream):
        # An object without the attribute might be over any handle.
        owner = getattr(stream, "_foreign_stream_ref", stream)
        return stream.ptr != PER_THREAD if owner is None else owner is not stream and lasts(owner)
    return False


def joined(device: Device, stream: Stream) -> CupyStream:
    """Return CuPy's object for a stream, for which CuPy's current one waits.

    So what others have shared on that stream may be used on both.
    """
    import cupy

    with device:
        current = cupy.cuda.get_current_stream()
        named = _cupy_stream(stream, current)
        if named.ptr != current.ptr:
            queue_behind(current.ptr, named.ptr, device.id)
        return named


@contextmanager
def working(device: Device, stream: Stream) -> Iterator[CupyStream]:
    """Make a device current and yield the stream to work on, which is current too.

    The caller's stream starts after CuPy's current one, whose memory is read. The current one then
    waits for it, so that it cannot reuse that memory too early.
    """
    import cupy

    with device:
        current = cupy.cuda.get_current_stream()
        named = current if stream is None else _cupy_stream(stream, current)
        if named.ptr == current.ptr:
            yield named
            return
        queue_behind(named.ptr, current.ptr, device.id)
        try:
            with named:
                yield named
        finally:  # what was queued before an error still uses the memory
            queue_behind(current.ptr, named.ptr, device.id)
