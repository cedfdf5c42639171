"""Loans: memory that CuPy uses and others own, and what its owner must wait for.

DLPack orders the hand-off alone. The owner may overwrite memory that CuPy's stream reads later, or
give it out again once the array is gone. So an array over another's memory holds a loan: steps that
have queued work on the memory let the lender wait, and the last array gives the memory back behind
all work of its stream. The loan keeps that stream alive as well. If it cannot, because it knows of
the stream no more than a handle, it never looks at the stream again, and waits for the device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .describe import memory
from .streams import lasts, working

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
    tensor = producer.detach() if module else None
    loan = _Loan(_Lent(array, tensor, stream if lasts(stream) else None))
    held = cupy.cuda.UnownedMemory(address, length, loan, array.data.device_id)
    pointer = cupy.cuda.MemoryPointer(held, array.data.ptr - address)
    return cupy.ndarray(array.shape, array.dtype, pointer, array.strides)


def borrow(producer: object) -> object:
    """Return the owner of memory of a producer that cannot be told to wait: the host does."""
    return _Loan(_Lent(producer, None, None))


def let_wait(producer: Any, stream: CupyStream) -> None:
    """Let a producer's later work wait for what is queued on a stream; or wait for it here.

    Only of torch it is known on which stream it works.
    """
    module = torch_of(producer)
    if module is None:
        stream.synchronize()
        return
    current = module.cuda.current_stream(producer.device)
    if current.cuda_stream != stream.ptr:
        _queue_behind(current, stream)


class _Lent(NamedTuple):
    """Memory that another library has lent to CuPy.

    Attributes
    ----------
    array : cupy.ndarray or object
        What keeps the memory: an array if torch owns it.
    tensor : torch.Tensor or None
        The memory as a tensor, if torch owns it. Others cannot be told to wait.
    stream : cupy.cuda.Stream or None
        The stream on which the memory is used, if it lives as long as this refers to it.
    """

    array: Any
    tensor: torch.Tensor | None
    stream: CupyStream | None


class _Loan:
    """The owner of the memory of CuPy's arrays over lent memory, which ends with the last of them.

    In a child that was forked meanwhile it does nothing: CUDA works in its own process alone.
    """

    __slots__ = ("_lent", "_process")

    def __init__(self, lent: _Lent) -> None:
        self._lent = lent
        self._process = os.getpid()

    def let_wait(self, stream: CupyStream) -> None:
        """Let the lender's later work wait for what is queued on a stream; or wait for it here."""
        let_wait(self._lent.tensor, stream)

    # Bound early: when the interpreter ends, a module may be emptied before its objects are.
    def __del__(
        self,
        is_finalizing: Callable[[], bool] = sys.is_finalizing,
        process: Callable[[], int] = os.getpid,
    ) -> None:
        if self._lent.tensor is not None and not is_finalizing() and process() == self._process:
            _give_back(self._lent)


#: What came back while a graph was captured, when nobody may wait for what is not part of it.
_put_off: list[_Lent] = []


def _give_back(lent: _Lent) -> None:
    """Give memory back to torch, and what has been put off before; put off what cannot be now."""
    pending = [lent]
    with suppress(IndexError):
        while True:
            pending.append(_put_off.pop())
    _put_off.extend([lent for lent in pending if not _is_back(lent)])


def _is_back(lent: _Lent) -> bool:
    """Give memory back to torch once nothing reads it, or answer that this is not the time.

    torch's allocator is shown a stream of torch's own, which lives on: recording on one that has
    been destroyed when the memory is freed would end the process.
    """
    import cupy

    try:
        with lent.array.data.device:
            if _is_capturing(lent):
                return False
            if lent.stream is None:
                cupy.cuda.runtime.deviceSynchronize()
            else:
                returning = _returning(lent.array.data.device_id)
                _queue_behind(returning, lent.stream)
                lent.tensor.record_stream(returning)  # type: ignore[union-attr]
    except cupy.cuda.runtime.CUDARuntimeError:
        return False  # such as during a capture in another thread
    return True


def _is_capturing(lent: _Lent) -> bool:
    """Tell whether the stream that used the memory, or else a current one, captures a graph.

    Waiting for the device would end the capture with an error.
    """
    import cupy
    import torch

    if lent.stream is not None:
        return bool(cupy.cuda.runtime.streamIsCapturing(lent.stream.ptr))
    ours = cupy.cuda.get_current_stream()
    theirs = torch.cuda.current_stream(lent.array.data.device_id)
    handles = ((ours, ours.ptr), (theirs, theirs.cuda_stream))
    return any(
        cupy.cuda.runtime.streamIsCapturing(handle) for stream, handle in handles if lasts(stream)
    )


@cache
def _returning(index: int) -> torch.cuda.Stream:
    """Return the torch stream that waits for memory to come back to a device."""
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
