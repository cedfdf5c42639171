"""Odd NumPy arrays with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from interop.plugin import Declined

if TYPE_CHECKING:
    from .dtypes import Array, Scalar


def _check_has_strides(array: Array) -> None:
    """Decline an array of too few elements to have strides of its own."""
    if array.size < 2:
        msg = f"an array of shape {array.shape} has no such strides"
        raise Declined(msg)


def rows_of(array: Array) -> Array:
    """Return the rows of an array as the elements of one of objects."""
    import numpy as np

    if array.ndim < 2 or not array.size:
        msg = f"an array of shape {array.shape} has no rows"
        raise Declined(msg)
    rows = np.empty(len(array), object)
    for place, row in enumerate(array):
        rows[place] = row
    return rows


def noncontiguous(array: Array) -> Array:
    """Return the array in the opposite order of axes, or with gaps if it has but one."""
    import numpy as np

    _check_has_strides(array)
    if array.ndim > 1 and sum(n > 1 for n in array.shape) > 1:
        return np.asfortranarray(array)
    wide = np.empty((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


def negative_strides(array: Array) -> Array:
    """Return the array stored backwards along its longest axis."""
    _check_has_strides(array)
    axis = max(range(array.ndim), key=lambda axis: array.shape[axis])
    backwards = tuple(slice(None, None, -1 if a == axis else None) for a in range(array.ndim))
    return array[backwards].copy()[backwards]


def broadcast(array: Array) -> Array:
    """Return the first element along the longest axis, repeated."""
    import numpy as np

    _check_has_strides(array)
    axis = max(range(array.ndim), key=lambda axis: array.shape[axis])
    first = array.take([0], axis)
    view = np.broadcast_to(first, array.shape)
    view.flags.writeable = True
    return view


def unaligned(array: Array) -> Array:
    """Return the array one byte beside its alignment."""
    import numpy as np

    memory = bytearray(array.nbytes + 1)
    odd: Array = np.frombuffer(memory, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    odd[...] = array
    return odd


def byteswapped(array: Array) -> Array:
    """Return the array in the other byte order."""
    if array.dtype.isbuiltin != 1 or array.itemsize == 1:
        msg = f"{array.dtype} has no other byte order"
        raise Declined(msg)
    return array.astype(array.dtype.newbyteorder())


def readonly(array: Array) -> Array:
    """Return the array locked."""
    array.flags.writeable = False
    return array


def mask_first(array: Array) -> Array:
    """Return the array with its first element masked."""
    import numpy as np

    mask = np.zeros(array.shape, bool)
    mask[(0,) * array.ndim] = True
    return np.ma.MaskedArray(array, mask)


def subclass(array: Array) -> Array:
    """Return the array as an instance of a subclass."""
    return array.view(_subclass())


@cache
def _subclass() -> type[Array]:
    import numpy as np

    return type("Sample", (np.ndarray,), {})


def scalar(array: Array) -> Scalar:
    """Return the first element as a scalar object."""
    first: Scalar = array.reshape(-1)[0]
    return first


#: Layout first, because those make new arrays; flags and types last.
VARIANTS: Mapping[str, Callable[[Array], Array | Scalar]] = {
    "byteswapped": byteswapped,
    "noncontiguous": noncontiguous,
    "negative_strides": negative_strides,
    "broadcast": broadcast,
    "unaligned": unaligned,
    "readonly": readonly,
    "subclass": subclass,
    "scalar": scalar,
}
