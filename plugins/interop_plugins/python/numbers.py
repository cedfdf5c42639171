"""Numbers of Python's own, and nested lists, tuples and ranges of them."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from functools import cache, lru_cache
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError, Declined, RefusedError, UnknownValueError
from interop.kit import EMPTY, cast_objects, checked_cast, misfit, numpy_dtype, real_part
from interop.plugin import DTYPES, Spec

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Number: TypeAlias = bool | int | float | complex
    #: A number, or lists, tuples and ranges of numbers to any depth.
    Nested: TypeAlias = Number | list["Nested"] | tuple["Nested", ...] | range

#: The dtypes of Python's numbers, and the bytes of an element.
NUMBERS: dict[type, tuple[str, int]] = {
    bool: ("bool", 1),
    int: ("int64", 8),
    float: ("float64", 8),
    complex: ("complex128", 16),
}

#: Filled on first use: what makes an array of numbers of a type, in its own dtype or another.
_readers: dict[type | tuple[type, str], Callable[[Sequence[Any]], Any]] = {}
#: Filled on first use: what makes an array of a single number, for the types that always fit.
_makers: dict[type, Callable[[Any], Array]] = {}

#: The types of elements that are often found in the place of numbers.
_NONUMBERS = {str, bytes, dict, type(None)}
#: The types of sequences that are opened.
SEQUENCES = (list, tuple, range)


@cache
def no_arrays() -> tuple[type, ...]:
    """Return the types of what sequences hold beside arrays: numbers, and what stands for them."""
    import numpy as np

    return (numbers.Number, str, bytes, NoneType, np.generic, *SEQUENCES)


#: The trait of numbers that have no dtype of their own.
WEAK = frozenset({"weak"})
#: The trait of numbers of the standard library that arrays do not have: decimals and fractions.
UNTYPED = frozenset({"untyped"})
#: The trait of numbers of which the dtype they have together holds some only rounded.
MIXED = frozenset({"mixed"})

#: How deep lists are nested in practice.
_DEEPEST = 4
#: As many numbers Python compares sooner than NumPy.
_FEW = 64
#: Types of sequences that hold their elements.
_ROWS = frozenset({list, tuple})
#: NumPy's dtypes from bool to float64 have smaller numbers.
ODD_NUMBERS = 13

#: More than any array has; a list that contains itself ends here.
MAX_AXES = 64

#: How many numbers of a range are read one by one, if no dtype of integers holds them.
_LONG_RANGE = 2**20

#: The least integer that has a neighbour which is no float64.
_FIRST_ROUNDED = 2.0**53


def describe_number(value: Number) -> Spec | None:
    """Return the spec of a number of Python's own that has a usual dtype, else None."""
    name_and_size = NUMBERS.get(type(value))
    if name_and_size is None or (type(value) is int and not -(2**63) <= value < 2**63):
        return None
    name, size = name_and_size
    return Spec("python", name, "cpu", (), EMPTY if name == "bool" else WEAK, size)


def describe_numbers(value: Nested) -> Spec:
    """Return the spec of the array that a number or nested lists of numbers become.

    Raises
    ------
    UnknownValueError
        The leaves are not numbers.
    BadRequestError
        The rows differ in length, or some are masked.
    """
    if type(value) is range and (dtype := _range_dtype(value)):
        return _describe_range(value, dtype)
    array = _array(value)
    if dtype := _rounded_dtype(value, array):
        return Spec("python", dtype, "cpu", array.shape, MIXED, array.nbytes)
    traits = WEAK if _are_weak(value, array) else EMPTY
    traits |= UNTYPED if array.dtype == object else EMPTY
    return Spec("python", _name(array.dtype), "cpu", array.shape, traits, array.nbytes)


@lru_cache(maxsize=64)
def _name(dtype: np.dtype[Any]) -> str:
    return str(dtype.name)


