"""Large transfers between the host and CUDA devices: torch's part of the staging."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from interop.kit import STAGED_FROM, fetch_staged, send_staged

from .describe import has_tangent

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def stage(out: Tensor, value: Tensor) -> bool:
    """Write a tensor into another across the link, if staging pays, and tell whether it was done.

    It pays for large and plain tensors of one dtype. Where the one on the host is page-locked, the
    driver is as fast by itself.
    """
    if out.nbytes < STAGED_FROM or out.dtype is not value.dtype or out.shape != value.shape:
        return False
    down = value.is_cuda
    host, there = (out, value) if down else (value, out)
    if not (host.is_cpu and there.is_cuda and _is_block(host) and _is_plain(there)):
        return False
    import torch

    if host.is_pinned() or torch.cuda.is_current_stream_capturing():
        return False
    if down:
        return fetch_staged(_bytes(host).numpy(), lambda: _Link(there.contiguous(), down=True))
    if not there.is_contiguous():
        return False
    return send_staged(_bytes(host).numpy(), lambda: _Link(there, down=False))


def fetch_all(outs: Sequence[Tensor], values: Sequence[Tensor]) -> bool:
    """Write tensors of a device into new ones on the host, if staging pays for all together.

    They are gathered into one block on the device, which crosses. `are_for_stages` has to be true.
    """
    import torch

    hosts = [_bytes(out).numpy() for out in outs]
    flat = (value.reshape(-1) for value in values)
    return fetch_staged(hosts, lambda: _Link(torch.cat([*flat]), down=True))


def send_all(values: Sequence[Tensor], device: str) -> list[Tensor] | None:
    """Return copies of the host's tensors on a CUDA device, if staging pays for all together.

    They cross as one block, and are copied out of it there, so that each owns its memory.
    """
    import torch

    if not are_for_stages(values) or not all(value.is_contiguous() for value in values):
        return None
    first, sizes = values[0], [value.numel() for value in values]
    if first.is_pinned():  # the driver is as fast by itself
        return None
    block = torch.empty(sum(sizes), dtype=first.dtype, device=device)
    hosts = [_bytes(value).numpy() for value in values]
    if not send_staged(hosts, lambda: _Link(block, down=False)):
        return None
    parts = torch.ops.aten.split_with_sizes_copy(block, sizes)
    torch.cuda.current_stream(block.device).synchronize()
    return [part.view(value.shape) for part, value in zip(parts, values, strict=True)]


def are_for_stages(values: Sequence[Tensor]) -> bool:
    """Tell whether tensors are plain, of one dtype and device, and together large."""
    import torch

    return (
        sum(value.nbytes for value in values) >= STAGED_FROM
        and all(map(_is_plain, values))
        and len({(value.dtype, value.device) for value in values}) == 1
        and not torch.cuda.is_current_stream_capturing()
    )


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


def _is_plain(value: Tensor) -> bool:
    """Tell whether a tensor's numbers are the bytes in its memory, and nothing follows them."""
    import torch

    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and not value.requires_grad
        and not value.is_conj()
        and not value.is_neg()
    )


def _is_block(value: Tensor) -> bool:
    return _is_plain(value) and value.is_contiguous()


def _bytes(value: Tensor) -> Tensor:
    """Return the memory of a C-ordered tensor as bytes."""
    import torch

    if not value.numel():  # whose strides may be 0
        return value.new_empty(0, dtype=torch.uint8)
    return value.view(-1).view(torch.uint8)


class _Link:
    """Copies between page-locked chunks and a tensor on a CUDA device, on a stream of their own.

    That stream starts after the current one, which may still be writing the tensor, or be using the
    memory that was given to it.
    """

    def __init__(self, there: Tensor, *, down: bool) -> None:
        import torch

        self._block = _bytes(there)
        self._down = down
        self._in_inference = torch.is_inference_mode_enabled()
        self._stream = _stream(there.device.index)
        self._stream.wait_stream(torch.cuda.current_stream(there.device))

    def allocate(self, nbytes: int) -> Bytes:
        """Return page-locked memory of torch's allocator for it."""
        import torch

        memory = torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
        chunk: Bytes = memory.numpy()
        return chunk

    @staticmethod
    def trim() -> None:
        """Let torch give the page-locked memory that it has in store to the system."""
        torch = sys.modules["torch"]
        empty = getattr(torch.accelerator, "empty_host_cache", None)
        if empty is None:  # before torch had a public name for it
            empty = getattr(torch._C, "_host_emptyCache", None)
        if empty is not None:
            empty()

    def copy(self, chunk: Bytes, start: int) -> None:
        """Copy between a chunk and the tensor's bytes from `start` on."""
        import torch

        make: Callable[[], torch.cuda.Event] = torch.cuda.Event
        done = make()
        with torch.inference_mode(self._in_inference), torch.cuda.stream(self._stream):
            host, there = torch.from_numpy(chunk), self._block[start : start + len(chunk)]
            out, value = (host, there) if self._down else (there, host)
            out.copy_(value, non_blocking=True)
            done.record()
        done.synchronize()


@cache
def _stream(index: int) -> torch.cuda.Stream:
    """Return the stream on which transfers from and to a device are made."""
    import torch

    make: Callable[..., torch.cuda.Stream] = torch.cuda.Stream
    return make(index)
