"""CUDA streams as torch sees them: where a step works, and who waits for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from interop.kit import queue_behind, stream_handle

if TYPE_CHECKING:
    import torch

#: The legacy default stream goes by two numbers.
_LEGACY = frozenset({0, 1})


def stream_on(device: int | torch.device, stream: object) -> torch.cuda.Stream:
    """Return torch's object for a CUDA stream of a device, whoever made the stream.

    ``ExternalStream`` takes 0 for a wish for a stream of torch's own, and raises for 1.
    """
    import torch

    if isinstance(stream, torch.cuda.Stream):
        return stream
    handle = stream_handle(stream)
    if handle in _LEGACY:
        return torch.cuda.default_stream(device)
    make: Callable[..., torch.cuda.Stream] = torch.cuda.ExternalStream
    return make(handle, device=device)


def sharing(device: int, stream: object) -> AbstractContextManager[object]:
    """Make the device of another library's memory current, and the stream that the caller names.

    CuPy lets the consumer wait for its own stream of the current device, whichever that is.
    """
    import torch

    context: AbstractContextManager[object] = nullcontext()
    if stream is not None:
        context = torch.cuda.stream(stream_on(device, stream))
    elif torch.cuda.current_device() != device:
        context = torch.cuda.device(device)
    return context


@contextmanager
def working(device: torch.device, stream: object) -> Iterator[None]:
    """Make the stream that the caller has named current, if any, after and before the current one.

    So memory that is read or written on it is not touched too early by either.
    """
    import torch

    if stream is None:
        yield
        return
    current, named = torch.cuda.current_stream(device), stream_on(device, stream)
    queue_behind(named.cuda_stream, current.cuda_stream, device.index)
    try:
        with torch.cuda.stream(named):
            yield
    finally:  # what was queued before an error still uses the memory
        queue_behind(current.cuda_stream, named.cuda_stream, device.index)


def let_wait(producer: object, device: torch.device) -> None:
    """Let a producer's later work wait until torch's current stream has read its memory.

    CuPy's current stream is told to wait. The streams of others are not known: the host waits.
    """
    import torch

    current, index = torch.cuda.current_stream(device), device.index
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(producer, cupy.ndarray):
        queue_behind(cupy.cuda.get_current_stream(index).ptr, current.cuda_stream, index)
    else:
        current.synchronize()
