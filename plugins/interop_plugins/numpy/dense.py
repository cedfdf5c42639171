"""The steps within NumPy: views, copies and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.errors import BadRequestError
from interop.plugin import DTYPES

from .copies import write, written
from .describe import has_mask
from .dtypes import dtype_name, dtype_named

if TYPE_CHECKING:
    from .dtypes import Array, Scalar

__all__ = [
    "as_array",
    "as_bits",
    "cast",
    "cast_in_order",
    "copy",
    "drop_mask",
    "fill",
    "from_bits",
    "from_scalar",
]


def as_array(value: Array) -> Array:
    """Return the memory of an array of a subclass (matrix, memmap …) as a plain array."""
    import numpy as np

    return np.asarray(value)


def from_scalar(value: Scalar) -> Array:
    """Return an array scalar as a 0-d array."""
    import numpy as np

    return np.array(value)


def drop_mask(value: Array) -> Array:
    """Return the data of a masked array as a plain array that shares its memory.

    What lies under the mask is whatever the masked array had stored there.
    """
    import numpy as np

    data: Array = np.ma.getdata(value, subok=False)
    return data.view(np.ndarray)


def copy(value: Array) -> Array:
    """Return a C-ordered, native, writable copy."""
    dtype = value.dtype
    return written(value, dtype if dtype.isnative else dtype.newbyteorder("="))


def cast(value: Array, *, dtype: str) -> Array:
    """Return a C-ordered copy of another dtype.

    Numbers that the dtype cannot hold become what NumPy makes of them, without a warning: the
    caller asked. Of complex numbers a real dtype keeps the real part.
    """
    return written(value, dtype_named(dtype))


def cast_in_order(value: Array, *, dtype: str) -> Array:
    """Return a copy of another dtype with the elements in the order in which they lie."""
    return written(value, dtype_named(dtype), "K")


def as_bits(value: Array, *, dtype: str) -> Array:
    """Return a view of a narrow real array as unsigned integers of the same width."""
    return value.view(dtype_named(dtype))


def from_bits(value: Array, *, dtype: str) -> Array:
    """Return a view of unsigned integers as the narrow reals whose bits they are."""
    return value.view(dtype_named(dtype))


def fill(out: Array | Scalar, value: Array) -> None:
    """Write the numbers of `value` into `out`.

    Raises
    ------
    BadRequestError
        `out` is read-only, has a mask, is not of numbers, or holds elements at one place.
    """
    import numpy as np

    name = type(out).__name__
    if isinstance(out, np.generic) or not out.flags.writeable:
        msg = (
            f"out= is a read-only {name} of shape {out.shape}; give a writable "
            "numpy array, such as a copy of it."
        )
        raise BadRequestError(msg)
    if type(out) is not np.ndarray and has_mask(out):
        msg = f"out= is a {name} with a mask, which numbers do not change; give its data."
        raise BadRequestError(msg)
    if dtype_name(out.dtype) not in DTYPES:
        msg = f"out= has the dtype {out.dtype}, which is not one of numbers; give one that is."
        raise BadRequestError(msg)
    if _overlaps_itself(out):
        msg = (
            f"out= of shape {out.shape} and strides {out.strides} has several elements at one "
            "place, so that not all numbers would be kept; give an array of its own memory."
        )
        raise BadRequestError(msg)
    write(out, value)


def _overlaps_itself(array: Array) -> bool:
    """Tell whether two elements of an array share memory."""
    import numpy as np

    if not array.size:
        return False
    axes = [(abs(step), n) for n, step in zip(array.shape, array.strides, strict=True) if n > 1]
    reach = array.itemsize
    for step, length in sorted(axes):
        if step < reach:
            break
        reach += (length - 1) * step
    else:
        return False
    # The axes are entwined, which a view of nobody's making is not: look at each element.
    places = sum(
        (np.arange(length) * step).reshape(-1, *(1,) * axis)
        for axis, (step, length) in enumerate(axes)
    )
    places = np.sort(places, axis=None)
    return bool((np.diff(places) < array.itemsize).any())
