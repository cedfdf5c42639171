"""QuantizedArray: construction and checks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import QuantizedArray
from tests.cases import together


def test_nothing_is_copied_or_computed() -> None:
    """The components are the very objects that were given."""
    codes, scale, zero = np.zeros((2, 3), "u1"), np.ones(3), np.zeros(3, int)
    q = QuantizedArray(codes, scale, zero, axis=1)
    assert q.codes is codes
    assert q.scale is scale
    assert q.zero_point is zero
    assert (q.shape, q.ndim) == ((2, 3), 2)
    assert "along axis 1" in repr(q)
    blocks = QuantizedArray(np.zeros((2, 4), "i1"), np.ones((2, 2)), axis=1, block_size=3)
    assert blocks.block_size == 3


def test_packed_codes_have_the_shape_they_are_given() -> None:
    """Packed codes are one axis of bytes, and the shape is given beside them."""
    packed = np.zeros(8, "u1")
    q = QuantizedArray(packed, np.ones(3), axis=0, packed="int4", shape=(3, 5))
    assert q.codes is packed
    assert (q.shape, q.ndim) == ((3, 5), 2)
    assert "packed int4 codes (3, 5)" in repr(q)
    assert not q.packed_zero_point


@pytest.mark.parametrize(
    ("packed", "shape", "scale_shape", "facts", "bytes_"),
    [
        ("uint4", (3, 5), (5,), {"axis": 1}, 3),
        ("int2", (3, 5), (3, 2), {"axis": 1, "block_size": 3}, 2),
        ("int4", (3, 5), (), {}, 1),
    ],
)
def test_zero_points_may_be_packed_as_well(
    packed: str, shape: tuple[int, ...], scale_shape: tuple[int, ...], facts: Any, bytes_: int
) -> None:
    """Only as many bytes as packed zero points fill are taken for packed zero points."""
    codes = np.zeros(-(-15 // (4 if packed == "int2" else 2)), "u1")
    keywords = {**facts, "packed": packed, "shape": shape}
    q = QuantizedArray(codes, np.ones(scale_shape), np.zeros(bytes_, "u1"), **keywords)
    assert q.packed_zero_point
    assert not QuantizedArray(codes, np.ones(scale_shape), np.zeros(scale_shape, "i1"), **keywords).packed_zero_point  # fmt: skip


def test_a_bias_has_the_shape_of_the_scale() -> None:
    """A bias varies along the same axis as the scale."""
    codes = np.zeros((2, 4), "i1")
    assert QuantizedArray(codes, np.ones(2), axis=0, bias=np.ones(2)).bias.shape == (2,)
    assert QuantizedArray(codes, np.array(1.0), bias=np.array(2.0)).bias == 2


@together(
    "codes, packed, right",
    [
        (np.zeros((1, 32), ml_dtypes.float8_e4m3fn), None, ml_dtypes.float8_e8m0fnu),
        (np.zeros(16, "u1"), "float4_e2m1fn", ml_dtypes.float8_e4m3fn),
    ],
)
def test_bytes_of_scales_are_no_scales(codes: np.ndarray, packed: str | None, right: Any) -> None:
    """The bits of narrow floats are refused as scales of narrow floats until they are viewed so."""
    keywords = {"axis": 1, "block_size": 32, "packed": packed}
    keywords["shape"] = None if packed is None else (1, 32)
    scale = np.full((1, 1), 127, "u1")
    with pytest.raises(interop.errors.BadRequestError):
        QuantizedArray(codes, scale, **keywords)
    assert QuantizedArray(codes, scale.view(right), **keywords).scale.dtype == right
