"""``__array__``, the method that returns a NumPy array."""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop.plugin import DTYPES, EMPTY, Declined, Spec, itemsize

from .common import integers, refuse, unread

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from .common import Foreign

    Array: TypeAlias = NDArray[Any]
    DType: TypeAlias = np.dtype[Any]

__all__ = ["describe_array", "from_array"]


def describe_array(value: Foreign) -> Spec:
    """Return the spec of a value with ``__array__``, from its dtype and shape if it has them.

    Otherwise the array has to be asked for.

    Raises
    ------
    HandOffError
        The value does not give an array.
    """
    claim = _claim(value)
    if claim is not None:
        dtype, shape = claim
        return Spec("array", dtype, "cpu", shape, EMPTY, prod(shape) * itemsize(dtype))
    array = _array(value)
    return Spec("array", _dtype_name(array.dtype), "cpu", array.shape, EMPTY, array.nbytes)


def from_array(value: Foreign) -> Array:
    """Return what ``__array__`` returns, copied if it is not a plain, writable, C-ordered array.

    Nobody can tell whether a plain one shares the value's memory.
    """
    import numpy as np

    claim = _claim(value)
    array = _array(value)
    _check_answer(value, array, claim)
    flags = array.flags
    plain = type(array) is np.ndarray and array.dtype.isnative
    if not (plain and flags.c_contiguous and flags.writeable and flags.aligned):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
    return array


class _Claim(NamedTuple):
    """The dtype and the shape that a value states."""

    dtype: str
    shape: tuple[int, ...]


def _claim(value: Foreign) -> _Claim | None:
    """Return the dtype and the shape that a value says it has, if they read as NumPy's."""
    import numpy as np

    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(dtype, str) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return None
    if not isinstance(dtype, np.dtype):
        return None
    lengths = integers(shape)
    if lengths is None or min(lengths, default=0) < 0:
        return None
    return _Claim(_dtype_name(dtype), lengths)


def _dtype_name(dtype: DType) -> str:
    """Return the name of a NumPy dtype; for other than numbers, one that nothing takes."""
    longs = {13: "longdouble", 16: "clongdouble"}
    name = longs.get(dtype.num, dtype.name)
    return name if name in DTYPES and dtype.names is None else str(dtype)


def _array(value: Foreign) -> Array:
    import numpy as np

    try:
        # Called directly, because NumPy would warn of signatures without `copy`.
        array = value.__array__()
    except (MemoryError, Warning):
        raise
    # The code of a value may raise anything.
    except Exception as error:
        raise unread(value, "array", error) from error
    if not isinstance(array, np.ndarray):
        refuse(value, f"answers __array__ with an object of type {type(array).__name__}")
    return array


def _check_answer(value: Foreign, array: Array, claim: _Claim | None) -> None:
    """Decline an answer to ``__array__`` that is not the array its value was described as."""
    name = _dtype_name(array.dtype)
    who = type(value).__qualname__
    if name not in DTYPES:
        msg = f"{who}.__array__ returns elements of dtype {name}, which are not numbers"
        raise Declined(msg)
    if claim is not None and claim != (name, array.shape):
        msg = f"{who} says it is {claim.dtype} {claim.shape}, but its array is {name} {array.shape}"
        raise Declined(msg)
    masked = sys.modules.get("numpy.ma")
    if masked and isinstance(array, masked.MaskedArray) and array.mask is not masked.nomask:
        msg = f"{who}.__array__ returns a masked array; convert that array itself"
        raise Declined(msg)
