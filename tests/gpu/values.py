"""The values, dtypes and layouts that are tried on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]


def host(dtype: str, shape: tuple[int, ...] = (5, 7)) -> np.ndarray[Any, Any]:
    """Return an array whose values every dtype holds."""
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5
    if dtype.startswith("complex"):
        values = values + 2j * values
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def equal(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    """Tell whether two arrays have the same dtype, shape and values."""
    alike = first.dtype == second.dtype and first.shape == second.shape
    return alike and bool((first == second).all())


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T,
    "sliced": lambda a: a[1:4, ::2],
    "offset": lambda a: a[2:],
    "scalar": lambda a: a[1, 1],
    "empty": lambda a: a[:0],
}
