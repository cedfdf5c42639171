"""Where a toy library defines what it shows elsewhere: dense arrays, and quantities with units."""

from __future__ import annotations

from typing import Any

import numpy as np


class DType:
    """A dtype, which is no string and no object of NumPy's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"library.{self._name}"


DTYPES = {name: DType(name) for name in ("float32", "float64", "int64", "complex64", "bool")}


class Array:
    """An array of the library, perhaps with a gradient; its strides count bytes."""

    def __init__(self, data: np.ndarray[Any, Any], *, requires_grad: bool = False) -> None:
        self.data = data
        self.requires_grad = requires_grad
        #: How often its capsule was asked for.
        self.exports = 0

    def __repr__(self) -> str:
        return f"Array({self.data!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.data.shape

    @property
    def dtype(self) -> DType:
        """The library's dtype object."""
        return DTYPES[self.data.dtype.name]

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps along the axes, in bytes."""
        return self.data.strides

    def __dlpack__(self, **keywords: Any) -> object:
        self.exports += 1
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class ElementArray(Array):
    """An array whose strides count elements."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps along the axes, in elements."""
        return tuple(step // self.data.itemsize for step in self.data.strides)


class TracedArray(Array):
    """An array that exports nothing while it is in a graph."""

    def __dlpack__(self, **keywords: Any) -> object:
        if self.requires_grad:
            raise BufferError("detach it first")
        return super().__dlpack__(**keywords)

    def detach(self) -> TracedArray:
        """Return an array outside of the graph, over the same memory."""
        return TracedArray(self.data)


class Vectors(Array):
    """An array of vectors of three numbers, which are no axis of its shape."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes but the last."""
        return self.data.shape[:-1]

    @property
    def dtype(self) -> DType:
        """A dtype that nobody else has."""
        return DType("vector3")


class Shown:
    """An array that shows itself by its array interface alone."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.data.__array_interface__


class Quantity:
    """Numbers in a unit."""

    def __init__(self, magnitude: Any, unit: str = "") -> None:
        self.magnitude = magnitude
        self.unit = unit
