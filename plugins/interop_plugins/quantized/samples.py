"""Odd quantized arrays with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from .array import QuantizedArray
from .components import pack, parts_of
from .describe import arrays_of


def require_grad(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a scale that is a leaf of an autograd graph."""
    scale = value.scale.detach().requires_grad_()
    return pack(parts_of(value, {**arrays_of(value), "scale": scale}))
