"""Devices and queues: where a step works, and after what.

A SYCL array belongs to a queue, on which everything that is done with it is enqueued. A step works
on the queue of its value. If the caller names another queue of that device, the step works on that
one, after what the value's queue was doing, and the result belongs to it. Whatever crosses to the
host or to another device is complete when the step returns.

Devices go by the numbers that DLPack gives them: ``oneapi:1`` is ``dpctl.get_devices()[1]``,
whatever its backend is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interop.errors import BadRequestError, DeviceError
from interop.kit import EMPTY

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    #: A ``dpctl.SyclDevice``.
    Device: TypeAlias = Any
    #: A ``dpctl.SyclQueue``.
    Queue: TypeAlias = Any
    #: A ``dpctl.SyclEvent``.
    Event: TypeAlias = Any
    #: A ``dpnp.tensor.usm_ndarray``.
    Tensor: TypeAlias = Any
    #: As callers give it: a queue, what has one as its ``sycl_queue``, or None.
    Stream: TypeAlias = object

_DOUBLES, _HALVES = frozenset({"float64", "complex128"}), frozenset({"float16"})

#: Filled on first use: the number of each device, the context that all arrays on it share, and by
#: the device's name the dtypes that it lacks.
_numbers: dict[Device, int] = {}
_contexts: dict[Device, Any] = {}
_lacking: dict[str, frozenset[str]] = {}


def device_named(name: str) -> Device:
    """Return the device of a name; without an index it is the one that SYCL prefers."""
    import dpctl

    index = name.partition(":")[2]
    devices = dpctl.get_devices()
    if not devices:
        msg = (
            "dpctl finds no SYCL device on this machine; install the device's driver (for the "
            "processor itself: pip install intel-opencl-rt, and let OCL_ICD_FILENAMES name its "
            "libintelocl.so), or ask for a format of the host, such as 'numpy'."
        )
        raise DeviceError(msg)
    if not index:
        return dpctl.select_default_device()
    if int(index) >= len(devices):
        count = len(devices)
        msg = f"dpctl finds {count} device(s), and {name} is not one of them; name one that is."
        raise BadRequestError(msg)
    return devices[int(index)]


def number_of(device: Device) -> int:
    """Return DLPack's number of a device; a part of one has the number of the whole."""
    number = _numbers.get(device)
    if number is None:
        number = _numbers[device] = device.get_device_id()
    return number


def is_shared(tensor: Tensor) -> bool:
    """Tell whether an array lies in the context that all arrays on its device share."""
    device = tensor.sycl_device
    context = _contexts.get(device)
    if context is None:
        # An array on a part of a device can be handed to nobody.
        whole = device.parent_device is None
        context = _contexts[device] = device.sycl_platform.default_context if whole else False
    return context is not False and tensor.sycl_context == context


def unsupported_now(device: str) -> frozenset[str]:
    """Return the dtypes that a device cannot compute with; none before dpctl is imported."""
    if "dpctl" not in sys.modules or not device.startswith("oneapi"):
        return EMPTY
    lacking = _lacking.get(device)
    if lacking is None:
        lacking = _lacking[device] = _unsupported(device)
    return lacking


def _unsupported(name: str) -> frozenset[str]:
    try:
        device = device_named(name)
    except (BadRequestError, DeviceError):
        return EMPTY
    doubles = EMPTY if device.has_aspect_fp64 else _DOUBLES
    return doubles if device.has_aspect_fp16 else doubles | _HALVES


def queue_of(stream: Stream, device: Device) -> Queue:
    """Return the queue that the caller has named, or the one that all arrays on a device share."""
    import dpctl
    import dpnp

    if stream is None:
        return dpnp.get_normalized_queue_device(device=device)
    queue = getattr(stream, "sycl_queue", stream)
    if not isinstance(queue, dpctl.SyclQueue):
        msg = (
            f"stream={stream!r} is not a SYCL queue; pass a dpctl.SyclQueue, or the device of an "
            "array, which has one."
        )
        raise BadRequestError(msg)
    if queue.sycl_device != device:
        msg = (
            f"stream={stream!r} is a queue of another device than oneapi:{number_of(device)}; pass "
            "one of that device, or name the queue's with device=."
        )
        raise BadRequestError(msg)
    return queue


def on_queue(tensor: Tensor, stream: Stream) -> Tensor:
    """Return an array, or a view of it that belongs to the caller's queue, which waits for it."""
    queue = tensor.sycl_queue if stream is None else queue_of(stream, tensor.sycl_device)
    if queue == tensor.sycl_queue:
        return tensor
    if queue.sycl_context != tensor.sycl_context:
        msg = (
            f"stream={stream!r} is of another context than the array, whose memory it cannot use; "
            "make it with dpctl.SyclQueue(array.sycl_context, array.sycl_device)."
        )
        raise BadRequestError(msg)
    let_wait(queue, tensor.sycl_queue.submit_barrier())
    return tensor.to_device(queue)


def let_wait(queue: Queue, *events: Event) -> None:
    """Let all that is going to be done on a queue wait for events, or for all that it has to do.

    Copies of dpctl's are not held up by a barrier, but by the events that it keeps for the queue.
    """
    from dpctl.utils import SequentialOrderManager

    barrier = queue.submit_barrier(list(events))
    SequentialOrderManager[queue].add_event_pair(barrier, barrier)
