"""NumPy arrays over the memory of DLPack producers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import (
    CapsuleProducer,
    MemoryAt,
    checked_export,
    export,
    plain_array,
    unlocked,
)

from .dtypes import dtype_named

if TYPE_CHECKING:
    from typing import Any

    from .dtypes import Array


def from_dlpack(value: object) -> Array:
    """Return an array over a DLPack producer's memory, writable unless that is flagged read-only.

    A capsule of the first kind cannot carry the flag. NumPy then assumes the worst and locks the
    array; whether its memory may be written is for the producer's format to say.
    """
    import numpy as np

    producer = CapsuleProducer(export(value))
    exported = checked_export(producer)
    array: Array = np.from_dlpack(producer)
    return array if exported.versioned else unlocked(array)


def from_locked_dlpack(value: object) -> Array:
    """Return a read-only array over the memory of a producer that must not be written."""
    array = from_dlpack(value)
    array.flags.writeable = False
    return array


def dlpack_fast_path(value: object) -> Any:
    """Return the array of a producer on the host whose memory is writable, and flagged so.

    What NumPy refuses, dtypes among them, goes the long way, and so does an array that is not
    aligned.
    """
    array = plain_array(value)
    return NotImplemented if array is None or not array.flags.behaved else array


def from_narrow_dlpack(value: object) -> Array:
    """Return an ml_dtypes array over the memory of a DLPack producer.

    ``numpy.from_dlpack`` does not support these dtypes, and teaching it one changes the whole
    process. So the capsule is not consumed but becomes the array's owner: freed with the array, it
    frees the memory as any capsule does that nobody consumed.
    """
    import numpy as np

    producer = CapsuleProducer(export(value))
    exported = checked_export(producer)
    dtype = dtype_named(exported.dtype)
    strides = exported.strides and tuple(step * dtype.itemsize for step in exported.strides)
    interface = {
        "version": 3,
        "shape": exported.shape,
        "strides": None if 0 in exported.shape else strides,
        "typestr": f"|V{dtype.itemsize}",
        "data": (exported.data, exported.readonly),
    }
    return np.asarray(MemoryAt(interface, producer)).view(dtype)


def from_locked_narrow_dlpack(value: object) -> Array:
    """Return a read-only ml_dtypes array over the memory of a producer that never changes it."""
    array = from_narrow_dlpack(value)
    array.flags.writeable = False
    return array