def key_of_numbers(value: Any) -> tuple[object, ...] | None:
    """Return what tells numbers of one type, one alone or in lists, from others; None of others.

    The rows have one length, and int64 holds every integer.
    """
    leaves, shape = _opened(value)
    kind = _kind_of(leaves)
    if kind not in NUMBERS:
        return None
    if kind is int and not -(2**63) <= min(leaves) <= max(leaves) < 2**63:
        return None
    nbytes = NUMBERS[kind][1] * len(leaves)
    return kind, len(shape), nbytes.bit_length() >> 1  # its `size_class`


def _opened(value: Any) -> tuple[Sequence[Any], tuple[int, ...]]:
    """Return what nested lists or tuples of one length and type hold, and their shape.

    Of others it returns no numbers, but rows, or nothing.
    """
    leaves: Sequence[Any] = (value,)
    shape: tuple[int, ...] = ()
    kind = type(value)
    while kind in _ROWS and len(shape) < _DEEPEST:
        if shape:
            lengths: set[int] = {*map(len, leaves)} if _kind_of(leaves) is kind else set()
            if len(lengths) != 1:
                return (), ()
            leaves = [*chain.from_iterable(leaves)]
            shape += (*lengths,)
        else:
            leaves, shape = value, (len(value),)
        kind = type(leaves[0]) if leaves else object
    return leaves, shape


def _kind_of(leaves: Sequence[Any]) -> type:
    """Return the one type that all of some elements have, or `object` if there is none."""
    kind = type(leaves[0]) if leaves else object
    return kind if [*map(type, leaves)].count(kind) == len(leaves) else object


def _rounded_dtype(value: Nested, array: Array) -> str:
    """Return the dtype in which NumPy rounds numbers that none holds exactly; "" of others."""
    import numpy as np

    if array.dtype != object:
        return ""
    types = _types(value, array.ndim)
    if not all(issubclass(kind, (int, float, complex, np.generic)) for kind in types):
        return ""
    is_complex = any(issubclass(kind, (complex, np.complexfloating)) for kind in types)
    return "complex128" if is_complex else "float64"


def _are_weak(value: Nested, array: Array) -> bool:
    """Tell whether nested lists hold Python's own numbers only, which have no dtype."""
    dtype = array.dtype  # those of Python's own numbers have eight bytes, or twice eight
    return (
        dtype.kind in "ifc" and dtype.itemsize >= 8 and _types(value, array.ndim) <= NUMBERS.keys()
    )


def _range_dtype(value: range) -> str | None:
    """Return the dtype of 64 bits that holds every number of a range, from its ends alone."""
    low, high = sorted((value[0], value[-1])) if value else (0, 0)
    if -(2**63) <= low <= high < 2**63:
        return "int64"
    if 0 <= low <= high < 2**64:
        return "uint64"
    if _count(value) > _LONG_RANGE:
        msg = f"no dtype of integers holds all numbers of {value}; convert it in parts."
        raise BadRequestError(msg)
    return None  # floats may


def _count(value: range) -> int:
    """Return how many numbers a range has, which may be more than `len` can say."""
    return value.index(value[-1]) + 1 if value else 0


def _describe_range(value: range, dtype: str) -> Spec:
    count = _count(value)
    traits = WEAK if dtype == "int64" else EMPTY
    return Spec("python", dtype, "cpu", (count,), traits, 8 * count)


def _counted(value: range, dtype: str) -> Array:
    """Return the numbers of a range as an array of 64 bits, in which sums wrap round."""
    import numpy as np

    array = np.arange(_count(value), dtype=np.uint64)
    array *= np.uint64(value.step % 2**64)
    array += np.uint64(value.start % 2**64)
    return array.view(dtype)


