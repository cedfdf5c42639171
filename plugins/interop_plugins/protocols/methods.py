"""``__array__``, the method that returns a NumPy array.

A value that says its dtype and its shape is described by these, and its array is asked for by the
step that takes it to NumPy. If that array is of another dtype or shape, it is converted in place of
the value: a file may be scaled when it is read. Any other has to be asked to be described: a
conversion asks it once, and converts its answer. A quantity, which has a unit and a magnitude, is
unwrapped, and not asked. A table, whose columns have names, is asked twice: its answer does not
tell that it had labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from inspect import signature
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop.errors import HandOffError
from interop.kit import EMPTY, dtype_name
from interop.plugin import DTYPES, Declined, Spec, itemsize, preserves

from .common import integers, problem_of, refuse, unread
from .interfaces import Offer

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from .common import Foreign

    Array: TypeAlias = NDArray[Any]


def has_labels(value: Foreign) -> bool:
    """Tell whether a value is a table, or has a unit, under which its numbers stand for others."""
    value = value.owner if type(value) is Offer else value
    return has_unit(value) or (hasattr(value, "dtypes") and hasattr(value, "columns"))


def has_unit(value: Foreign) -> bool:
    """Tell whether a value has a unit."""
    if getattr(value, "units", None) is None and getattr(value, "unit", None) is None:
        return False
    return not getattr(value, "unitless", False)


def _magnitude(value: Foreign) -> Foreign | None:
    """Return the array in a quantity, whatever its unit; None for any other value."""
    return getattr(value, "magnitude", None) if hasattr(value, "units") else None


def is_asked_first(value: Foreign) -> bool:
    """Tell whether nothing but its array tells what a value is."""
    if _claim(value) is not None or getattr(value, "shape", ()) is None:
        return False
    return _magnitude(value) is None and not has_labels(value)


def array_in(value: Foreign) -> Foreign | None:
    """Return the array in a quantity, or that of a value that has to be asked; else None."""
    magnitude = _magnitude(value)
    if magnitude is not None:
        return magnitude
    _check_is_there(value)
    return _array(value) if is_asked_first(value) else None


def describe_array(value: Foreign) -> Spec:
    """Return the spec of a value with ``__array__``, from its dtype and shape if it has them.

    Raises
    ------
    HandOffError
        The value does not give an array.
    """
    _check_is_there(value)
    claim = _claim(value)
    if claim is not None:
        dtype, shape = claim
        return Spec("array", dtype, "cpu", shape, EMPTY, prod(shape) * itemsize(dtype))
    try:
        array = _array(value)
    except HandOffError:
        if getattr(value, "shape", ()) is not None:
            raise
        # So is a dataset of HDF5 that was made without data.
        return Spec("array", "void", "cpu", (0,), frozenset({"not_numbers"}))
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
    """Return the dtype and the shape that a value says it has, if they read as NumPy's.

    Those of objects and of records do not tell what the array is: rows of several lengths, say.
    """
    import numpy as np

    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(dtype, str) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return None
    if not isinstance(dtype, np.dtype) or dtype.hasobject or dtype.names:
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
    for stated in _stated_dtypes(value):
        _check_holds(value, answer.dtype, stated)
    return answer


def _stated_dtypes(value: Foreign) -> list[object]:
    """Return the dtypes that a table says its columns have, or a column has.

    A dtype that comes with a shape is compared with the answer as it is.
    """
    if _claim(value) is not None:
        return []
    dtypes = getattr(value, "dtypes", None)
    if dtypes is None or callable(dtypes):
        return [getattr(value, "dtype", None)]
    if hasattr(dtypes, "items"):  # by the names of the columns
        dtypes = [dtype for _, dtype in dtypes.items()]
    return list(dtypes) if isinstance(dtypes, Iterable) else [dtypes]


def _check_holds(value: Foreign, given: np.dtype[Any], stated: object) -> None:
    """Refuse an answer to ``__array__`` in a dtype that does not hold what a value says it has.

    A dtype with a missing value of its own has nulls that no array of NumPy's shows as such.
    """
    import numpy as np

    if given.hasobject:
        return  # what is in it is looked at one by one
    if isinstance(stated, np.dtype):
        names = dtype_name(stated), dtype_name(given)
        loses = not (names[0] == names[1] or (set(names) <= DTYPES.keys() and preserves(*names)))
    else:
        loses = hasattr(stated, "na_value")
    if loses:
        problem = f"says it holds {stated}, but answers __array__ with {given}"
        raise problem_of(value, problem, "Convert its columns one by one, or what it is made from")


def _check_is_there(value: Foreign) -> None:
    """Refuse a dask collection that would be computed for its spec, with whatever it loses."""
    if getattr(value, "__dask_graph__", None) is not None:
        problem = "is not computed yet"
        raise problem_of(value, problem, "Convert what it computes to (x.compute())")


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
    """Decline a value for its array, if that is not as the value was described."""
    name, who = dtype_name(array.dtype), type(value).__qualname__
    if name not in DTYPES:
        msg = f"{who}.__array__ returns elements of dtype {name}, which are not numbers"
        raise Declined(msg)
    masked = sys.modules.get("numpy.ma")
    has_mask = masked and isinstance(array, masked.MaskedArray) and array.mask is not masked.nomask
    if has_mask or (claim is not None and claim != (name, array.shape)):
        msg = f"the array of the {who} is another than the {who} says"
        raise Declined(msg, instead=array)
