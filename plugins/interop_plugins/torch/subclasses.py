"""Tensors of subclasses, which stay what they are: their class copies, casts and moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.errors import Declined

from .dense import (
    casts_as_numpy,
    check_present,
    memory_format,
    torch_dtype,
    without_subclass,
    write_as_numpy,
)
from .describe import dtype_name

if TYPE_CHECKING:
    from torch import Tensor

    from .dense import Order


def clone(value: Tensor, *, order: Order = "C") -> Tensor:
    """Return a copy of its class, in C order or in that in which its elements lie."""
    return _classed(value.clone(memory_format=memory_format(order)), value)


def cast(value: Tensor, *, dtype: str) -> Tensor:
    """Return a C-ordered copy of its class and of another dtype, cast as NumPy casts."""
    import torch

    order = torch.contiguous_format
    own = value.to(torch_dtype(dtype), copy=True, memory_format=order)
    result = _classed(own, value)
    if value.is_cpu and not casts_as_numpy(dtype_name(value.dtype), dtype):
        write_as_numpy(without_subclass(result), without_subclass(value))
    return result


def move(value: Tensor, *, device: str) -> Tensor:
    """Return a copy of its class on another device, complete on return."""
    import torch

    check_present(torch, device)
    result = _classed(value.to(device), value)
    if value.is_cuda and result.is_cuda:  # the one move for which torch makes nobody wait
        torch.cuda.current_stream(result.device).synchronize()
    return result


def _classed(result: Tensor, value: Tensor) -> Tensor:
    """Return what a class's own code has made of one of its values.

    Raises
    ------
    Declined
        That is no value of the class.
    """
    if type(result) is not type(value):
        msg = f"{type(value).__name__} makes a {type(result).__name__} of it"
        raise Declined(msg)
    return result