def _array(value: Nested) -> Array:
    """Return a number or nested lists as an array of the dtype that holds every number exactly.

    It is the one that NumPy gives them, but for integers that NumPy would round.
    """
    import numpy as np

    if type(value) is range and (dtype := _range_dtype(value)):
        return _counted(value, dtype)
    try:
        array = np.array(value)
    except (MemoryError, Warning):
        raise
    except Exception as error:  # noqa: BLE001 - an element may raise anything
        rows = value if isinstance(value, SEQUENCES) else ()
        leaves = chain.from_iterable(row if isinstance(row, SEQUENCES) else (row,) for row in rows)
        _check_each(value, (leaf for leaf in leaves if type(leaf) in _NONUMBERS))
        is_own = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        advice = "put a number in the place of what raises it"
        if not is_own:
            advice = "pad its rows to one length"
        reason = str(error).rstrip(".")
        msg = (
            f"NumPy cannot make an array of this {type(value).__name__} ({reason}); "
            f"{advice}, or convert each separately."
        )
        raise BadRequestError(msg) from (error if is_own else None)
    if array.dtype.kind in "OSU":
        _check_numbers(value, array.ndim)
    if array.dtype.kind in "iu":  # as the one of two of C's types that NumPy prefers
        array = array.view(array.dtype.str)
    return array if _is_exact(array) else _unrounded(value, array)


def check_unmasked(value: Nested) -> None:
    """Refuse lists with masked elements, whose masks NumPy would drop."""
    masked = sys.modules.get("numpy.ma")
    if masked and any(issubclass(t, masked.MaskedArray) for t in element_types(value)):
        msg = (
            f"this {type(value).__name__} has masked elements, which an array of numbers has not; "
            "make a numpy.ma.MaskedArray of it, or fill them first."
        )
        raise BadRequestError(msg)


def _check_numbers(value: Nested, depth: int) -> None:
    """Refuse lists with elements that are not numbers, such as text."""
    _check_each(value, _leaves(value, depth))


def _check_each(value: Nested, leaves: Iterable[Any]) -> None:
    """Refuse a list for the first of some elements that is not a number."""
    import numpy as np

    for leaf in leaves:
        if not isinstance(leaf, (numbers.Number, np.bool_)):
            raise not_a_number(value, leaf)


def not_a_number(value: Nested, leaf: object) -> UnknownValueError:
    """Return the error for a list with one element that is not a number."""
    msg = (
        f"a {type(value).__name__} that holds {leaf!r:.40}, of type {type(leaf).__qualname__}, is "
        "not an array of numbers; leave it out, or put a number in its place."
    )
    return UnknownValueError(msg)


def _first_leaf(value: Nested) -> tuple[object, int]:
    """Return the first element that is not a list or tuple, or None, and how deep it lies."""
    for depth in range(MAX_AXES + 1):
        if not isinstance(value, SEQUENCES):
            return value, depth
        if not value:
            return None, depth
        value = value[0]
    msg = f"this {type(value).__name__} is nested more than {MAX_AXES} deep; flatten it first."
    raise BadRequestError(msg)


def _leaves(value: Nested, depth: int) -> Iterable[Any]:
    """Return the elements of lists that are nested to a depth."""
    leaves: Iterable[Any] = (value,)
    for _ in range(depth):
        leaves = chain.from_iterable(leaves)
    return leaves


def element_types(value: Nested) -> set[type]:
    """Return the types of the elements that lie as deep as the first."""
    return _types(value, _first_leaf(value)[1])


def _types(value: Nested, depth: int) -> set[type]:
    """Return the types of the elements; none if some lie less deep than others."""
    try:
        return set(map(type, _leaves(value, depth)))
    except TypeError:
        return set()


def _is_exact(array: Array) -> bool:
    """Tell whether a glance at an array shows that NumPy rounded no integer to make it."""
    if array.dtype.kind in "biu" or array.dtype.char in "efF":
        return True  # NumPy makes narrow floats only of integers that they hold
    # Integers up to here are floats exactly.
    return array.dtype.char in "dD" and not (abs(array) >= _FIRST_ROUNDED).any()


def _unrounded(value: Nested, array: Array) -> Array:
    """Return the array of numbers for which NumPy's choice is `array`, with no integer rounded.

    If no dtype holds all of them exactly, it is one of objects.
    """
    import numpy as np

    types = _types(value, array.ndim)
    whole = {t for t in types if issubclass(t, (int, np.integer))}
    reals = {t for t in types if issubclass(t, (float, complex, np.inexact, np.bool_))}
    if not whole or types - whole - reals or not array.size:
        return array
    leaves = list(_leaves(value, array.ndim))
    if whole == types and 0 <= min(leaves) <= max(leaves) < 2**64:
        return np.array(value, np.uint64)
    if array.dtype == object:
        array = _rounded(leaves).reshape(array.shape)
    for leaf, number in zip(leaves, array.reshape(-1).tolist(), strict=True):
        if isinstance(leaf, (int, np.integer)) and int(leaf) != number:
            objects = np.empty(len(leaves), object)
            objects[:] = leaves
            return objects.reshape(array.shape)
    return array


