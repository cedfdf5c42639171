"""``__array__``, the method that returns a NumPy array.

A value that says its dtype and its shape is described by these, and its array is asked for by the
step that takes it to NumPy. Any other has to be asked to be described: a conversion asks it once,
and converts its answer. A quantity, which has a unit and a magnitude, is unwrapped, and not asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop.plugin import DTYPES, EMPTY, Declined, Spec, dtype_name, itemsize

from .common import integers, refuse, unread
from .interfaces import Offer

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    from .common import Foreign

    Array: TypeAlias = NDArray[Any]


def has_unit(value: Foreign) -> bool:
    """Tell whether a value has a unit, under which its numbers stand for something else."""
    value = value.owner if type(value) is Offer else value
    units = (getattr(value, name, None) for name in ("units", "unit"))
    return any(unit is not None for unit in units) and not getattr(value, "unitless", False)


def _magnitude(value: Foreign) -> Foreign | None:
    """Return the array in a quantity, whatever its unit; None for any other value."""
    return getattr(value, "magnitude", None) if hasattr(value, "units") else None


def is_asked_first(value: Foreign) -> bool:
    """Tell whether nothing but its array tells what a value is."""
    return _claim(value) is None and _magnitude(value) is None and not has_unit(value)


def array_in(value: Foreign) -> Foreign | None:
    """Return the array in a quantity, or that of a value that has to be asked; else None."""
    magnitude = _magnitude(value)
    if magnitude is not None:
        return magnitude
    return _array(value) if is_asked_first(value) else None


def describe_array(value: Foreign) -> Spec:
    """Return the spec of a value with ``__array__``, from its dtype and shape if it has them.

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
    return Spec("array", dtype_name(array.dtype), "cpu", array.shape, EMPTY, array.nbytes)


def from_array(value: Foreign) -> Array:
    """Return a copy of what ``__array__`` returns: a plain, writable, C-ordered array.

    The value makes it, if it knows how to, so that what it computes or reads is not copied again.
    """
    import numpy as np

    claim = _claim(value)
    array = _array(value, copy=True)
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
    return _Claim(dtype_name(dtype), lengths)


def _array(value: Foreign, *, copy: bool | None = None) -> Array:
    """Return the answer to ``__array__``; with ``copy=True``, in memory that nothing else holds."""
    import numpy as np

    try:
        # Called directly, because NumPy would warn of signatures without `copy`.
        answer = _copied(value) if copy else value.__array__()
    except (MemoryError, Warning):
        raise
    # The code of a value may raise anything.
    except Exception as error:
        raise unread(value, "array", error) from error
    if not isinstance(answer, np.ndarray):
        refuse(value, f"answers __array__ with an object of type {type(answer).__name__}")
    return answer


def _copied(value: Foreign) -> Any:
    """Return an answer in memory that nothing else holds, copied if something might.

    Not every method that takes ``copy=True`` heeds it.
    """
    import numpy as np

    method = value.__array__
    copies = _takes_copy(method)
    answer, alone = method(copy=True) if copies else method(), np.empty(0)
    if not isinstance(answer, np.ndarray):
        return answer
    base = answer.base
    is_held = sys.getrefcount(answer) > sys.getrefcount(alone)
    if base is not None:
        alone = alone[:]  # whose base is held by it and by a variable, as that of an answer is
        other = alone.base
        is_held = is_held or not copies or sys.getrefcount(base) > sys.getrefcount(other)
    return answer.copy() if is_held else answer


def _takes_copy(method: Callable[..., Any]) -> bool:
    """Tell whether a method takes ``copy=``, which it need not since NumPy 2."""
    try:
        parameters = signature(method).parameters.values()
    except (TypeError, ValueError):  # a method of an extension may have no signature
        return False
    return any(p.name == "copy" or p.kind is p.VAR_KEYWORD for p in parameters)


def _check_answer(value: Foreign, array: Array, claim: _Claim | None) -> None:
    """Decline an answer to ``__array__`` that is not the array its value was described as."""
    name = dtype_name(array.dtype)
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
