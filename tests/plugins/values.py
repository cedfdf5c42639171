"""Values that tests of several frameworks make and compare."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "ARROW",
    "NULLABLE",
    "address",
    "data",
    "distinct",
    "memory",
    "numbers",
    "numpy_dtype",
    "objects",
    "same",
    "start",
]

#: pandas' names of its own dtypes with nulls, and NumPy's of the numbers.
NULLABLE = {
    "boolean": "bool",
    "Int8": "int8",
    "UInt16": "uint16",
    "Int64": "int64",
    "Float32": "float32",
    "Float64": "float64",
}
#: pandas' names of Arrow's dtypes, and NumPy's of the numbers.
ARROW = {
    "int8[pyarrow]": "int8",
    "uint64[pyarrow]": "uint64",
    "halffloat[pyarrow]": "float16",
    "double[pyarrow]": "float64",
    "bool[pyarrow]": "bool",
}


def numpy_dtype(name: str) -> np.dtype:
    """Return a dtype of NumPy's or of ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def numbers(name: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    """Return ones and twos, which every dtype of a byte can hold."""
    size = int(np.prod(shape))
    return (2 ** (np.arange(size) % 2)).reshape(shape).astype(numpy_dtype(name))


def distinct(name: str) -> np.ndarray:
    """Return six distinct numbers, the last of 64-bit integers being one that float64 lacks."""
    array = np.arange(1, 7).astype(name)
    if name in ("int64", "uint64"):
        array[-1] = 2**53 + 1
    return array % 2 == 1 if name == "bool" else array


def start(array: np.ndarray) -> int:
    """Return the address of the first element of a NumPy array."""
    return array.__array_interface__["data"][0]


def address(array: Any) -> int:
    """Return the address of the first element of an array of NumPy's or a tensor of torch's."""
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def data(value: Any) -> int:
    """Return the address of the first element of a flat array of Arrow's."""
    return value.buffers()[1].address + value.offset * value.type.bit_width // 8


def memory(value: Any) -> int:
    """Return where the first number of a column lies, as its own library tells it."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind == "pandas.Series":
        array = value.array
        if type(array).__name__ == "ArrowExtensionArray":
            return memory(array.__arrow_array__())
        return start(getattr(array, "_data", value.to_numpy()))
    if kind == "polars.Series":
        return memory(value.to_arrow())
    if kind == "pyarrow.Tensor":
        return start(value.to_numpy())
    return data(value.chunk(0) if kind == "pyarrow.ChunkedArray" else value)


def objects(*elements: Any) -> np.ndarray:
    """Return an array of objects, which NumPy does not look into."""
    array = np.empty(len(elements), object)
    for place, element in enumerate(elements):
        array[place] = element
    return array


def same(a: Any, b: Any) -> bool:
    """Tell whether two arrays are of one dtype and shape, and equal bit for bit."""
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
