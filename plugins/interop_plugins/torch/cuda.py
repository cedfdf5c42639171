"""Memory that others have on CUDA devices: shared by address, or copied."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import HandOffError
from interop.kit import MemoryAt, device_of, queue_behind, stream_handle

from .dense import cast, write
from .streams import let_wait, working

if TYPE_CHECKING:
    from torch import Tensor

    #: An object with ``__dlpack__`` or ``__cuda_array_interface__``.
    Producer: TypeAlias = Any
    #: Returns a tensor over a producer's memory, ordered on ``stream=``.
    Share: TypeAlias = Callable[..., Tensor]


def from_cuda_array_interface(value: Producer, *, stream: object = None) -> Tensor:
    """Return a tensor over the memory of a producer of the CUDA Array Interface.

    The consumer's stream waits for the interface's, which torch does not do by itself.
    """
    return _share(value.__cuda_array_interface__, value, stream=stream)


def adopt_interface(offer: Callable[..., Any], value: Producer, *, stream: object = None) -> Any:
    """Return a tensor over the memory of an interface that was asked for and checked."""
    interface = offer(value)
    return interface if interface is NotImplemented else _share(interface, value, stream=stream)


def copy_adopted_interface(
    offer: Callable[..., Any], value: Producer, *, dtype: str, stream: object = None
) -> Any:
    """Return a copy of that memory, which later writes of the value do not reach."""
    interface = offer(value)
    if interface is NotImplemented:
        return interface
    return copy_shared(partial(_share, interface), value, dtype=dtype, stream=stream)


def _share(interface: dict[str, Any], value: Producer, *, stream: object) -> Tensor:
    import torch

    address, written_on = interface["data"][0], interface.get("stream")
    # The interface does not name the device. torch copies to, or believes, whichever it is given.
    index = _device_at(address) if address else torch.cuda.current_device()
    memory = MemoryAt(interface, value, "__cuda_array_interface__")
    tensor = torch.as_tensor(memory, device=torch.device("cuda", index))
    if written_on is not None:
        current = torch.cuda.current_stream(index).cuda_stream
        queue_behind(current if stream is None else stream_handle(stream), written_on, index)
    return tensor


def _device_at(address: int) -> int:
    """Return the index of the device on which memory lies.

    Raises
    ------
    HandOffError
        The memory lies on no CUDA device.
    """
    index = device_of(address)
    if index is None:
        msg = (
            f"__cuda_array_interface__ names memory at {address:#x}, which the driver finds on no "
            "CUDA device; correct the address, or pass an array of the host."
        )
        raise HandOffError(msg)
    return index


def copy_shared(share: Share, value: Producer, *, dtype: str, stream: object = None) -> Tensor:
    """Return a copy, on its device, of what a producer shares; later writes do not reach it."""
    shared = share(value, stream=stream)
    with working(shared.device, stream):
        result = cast(shared, dtype=dtype)
        let_wait(value, shared.device)
    return result


def fill_from_shared(share: Share, out: Tensor, value: Producer, *, stream: object = None) -> None:
    """Write the numbers that a producer shares into a tensor on the same device."""
    shared = share(value, stream=stream)
    with working(shared.device, stream):
        write(out, shared)
        let_wait(value, shared.device)
