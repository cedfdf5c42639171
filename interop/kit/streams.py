"""Streams: the handle of the queue of work that a caller names."""

from __future__ import annotations

from interop.errors import BadRequestError


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