def _rounded(leaves: list[Any]) -> Array:
    """Return numbers as float64 or complex128; integers beyond their range become infinite."""
    import numpy as np

    is_complex = any(isinstance(leaf, (complex, np.complexfloating)) for leaf in leaves)
    rounded = np.empty(len(leaves), np.complex128 if is_complex else np.float64)
    for place, leaf in enumerate(leaves):
        try:
            rounded[place] = leaf
        except OverflowError:
            rounded[place] = math.inf
    return rounded


def _shortened(number: int) -> str:
    return str(number) if abs(number) < 2**128 else "an integer of more than 128 bits"


def to_numpy(value: Nested) -> Array:
    """Return a number or nested lists as an array that holds every number exactly."""
    array: Array = numpy_fast_path(value)
    return _array(value) if array is NotImplemented else array


def numpy_fast_path(
    value: Any, *, dtype: str | None = None, default_dtype: Callable[[str], str] | None = None
) -> Any:
    """Return Python's numbers of one type, one alone or in lists, as an array; else pass.

    To read every number once is quicker than to let NumPy find out what type they have.
    """
    kind = type(value)
    if kind in _makers and default_dtype is None and dtype is None:
        return _makers[kind](value)
    leaves, shape = value, None  # which a list of numbers has itself
    try:
        if kind not in _ROWS or (value and type(value[0]) in _ROWS):
            leaves, shape = _opened(value)
        if not leaves:
            return NotImplemented
        kind = _kind_of(leaves)
        if kind not in NUMBERS:
            return NotImplemented
        key = kind if dtype is None else (kind, dtype)
        array = (_readers.get(key) or _reader(key))(leaves)
        if dtype is None and default_dtype is not None and kind is not bool:
            wide = NUMBERS[kind][0]
            narrow = default_dtype(wide)
            array = array if narrow == wide else _narrowed(array, narrow)
    # What does not fit: integers in a dtype, numbers in memory.
    except (ValueError, OverflowError, FloatingPointError, MemoryError):
        return NotImplemented
    return array if shape is None or array is NotImplemented else array.reshape(shape)


def _reader(key: type | tuple[type, str]) -> Callable[[Sequence[Any]], Any]:
    """Return what makes an array of numbers of one type, in a dtype if one stands in the key.

    It passes if an integer would be rounded, and raises an error if a number does not fit.
    """
    import numpy as np

    kind, dtype = key if isinstance(key, tuple) else (key, NUMBERS[key][0])
    if kind is not int:
        _makers[kind] = np.array
    read, wide, target = np.fromiter, np.dtype(NUMBERS[kind][0]), numpy_dtype(dtype)
    if target is wide or (kind is int and target.kind in "iu" and target.isbuiltin == 1):

        def reader(leaves: Sequence[Any]) -> Any:
            return read(leaves, target, len(leaves))

    elif kind is float and target.char == "f":

        def reader(leaves: Sequence[Any]) -> Any:
            return _raising().copy().run(read, leaves, target, len(leaves))

    elif kind is int and target.char in "fd":
        most = 2 ** DTYPES[dtype].digits

        def reader(leaves: Sequence[Any]) -> Any:
            # NumPy takes a microsecond to find the least of any number of elements.
            if len(leaves) < _FEW and -most <= min(leaves) and max(leaves) <= most:
                return read(leaves, target, len(leaves))
            return _narrowed(read(leaves, wide, len(leaves)), dtype)

    elif kind is complex and target.kind != "c":

        def reader(leaves: Sequence[Any]) -> Any:
            return NotImplemented

    else:

        def reader(leaves: Sequence[Any]) -> Any:
            return _narrowed(read(leaves, wide, len(leaves)), dtype)

    return _readers.setdefault(key, reader)


