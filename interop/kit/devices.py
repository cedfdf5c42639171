"""Devices: streams, memory that is offered, and conversions from and to the host."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any

from interop._model.conversion import BUS, Conversion, Result
from interop._model.typing import Value
from interop.errors import BadRequestError

if TYPE_CHECKING:
    from typing import TypeAlias

    #: Returns the handle of the stream that is current on a device.
    StreamOf: TypeAlias = Callable[[int], int]
    #: A capsule, the index of its device, and whether both sides work on one stream.
    Offer: TypeAlias = tuple[object, int, bool]


def stream_handle(stream: object) -> int:
    """Return the handle of a CUDA stream given as a number or as a framework's stream object.

    Parameters
    ----------
    stream : int or object
        A handle, or an object with ``__cuda_stream__``.

    Returns
    -------
    int
        The address of the stream, or 0 or 1 for the legacy default stream, or 2 for that of the
        thread.

    Raises
    ------
    BadRequestError
        It is neither, or a negative number.
    """
    protocol = getattr(stream, "__cuda_stream__", None)
    handle = stream if protocol is None else protocol()[1]
    if isinstance(handle, int) and handle >= 0:
        return handle
    msg = (
        f"stream={stream!r} is not a CUDA stream; pass its handle, a number from 0 on, or its "
        "framework's object, or leave out stream= for the current one."
    )
    raise BadRequestError(msg)


def take_offer(
    offer: Callable[..., Any],
    value: object,
    share: Callable[[object], Any],
    stream_of: StreamOf,
    stream: object,
) -> tuple[Any, int, bool] | Any:
    """Return an array over the memory that a format offers of a value, or `NotImplemented`.

    Parameters
    ----------
    offer : callable
        As ``offers["dlpack"]`` of the value's format.
    value : object
    share : callable
        ``share(capsule) -> array``.
    stream_of : callable
        ``stream_of(index)`` returns the handle of the consumer's current stream on a device. It may
        be the producer's, or nothing is taken: nobody is told to wait for a stream of which the
        caller knows nothing.
    stream : int, object or None
        The stream that the caller names in its place. It is told to wait if it is another one than
        the producer's.

    Returns
    -------
    tuple of array, int and bool
        With the index of the device, and whether that stream is the producer's own.
    """
    if stream is None:
        offered = offer(value, stream_of, False)
    else:
        handle = stream_handle(stream)
        offered = offer(value, lambda index: handle, True)
    if offered is NotImplemented:
        return offered
    capsule, index, together = offered
    return share(capsule), index, together


def transfer(
    source: str,
    target: str,
    function: Callable[..., Value],
    devices: Set[str],
    to: Set[str],
    **fields: Any,
) -> Conversion:
    """Return a conversion from some devices to others, at the speed of the bus.

    Parameters
    ----------
    source, target : str
        Names of the formats.
    function : callable
        ``function(value, *, device) -> value``.
    devices, to : set of str
        The device types it takes, and those it can change to.
    **fields : object
        Further fields of :class:`Conversion`; ``cost`` if it is another.

    Returns
    -------
    Conversion
        With the effect ``transfer``, which follows.
    """
    shared = {"changes": {"device"}, "result": Result(devices=to), "cost": BUS}
    return Conversion(source, target, function, devices=devices, **shared | fields)
