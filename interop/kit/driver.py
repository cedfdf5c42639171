"""The driver of CUDA devices: copies, waits and page-locked memory, by address and by handle.

Whichever library owns the memory and the streams, they are the driver's, and it takes them from
all of them alike. Only what a library has started is used: nothing here starts CUDA.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from functools import cache
from typing import Any

from interop.errors import Declined

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

_HANDLE, _HANDLE_OUT = c_void_p, POINTER(c_void_p)
#: The arguments of the driver's functions that are called, from cuda.h.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "cuCtxPopCurrent_v2": (_HANDLE_OUT,),
    "cuCtxPushCurrent_v2": (_HANDLE,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDevicePrimaryCtxRetain": (_HANDLE_OUT, c_int),
    "cuEventCreate": (_HANDLE_OUT, c_uint),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuMemHostRegister_v2": (c_void_p, c_size_t, c_uint),
    "cuMemHostUnregister": (c_void_p,),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, _HANDLE),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, _HANDLE),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuStreamCreate": (_HANDLE_OUT, c_uint),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, c_uint),
}
#: The number of the attribute that says on which device memory lies.
_DEVICE_ORDINAL = 9
#: Memory that every device can reach; a stream that waits for no other; an event without a time.
_PORTABLE, _NON_BLOCKING, _UNTIMED = 1, 1, 2


@cache
def _library() -> CDLL:
    """Return the driver. Its calls let go of the interpreter.

    One that queues work waits while the queue is full, perhaps for a callback in Python.
    """
    try:
        library = CDLL(_LIBRARY)
    except OSError as error:
        msg = f"there is no CUDA driver: {error}"
        raise Declined(msg) from error
    for name, arguments in _ARGUMENTS.items():
        getattr(library, name).argtypes = arguments
    return library


@cache
def _function(name: str) -> Callable[..., int]:
    function: Callable[..., int] = getattr(_library(), name)
    return function


def _call(name: str, *arguments: object) -> None:
    """Call a function of the driver's; raise RuntimeError if it fails, or Declined without one."""
    status = _function(name)(*arguments)
    if status:
        raise _failed(name, status)


def _failed(what: str, status: int) -> RuntimeError:
    text = c_char_p()
    _function("cuGetErrorName")(status, byref(text))
    return RuntimeError(f"{what} failed: {(text.value or b'').decode()} ({status})")


def device_of(address: int) -> int | None:
    """Return the index of the device on which memory lies, or None if the driver knows none.

    Parameters
    ----------
    address : int, in bytes

    Raises
    ------
    Declined
        There is no CUDA driver to ask.
    """
    ordinal = c_int(-1)
    status = _function("cuPointerGetAttribute")(byref(ordinal), _DEVICE_ORDINAL, address)
    return None if status or ordinal.value < 0 else ordinal.value


def queue_behind(waiting: int, stream: int, index: int) -> None:
    """Let a stream wait for what is queued on another one, without the host.

    Parameters
    ----------
    waiting, stream : int
        Handles of streams of one device: addresses, or 0 or 1 for the legacy default stream, or 2
        for that of the thread.
    index : int
        The device's.

    Raises
    ------
    RuntimeError
        The driver refuses. It is Declined if there is no driver.
    """
    event, status = _events.take(index), _function("cuCtxPushCurrent_v2")(_context(index))
    if not status:
        # What the event has recorded is looked up now, so that it can be used again afterwards.
        status = _function("cuEventRecord")(event, stream)
        status = status or _function("cuStreamWaitEvent")(waiting, event, 0)
        _function("cuCtxPopCurrent_v2")(byref(c_void_p()))
    _events.give(index, event)
    if status:
        raise _failed("to let a stream wait", status)


@cache
def own_stream(index: int) -> int:
    """Return the handle of a stream on a device that no library uses, and nobody destroys."""
    return _streams.take(index)


def lock_pages(address: int, nbytes: int, index: int) -> None:
    """Lock pages of the host, so that devices copy from and to them at the speed of the link."""
    with _Current(index):
        _call("cuMemHostRegister_v2", address, nbytes, _PORTABLE)


def unlock_pages(address: int, index: int) -> None:
    """Undo what `lock_pages` has done."""
    with _Current(index):
        _call("cuMemHostUnregister", address)


def fetch(out: int, address: int, nbytes: int, index: int) -> None:
    """Copy bytes of a device to page-locked memory, complete on return.

    Nothing that other streams have queued is waited for.
    """
    _copy(index, "cuMemcpyDtoHAsync_v2", out, address, nbytes)


def send(address: int, source: int, nbytes: int, index: int) -> None:
    """Copy bytes of page-locked memory to a device, as `fetch` does the reverse."""
    _copy(index, "cuMemcpyHtoDAsync_v2", address, source, nbytes)


@cache
def _context(index: int) -> int:
    """Return the handle of the context of a device that all libraries use."""
    device, context = c_int(), c_void_p()
    _call("cuDeviceGet", byref(device), index)
    _call("cuDevicePrimaryCtxRetain", byref(context), device.value)
    return context.value or 0


def _copy(index: int, name: str, *arguments: int) -> None:
    stream = _streams.take(index)
    try:
        with _Current(index):
            _call(name, *arguments, stream)
            _call("cuStreamSynchronize", stream)
    finally:
        _streams.give(index, stream)


class _Current:
    """Makes a device current in this thread, and then the former one, even if that is none."""

    __slots__ = ("_context",)

    def __init__(self, index: int) -> None:
        self._context = _context(index)

    def __enter__(self) -> None:
        _call("cuCtxPushCurrent_v2", self._context)

    def __exit__(self, *_: object) -> None:
        _call("cuCtxPopCurrent_v2", byref(c_void_p()))


class _Handles:
    """Handles of one kind, by device: made when all are in use, and never destroyed."""

    def __init__(self, make: str, flags: int) -> None:
        self._make = make
        self._flags = flags
        self._free: dict[int, list[int]] = {}

    def take(self, index: int) -> int:
        """Return one that nobody else uses."""
        try:
            return self._free[index].pop()
        except LookupError:
            handle = c_void_p()
            with _Current(index):
                _call(self._make, byref(handle), self._flags)
            return handle.value or 0

    def give(self, index: int, handle: int) -> None:
        """Take back one that its user has done with."""
        self._free.setdefault(index, []).append(handle)


_events = _Handles("cuEventCreate", _UNTIMED)
_streams = _Handles("cuStreamCreate", _NON_BLOCKING)
