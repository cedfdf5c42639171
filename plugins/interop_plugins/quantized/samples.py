"""Odd quantized arrays with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from interop.plugin import Declined

from .array import QuantizedArray, changed
from .describe import framework_of


def require_grad(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a scale that is a leaf of an autograd graph."""
    return changed(value, scale=value.scale.detach().requires_grad_())


def take_apart(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with its scale on another device than its codes."""
    if framework_of(value.codes) == "torch":
        import torch

        if torch.cuda.is_available():
            scale = value.scale.to("cuda" if value.codes.is_cpu else "cpu")
            return changed(value, scale=scale)
    msg = "it takes two devices"
    raise Declined(msg)


def add_bias(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a bias of zero."""
    return changed(value, bias=value.scale * 0)


def put_in_blocks(value: QuantizedArray, size: int = 2) -> QuantizedArray:
    """Return the quantized array with its one scale, zero point and bias for each block."""
    if value.axis is not None or not value.ndim:
        msg = "the one scale of all codes, which have axes, is made that of blocks"
        raise Declined(msg)
    blocks = value.codes[..., ::size] * 0
    parts = {"scale": value.scale, "zero_point": value.zero_point, "bias": value.bias}
    spread = {
        name: None if part is None else blocks + part.reshape((1,) * value.ndim)
        for name, part in parts.items()
    }
    return changed(value, **spread, axis=value.ndim - 1, block_size=size)


def swizzle(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a scale for each row, in tiles."""
    if value.zero_point is not None:
        value = changed(value, codes=value.codes - value.zero_point, zero_point=None)
    return put_in_blocks(value, 2**16).with_scale_layout("128x4")
