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


def swizzle(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with its one scale for each block, in tiles."""
    if value.axis is not None or value.bias is not None or not value.ndim:
        msg = "the one scale of all codes, which have axes, is made that of blocks"
        raise Declined(msg)
    codes, scale, axis = value.codes, value.scale, value.ndim - 1
    if value.zero_point is not None:
        codes = codes - value.zero_point
    blocks = QuantizedArray(codes, codes[..., :1] * 0 + scale, axis=axis, block_size=2**16)
    return blocks.with_scale_layout("128x4")
