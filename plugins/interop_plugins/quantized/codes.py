"""Codes that share bytes, unpacked."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .array import PACKED, QuantizedArray, changed
from .frameworks import Framework, cupy_framework, numpy_framework, torch_framework

if TYPE_CHECKING:
    from .frameworks import Array

#: The numbers that the codes of float4_e2m1fn stand for, in order.
_FLOAT4 = tuple(sign * n for sign in (1.0, -1.0) for n in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0))


def unpack_numpy(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one NumPy element for each code."""
    return _unpack(value, numpy_framework())


def unpack_torch(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one element of a tensor for each code."""
    return _unpack(value, torch_framework(value.codes.device))


def unpack_cupy(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with one CuPy element for each code."""
    with value.codes.device:
        return _unpack(value, cupy_framework())


def _unpack(value: QuantizedArray, xp: Framework) -> QuantizedArray:
    """Return a copy of the quantized array with one element for each code and each zero point."""
    codes = unpack_codes(value.codes, value.packed or "", 0, prod(value.shape), xp)
    zero_point = unpack_zero_point(value, xp)
    return changed(
        value,
        codes=codes.reshape(value.shape),
        scale=_copied(value.scale),
        zero_point=zero_point if value.packed_zero_point else _copied(zero_point),
        bias=_copied(value.bias),
        packed=None,
    )


def _copied(component: Array | None) -> Array | None:
    """Return a copy of a scale, a zero point or a bias, part of the same graph."""
    if component is None:
        return None
    return component.clone() if hasattr(component, "clone") else component.copy()


def unpack_codes(packed: Array, kind: str, start: int, count: int, xp: Framework) -> Array:
    """Return `count` of the codes that share bytes, from the one at `start` on."""
    per_byte = PACKED[kind]
    bits = 8 // per_byte
    octets = packed[start // per_byte : -(-(start + count) // per_byte)]
    codes = xp.empty((len(octets) * per_byte,), "uint8")
    for place in range(per_byte):
        codes[place::per_byte] = (octets >> bits * place) & (2**bits - 1)
    codes = codes[start % per_byte :][:count]
    if kind.startswith("float"):
        return xp.look_up(_FLOAT4, codes)
    if kind.startswith("u"):
        return codes
    # The sign bit counts as minus its place value.
    codes ^= 1 << (bits - 1)
    codes -= 1 << (bits - 1)
    return xp.view(codes, "int8")


def unpack_zero_point(value: QuantizedArray, xp: Framework) -> Array:
    """Return the zero points, one element for each."""
    if not value.packed_zero_point:
        return value.zero_point
    shape = tuple(value.scale.shape)
    return unpack_codes(value.zero_point, value.packed or "", 0, prod(shape), xp).reshape(shape)
