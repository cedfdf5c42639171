"""Facts about arrays that many plugins need: common sets of names, and where memory lies."""

from __future__ import annotations

from ctypes import addressof, c_char
from functools import cache, lru_cache
from importlib import import_module
from math import gcd
from typing import TYPE_CHECKING, Any

from interop._model.dtype import DTYPES
from interop._model.spec import FORTRAN, MEMORY_TRAITS
from interop._model.typing import Value
from interop.errors import Declined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: No names at all: of traits, of effects, of dtypes.
EMPTY: frozenset[str] = frozenset()

#: The effect of most steps that write bytes.
COPY = frozenset({"copy"})

#: The traits of strides that are not those of C order.
STRIDED = frozenset({"noncontiguous", "negative_strides", "broadcast"})

#: The traits of memory whose elements are in the machine's order of bytes.
NATIVE = MEMORY_TRAITS - {"byteswapped"}

#: The fields that most conversions change, if they change any.
DTYPE, DEVICE = frozenset({"dtype"}), frozenset({"device"})

#: The host, as a set of device types.
CPU = frozenset({"cpu"})

#: The beginnings of NumPy's names of dtypes of text.
TEXTS = frozenset({"<U", ">U", "|S", "StringDType("})

#: The dtypes that nearly every framework holds.
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
REALS = frozenset({"float16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})
#: Those that NumPy has without ml_dtypes.
_OF_NUMPY = INTEGERS | REALS | COMPLEX | {"bool", "longdouble", "clongdouble"}

# The bits of NumPy's `flags.num`: one attribute in the place of three.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY = _CONTIGUOUS | _ALIGNED | _WRITEABLE
#: The dtypes that NumPy names by the bits that they take, padding included, by their numbers.
_LONG = {13: "longdouble", 16: "clongdouble"}
#: The names of the dtypes of numbers met so far.
_names: dict[Any, str] = {}
#: NumPy's codes of the dtypes in `COMPLEX`.
_COMPLEX_CODES = "FD"
#: NumPy's numbers of the dtypes that buffers have in any byte order: bool to float64, complex64,
#: complex128 and float16.
_BUFFER_DTYPES = frozenset((*range(13), 14, 15, 23))


class MemoryAt:
    """Memory at an address, kept alive by its owner.

    A consumer that reads the interface keeps this object as the base of its array.

    Parameters
    ----------
    interface : dict
        As ``__array_interface__`` or ``__cuda_array_interface__`` has it.
    owner : object
        What must live as long as the memory is used.
    protocol : str
        The attribute that shows the interface.
    """

    def __init__(
        self, interface: dict[str, Any], owner: object, protocol: str = "__array_interface__"
    ) -> None:
        setattr(self, protocol, interface)
        self._owner = owner


def extent(
    address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[int, int]:
    """Return the lowest address that a strided array touches, and the bytes up to the highest.

    Parameters
    ----------
    address : int
        Of the first element.
    shape : sequence of int, in elements
    strides : sequence of int, in bytes
    itemsize : int, in bytes
        0 bytes are touched where `shape` has a 0.

    Returns
    -------
    tuple of int
        Address and length, in bytes.
    """
    if 0 in shape:
        return address, 0
    steps = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0)
    return address + low, high - low + itemsize


def address(array: Any) -> int:
    """Return the address of the first element of a NumPy array.

    A buffer tells it in a quarter of the time that ``__array_interface__`` takes.

    Parameters
    ----------
    array : numpy.ndarray
        Of any dtype, strides and flags.

    Returns
    -------
    int
        In bytes.
    """
    if array.flags.carray and array.dtype.num in _BUFFER_DTYPES and array.size:
        return addressof(c_char.from_buffer(array))
    return int(array.__array_interface__["data"][0])


def extents(arrays: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """Return the extent of each of some NumPy arrays, those without elements left out.

    Parameters
    ----------
    arrays : iterable of numpy.ndarray

    Returns
    -------
    tuple of tuple of int
        As of `extent`, in bytes.
    """
    return tuple(
        extent(address(array), array.shape, array.strides, array.itemsize)
        for array in arrays
        if array.size
    )


def extents_of_all(
    parts: Iterable[tuple[tuple[int, int], ...]],
) -> tuple[tuple[int, int], ...]:
    """Return the extents of all parts of a value together; () if those of one are unknown.

    Parameters
    ----------
    parts : iterable of tuple
        The extents of each, such as of the columns of a table.

    Returns
    -------
    tuple of tuple of int
        As of `extents`.
    """
    columns = [*parts]
    return tuple(extent for column in columns for extent in column) if all(columns) else ()


def unlocked(array: Any) -> Any:
    """Return a writable array over the memory of one that may be flagged read-only.

    It is for consumers that cannot carry the flag, once the policy has decided that they may have
    the memory all the same, and for memory that nobody else has.

    Parameters
    ----------
    array : numpy.ndarray
        Of a dtype of NumPy's own.

    Returns
    -------
    numpy.ndarray
        The array itself if it is writable.
    """
    import numpy as np

    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(MemoryAt(interface, array))


def dtype_name(dtype: Any) -> str:
    """Return the name of a NumPy dtype, or of a library that has its dtypes.

    Parameters
    ----------
    dtype : numpy.dtype

    Returns
    -------
    str
        If the dtype is not one of numbers, the name that NumPy gives it, which nothing takes.
    """
    return _names.get(dtype) or _new_name(dtype)


def _new_name(dtype: Any) -> str:
    name = (
        str(dtype)
        if dtype.names or dtype.char in "SUTV"
        else _LONG.get(dtype.num) or str(dtype.name)
    )
    if name in DTYPES:  # of records, dates and texts there may be any number
        _names[dtype] = name
    return name


@cache
def numpy_dtype(name: str) -> Any:
    """Return the dtype of a name, of NumPy's or of ml_dtypes'.

    Parameters
    ----------
    name : str

    Returns
    -------
    numpy.dtype
        In the machine's order of bytes.
    """
    import numpy as np

    if name in _OF_NUMPY:
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def real_part(array: Any, dtype: Any) -> Any:
    """Return the numbers of an array that are cast to a dtype: of complex to real, the real part.

    Of bools these are 0 and 1 where others than NumPy cast them, who read a byte as it is.

    Parameters
    ----------
    array : numpy.ndarray or an array like it
    dtype : numpy.dtype

    Returns
    -------
    numpy.ndarray or an array like it
        The array itself, a view of its memory, or a copy of bools.
    """
    if array.dtype.kind == "b" and dtype.isbuiltin != 1:
        return array.astype("uint8")
    return array.real if array.dtype.kind == "c" and dtype.kind not in "cb" else array


def null_number(dtype: Any) -> float:
    """Return the number that takes the place of nulls in an array: NaN, or 0 where there is none.

    Parameters
    ----------
    dtype : numpy.dtype
    """
    has_nan = dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float8"))
    return float("nan") if has_nan else 0


def memory_traits(*arrays: Any) -> frozenset[str]:
    """Return the traits of the memory of NumPy arrays: what any of them has.

    Complex numbers count as aligned at multiples of their whole size alone. NumPy takes multiples
    of half of it, but the vector instructions of torch's kernels, and those of CUDA, load both
    parts at once.

    Parameters
    ----------
    *arrays : numpy.ndarray

    Returns
    -------
    frozenset of str
        Of ``"readonly"``, ``"unaligned"``, ``"noncontiguous"``, ``"fortran"``,
        ``"negative_strides"`` and ``"broadcast"``.
    """
    flags, aligned = _ORDINARY, True
    for array in arrays:
        flags &= array.flags.num
        if array.dtype.char in _COMPLEX_CODES and not _is_aligned_to_size(array):
            aligned = False
    if flags == _ORDINARY and aligned:
        return EMPTY
    traits = EMPTY if flags & _WRITEABLE else frozenset({"readonly"})
    if not (aligned and flags & _ALIGNED):
        traits |= {"unaligned"}
    if flags & _CONTIGUOUS:
        return traits
    if all(array.flags.f_contiguous for array in arrays):
        traits |= FORTRAN
    scattered = (array for array in arrays if not array.flags.c_contiguous)
    return traits.union(*(_scattered_traits(array) for array in scattered))


def _is_aligned_to_size(array: Any) -> bool:
    """Return whether every element of an array lies at a multiple of its size."""
    size = array.itemsize
    if not array.size or address(array) % size:
        return not array.size
    if array.flags.c_contiguous:
        return True
    steps = zip(array.shape, array.strides, strict=True)
    return all(length == 1 or not step % size for length, step in steps)


def _scattered_traits(array: Any) -> frozenset[str]:
    traits = stride_traits(array.shape, array.strides)
    if overlaps(array.shape, array.strides, array.itemsize):
        return traits | {"broadcast"}
    return traits


@lru_cache(maxsize=1024)
def overlaps(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int = 1) -> bool:
    """Return whether several elements of a strided array share memory, or might.

    They do not where every stride leads out of what the smaller ones reach. Two axes can interlock
    all the same (strides of 2 and 3 elements). More axes that do are taken to overlap.

    Parameters
    ----------
    shape : tuple of int, in elements
    strides : tuple of int, in the unit of `itemsize`
    itemsize : int, in bytes or elements
        What one element takes.

    Returns
    -------
    bool
        Whether the trait ``"broadcast"`` is due.
    """
    axes = sorted((abs(step), n) for n, step in zip(shape, strides, strict=True) if n != 1)
    if axes and min(length for _, length in axes) == 0:
        return False
    reach = itemsize
    for index, (step, length) in enumerate(axes):
        if step < reach and not (index == 1 and _interlock(axes[0], axes[1], itemsize)):
            return True
        reach += (length - 1) * step
    return False


def _interlock(first: tuple[int, int], second: tuple[int, int], itemsize: int) -> bool:
    """Return whether two axes, each given by its stride and length, never meet in one place."""
    if first[0] % itemsize or second[0] % itemsize:
        return False
    common = gcd(first[0], second[0])
    return not common or second[0] // common >= first[1] or first[0] // common >= second[1]


def stride_traits(
    shape: Sequence[int], strides: Sequence[int], itemsize: int = 0
) -> frozenset[str]:
    """Return the traits of a strided array that is not one C-ordered block.

    The caller has to know that it is not one: a C-ordered block is called noncontiguous as well.

    Parameters
    ----------
    shape : sequence of int, in elements
    strides : sequence of int, in bytes or elements
    itemsize : int, in the unit of the strides
        What one element takes; 0 if nobody asks whether the array is one block in Fortran order.

    Returns
    -------
    frozenset of str
        Empty if no axis has more than one element; else ``"noncontiguous"``, with ``"fortran"`` for
        a block in Fortran order, and with ``"negative_strides"`` and ``"broadcast"`` where a stride
        is negative or zero.
    """
    # An axis of length 1 is never stepped along, whatever its stride.
    steps = [step for length, step in zip(shape, strides, strict=True) if length > 1]
    if not steps:
        return EMPTY
    traits = {"noncontiguous"}
    if min(steps) < 0:
        traits.add("negative_strides")
    if 0 in steps:
        traits.add("broadcast")
    if itemsize and is_contiguous(shape[::-1], strides[::-1], itemsize):
        traits.add("fortran")
    return frozenset(traits)


def is_contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int = 1) -> bool:
    """Return whether elements are one C-ordered block; strides count in the unit of `itemsize`."""
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def recast(value: Value, *, dtype: str, namespace: str = "") -> Value:
    """Return a copy of an array in C order, cast to a dtype.

    Parameters
    ----------
    value : array
        Of any shape, dtype and device of its namespace.
    dtype : str
        That of the result; that of `value` for a mere copy. A real dtype keeps the real part of
        complex numbers.
    namespace : str
        The module; "" for the one that the array names itself.

    Raises
    ------
    Declined
        The namespace lacks the dtype or a function, or the array has no namespace.
    """
    try:
        xp = import_module(namespace) if namespace else value.__array_namespace__()
        target, astype, reshape = getattr(xp, dtype), xp.astype, xp.reshape
    except AttributeError as error:
        raise Declined(str(error)) from error
    # A copy keeps the order that it finds, and one axis has only one.
    flat = reshape(value, (-1,))
    if xp.isdtype(value.dtype, "complex floating") and not dtype.startswith(("bool", "complex")):
        flat = xp.real(flat)
    return reshape(astype(flat, target, copy=True), value.shape)
