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
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from interop.kit import own_stream, queue_behind

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

    No loan is needed for a tensor if torch works on the same stream, and for what nobody can write.
    """
    module = torch_of(producer)
    if module is None:
        if _is_immutable(producer):
            return array
    elif module.cuda.current_stream(producer.device).cuda_stream == stream.ptr:
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


def _is_immutable(producer: object) -> bool:
    """Tell whether a producer is an array of JAX's, which nobody can be told to keep unchanged."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(producer, jax.Array)


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
    handle = module.cuda.current_stream(producer.device).cuda_stream
    if handle != stream.ptr:
        queue_behind(handle, stream.ptr, producer.get_device())


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
    _put_off.append(lent)
    for _ in range(len(_put_off)):
        try:
            lent = _put_off.pop(0)
        except IndexError:  # another thread gives it back
            return
        is_back = False
        try:
            is_back = _is_back(lent)
        finally:  # one that fails takes no other with it
            if not is_back:
                _put_off.append(lent)


def _is_back(lent: _Lent) -> bool:
    """Give memory back to torch once nothing reads it, or answer that this is not the time."""
    import cupy

    try:
        with lent.array.data.device:
            if _is_capturing(lent):
                return False
            if lent.stream is None:
                cupy.cuda.runtime.deviceSynchronize()
            elif not _is_kept(lent):
                lent.stream.synchronize()
    except RuntimeError:
        return False  # such as during a capture in another thread, or after one that has failed
    return True


def _is_kept(lent: _Lent) -> bool:
    """Let torch's allocator keep memory until it is read, or answer that it cannot.

    It knows nothing of memory that another library has allocated. It is shown a stream that nobody
    destroys: recording on one that is gone when the memory is freed would end the process.
    """
    import torch

    index, tensor = lent.array.data.device_id, lent.tensor
    assert tensor is not None and lent.stream is not None  # noqa: PT018
    if not tensor.untyped_storage().resizable():
        return False
    try:
        stream = own_stream(index)
        queue_behind(stream, lent.stream.ptr, index)
        make: Callable[..., torch.cuda.Stream] = torch.cuda.ExternalStream
        tensor.record_stream(make(stream, device=index))
    except RuntimeError:  # the allocator is one that does not know this memory, either
        return False
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
