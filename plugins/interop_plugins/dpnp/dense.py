"""The steps of dpnp's two types of arrays.

Each is written for tensors, which hold the memory. A ``dpnp.ndarray`` holds one tensor, so its
steps are those of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec

from interop.errors import BadRequestError
from interop.kit import CheckedProducer
from interop.plugin import Declined

from .queues import device_named, let_wait, number_of, on_queue, queue_of, unsupported_now

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from .describe import DpnpArray
    from .queues import Queue, Stream, Tensor

_Keywords = ParamSpec("_Keywords")


def holding(function: Callable[_Keywords, Tensor]) -> Callable[_Keywords, DpnpArray]:
    """Return a step that returns, in place of a tensor, the array that holds it.

    It takes tensors and the arrays that hold one.
    """

    @wraps(function)
    def step(*values: _Keywords.args, **keywords: _Keywords.kwargs) -> DpnpArray:
        return to_array(function(*values, **keywords))

    return step


def _tensor(value: DpnpArray | Tensor) -> Tensor:
    """Return a tensor as it is, and of an array the tensor that it holds."""
    get_array = getattr(value, "get_array", None)
    return value if get_array is None else get_array()


def from_array(value: DpnpArray) -> Tensor:
    """Return the tensor that an array holds."""
    return value.get_array()


def to_array(value: Tensor) -> DpnpArray:
    """Return an array that holds a tensor."""
    import dpnp

    return dpnp.asarray(value, order="K", copy=False)


def as_array(value: DpnpArray) -> DpnpArray:
    """Return the memory of an array of a subclass as a plain array."""
    return to_array(value.get_array())


# ---------------------------------------------------------------------- within a device


def copy(
    value: DpnpArray | Tensor, *, order: Literal["C", "F"] = "C", stream: Stream = None
) -> Tensor:
    """Return a copy in an order on the same device."""
    import dpnp.tensor

    return dpnp.tensor.copy(on_queue(_tensor(value), stream), order=order)


def cast(value: DpnpArray | Tensor, *, dtype: str, stream: Stream = None) -> Tensor:
    """Return a C-ordered copy of another dtype, which of complex numbers keeps the real part."""
    import dpnp.tensor

    source = on_queue(_tensor(value), stream)
    _check_holds(f"oneapi:{number_of(source.sycl_device)}", dtype)
    return dpnp.tensor.astype(source, dtype, order="C")


def _check_holds(device: str, dtype: str) -> None:
    """Decline a dtype that a device lacks: dpnp would narrow it silently."""
    if dtype in unsupported_now(device):
        msg = f"the device {device} cannot compute with {dtype}"
        raise Declined(msg)


def fill(out: Tensor, value: Tensor) -> None:
    """Write the numbers of `value` into `out`, which is on the same device."""
    if out.sycl_context != value.sycl_context:
        msg = (
            "out= is of another SYCL context than the array, and neither can use the memory of the "
            "other; make it with sycl_queue=array.sycl_queue."
        )
        raise BadRequestError(msg)
    out[...] = on_queue(value, out.sycl_queue)


def fill_array(out: DpnpArray, value: DpnpArray) -> None:
    """Write the numbers of one array into another on the same device."""
    fill(out.get_array(), value.get_array())


# ---------------------------------------------------------------------- between devices


def from_numpy(value: NDArray[Any], *, device: str, stream: Stream = None) -> Tensor:
    """Return a copy of a NumPy array on a device, complete on return."""
    target = device_named(device)
    _check_holds(f"oneapi:{number_of(target)}", value.dtype.name)
    return _sent(value, queue_of(stream, target))


def _sent(value: NDArray[Any], queue: Queue) -> Tensor:
    """Return a copy of a NumPy array on the device of a queue, complete on return."""
    import dpnp.tensor

    return dpnp.tensor.asarray(value, order="C", copy=True, sycl_queue=queue)


def to_numpy(
    value: DpnpArray | Tensor, *, device: str = "cpu", stream: Stream = None
) -> NDArray[Any]:
    """Return a copy of an array on the host, complete on return.

    dpnp's own ``asnumpy`` brings all of the memory that an array is a part of.
    """
    import numpy as np

    source = on_queue(_tensor(value), stream)
    array = np.empty(source.shape, source.dtype)
    _bring(array, source)
    return array


def bring_into(out: NDArray[Any], value: DpnpArray | Tensor, *, stream: Stream = None) -> None:
    """Write an array straight into one block on the host, complete on return."""
    source = on_queue(_tensor(value), stream)
    if out.dtype != source.dtype or not out.flags.carray:
        raise Declined(_odd(out))
    _bring(out, source)


def _bring(out: NDArray[Any], source: Tensor) -> None:
    """Copy a tensor into one block on the host, complete on return."""
    import dpnp.tensor
    from dpctl.memory import as_usm_memory

    if not out.size:
        return
    if not source.flags.c_contiguous:
        source = dpnp.tensor.copy(source, order="C")
    source.sycl_queue.wait()
    as_usm_memory(source).copy_to_host(out.reshape(-1).view("u1"))


def send_into(out: DpnpArray | Tensor, value: NDArray[Any], *, stream: Stream = None) -> None:
    """Write an array of the host straight into one block on a device, complete on return."""
    from dpctl.memory import as_usm_memory

    target = on_queue(_tensor(out), stream)
    if target.dtype != value.dtype or not target.flags.c_contiguous:
        raise Declined(_odd(target))
    if not value.flags.c_contiguous:
        raise Declined(_odd(value))
    if value.size:
        target.sycl_queue.wait()
        as_usm_memory(target).copy_from_host(value.reshape(-1).view("u1"))


def _odd(array: NDArray[Any] | Tensor) -> str:
    """Say why the bytes of one array are not simply copied into another."""
    return f"the driver copies bytes, and an array is {array.dtype} of strides {array.strides}"


def move(value: DpnpArray | Tensor, *, device: str, stream: Stream = None) -> Tensor:
    """Return a C-ordered copy on another device, complete on return.

    SYCL has no other way from one context to another than by the host.
    """
    target = device_named(device)
    _check_holds(f"oneapi:{number_of(target)}", value.dtype.name)
    queue = queue_of(stream, target)
    return _sent(to_numpy(value), queue)


# ---------------------------------------------------------------------- from others


def from_dlpack(value: object, *, stream: Stream = None) -> Tensor:
    """Return a tensor over a DLPack producer's memory, ordered after the producer's work.

    The producer makes the queue on which the tensor is going to be used wait for its own.
    """
    import dpctl
    import dpnp

    if isinstance(value, (dpnp.ndarray, dpnp.tensor.usm_ndarray)):
        # Its capsule flags an array without axes as read-only, whatever it is.
        return on_queue(_tensor(value), stream)
    producer = CheckedProducer(value, negative_strides=True)
    device = dpctl.get_devices()[int(producer.__dlpack_device__()[1])]
    queue = queue_of(stream, device)
    tensor = dpnp.tensor.from_dlpack(_Ordered(producer, queue)).to_device(queue)
    let_wait(queue)
    return tensor


class _Ordered:
    """A producer that is told the queue of its consumer, which dpnp does not tell it."""

    def __init__(self, producer: CheckedProducer, queue: Queue) -> None:
        self._producer = producer
        self._queue = queue

    def __dlpack__(self, **keywords: Any) -> object:
        return self._producer.__dlpack__(**keywords, stream=self._queue)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._producer.__dlpack_device__()


def from_locked_dlpack(value: object, *, stream: Stream = None) -> Tensor:
    """Return a read-only tensor over the memory of a producer that never changes it."""
    tensor = from_dlpack(value, stream=stream)[...]
    tensor.flags.writable = False
    return tensor
