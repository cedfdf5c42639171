"""Tensors on the host: to and from NumPy, and within ONNX Runtime."""

from __future__ import annotations

from ctypes import memmove
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import MemoryAt, numpy_dtype, unlocked
from interop.plugin import Declined

from .describe import (
    ELEMENT_TYPES,
    PACKED_BITS,
    PLAIN,
    TYPE_NUMBERS,
    array_interface,
    is_tensor,
    ownership,
)

if TYPE_CHECKING:
    import numpy as np
    from onnxruntime import OrtValue

    Array: TypeAlias = np.ndarray[Any, Any]
    #: A value that `OrtValue.from_dlpack` takes.
    Exporter: TypeAlias = Any

#: NumPy's numbers of the plain dtypes: from bool to uint64, float32, float64 and float16. (The
#: dtypes of ml_dtypes share NumPy's characters.)
_PLAIN_NUMBERS = frozenset({*range(13), 23})


# ---------------------------------------------------------------------- out of ONNX Runtime


def to_numpy(value: OrtValue) -> Array:
    """Return an array over the memory of a tensor, which keeps the value alive."""
    import numpy as np

    dtype = numpy_dtype(ELEMENT_TYPES[value.element_type()])
    bits = dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")
    shape = tuple(value.shape())
    if 0 in shape:  # the address of no elements may be 0
        return np.empty(shape, dtype)
    return np.asarray(MemoryAt(array_interface(value, shape, bits.str), value)).view(dtype)


def numpy_fast_path(value: OrtValue) -> Any:
    """Share a plain tensor on the host with NumPy, or return `NotImplemented`."""
    plain = is_tensor(value) and ELEMENT_TYPES.get(value.element_type()) in PLAIN
    if not plain or value.device_name() != "cpu" or ownership(value):
        return NotImplemented
    return to_numpy(value)


def to_locked_numpy(value: OrtValue) -> Array:
    """Return a read-only array over the memory of a tensor that was made over a read-only one."""
    array = to_numpy(value)
    array.flags.writeable = False
    return array


def unpack(value: OrtValue) -> Array:
    """Return a new array with each of a tensor's packed elements in a byte of its own."""
    import numpy as np

    name, shape = ELEMENT_TYPES[value.element_type()], tuple(value.shape())
    width, count = PACKED_BITS[name], prod(shape)
    if not count:  # the address of no elements may be 0
        return np.empty(shape, numpy_dtype(name))
    per_byte = 8 // width
    packed = _packed_bytes(value, -(-count // per_byte))
    codes = np.empty(len(packed) * per_byte, np.uint8)
    for place in range(per_byte):
        np.bitwise_and(packed >> (place * width), 2**width - 1, out=codes[place::per_byte])
    if name.startswith("int"):  # the highest bit is the sign
        sign = np.uint8(2 ** (width - 1))
        np.subtract(codes ^ sign, sign, out=codes)
    return codes[:count].reshape(shape).view(numpy_dtype(name))


def _packed_bytes(value: OrtValue, count: int) -> Array:
    """Return an array over the bytes of a tensor of packed elements."""
    import numpy as np

    return np.asarray(MemoryAt(array_interface(value, (count,), "|u1"), value))


# ---------------------------------------------------------------------- into ONNX Runtime


class Producer:
    """A producer for `OrtValue.from_dlpack`, which asks for a capsule and the name of the dtype.

    Parameters
    ----------
    source : array or tensor
        It exports the capsule.
    dtype : numpy.dtype or torch.dtype
        The dtype of the elements, where the source has another of the same width.
    """

    __slots__ = ("_source", "dtype")

    def __init__(self, source: Exporter, dtype: object) -> None:
        self._source = source
        self.dtype = dtype

    def __dlpack__(self) -> object:
        return self._source.__dlpack__()


def from_numpy(array: Array) -> OrtValue:
    """Return a tensor over the memory of a C-ordered array, which ONNX Runtime itself keeps alive.

    `OrtValue.ortvalue_from_numpy` would keep the array in the Python object, but bindings and views
    of the tensor outlive that.
    """
    from onnxruntime import OrtValue

    source = unlocked(array)
    if array.dtype.kind != "b":
        return OrtValue.from_dlpack(Producer(source, array.dtype))
    # Up to 1.31 bools are bytes that the producer's dtype explains; later they are DLPack's bools.
    value = OrtValue.from_dlpack(Producer(source.view("u1"), array.dtype))
    if value.element_type() == TYPE_NUMBERS["bool"]:
        return value
    return OrtValue.from_dlpack(Producer(source, array.dtype))


def ort_fast_path(array: Array) -> Any:
    """Share a plain array with ONNX Runtime, or return `NotImplemented`."""
    dtype = array.dtype
    plain = dtype.num in _PLAIN_NUMBERS and dtype.isnative and array.flags.carray
    return from_numpy(array) if plain else NotImplemented


def from_narrow_numpy(array: Array) -> OrtValue:
    """Return a tensor over the memory of a C-ordered array of a dtype of ml_dtypes.

    DLPack does not take these, so Python's OrtValue keeps the memory alive.
    """
    from onnxruntime import OrtValue

    bits = unlocked(array.view(f"u{array.itemsize}"))
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TYPE_NUMBERS[array.dtype.name])


def pack(array: Array) -> OrtValue:
    """Return a tensor with the elements of an array packed, several to a byte."""
    import numpy as np

    name = array.dtype.name
    width, out = PACKED_BITS[name], _empty(array.shape, TYPE_NUMBERS[name])
    per_byte = 8 // width
    count = out.tensor_size_in_bytes()
    if not count:
        return out
    codes = np.zeros(count * per_byte, np.uint8)
    np.bitwise_and(array.view(np.uint8).ravel(), 2**width - 1, out=codes[: array.size])
    packed = _packed_bytes(out, count)
    packed[...] = codes[::per_byte]
    for place in range(1, per_byte):
        packed |= codes[place::per_byte] << (place * width)
    return out


def _empty(shape: tuple[int, ...], number: int) -> OrtValue:
    """Return a new tensor on the host, in ONNX Runtime's own memory."""
    from onnxruntime import OrtValue

    return OrtValue.ortvalue_from_shape_and_type(list(shape), number)


# ---------------------------------------------------------------------- within ONNX Runtime


def wrap(value: OrtValue) -> OrtValue:
    """Return a value of the C layer as one of Python's class."""
    from onnxruntime import OrtValue

    return OrtValue(value)


def bare(value: OrtValue) -> Any:
    """Return what a value of Python's class holds of the C layer."""
    return value._get_c_value()


def copy(value: OrtValue) -> OrtValue:
    """Return a copy of a tensor on the host, in ONNX Runtime's own memory."""
    out = _empty(tuple(value.shape()), value.element_type())
    count = value.tensor_size_in_bytes()
    if out.tensor_size_in_bytes() != count:
        msg = f"ONNX Runtime made {out.tensor_size_in_bytes()} bytes where the tensor has {count}"
        raise Declined(msg)
    if count:
        memmove(out.data_ptr(), value.data_ptr(), count)
    return out
