"""Arrays over the memory of others, and copies to and from the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from interop.kit import STAGED_FROM, CheckedProducer, queue_behind
from interop.plugin import Declined

from .loans import lend, let_wait, torch_of
from .streams import PER_THREAD, device_named, working
from .transfers import cross_at_once, fetch, fetch_all, send, send_all

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    from .describe import CupyArray
    from .streams import CupyStream, Stream

    #: An object with ``__cuda_array_interface__``.
    CudaInterface: TypeAlias = Any
    #: Returns an array over a producer's memory, and the stream on which it may be used.
    Share: TypeAlias = Callable[[Any, Stream], tuple[CupyArray, CupyStream]]


def from_dlpack(value: object, *, stream: Stream = None) -> CupyArray:
    """Return an array over a DLPack producer's memory, ordered after the producer's work.

    CuPy passes its current stream, the caller's if one is given, and the producer makes that
    stream wait for its own: the host does not.
    """
    array, current = _shared_by_dlpack(value, stream)
    return lend(array, value, current)


def _shared_by_dlpack(value: object, stream: Stream) -> tuple[CupyArray, CupyStream]:
    """Return an array over a producer's memory, and the stream on which it may be used."""
    import cupy

    checked = CheckedProducer if torch_of(value) is None else _TensorForAnyStream
    producer = checked(value, negative_strides=True)
    index = int(producer.__dlpack_device__()[1])
    with _exporting(value, index):
        if stream is None:
            return cupy.from_dlpack(producer), cupy.cuda.get_current_stream(index)
        with working(cupy.cuda.Device(index), stream) as current:
            return cupy.from_dlpack(producer), current


class _TensorForAnyStream(CheckedProducer):
    """A tensor that is exported to a thread's default stream as well, which torch refuses."""

    __slots__ = ()

    def __dlpack__(self, **keywords: Any) -> Any:
        """Return the tensor's capsule; the stream, which is on the current device, waits."""
        if keywords["stream"] == PER_THREAD:
            import torch

            index = self.__dlpack_device__()[1]
            queue_behind(PER_THREAD, torch.cuda.current_stream(index).cuda_stream, index)
            keywords["stream"] = -1  # there is nothing left to wait for
        return super().__dlpack__(**keywords)


def _exporting(value: object, index: int) -> AbstractContextManager[object]:
    """Return the context in which a producer on the device `index` will export.

    torch exports only from what it takes for the current device. That is the driver's, which CuPy
    sets. Where torch has put off initialising a device, it is the one that torch has noted.
    """
    torch = torch_of(value)
    if torch is None or torch.cuda.current_device() == index:
        return nullcontext()
    guard: AbstractContextManager[object] = torch.cuda.device(index)
    return guard


def from_interface(value: CudaInterface, *, stream: Stream = None) -> CupyArray:
    """Return an array over the memory of a ``__cuda_array_interface__``.

    CuPy holds the producer, and makes the host wait for the stream that the interface names.
    """
    array, current = _shared_by_interface(value, stream)
    return lend(array, value, current)


def _shared_by_interface(value: CudaInterface, stream: Stream) -> tuple[CupyArray, CupyStream]:
    """Return an array over a producer's memory, and the stream on which it may be used."""
    import cupy

    address = value.__cuda_array_interface__["data"][0]
    # NULL lies on no device. On any but the memory's own, CuPy would make a copy.
    runtime = cupy.cuda.runtime
    index = runtime.pointerGetAttributes(address).device if address else runtime.getDevice()
    with working(cupy.cuda.Device(index), stream) as current:
        return cupy.asarray(value), current


def copy_from_dlpack(value: object, *, stream: Stream = None) -> CupyArray:
    """Return a copy of a DLPack producer's memory, on the same device."""
    return _copied(_shared_by_dlpack, value, stream)


def copy_from_interface(value: CudaInterface, *, stream: Stream = None) -> CupyArray:
    """Return a copy of the memory of a ``__cuda_array_interface__``, on the same device."""
    return _copied(_shared_by_interface, value, stream)


def _copied(share: Share, value: object, stream: Stream) -> CupyArray:
    """Return a copy of what a producer shares, for which the producer's later work waits.

    So nothing is lent beyond the call, after which the stream may be destroyed.
    """
    array, _ = share(value, stream)
    with working(array.data.device, stream) as current:
        try:
            return array.copy(order="C")
        finally:
            let_wait(value, current)


def from_numpy(value: NDArray[Any], *, device: str, stream: Stream = None) -> CupyArray:
    """Return a copy of a NumPy array on a device, complete on return.

    The memory goes straight to the driver: ``cupy.array`` would first copy all of it into
    page-locked memory, and read what is already page-locked after it has returned.
    """
    import cupy

    with working(device_named(device), stream) as current:
        result = cupy.empty(value.shape, value.dtype)
        send(result, value, current)
    return result


def all_from_numpy(values: list[NDArray[Any]], *, device: str) -> list[CupyArray] | Any:
    """Return what `from_numpy` does for arrays that lie in one block each, at once."""
    if not cross_at_once(values) or not all(value.flags.c_contiguous for value in values):
        return NotImplemented
    with working(device_named(device), None) as current:
        return send_all(values, current) or NotImplemented


def fill_from_numpy(out: CupyArray, value: NDArray[Any], *, stream: Stream = None) -> None:
    """Write a NumPy array straight into one block on a device, complete on return."""
    if out.dtype != value.dtype or not out.flags.c_contiguous:
        msg = f"the driver copies bytes, and out is {out.dtype} of strides {out.strides}"
        raise Declined(msg)
    with working(out.data.device, stream) as current:
        send(out, value, current)


def to_numpy(value: CupyArray, *, device: str, stream: Stream = None) -> NDArray[Any]:
    """Return a copy of an array on the host, complete on return."""
    if stream is None and value.nbytes < STAGED_FROM:
        with value.data.device:  # whose current stream counts
            array: NDArray[Any] = value.get()
        return array
    import numpy as np

    array = np.empty(value.shape, value.dtype)
    with working(value.data.device, stream) as current:
        fetch(array, value, current)
    return array


def all_to_numpy(values: list[CupyArray], *, device: str) -> list[NDArray[Any]] | Any:
    """Return what `to_numpy` does for arrays of one device, at once."""
    if not cross_at_once(values) or len({value.data.device_id for value in values}) > 1:
        return NotImplemented
    with working(values[0].data.device, None) as current:
        return fetch_all(values, current) or NotImplemented


def to_page_locked(value: CupyArray, *, device: str, stream: Stream = None) -> NDArray[Any]:
    """Return a copy of an array in page-locked memory of the host, complete on return."""
    import cupyx

    if not value.size:
        return to_numpy(value, device="cpu", stream=stream)
    array: NDArray[Any] = cupyx.empty_pinned(value.shape, value.dtype)
    with working(value.data.device, stream) as current:
        fetch(array, value, current)
    return array


def fetch_into(out: NDArray[Any], value: CupyArray, *, stream: Stream = None) -> None:
    """Write an array straight into one block on the host, complete on return."""
    if out.dtype != value.dtype or not out.flags.carray:
        msg = f"the driver copies bytes, and out is {out.dtype} of strides {out.strides}"
        raise Declined(msg)
    with working(value.data.device, stream) as current:
        fetch(out, value, current)
