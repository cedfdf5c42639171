"""Quantized arrays by their components."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from interop.kit import INTEGERS, REALS
from interop.plugin import Parts

from .array import QuantizedArray, changed
from .describe import arrays_of, framework_of
from .frameworks import dtype_name

if TYPE_CHECKING:
    from .frameworks import Array

#: The dtypes in which scales and zero points are handed over. All frameworks have them.
_COMMON = REALS | INTEGERS


def unpack(value: QuantizedArray) -> Parts:
    """Return the components, which are the very arrays of the value.

    Scales, zero points and biases of dtypes that not all frameworks have are widened.
    """
    return parts_of(value, {role: _common(role, part) for role, part in arrays_of(value).items()})


def parts_of(value: QuantizedArray, arrays: dict[str, Array]) -> Parts:
    """Return some components, with what a value says of how they belong together."""
    facts = {"axis": value.axis, "block_size": value.block_size, "dtype": value.dtype}
    return Parts(value.shape, arrays, facts)


def _common(role: str, part: Array) -> Array:
    """Return a component as an array of a dtype that all frameworks have."""
    if part is not None and not hasattr(part, "__setitem__"):
        part = _as_array(part)
    if part is None or role == "codes" or dtype_name(part) in _COMMON:
        return part
    kind = dtype_name(part)
    wider = ("uint8" if kind.startswith("u") else "int8") if "int" in kind else "float32"
    if framework_of(part) == "torch":
        import torch

        return part.to(getattr(torch, wider))
    return part.astype(wider)


def _as_array(scalar: Array) -> Array:
    import numpy as np

    return np.asarray(scalar)


def pack(parts: Parts) -> QuantizedArray:
    """Return the quantized array with the given components."""
    arrays, facts = parts.arrays, parts.facts
    return QuantizedArray(
        arrays["codes"],
        arrays["scale"],
        arrays["zero_point"],
        axis=facts["axis"],
        block_size=facts["block_size"],
        dtype=facts["dtype"],
        bias=arrays.get("bias"),
    )


def detach(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with components outside any autograd graph."""
    return _mapped(value, lambda part: part.detach())


def join(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with all of its components on the device of the codes."""
    device = value.codes.device
    if framework_of(value.codes) == "torch":
        return _mapped(value, lambda part: part.to(device))
    import cupy

    with device:
        return _mapped(value, cupy.asarray)


def in_rows(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with its scales row by row."""
    return value.with_scale_layout("linear")


def _mapped(value: QuantizedArray, function: Callable[[Array], Array]) -> QuantizedArray:
    """Return the quantized array with what a function makes of each of its components."""
    arrays = arrays_of(value).items()
    return changed(
        value, **{role: part if part is None else function(part) for role, part in arrays}
    )
