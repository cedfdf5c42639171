"""Arrow's tensors, which have strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import CastErrors, extents
from interop.plugin import Spec

from .dtypes import dtype_name

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]

#: NumPy's numbers of the integers and floats that Arrow holds: int8 to uint64, float32, float64
#: and float16. Arrow would take bools for bytes. (Those of ml_dtypes share NumPy's characters.)
_TYPE_NUMBERS = frozenset({*range(1, 11), 11, 12, 23})
#: The bits of NumPy's `flags.num` of one C-ordered, aligned block.
_BLOCK = 0x0001 | 0x0100


def describe_tensor(tensor: pa.Tensor) -> Spec:
    """Return the spec of a tensor, from the flags of NumPy's view of it."""
    array = tensor.to_numpy()
    flags = array.flags
    traits = set()
    if not tensor.is_mutable:
        traits.add("readonly")
    if not flags.aligned:
        traits.add("unaligned")
    if not flags.c_contiguous:
        traits.add("noncontiguous")
        if flags.f_contiguous:
            traits.add("fortran")
        if any(not s and n > 1 for n, s in zip(array.shape, array.strides, strict=True)):
            traits.add("broadcast")
    name = dtype_name(tensor.type)
    return Spec("pyarrow.tensor", name, "cpu", array.shape, frozenset(traits), array.nbytes)


def memory_of_tensor(tensor: pa.Tensor) -> tuple[tuple[int, int], ...]:
    """Return the address and length of the memory of a tensor."""
    return extents((tensor.to_numpy(),))


def tensor_to_numpy(tensor: pa.Tensor) -> Array:
    """Return an array over the memory of a tensor, writable if the tensor is."""
    array: Array = tensor.to_numpy()
    return array


def tensor_from_numpy(array: Array) -> pa.Tensor:
    """Return a tensor over the memory of an array."""
    import pyarrow as pa

    if not array.size:
        array = array.copy()  # PyArrow looks at the strides that no element is reached by
    if min(array.strides, default=0) < 0:  # along an axis of length 1, whose stride is never taken
        array = array[tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)]
    return pa.Tensor.from_numpy(array)


def tensor_fast_path(array: Array) -> Any:
    """Share a plain array with a tensor, or return `NotImplemented`."""
    flags = array.flags.num
    if array.dtype.num not in _TYPE_NUMBERS or not array.dtype.isnative or flags & _BLOCK != _BLOCK:
        return NotImplemented
    return tensor_from_numpy(array)


def fill_tensor(out: pa.Tensor, tensor: pa.Tensor) -> None:
    """Write the numbers of a tensor into another."""
    import numpy as np

    errors = CastErrors()
    errors.run(np.copyto, out.to_numpy(), tensor.to_numpy(), "unsafe")
    errors.tell()
