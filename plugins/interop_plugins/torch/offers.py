"""Hand-offs on CUDA devices without an order of streams, where both sides work on one stream.

Most of what ``from_dlpack`` takes goes into finding out that nobody has to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from interop.kit import queue_behind, take_offer

from .dense import cast
from .describe import is_short
from .streams import let_wait, working

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from interop.kit.devices import Offer, StreamOf


@cache
def _strided() -> torch.layout:
    import torch

    return torch.strided


@cache
def _export() -> Callable[[Tensor], object]:
    from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

    export: Callable[[Tensor], object] = to_dlpack
    return export


@cache
def _share() -> Callable[[object], Tensor]:
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


@cache
def _handle() -> StreamOf:
    """Return what tells the handle of torch's current stream on a device."""
    import torch

    # The public way makes an object first, which takes ten times as long.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda index: torch.cuda.current_stream(index).cuda_stream)


def offer(value: Tensor, stream_of: StreamOf, waits: bool, block: int = 0) -> Offer | Any:
    """Return a capsule of a plain tensor on a device, or `NotImplemented`: see `Advanced`."""
    # A tensor without elements, or whose elements are not stored, has no address. One may have
    # more elements than its storage, which was resized, has room for.
    if (
        value.layout is not _strided()
        or not value.is_cuda
        or value.is_conj()
        or value.is_neg()
        or not (address := value.data_ptr())
        or address % value.itemsize
        or _is_odd(value, address, block)
    ):
        return NotImplemented
    index = value.get_device()
    handle, own = stream_of(index), _handle()(index)
    together = handle == own
    if not together:
        if not waits:
            return NotImplemented
        queue_behind(handle, own, index)
    return _export()(value.detach() if value.requires_grad else value), index, together


def _is_odd(value: Tensor, address: int, block: int) -> bool:
    """Tell whether a tensor is longer than its storage, or no block at a multiple of `block`."""
    if not value.is_contiguous():
        return bool(block) or is_short(value)
    reach = value.storage_offset() * value.itemsize + value.nbytes
    return len(value.untyped_storage()) < reach or (block > 0 and address % block != 0)


def adopt(offer: Callable[..., Any], value: object, *, stream: object = None) -> Any:
    """Return a tensor over the memory that is offered of a value, or `NotImplemented`."""
    taken = take_offer(offer, value, _share(), _handle(), stream)
    return taken if taken is NotImplemented else taken[0]


def copy_adopted(
    offer: Callable[..., Any], value: object, *, dtype: str, stream: object = None
) -> Any:
    """Return a copy of the memory that is offered of a value, which later writes do not reach."""
    taken = take_offer(offer, value, _share(), _handle(), stream)
    if taken is NotImplemented:
        return taken
    shared, _, together = taken
    with working(shared.device, stream):
        result = cast(shared, dtype=dtype)
        if not together:  # work on one stream is in order
            let_wait(value, shared.device)
    return result
