"""Odd tensors with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import methodcaller
from typing import TYPE_CHECKING

from interop.plugin import Declined

from .sparse import allow_compressed, allow_unchecked

if TYPE_CHECKING:
    from torch import Tensor

    Variants = Mapping[str, Callable[[Tensor], Tensor]]


def stored(layout: str, value: Tensor) -> Tensor:
    """Return the elements that are not zero in a layout, as torch finds them."""
    import torch

    if layout != "sparse_coo" and value.dim() > 2:
        msg = "torch compresses batches of equally many elements alone"
        raise Declined(msg)
    blocks = None
    if layout in ("sparse_bsr", "sparse_bsc"):
        blocks = tuple(1 + (length % 2 == 0) for length in value.shape)
    allow_compressed()
    try:
        return value.to_sparse(layout=getattr(torch, layout), blocksize=blocks)
    except NotImplementedError as error:  # it can hold some dtypes in which it finds no zeros
        raise Declined(str(error)) from error


def grad(value: Tensor) -> Tensor:
    """Return a leaf of an autograd graph."""
    if not (value.is_floating_point() or value.is_complex()):
        msg = f"torch has no gradients of {value.dtype}"
        raise Declined(msg)
    return value.detach().requires_grad_()


def conj(value: Tensor) -> Tensor:
    """Return the lazy conjugate of the conjugate."""
    if not value.is_complex():
        msg = f"torch does not conjugate {value.dtype}"
        raise Declined(msg)
    return value.conj().resolve_conj().conj()


def neg(value: Tensor) -> Tensor:
    """Return the lazy negation of the negation."""
    import torch

    return torch._neg_view(torch._neg_view(value).resolve_neg())


def noncontiguous(value: Tensor) -> Tensor:
    """Return the tensor in the opposite order of axes, or with gaps if only one axis is long."""
    import torch

    if not value.dim() or value.numel() < 2:
        msg = f"a tensor of shape {tuple(value.shape)} has no strides of its own"
        raise Declined(msg)
    if sum(n > 1 for n in value.shape) > 1:
        return reversed_axes(value)
    return torch.stack([value, value], -1)[..., 0]


def reversed_axes(value: Tensor) -> Tensor:
    """Return the tensor stored in the opposite order of axes."""
    axes = tuple(range(value.dim()))[::-1]
    return value.permute(axes).contiguous().permute(axes)


def broadcast(value: Tensor) -> Tensor:
    """Return the first element along the longest axis, over and over."""
    if not value.dim() or value.numel() < 2:
        msg = f"a tensor of shape {tuple(value.shape)} has nothing to repeat"
        raise Declined(msg)
    axis = max(range(value.dim()), key=lambda axis: value.shape[axis])
    return value.narrow(axis, 0, 1).expand(value.shape)


def unaligned(value: Tensor) -> Tensor:
    """Return a tensor one byte off its alignment."""
    import numpy as np
    import torch

    bits = value.contiguous().view(-1).view(torch.uint8).numpy()
    carrier = f"u{min(value.itemsize, 8)}"
    memory = np.frombuffer(bytearray(bits.nbytes + 1), np.uint8)[1:]
    memory[...] = bits
    return torch.from_numpy(memory.view(carrier)).view(value.dtype).reshape(value.shape)


def subclass(value: Tensor) -> Tensor:
    """Return the tensor as one of a subclass."""
    tensor: Tensor = value.as_subclass(_subclass())
    return tensor


@cache
def _subclass() -> type[Tensor]:
    import torch

    return type("Sample", (torch.Tensor,), {})


def zero_tensor(value: Tensor) -> Tensor:
    """Return zeros that are not stored, of the shape of a tensor."""
    import torch

    zeros: Tensor = torch._efficientzerotensor(value.shape, dtype=value.dtype, device=value.device)
    return zeros


def uncoalesced(value: Tensor) -> Tensor:
    """Return a COO tensor in the reverse order, which holds its first coordinate twice."""
    import torch

    indices, values = value._indices().flip(1), value._values().flip(0)
    if not values.shape[0]:
        msg = "a COO tensor without elements is coalesced"
        raise Declined(msg)
    indices = torch.cat([indices, indices[:, :1]], 1)
    values = torch.cat([values, torch.zeros_like(values[:1])])
    allow_unchecked()
    return torch.sparse_coo_tensor(
        indices,
        values,
        value.shape,
        device=values.device,
        is_coalesced=False,
        check_invariants=False,
    )


def hybrid(value: Tensor) -> Tensor:
    """Return a COO tensor whose stored elements are rows."""
    return value.to_dense().to_sparse(1)


DENSE: Variants = {
    "noncontiguous": noncontiguous,
    "broadcast": broadcast,
    "unaligned": unaligned,
    "conj": conj,
    "neg": neg,
    "zero_tensor": zero_tensor,
    "meta": methodcaller("to", "meta"),
    "subclass": subclass,
    "grad": grad,
}
SPARSE: Variants = {"grad": grad}
COO: Variants = {"hybrid": hybrid, "uncoalesced": uncoalesced, **SPARSE}
QUANTIZED: Variants = {"noncontiguous": reversed_axes}
