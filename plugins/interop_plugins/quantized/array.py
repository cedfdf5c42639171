"""A quantized array that belongs to no framework."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from interop.errors import BadRequestError

from .scales import SCALE_LAYOUTS, from_tiles, tiled_size, to_tiles

#: The dtypes of codes of which several can share a byte, and how many do.
PACKED = {"int2": 4, "uint2": 4, "int4": 2, "uint4": 2, "float4_e2m1fn": 2}


class QuantizedArray:
    """Codes, and the numbers they stand for: ``(codes - zero_point) * scale + bias``.

    The components are arrays of any framework; nothing is copied on construction and nothing is
    computed. This is the affine scheme of ONNX ``DequantizeLinear`` (opset 21 and later) and of
    torch's per-tensor and per-channel quantized tensors.

    Parameters
    ----------
    codes : array
        The codes, mostly integers; their shape is the shape of the whole, unless they are packed.
    scale : array
        0-d for the whole array; of shape ``(shape[axis],)`` for one scale per channel; of the
        shape of the whole, but for ``ceil(shape[axis] / block_size)`` along `axis`, for blocks.
    zero_point : array or None
        Of the shape of `scale`, or packed like the codes; None stands for zeros.
    axis : int or None
        The axis along which the scale varies; None for one scale.
    block_size : int or None
        Elements of `axis` that share a scale, but for the last, which may be fewer; None if each
        has its own.
    dtype : str
        Name of the dtype of the real numbers.
    bias : array or None
        Of the shape of `scale`, added to the product; None stands for zeros.
    packed : str or None
        The dtype of codes that share bytes (``"int2"``, ``"uint2"``, ``"int4"``, ``"uint4"`` or
        ``"float4_e2m1fn"``): `codes` is then one axis of uint8, the first code in the lowest bits
        of the first byte, in C order, the last byte filled up.
    shape : tuple of int or None
        Shape of the whole where the codes are packed.
    scale_layout : str
        ``"linear"``: row by row. ``"128x4"``: the scales of blocks of the last axis are swizzled,
        in tiles of 128 rows by 4 blocks that are filled up with zeros, as for MXFP8 and NVFP4 on
        tensor cores (torchao's ``is_swizzled_scales``, flashinfer's ``layout_128x4``, torch's
        ``SWIZZLE_32_4_4``, what Transformer Engine gives to cuBLAS). The shape of such a `scale`
        plays no part. Nothing in the numbers tells the layouts apart.

    Raises
    ------
    BadRequestError
        The shapes do not fit each other, or one of the arrays is of complex numbers.

    Examples
    --------
    >>> import numpy as np
    >>> q = QuantizedArray(np.array([0, 4, 8], "uint8"), np.array(0.5), np.array(4))
    >>> interop.convert(q, to="numpy")
    array([-2.,  0.,  2.], dtype=float32)
    """

    __slots__ = (
        "_shape",
        "axis",
        "bias",
        "block_size",
        "codes",
        "dtype",
        "packed",
        "scale",
        "scale_layout",
        "zero_point",
    )

    def __init__(
        self,
        codes: Any,
        scale: Any,
        zero_point: Any = None,
        *,
        axis: int | None = None,
        block_size: int | None = None,
        dtype: str = "float32",
        bias: Any = None,
        packed: str | None = None,
        shape: tuple[int, ...] | None = None,
        scale_layout: str = "linear",
    ) -> None:
        _check_arrays(codes=codes, scale=scale, zero_point=zero_point, bias=bias)
        _check_bits(codes, scale, packed)
        self.codes: Any = codes
        self.scale: Any = scale
        self.zero_point: Any = zero_point
        self.axis: int | None = axis
        self.block_size: int | None = block_size
        self.dtype: str = dtype
        self.bias: Any = bias
        self.packed: str | None = packed
        self.scale_layout: str = scale_layout
        self._shape = tuple(codes.shape) if packed is None or shape is None else tuple(shape)
        if packed is not None or shape is not None:
            self._check_packing(shape)
        self._check()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def packed_zero_point(self) -> bool:
        """Whether the zero points share bytes as the codes do."""
        if self.packed is None or self.zero_point is None:
            return False
        form = (tuple(self.zero_point.shape), str(self.zero_point.dtype).rpartition(".")[2])
        return form == (_bytes(self._scale_shape(), self.packed), "uint8")

    def with_scale_layout(self, scale_layout: str) -> QuantizedArray:
        """Return the array with its scales in another layout; all else is shared.

        Parameters
        ----------
        scale_layout : str
            ``"linear"`` or ``"128x4"``.

        Returns
        -------
        QuantizedArray
            This array itself if its scales have that layout.

        Raises
        ------
        BadRequestError
            There is no such layout, or the scales are not those of blocks of the last axis.

        Examples
        --------
        >>> import numpy as np
        >>> codes, scale = np.zeros((2, 64), "int8"), np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> q = QuantizedArray(codes, scale, axis=1, block_size=32)
        >>> q.with_scale_layout("128x4").scale[:20]
        array([1., 2., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 3.,
               4., 0., 0.])
        """
        if scale_layout == self.scale_layout:
            return self
        _check_layout(scale_layout)
        if scale_layout == "linear":
            scale = from_tiles(self.scale, self._scale_shape())
        else:
            self._check_blocks()
            scale = to_tiles(self.scale)
        return changed(self, scale=scale, scale_layout=scale_layout)

    def _check_blocks(self) -> None:
        """Refuse scales that no tiles can hold."""
        is_last = self.axis is not None and self.axis == self.ndim - 1
        if (
            not (is_last and self.block_size)
            or self.zero_point is not None
            or self.bias is not None
        ):
            msg = (
                f"scale_layout='128x4' is for scales of blocks of the last axis, without a zero "
                f"point or a bias, and this has axis={self.axis} and block_size={self.block_size} "
                f"for the shape {self.shape}; give axis={self.ndim - 1} and the block_size (32 "
                "for MXFP8, 16 for NVFP4), and codes whose last axis has the blocks."
            )
            raise BadRequestError(msg)

    def _check_packing(self, shape: tuple[int, ...] | None) -> None:
        if self.packed is None:
            msg = "shape= is only for packed codes; pass packed= too, or leave shape= out."
            raise BadRequestError(msg)
        if self.packed not in PACKED or shape is None:
            msg = (
                f"packed={self.packed!r} with shape={shape} does not describe the packed layout; "
                f"give packed= one of {', '.join(PACKED)}, and the shape of the whole."
            )
            raise BadRequestError(msg)
        form = (tuple(self.codes.shape), str(self.codes.dtype).rpartition(".")[2])
        expected = (_bytes(self._shape, self.packed), "uint8")
        if form != expected:
            msg = (
                f"packed codes of {self.packed} for the shape {self._shape} are {expected[1]} of "
                f"shape {expected[0]}, not {form[1]} of shape {form[0]}; view them as bytes in "
                "one axis."
            )
            raise BadRequestError(msg)

    def _check(self) -> None:
        _check_layout(self.scale_layout)
        if self.scale_layout != "linear":
            self._check_tiles()
            return
        is_plain = self.axis is None and self.bias is None and not tuple(self.scale.shape)
        if is_plain and not tuple(getattr(self.zero_point, "shape", ())):
            return
        parts = {"scale": self.scale, "bias": self.bias}
        if not self.packed_zero_point:
            parts["zero_point"] = self.zero_point
        expected = self._scale_shape()
        for name, part in parts.items():
            if part is not None and tuple(part.shape) != expected:
                msg = (
                    f"{name} has shape {tuple(part.shape)}, but codes of shape {self.shape} with "
                    f"axis={self.axis} and block_size={self.block_size} need {expected}; "
                    f"{_advice(tuple(part.shape), expected)}"
                )
                raise BadRequestError(msg)

    def _check_tiles(self) -> None:
        """Refuse swizzled scales that are not as many as the tiles have."""
        self._check_blocks()
        size = tiled_size(self._scale_shape())
        if prod(self.scale.shape) != size:
            msg = (
                f"scale has shape {tuple(self.scale.shape)}, but the tiles of 128x4 that hold "
                f"scales of shape {self._scale_shape()} have {size} elements; scales that are "
                "not swizzled have scale_layout='linear'."
            )
            raise BadRequestError(msg)

    def _scale_shape(self) -> tuple[int, ...]:
        if self.axis is None:
            return ()
        if not 0 <= self.axis < self.ndim:
            msg = f"axis={self.axis} is not an axis of shape {self.shape}; count from 0."
            raise BadRequestError(msg)
        length = self.shape[self.axis]
        if self.block_size is None:
            return (length,)
        if self.block_size < 1:
            msg = f"block_size={self.block_size} is not a number of elements; give 1 or more."
            raise BadRequestError(msg)
        shape = list(self.shape)
        shape[self.axis] = -(-length // self.block_size)
        return tuple(shape)

    def __repr__(self) -> str:
        scheme = "per tensor" if self.axis is None else f"along axis {self.axis}"
        if self.block_size is not None:
            scheme += f" in blocks of {self.block_size}"
        if self.scale_layout != "linear":
            scheme += f", scales in tiles of {self.scale_layout}"
        codes = f"packed {self.packed}" if self.packed else self.codes.dtype
        return f"QuantizedArray({codes} codes {self.shape} → {self.dtype}, {scheme})"


def changed(value: QuantizedArray, **parts: Any) -> QuantizedArray:
    """Return the array with other components, or other words about them; all else is shared."""
    parts = {
        "codes": value.codes,
        "scale": value.scale,
        "zero_point": value.zero_point,
        "axis": value.axis,
        "block_size": value.block_size,
        "dtype": value.dtype,
        "bias": value.bias,
        "packed": value.packed,
        "scale_layout": value.scale_layout,
        **parts,
    }
    return QuantizedArray(**parts, shape=None if parts["packed"] is None else value.shape)


def _bytes(shape: tuple[int, ...], packed: str) -> tuple[int]:
    """Return the shape of the bytes that hold so many codes."""
    return (-(-prod(shape) // PACKED[packed]),)


def _advice(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Return what to do with scales of another shape, which may be swizzled or filled up."""
    if len(expected) > 1 and prod(shape) == tiled_size(expected):
        return (
            "there are as many as tiles of 128x4 hold: pass scale_layout='128x4' if they are "
            "swizzled for tensor cores, and cut off what fills them up if they are not."
        )
    return "reshape it, or give the axis along which it varies."


