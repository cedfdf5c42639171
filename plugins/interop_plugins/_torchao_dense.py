"""The numbers of torchao's tensors whose codes nobody else can read; and samples of them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from interop.plugin import Declined

from ._torchao_tensors import memory

if TYPE_CHECKING:
    import torch

__all__ = ["SAMPLES", "VARIANTS", "dequantize", "dequantize_nf4"]


def dequantize(value: Any) -> torch.Tensor:
    """Return what the tensor's own `dequantize` gives, in the dtype that the tensor claims."""
    import torch

    with torch.no_grad():
        return _own(value, value.dequantize())


def dequantize_nf4(value: Any) -> torch.Tensor:
    """Return what the tensor's own `get_original_weight` gives, in the dtype it claims."""
    import torch

    with torch.no_grad():
        return _own(value, value.get_original_weight())


def _own(value: Any, numbers: torch.Tensor) -> torch.Tensor:
    """Return numbers in memory of their own."""
    found: torch.Tensor = numbers.detach().to(value.dtype)
    start = found.data_ptr()
    if any(low <= start < low + nbytes for low, nbytes in memory(value)):
        return found.clone()
    return found


def _rows(dense: torch.Tensor) -> torch.Tensor:
    if dense.dim() != 2 or not dense.numel():
        msg = f"torchao quantizes matrices, not tensors of shape {tuple(dense.shape)}"
        raise Declined(msg)
    return dense


def _int8(dense: torch.Tensor) -> Any:
    from torchao.quantization import Int8Tensor
    from torchao.quantization.granularity import PerRow

    return Int8Tensor.from_hp(_rows(dense), PerRow())


def _float8(dense: torch.Tensor) -> Any:
    from torchao.quantization import Float8Tensor

    return Float8Tensor.from_hp(_rows(dense))


def _intx(dense: torch.Tensor) -> Any:
    import torch
    from torchao.quantization import IntxUnpackedToInt8Tensor

    blocks = (1, _rows(dense).shape[1])
    return IntxUnpackedToInt8Tensor.from_hp(dense, blocks, torch.int8)


def _int4(dense: torch.Tensor) -> Any:
    """Return a tensor of zeros and ones; what quantizes better is a library of its own."""
    import torch
    from torchao.quantization import Int4Tensor

    rows, columns = _rows(dense).shape
    if columns % 2:
        msg = f"two codes share a byte, and rows of {columns} have one too many"
        raise Declined(msg)
    packed = (dense[:, ::2] > 0).to(torch.int8)
    scale = torch.ones(1, rows, dtype=dense.dtype)
    return Int4Tensor(packed, scale, torch.zeros_like(scale), [1, columns], dense.shape)


def _nf4(dense: torch.Tensor) -> Any:
    from torchao.quantization import NF4Tensor

    if _rows(dense).numel() % 2:
        msg = f"two codes share a byte, and {dense.numel()} have one too many"
        raise Declined(msg)
    return NF4Tensor.from_tensor(dense, 2, dense.numel() // 2)


def _opaque(dense: torch.Tensor) -> Any:
    """Return codes with scales of 64 bits, of which only torchao itself makes its numbers."""
    value = _int8(dense)
    value.scale = value.scale.double()
    return value


def grad(value: Any) -> Any:
    """Return a tensor that is a leaf of an autograd graph."""
    return value.detach().requires_grad_()


SAMPLES: Mapping[str, Callable[[Any], Any]] = {
    "torchao.int8": _int8,
    "torchao.float8": _float8,
    "torchao.int4": _int4,
    "torchao.intx": _intx,
    "torchao.nf4": _nf4,
    "torchao.opaque": _opaque,
}
VARIANTS: Mapping[str, Callable[[Any], Any]] = {"grad": grad}
