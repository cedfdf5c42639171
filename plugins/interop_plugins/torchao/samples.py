"""Tensors of every class, quantized from dense ones, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from interop.plugin import Declined

if TYPE_CHECKING:
    from torch import Tensor
    from torchao.utils import TorchAOBaseTensor


def _matrix(dense: Tensor) -> Tensor:
    if dense.dim() != 2 or not dense.numel():
        msg = f"torchao quantizes matrices, not tensors of shape {tuple(dense.shape)}"
        raise Declined(msg)
    return dense


def _int8(dense: Tensor) -> TorchAOBaseTensor:
    from torchao.quantization import Int8Tensor
    from torchao.quantization.granularity import PerRow

    return Int8Tensor.from_hp(_matrix(dense), PerRow())


def _float8(dense: Tensor) -> TorchAOBaseTensor:
    from torchao.quantization import Float8Tensor

    return Float8Tensor.from_hp(_matrix(dense))


def _intx(dense: Tensor) -> TorchAOBaseTensor:
    import torch
    from torchao.quantization import IntxUnpackedToInt8Tensor

    blocks = (1, _matrix(dense).shape[1])
    return IntxUnpackedToInt8Tensor.from_hp(dense, blocks, torch.int8)


def _int4(dense: Tensor) -> TorchAOBaseTensor:
    """Return a tensor of zeros and ones; what quantizes better is a library of its own."""
    import torch
    from torchao.quantization import Int4Tensor

    rows, columns = _matrix(dense).shape
    if columns % 2:
        msg = f"two codes share a byte, and rows of {columns} have one too many"
        raise Declined(msg)
    packed = (dense[:, ::2] > 0).to(torch.int8)
    scale = torch.ones(1, rows, dtype=dense.dtype, device=dense.device)
    return Int4Tensor(packed, scale, torch.zeros_like(scale), [1, columns], dense.shape)


def _nf4(dense: Tensor) -> TorchAOBaseTensor:
    from torchao.quantization import NF4Tensor

    if _matrix(dense).numel() % 2:
        msg = f"two codes share a byte, and {dense.numel()} have one too many"
        raise Declined(msg)
    return NF4Tensor.from_tensor(dense, 2, dense.numel() // 2)


def _opaque(dense: Tensor) -> TorchAOBaseTensor:
    """Return codes with scales of 64 bits, of which torchao alone makes its numbers."""
    value = _int8(dense)
    value.scale = value.scale.double()
    return value


def grad(value: TorchAOBaseTensor) -> TorchAOBaseTensor:
    """Return a tensor that is a leaf of an autograd graph."""
    return value.detach().requires_grad_()


MAKERS: Mapping[str, Callable[[Tensor], TorchAOBaseTensor]] = {
    "torchao.int8": _int8,
    "torchao.float8": _float8,
    "torchao.int4": _int4,
    "torchao.intx": _intx,
    "torchao.nf4": _nf4,
    "torchao.opaque": _opaque,
}
VARIANTS: Mapping[str, Callable[[TorchAOBaseTensor], TorchAOBaseTensor]] = {"grad": grad}
