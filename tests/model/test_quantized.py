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


@pytest.mark.parametrize(
    ("scale", "facts", "message"),
    [
        (np.ones(2), {}, r"need \(\); reshape"),
        (np.ones(2), {"axis": 1}, r"need \(4,\); reshape"),
        (np.ones((2, 2)), {"axis": 1, "block_size": 3}, None),
        (np.ones((2, 1)), {"axis": 1, "block_size": 3}, r"need \(2, 2\); reshape"),
        (np.ones(4), {"axis": 2}, "not an axis"),
        (np.ones(4), {"axis": 1, "block_size": 0}, "1 or more"),
    ],
)
def test_shapes_are_checked(scale: np.ndarray, facts: dict[str, int], message: str | None) -> None:
    """Scale and zero point must fit the scheme, and the message says what would."""
    codes = np.zeros((2, 4), "i1")
    if message is None:
        assert QuantizedArray(codes, scale, **facts).block_size == 3
    else:
        with pytest.raises(interop.errors.BadRequestError, match=message):
            QuantizedArray(codes, scale, **facts)


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
    with pytest.raises(interop.errors.BadRequestError, match="zero_point has shape"):
        QuantizedArray(codes, np.ones(scale_shape), np.zeros(bytes_ + 7, "u1"), **keywords)


@pytest.mark.parametrize(
    ("codes", "keywords", "message"),
    [
        (np.zeros(2, "u1"), {"packed": "int4"}, "the shape of the whole"),
        (np.zeros(2, "u1"), {"packed": "int5", "shape": (3,)}, "give packed= one of int2"),
        (np.zeros(2, "u1"), {"shape": (3,)}, "pass packed= too"),
        (np.zeros(2, "u1"), {"packed": "int4", "shape": (5,)}, r"uint8 of shape \(3,\), not uint8"),
        (np.zeros(2, "i1"), {"packed": "int4", "shape": (4,)}, "view them as bytes"),
        (np.zeros((1, 2), "u1"), {"packed": "int4", "shape": (4,)}, "in one axis"),
    ],
)
def test_packing_is_checked(codes: np.ndarray, keywords: Any, message: str) -> None:
    """Bytes that do not fit their declared contents are refused, and the message says what would."""
    with pytest.raises(interop.errors.BadRequestError, match=message):
        QuantizedArray(codes, np.array(1.0), **keywords)


def test_a_bias_has_the_shape_of_the_scale() -> None:
    """A bias varies along the same axis as the scale."""
    codes = np.zeros((2, 4), "i1")
    assert QuantizedArray(codes, np.ones(2), axis=0, bias=np.ones(2)).bias.shape == (2,)
    assert QuantizedArray(codes, np.array(1.0), bias=np.array(2.0)).bias == 2
    with pytest.raises(interop.errors.BadRequestError, match="bias has shape"):
        QuantizedArray(codes, np.ones(2), axis=0, bias=np.ones(4))
    with pytest.raises(interop.errors.BadRequestError, match="bias has shape"):
        QuantizedArray(codes, np.array(1.0), bias=np.ones(2))


@together(
    "shape, layout, scale, facts, message",
    [
        ((128, 128), "linear", np.ones((32, 16)), {"axis": 1}, "pass scale_layout='128x4' if"),
        ((128, 128), "linear", np.ones(512), {"axis": 1}, "pass scale_layout='128x4' if"),
        ((3, 64), "linear", np.ones((128, 4)), {"axis": 1}, "cut off what fills them up"),
        ((3, 64), "linear", np.ones((3, 3)), {"axis": 1}, "reshape it"),
        ((3, 64), "128x4", np.ones((3, 2)), {"axis": 1}, "have 512 elements; scales that are not"),
        ((64, 3), "128x4", np.ones((128, 4)), {"axis": 0}, "blocks of the last axis"),
        ((3, 64), "128x4", np.ones(3), {"axis": 1, "block_size": None}, "blocks of the last axis"),
        ((3, 64), "128x4", np.array(1.0), {"axis": None, "block_size": None}, "blocks of the last"),
        ((3, 64), "8x4", np.ones((3, 2)), {"axis": 1}, "'8x4' is not known; give 'linear'"),
    ],
)
def test_scales_in_tiles_are_told_from_others(
    shape: tuple[int, ...], layout: str, scale: np.ndarray, facts: Any, message: str
) -> None:
    """Scales of one layout are not taken for those of the other where their number differs."""
    keywords = {"block_size": 32, **facts, "scale_layout": layout}
    with pytest.raises(interop.errors.BadRequestError, match=message):
        QuantizedArray(np.zeros(shape, "i1"), scale, **keywords)


def test_tiles_have_no_place_for_zero_points() -> None:
    """A zero point or a bias beside swizzled scales is refused, on construction and afterwards."""
    codes, ones = np.zeros((2, 64), "i1"), np.ones((2, 2))
    for facts in ({"zero_point": ones}, {"bias": ones}):
        q = QuantizedArray(codes, ones, axis=1, block_size=32, **facts)
        with pytest.raises(interop.errors.BadRequestError, match="without a zero point or a bias"):
            q.with_scale_layout("128x4")


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
    with pytest.raises(interop.errors.BadRequestError, match="view it as what it is"):
        QuantizedArray(codes, scale, **keywords)
    assert QuantizedArray(codes, scale.view(right), **keywords).scale.dtype == right
