"""The specs of NumPy's arrays and array scalars, from their flags and strides alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from numbers import Number
from typing import TYPE_CHECKING

import interop
from interop.errors import InteropError
from interop.kit import (
    COMPLEX,
    EMPTY,
    INTEGERS,
    address,
    dtype_name,
    extents,
    memory_traits,
    refuse_codes,
)
from interop.plugin import DTYPES, Spec, itemsize

if TYPE_CHECKING:
    from typing import Any

    from .dtypes import Array, DType, Scalar

_SCALAR, _SWAPPED = frozenset({"scalar"}), frozenset({"byteswapped"})
_UNTYPED, _NOT_NUMBERS = frozenset({"untyped"}), frozenset({"not_numbers"})
#: The dtypes of what may be codes: integers, and numbers of a byte or less.
_PERHAPS_CODES = INTEGERS | {name for name in DTYPES if itemsize(name) == 1} - {"bool"}

#: How many objects that are missing are passed over for one that is there.
_MOST_MISSING = 1000
#: The bits of `flags.num` of a contiguous, aligned and writable array.
_ORDINARY = 0x0001 | 0x0100 | 0x0400

#: Filled on first use: numpy.ndarray, the name and the traits of each dtype of numbers met, and
#: those among these dtypes whose arrays are plain if their flags say so.
_plain_types: set[type] = set()
_dtypes_met: dict[DType, tuple[str, frozenset[str]]] = {}
_native_reals: set[DType] = set()


def describe(value: Array | Scalar) -> Spec:
    """Return the spec of an array or array scalar, from its flags, shape and strides.

    Parameters
    ----------
    value : numpy.ndarray or numpy.generic

    Returns
    -------
    Spec
        A dtype that is not one of numbers is named as NumPy names it, so that nothing takes it.
    """
    dtype = value.dtype
    name, traits = _dtypes_met.get(dtype) or _meet(dtype, value)
    if traits is _NOT_NUMBERS and (spec := _describe_rows(value)) is not None:
        return spec
    if type(value) not in _plain_types:
        return _describe_other(value, name, traits)
    if value.flags.num & _ORDINARY != _ORDINARY or name in COMPLEX:
        traits = traits | memory_traits(value)
    return Spec("numpy", name, "cpu", value.shape, traits, value.nbytes)


def fast_key(value: Array) -> tuple[object, ...] | None:
    """Return what tells one numpy.ndarray from another, if it is plain, or its rows are."""
    dtype = value.dtype
    if not value.flags.carray or (dtype not in _native_reals and not _is_plain_complex(value)):
        return _key_of_lists()(value.tolist()) if dtype.hasobject and value.ndim else None
    return dtype, value.ndim, value.nbytes.bit_length() >> 1  # its `size_class`, without a call


@cache
def _key_of_lists() -> Callable[[list[Any]], Any]:
    """Return the fast key of lists, which has that of their elements."""
    keys = {declared.format.name: declared.format.fast_key for declared in interop.formats()}
    return keys.get("python.arrays") or (lambda _: None)


def _is_plain_complex(value: Array) -> bool:
    """Tell whether an array is of complex numbers, which may have traits that no flag shows."""
    name, swapped = _dtypes_met.get(value.dtype, ("", EMPTY))
    return name in COMPLEX and not swapped and not memory_traits(value)


def _meet(dtype: DType, value: Array | Scalar) -> tuple[str, frozenset[str]]:
    name, traits = dtype_name(dtype), EMPTY if dtype.isnative else _SWAPPED
    if name in DTYPES:  # of records, dates and texts there may be any number
        _dtypes_met[dtype] = name, traits
        if not traits and name not in COMPLEX:
            _native_reals.add(dtype)
    elif dtype.kind == "O":
        traits = _UNTYPED if _may_be_numbers(value) else _NOT_NUMBERS
    return name, traits


def _may_be_numbers(objects: Array | Scalar) -> bool:
    """Tell whether the first of an array's objects is a number; None stands for a missing one."""
    import numpy as np

    first = next((x for x in islice(objects.flat, _MOST_MISSING) if x is not None), None)
    return first is None or isinstance(first, (Number, np.generic))


def _describe_rows(objects: Array | Scalar) -> Spec | None:
    """Return the spec of an array of lists or arrays, which is that of its list; else None.

    Arrays without axes are among them, such as losses of torch.
    """
    first = objects.item(0) if objects.size and objects.ndim else None
    if not isinstance(first, (list, tuple)) and not hasattr(first, "shape"):
        return None
    try:
        spec = interop.spec(objects.tolist())
    except InteropError:  # these are no rows of one array, and stay objects
        return None
    return spec._replace(format="numpy.rows", wrapped=spec.format)


def _describe_other(value: Array | Scalar, name: str, traits: frozenset[str]) -> Spec:
    """Describe what is not exactly a numpy.ndarray, or the first array that is."""
    import numpy as np

    if type(value) is np.ndarray:
        _plain_types.add(np.ndarray)
        return describe(value)
    if isinstance(value, np.generic):
        return Spec("numpy", name, "cpu", value.shape, _SCALAR, value.nbytes)
    if is_masked_array(value):
        mask = None if value.dtype.names else _mask(value)  # each field of records has its own
        masked = frozenset({"masked"}) if mask is not None and mask.any() else EMPTY
        traits = traits | masked | memory_traits(value)
        return Spec("numpy.ma", name, "cpu", value.shape, traits, value.nbytes)
    if name in _PERHAPS_CODES:
        refuse_codes(value, np.ndarray, "x.view(numpy.ndarray)")
    traits = traits | {"masked" if has_mask(value) else "subclass"}
    if hasattr(value, "unmasked"):  # which may have a unit, as astropy's arrays have
        traits |= interop.spec(value.unmasked).traits & {"labelled"}
    traits |= memory_traits(value)
    return Spec("numpy", name, "cpu", value.shape, traits, value.nbytes)


def is_masked_array(value: Array) -> bool:
    """Tell whether an array is one of NumPy's own masked arrays, masked or not."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def has_mask(value: Array) -> bool:
    """Tell whether an array of another subclass has a mask, as astropy's ``Masked`` has."""
    return hasattr(value, "mask") and hasattr(value, "unmasked")


def _mask(value: Array) -> Array | None:
    """Return the mask of a masked array, or None if it has none."""
    import numpy as np

    mask = np.ma.getmask(value)
    return mask if isinstance(mask, np.ndarray) else None


def memory(value: Array | Scalar) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in, and its mask's."""
    if type(value) in _plain_types:
        if value.flags.c_contiguous and value.size:
            return ((address(value), value.nbytes),)
        return extents((value,))
    import numpy as np

    if isinstance(value, np.generic):
        return ()  # an array scalar has no memory that anything could share
    mask = _mask(value)
    return extents((value,) if mask is None else (value, mask))
