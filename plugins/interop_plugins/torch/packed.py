"""Tensors of which two numbers share a byte, as those of four bits do that torch can only store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import Declined

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    Array = np.ndarray[Any, Any]


def unpack(value: Tensor) -> Array:
    """Return the numbers in new memory, a byte for each, as ml_dtypes stores them.

    The first of two numbers along the last axis is in the lower half of their byte.
    """
    import ml_dtypes
    import numpy as np
    import torch

    pairs: Array = value.detach().view(torch.uint8).numpy()
    numbers = np.empty((*pairs.shape, 2), np.uint8)
    np.bitwise_and(pairs, 0x0F, out=numbers[..., 0])
    np.right_shift(pairs, 4, out=numbers[..., 1])
    return numbers.reshape(*pairs.shape[:-1], 2 * pairs.shape[-1]).view(ml_dtypes.float4_e2m1fn)


def pack(array: Array) -> Tensor:
    """Return a tensor of an array of ml_dtypes, two numbers a byte."""
    import numpy as np
    import torch

    if not array.ndim or array.shape[-1] % 2:
        msg = "two numbers share a byte along the last axis, which has an odd length"
        raise Declined(msg)
    numbers = np.ascontiguousarray(array).view(np.uint8)
    pairs = torch.from_numpy((numbers[..., ::2] & 0x0F) | (numbers[..., 1::2] << 4))
    return pairs.view(torch.float4_e2m1fn_x2)