def _narrowed(array: Array, dtype: str) -> Any:
    """Return numbers in the dtype that a framework gives them; pass if one of them does not fit."""
    target = numpy_dtype(dtype)
    if array.dtype.kind == "i":
        return NotImplemented if misfit(array, dtype) else array.astype(target)
    try:
        return _raising().copy().run(array.astype, target)
    except FloatingPointError:
        return NotImplemented


@cache
def _raising() -> Context:
    """Return a context in which numbers out of a dtype's range raise errors; to be copied."""
    import numpy as np

    context = Context()
    context.run(np.seterr, over="raise", under="raise", invalid="raise")
    return context


def python_fast_path(value: Array) -> Any:
    """Return a plain array of ordinary numbers as a number or nested lists; else pass."""
    dtype = value.dtype
    try:
        return value.tolist() if dtype.num < ODD_NUMBERS and dtype.isnative else NotImplemented
    except MemoryError:  # the planned route says that it does not fit
        return NotImplemented


def to_dtype(value: Nested, *, dtype: str) -> Array:
    """Return a number or nested lists as an array of a dtype that was asked for.

    Raises
    ------
    RefusedError
        An integer does not fit, for which NumPy and torch raise an OverflowError.
    """
    array, target = to_numpy(value), numpy_dtype(dtype)
    result: Array
    if array.dtype == object:
        result = cast_objects(array, target)
    else:
        _check_range(value, array, dtype)
        result = checked_cast(real_part(array, target), target)
    return result


def to_default(value: Nested, *, dtype: str) -> Array:
    """Return a number or nested lists as an array of the dtype that a framework gives to numbers.

    Raises
    ------
    RefusedError
        An integer does not fit. No effect permits it to wrap around.
    Declined
        A real is out of the dtype's range, or an integer among floats would be rounded.
    """
    array = _array(value)
    result = _narrowed(array, dtype)
    if result is NotImplemented:
        if reason := misfit(array, dtype):
            msg = f"{reason}; ask for a wider dtype=."
            raise RefusedError(msg)
        raise Declined(_out_of_range(array, dtype))
    if array.dtype.kind in "fc" and int in _types(value, array.ndim):
        leaves = _leaves(value, array.ndim)
        for leaf, number in zip(leaves, result.reshape(-1).tolist(), strict=True):
            if type(leaf) is int and leaf != number:
                msg = f"{_shortened(leaf)} would be rounded in {dtype}"
                raise Declined(msg)
    narrowed: Array = result
    return narrowed


def _out_of_range(array: Array, dtype: str) -> str:
    """Name the first number that a dtype of floats or of complex numbers has no room for."""
    import numpy as np

    array = array.reshape(-1)
    parts = array.view("f8").reshape(len(array), -1)  # of which one may be infinite or NaN
    narrow = np.empty(0, numpy_dtype(dtype)).real.dtype
    with np.errstate(all="ignore"):
        errors = abs(parts.astype(narrow).astype(parts.dtype) - parts)
        bad = (errors > abs(parts) * 2.0 ** -DTYPES[dtype].digits).any(axis=1)
    return f"{array[bad][0]!s} is out of the range of {dtype}"


def _check_range(value: Nested, array: Array, dtype: str) -> None:
    """Refuse integers that would wrap around, also if NumPy made floats of them."""
    facts = DTYPES[dtype]
    if facts.kind not in "iu":
        return
    reason = misfit(array, dtype)
    if array.dtype.kind in "fc" and int in _types(value, array.ndim):
        least, most = -(2**facts.digits) if facts.kind == "i" else 0, 2**facts.digits - 1
        integers = (leaf for leaf in _leaves(value, array.ndim) if type(leaf) is int)
        outside = [leaf for leaf in integers if not least <= leaf <= most]
        if outside:
            number = _shortened(outside[0])
            reason = f"{number} does not fit in {dtype}, which holds {least} to {most}"
    if reason:
        raise RefusedError(reason + ".")


def from_numpy(value: Array) -> Nested:
    """Return a 0-d array as a number, others as nested lists."""
    result: Nested = value.tolist()
    return result
