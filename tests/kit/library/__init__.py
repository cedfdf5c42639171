"""A toy library: its public names, and the functions of the array API standard that it has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import DTYPES, Array, DType, ElementArray, Quantity, Shown, TracedArray, Vectors

__all__ = [
    "Array",
    "DType",
    "ElementArray",
    "Quantity",
    "Shown",
    "TracedArray",
    "Vectors",
    "arange",
    "astype",
    "from_dlpack",
    "isdtype",
    "ones",
    "real",
    "reshape",
    "show",
]

float32, float64, int64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]
complex64 = DTYPES["complex64"]


def from_dlpack(x: Any) -> Array:
    """Return an array over a producer's memory."""
    return Array(np.from_dlpack(x))


def ones(*shape: int, dtype: str = "float32") -> Array:
    """Return an array of ones."""
    return Array(np.ones(shape, dtype))


def arange(stop: float) -> Array:
    """Return the numbers from zero on, as float32."""
    return Array(np.arange(stop, dtype="float32"))


def show(array: np.ndarray[Any, Any]) -> Shown:
    """Return what shows an array."""
    return Shown(array)


def astype(x: Array, dtype: DType, *, copy: bool = True) -> Array:
    """Return a copy in another dtype, in the order of the array."""
    return Array(np.astype(x.data, str(dtype).rpartition(".")[2], copy=copy))


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of another shape."""
    return Array(x.data.reshape(shape))


def real(x: Array) -> Array:
    """Return the real parts."""
    return Array(x.data.real)


def isdtype(dtype: DType, kind: str) -> bool:
    """Tell whether a dtype is of a kind."""
    return np.isdtype(np.dtype(str(dtype).rpartition(".")[2]), kind)