def _check_layout(scale_layout: str) -> None:
    if scale_layout not in SCALE_LAYOUTS:
        msg = (
            f"scale_layout={scale_layout!r} is not known; give 'linear', or '128x4' for scales "
            "that are swizzled, and bring others into the order of their rows first."
        )
        raise BadRequestError(msg)


def _check_bits(codes: Any, scale: Any, packed: str | None) -> None:
    """Refuse the bytes of narrow floats as scales, which are other numbers than they look."""
    kinds = packed or _shown(codes.dtype)
    if "float" in kinds and _shown(scale.dtype).endswith("uint8"):
        msg = (
            f"scale is uint8, as the bits of scales of {kinds} codes are often kept; view it as "
            "what it is: float8_e8m0fnu for MXFP8 and MXFP4, float8_e4m3fn for NVFP4 "
            "(scale.view(...), of torch or ml_dtypes)."
        )
        raise BadRequestError(msg)


def _check_arrays(**parts: Any) -> None:
    """Refuse numbers and lists, which do not say what framework they belong to."""
    for name, part in parts.items():
        is_missing = part is None and name in {"zero_point", "bias"}
        if is_missing:
            continue
        if not (hasattr(part, "shape") and hasattr(part, "dtype")):
            msg = f"{name}={part!r} is not an array; make it one of the framework of the codes."
            raise BadRequestError(msg)
        if "complex" in _shown(part.dtype):
            msg = f"{name} is {part.dtype}, but codes stand for real numbers; give its real part."
            raise BadRequestError(msg)


@lru_cache(maxsize=64)
def _shown(dtype: Any) -> str:
    """Return how a dtype is shown, which takes NumPy as long as all checks together."""
    return str(dtype)
