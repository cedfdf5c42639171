"""The steps within NumPy: views, copies and casts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from interop.errors import Declined
from interop.kit import cast_objects, misfit

from .copies import FEW, is_simple, write, written
from .dtypes import dtype_named

if TYPE_CHECKING:
    from typing import Any

    from .copies import Order
    from .dtypes import Array, DType, Scalar


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


def copy(value: Array, *, order: Order = "C") -> Array:
    """Return a writable copy in an order."""
    return value.copy(order) if value.size < FEW else written(value, value.dtype, order)


def copy_to_native(value: Array, *, order: Order = "C") -> Array:
    """Return a writable copy in an order, in the byte order of the machine."""
    return written(value, value.dtype.newbyteorder("="), order)


def copy_elements(value: Array, *, order: Order = "C") -> Array:
    """Return a writable copy, in an order, of an array of text, dates, records or objects."""
    return value.copy(order)


def cast(value: Array, *, dtype: str, order: Order = "C") -> Array:
    """Return a copy of another dtype in an order.

    Numbers that the dtype cannot hold become what NumPy makes of them, without a warning: the
    caller asked. A real dtype keeps the real part of complex numbers.
    """
    holder = _holder(value.dtype, dtype) if value.size < FEW else None
    if holder is None:
        return written(value, dtype_named(dtype), order)
    return value.astype(holder, order)


def cast_if_exact(value: Array, *, dtype: str) -> Array:
    """Return what `cast` does if the dtype holds every integer of the array."""
    if reason := misfit(value, dtype):
        raise Declined(reason)
    return cast(value, dtype=dtype)


@cache
def _holder(source: DType, name: str) -> DType | None:
    """Return the dtype of a name if NumPy casts all numbers of another to it without an error."""
    import numpy as np

    target = dtype_named(name)
    is_own = source.isbuiltin == target.isbuiltin == 1
    return target if is_own and np.can_cast(source, target) else None


def objects_to_numbers(value: Array, *, dtype: str) -> Array:
    """Return the numbers in an array of objects, if all of them are some."""
    import numpy as np

    numbers: Array = cast_objects(np.asarray(value), dtype_named(dtype))
    return numbers


def list_of_rows(value: Array) -> list[Any]:
    """Return the list of the lists or arrays in an array of objects."""
    rows: list[Any] = value.tolist()
    return rows


def unless_objects(value: Any) -> Any:
    """Return an array as it is; pass if its elements are objects, which may be rows."""
    return NotImplemented if value.dtype.hasobject else value


def as_bits(value: Array, *, dtype: str) -> Array:
    """Return a view of a narrow real array as unsigned integers of the same width."""
    return value.view(dtype_named(dtype))


def from_bits(value: Array, *, dtype: str) -> Array:
    """Return a view of unsigned integers as the narrow floats whose bits they are."""
    return value.view(dtype_named(dtype))


def fill(out: Array, value: Array) -> None:
    """Write the numbers of `value` into `out`, which was checked before."""
    if value.dtype is out.dtype and is_simple(out, value):
        out[...] = value
    else:
        write(out, value)
