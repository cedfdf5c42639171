"""The specs of CuPy's dense arrays, and where their memory lies."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING

from interop.kit import EMPTY, dtype_name, extent, stride_traits
from interop.plugin import Spec

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    # CuPy ships no types.
    #: A ``cupy.ndarray``.
    CupyArray: TypeAlias = Any
    #: A ``csr_array``, a ``csr_matrix`` …
    Sparse: TypeAlias = Any
    DType: TypeAlias = np.dtype[Any]

#: Filled on first use: cupy.ndarray, and the name of each device.
_plain_types: set[type] = set()
_device_names: dict[int, str] = {}


def describe(value: CupyArray) -> Spec:
    """Return the spec of an array, from its flags, shape and strides.

    Parameters
    ----------
    value : cupy.ndarray

    Returns
    -------
    Spec
        A dtype that is not one of numbers is named as NumPy names it, so that nothing takes it.
    """
    dtype = value.dtype
    traits = EMPTY
    if not value.flags.c_contiguous:
        traits = _stride_traits(value.shape, value.strides, value.itemsize)
    if type(value) not in _plain_types and _is_subclass(value):
        traits = traits | {"subclass"}
    return Spec(
        "cupy",
        dtype_name(dtype),
        device_name(value),
        value.shape,
        traits,
        value.nbytes,
    )


_stride_traits = lru_cache(maxsize=1024)(stride_traits)


def fast_key(value: CupyArray) -> tuple[Hashable, ...] | None:
    """Return what tells one array from another, or None for one without elements of its own.

    Whatever is no C-ordered block has a longer key.
    """
    nbytes = value.nbytes
    if not nbytes:
        return None
    key = value.dtype, value.data.device_id, value.ndim, nbytes.bit_length() >> 1
    if value.flags.c_contiguous:
        return key
    traits = _stride_traits(value.shape, value.strides, value.itemsize)
    return None if "broadcast" in traits else (*key, traits)


def _is_subclass(value: CupyArray) -> bool:
    import cupy

    _plain_types.add(cupy.ndarray)
    return type(value) is not cupy.ndarray


def device_name(array: CupyArray) -> str:
    """Return the name of the device that an array lies on."""
    index = array.data.device_id
    return _device_names.get(index) or _name_device(index)


def _name_device(index: int) -> str:
    name = _device_names[index] = f"{device_kind()}:{index}"
    return name


def device_kind() -> str:
    """Return the type of the devices that the installed CuPy was built for."""
    import cupy

    return "rocm" if cupy.cuda.runtime.is_hip else "cuda"


def memory(value: CupyArray) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in."""
    if not value.size:
        return ()
    return (extent(value.data.ptr, value.shape, value.strides, value.itemsize),)
