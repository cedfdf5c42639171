"""Loans: memory that CuPy uses and others own, and what its owner must wait for.

DLPack orders the hand-off alone. The owner may overwrite memory that CuPy's stream reads later, or
give it out again once the array is gone. So an array over another's memory holds a loan: steps that
have queued work on the memory let the lender wait, and the last array gives the memory back behind
all work of its stream. The loan keeps that stream alive as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from .describe import memory
from .streams import working

if TYPE_CHECKING:
    from typing import Any

    import torch

    from .describe import CupyArray, Sparse
    from .streams import CupyStream, Stream


def torch_of(value: object) -> Any:
    """Return torch if `value` is a tensor, else None."""
    module = sys.modules.get("torch")
    return module if module is not None and isinstance(value, module.Tensor) else None


def lend(array: CupyArray, producer: Any, stream: CupyStream) -> CupyArray:
    """Return an array over a producer's memory with the loan that a stream takes.

    No loan is needed for a tensor if torch works on the same stream.
    """
    module = torch_of(producer)
    if module and module.cuda.current_stream(producer.device).cuda_stream == stream.ptr:
        return array
    stretches = memory(array)
    if not stretches:
        return array
    import cupy

    ((address, length),) = stretches
    loan = _Loan(array, producer.detach() if module else None, stream)
    held = cupy.cuda.UnownedMemory(address, length, loan, array.data.device_id)
    pointer = cupy.cuda.MemoryPointer(held, array.data.ptr - address)
    return cupy.ndarray(array.shape, array.dtype, pointer, array.strides)


class _Loan:
    """Memory of another library, in use on a stream of CuPy's.

    Parameters
    ----------
    array : cupy.ndarray
        The array that keeps the memory.
    tensor : torch.Tensor or None
        The memory as a tensor, if torch owns it. Others cannot be told to wait.
    stream : cupy.cuda.Stream
        The stream on which the memory is used.
    """

    __slots__ = ("_array", "_stream", "_tensor")

    def __init__(self, array: CupyArray, tensor: torch.Tensor | None, stream: CupyStream) -> None:
        self._array = array
        self._tensor = tensor
        self._stream = stream

    def let_wait(self, stream: CupyStream) -> None:
        """Let the lender's later work wait for what is queued on a stream; or wait for it here."""
        if self._tensor is None:
            stream.synchronize()
        else:
            import torch

            _queue_behind(torch.cuda.current_stream(self._tensor.device), stream)

    def __del__(self) -> None:
        if self._tensor is not None and not sys.is_finalizing():
            self._give_back(self._tensor)

    def _give_back(self, tensor: torch.Tensor) -> None:
        """Tell torch's allocator to keep the memory until the stream has done its work.

        The allocator is shown a stream of torch's own, which lives on: recording on one that has
        been destroyed when the memory is freed would end the process.
        """
        import cupy

        with self._array.data.device:
            try:
                returning = _returning(self._array.data.device_id)
                _queue_behind(returning, self._stream)
                tensor.record_stream(returning)
            except cupy.cuda.runtime.CUDARuntimeError:
                # The stream was named by its number, and is gone; its work may not be.
                cupy.cuda.runtime.deviceSynchronize()


@cache
def _returning(index: int) -> torch.cuda.Stream:
    """Return the stream of torch's that waits for memory to come back to a device."""
    import torch

    make: Callable[..., torch.cuda.Stream] = torch.cuda.Stream
    return make(index)


def _queue_behind(waiting: torch.cuda.Stream, stream: CupyStream) -> None:
    """Let a stream of torch's wait for what is queued on one of CuPy's, on the current device."""
    import cupy

    event = stream.record()  # which CuPy destroys as soon as nothing holds it
    cupy.cuda.runtime.streamWaitEvent(waiting.cuda_stream, event.ptr)


@contextmanager
def reading(value: CupyArray | Sparse, stream: Stream) -> Iterator[CupyStream]:
    """Work where an array lies, as `working` does, and let whoever lent its memory wait for it."""
    with working(value.data.device, stream) as current:
        try:
            yield current
        finally:  # what was queued before an error still reads the memory
            pointer = getattr(value.data, "data", value.data)  # of a sparse array: of its values
            loan = getattr(pointer.mem, "_owner", None)
            if isinstance(loan, _Loan):
                loan.let_wait(current)
