"""Streams: the handle of the queue of work that a caller names."""

from __future__ import annotations

from interop.errors import BadRequestError

#: Where frameworks keep the handle, if they lack the protocol that replaced these attributes.
_ATTRIBUTES = ("cuda_stream", "ptr")


def stream_handle(stream: object) -> int:
    """Return the handle of a CUDA stream given as a number or as a framework's stream object.

    Parameters
    ----------
    stream : int or object
        A handle; an object with ``__cuda_stream__``; or one that keeps its handle in
        ``cuda_stream`` or ``ptr``.

    Returns
    -------
    int
        The address of the stream, or 0 or 1 for the legacy default stream, or 2 for that of the
        thread.

    Raises
    ------
    BadRequestError
        It is none of these, or a negative number.
    """
    handle = _handle(stream)
    if isinstance(handle, int) and handle >= 0:
        return handle
    msg = (
        f"stream={stream!r} is not a CUDA stream; pass its handle, a number from 0 on, or its "
        "framework's object, or leave out stream= for the current one."
    )
    raise BadRequestError(msg)


def _handle(stream: object) -> object:
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return protocol()[1]
    handles = (getattr(stream, name, None) for name in _ATTRIBUTES)
    return next((handle for handle in handles if isinstance(handle, int)), None)
