"""A quantized array that belongs to no framework."""

from __future__ import annotations

from typing import Any

from .errors import BadRequestError

__all__ = ["QuantizedArray"]


class QuantizedArray:
    """Codes, and how they become real numbers: ``(codes - zero_point) * scale``.

    The components are arrays of any framework; nothing is copied on construction and nothing is
    computed. This is the affine scheme of ONNX ``DequantizeLinear`` (opset 21 and later) and of
    torch's per-tensor and per-channel quantized tensors.

    Parameters
    ----------
    codes : array
        The integer codes; their shape is the shape of the whole.
    scale : array
        0-d for the whole array; of shape ``(codes.shape[axis],)`` for one scale per channel; of
        the shape of `codes`, but for ``ceil(codes.shape[axis] / block_size)`` along `axis`, for
        blocks.
    zero_point : array or None
        Of the shape of `scale`; None stands for zeros.
    axis : int or None
        The axis along which the scale varies; None for one scale.
    block_size : int or None
        Elements of `axis` that share a scale; None if each has its own.
    dtype : str
        Name of the dtype of the real numbers.

    Raises
    ------
    BadRequestError
        The shapes do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> q = QuantizedArray(np.array([0, 4, 8], "uint8"), np.array(0.5), np.array(4))
    >>> interop.convert(q, to="numpy")
    array([-2.,  0.,  2.], dtype=float32)
    """

    __slots__ = ("axis", "block_size", "codes", "dtype", "scale", "zero_point")

    def __init__(
        self,
        codes: Any,
        scale: Any,
        zero_point: Any = None,
        *,
        axis: int | None = None,
        block_size: int | None = None,
        dtype: str = "float32",
    ) -> None:
        self.codes = codes
        self.scale = scale
        self.zero_point = zero_point
        self.axis = axis
        self.block_size = block_size
        self.dtype = dtype
        self._check()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""
        return tuple(self.codes.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def _check(self) -> None:
        if self.axis is None and self.scale.ndim == 0 and getattr(self.zero_point, "ndim", 0) == 0:
            return
        expected = self._scale_shape()
        for name, part in (("scale", self.scale), ("zero_point", self.zero_point)):
            if part is not None and tuple(part.shape) != expected:
                msg = (
                    f"{name} has shape {tuple(part.shape)}, but codes of shape {self.shape} with "
                    f"axis={self.axis} and block_size={self.block_size} need {expected}; "
                    "reshape it, or give the axis along which it varies."
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
        return f"QuantizedArray({self.codes.dtype} codes {self.shape} → {self.dtype}, {scheme})"
