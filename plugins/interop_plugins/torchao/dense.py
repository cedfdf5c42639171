"""Steps that need no codes: out of graphs, and to the numbers that torchao alone can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .describe import memory

if TYPE_CHECKING:
    from torch import Tensor
    from torchao.utils import TorchAOBaseTensor


def detach(value: TorchAOBaseTensor) -> TorchAOBaseTensor:
    """Return the tensor outside any autograd graph, over the same components."""
    return value.detach()


def dequantize(value: TorchAOBaseTensor) -> Tensor:
    """Return what the tensor's own `dequantize` gives, in the dtype that the tensor claims."""
    import torch

    with torch.no_grad():
        return _in_own_memory(value, value.dequantize())


def dequantize_nf4(value: TorchAOBaseTensor) -> Tensor:
    """Return what the tensor's own `get_original_weight` gives, in the dtype it claims."""
    import torch

    with torch.no_grad():
        return _in_own_memory(value, value.get_original_weight())


def _in_own_memory(value: TorchAOBaseTensor, numbers: Tensor) -> Tensor:
    """Return numbers in memory that the tensor does not lie in."""
    result: Tensor = numbers.detach().to(value.dtype)
    start = result.data_ptr()
    if any(low <= start < low + nbytes for low, nbytes in memory(value)):
        return result.clone()
    return result
