"""Offers: memory on a device that a format hands over without the calls of a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .streams import stream_handle

if TYPE_CHECKING:
    from typing import TypeAlias

    #: Returns the handle of the stream that is current on a device.
    StreamOf: TypeAlias = Callable[[int], int]
    #: A capsule, the index of its device, and whether both sides work on one stream.
    Offer: TypeAlias = tuple[object, int, bool]


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
