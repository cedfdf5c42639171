"""Transfers between the host and CUDA devices that torch's own copies are slow at.

Those are large ones, which are staged, and those of many small tensors, which cross as one block.
The stream on which a tensor is used is waited for first, by the caller alone, which holds up nobody
else's transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from interop.kit import SMALL_LEAF, STAGED_FROM, fetch_staged, send_staged

from .describe import has_tangent

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]


#: What tensors that cross at once have in common. Each fact is asked of all of them in turn, which
#: takes a tenth of the time to ask each for all facts.
_FACTS = attrgetter("layout", "requires_grad", "dtype", "device")
_NBYTES = attrgetter("nbytes")


def stage(out: Tensor, value: Tensor) -> bool:
    """Write a tensor into another across the link, if staging pays, and tell whether it was done.

    It pays for large and plain tensors of one dtype. Where the one on the host is page-locked, the
    driver is as fast by itself.
    """
    if out.nbytes < STAGED_FROM or out.dtype is not value.dtype or out.shape != value.shape:
        return False
    down = value.is_cuda
    host, there = (out, value) if down else (value, out)
    if not (host.is_cpu and there.is_cuda and _is_plain(there) and _is_plain(host)):
        return False
    if not host.is_contiguous() or host.is_pinned() or _is_capturing():
        return False
    if down:
        return _fetch([host], there.contiguous())
    return there.is_contiguous() and send_staged(_bytes(host), *_settled(there))


def fetch_all(outs: Sequence[Tensor], values: Sequence[Tensor]) -> bool:
    """Write tensors of a device into new ones on the host, if staging pays for all together.

    They are gathered into one block on the device, which crosses. `cross_at_once` has to be true.
    """
    return _fetch(outs, _gathered(values))


def fetch_small(values: Sequence[Tensor]) -> Tensor | None:
    """Return the elements of tensors of a device, one after another, if each is small.

    They are gathered there. `cross_at_once` has to be true.
    """
    return None if _nbytes(values) >= STAGED_FROM else _gathered(values).cpu()


def send_all(values: Sequence[Tensor], device: str) -> list[Tensor] | None:
    """Return copies of the host's tensors on a CUDA device, if that pays for all together.

    They cross as one block, and are copied out of it there, so that each owns its memory.
    """
    import torch

    if not cross_at_once(values) or not all(value.is_contiguous() for value in values):
        return None
    if values[0].is_pinned():  # the driver is as fast by itself
        return None
    sizes = [value.numel() for value in values]
    block = torch.empty(sum(sizes), dtype=values[0].dtype, device=device)
    if block.nbytes < STAGED_FROM:
        block.copy_(_gathered(values))
    elif not send_staged([*map(_bytes, values)], *_settled(block)):
        return None
    parts = torch.ops.aten.split_with_sizes_copy(block, sizes)
    torch.cuda.current_stream(block.device).synchronize()
    return [part.view(value.shape) for part, value in zip(parts, values, strict=True)]


def cross_at_once(values: Sequence[Tensor]) -> bool:
    """Tell whether tensors are plain, of one dtype and device, and large together or each small."""
    import torch

    nbytes, facts = _nbytes(values), {*map(_FACTS, values)}
    return (
        (nbytes >= STAGED_FROM or nbytes <= SMALL_LEAF * len(values))
        and {*map(type, values)} <= _plain_types()
        and len(facts) == 1
        and facts.pop()[:2] == (torch.strided, False)
        and not any(map(torch.Tensor.is_conj, values))
        and not any(map(torch.Tensor.is_neg, values))
        and not _is_capturing()
    )


def _nbytes(values: Sequence[Tensor]) -> int:
    return sum(map(_NBYTES, values))


def _gathered(values: Sequence[Tensor]) -> Tensor:
    """Return the elements of tensors, one after another, where they are."""
    import torch

    return torch.cat([*map(torch.ravel, values)])


def can_cross(value: Tensor, device: str) -> bool:
    """Tell whether a tensor is large and plain, and a device on the other side of the link.

    It is then written into a new tensor there. That takes no part in graphs.
    """
    if value.nbytes < STAGED_FROM or not _is_plain(value) or has_tangent(value):
        return False
    if value.is_cpu:
        return device.startswith("cuda") and value.is_contiguous() and not value.is_pinned()
    import torch

    return value.is_cuda and device == "cpu" and value.dtype is not torch.complex32


def _fetch(hosts: Sequence[Tensor], block: Tensor) -> bool:
    return fetch_staged([*map(_bytes, hosts)], *_settled(block))


def _settled(block: Tensor) -> tuple[int, int]:
    """Return where a tensor lies, and on which device, once nothing is queued on it any more."""
    import torch

    torch.cuda.current_stream(block.device).synchronize()
    return block.data_ptr(), block.get_device()


def _is_capturing() -> bool:
    import torch

    return torch.cuda.is_current_stream_capturing()


@cache
def _plain_types() -> frozenset[type]:
    import torch

    return frozenset({torch.Tensor, torch.nn.Parameter})


def _is_plain(value: Tensor) -> bool:
    """Tell whether a tensor's numbers are the bytes in its memory, and nothing follows them."""
    import torch

    return (
        type(value) in _plain_types()
        and value.layout is torch.strided
        and not value.requires_grad
        and not value.is_conj()
        and not value.is_neg()
    )


def _bytes(value: Tensor) -> Bytes:
    """Return the memory of a C-ordered tensor of the host as bytes."""
    import torch

    if not value.numel():  # whose strides may be 0
        value = value.new_empty(0, dtype=torch.uint8)
    array: Bytes = value.detach().view(-1).view(torch.uint8).numpy()
    return array
