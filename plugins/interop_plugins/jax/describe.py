"""Dense JAX arrays described: dtypes, device, traits, and where their memory lies."""

from __future__ import annotations

import os
import sys
from functools import cache, lru_cache
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from interop.kit import COMPLEX, EMPTY, INTEGERS, REALS
from interop.plugin import Spec

if TYPE_CHECKING:
    import numpy as np
    from jax import Array, Device
    from jax.sharding import Sharding

    NumpyDtype = np.dtype[Any]

#: JAX holds these only while its option ``jax_enable_x64`` is on, and else narrows silently.
WIDE = frozenset({"int64", "uint64", "float64", "complex128"})
#: What Python's numbers become while it is off.
_HALVES = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
#: JAX packs several of these to a byte; NumPy gets each in a byte of its own.
PACKED = frozenset({"int2", "int4", "uint2", "uint4", "float4_e2m1fn"})
#: Reals of 8 and 16 bits that NumPy knows only through ml_dtypes.
NARROW = frozenset(
    {
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    }
)
DLPACK_DTYPES = INTEGERS | REALS | COMPLEX | NARROW | {"bool"}
DTYPES = DLPACK_DTYPES | PACKED

IMMUTABLE, GAPS = frozenset({"immutable"}), frozenset({"noncontiguous"})

#: The values of an environment variable that JAX reads as true.
_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})

#: The type of concrete arrays, filled on first use.
_plain_types: set[type] = set()


def unsupported_now(device: str = "") -> frozenset[str]:
    """Return the dtypes that JAX would narrow as it is set up now, in this thread."""
    config = getattr(sys.modules.get("jax"), "config", None)
    if config is None:  # it would start with what the environment says
        wide = os.environ.get("JAX_ENABLE_X64", "").lower() in _TRUE
    else:
        wide = bool(config.jax_enable_x64)
    return EMPTY if wide else WIDE


def default_dtype(dtype: str) -> str:
    """Return the dtype that JAX gives to Python's numbers of a kind."""
    return _HALVES[dtype] if unsupported_now() else dtype


def describe(value: Array) -> Spec:
    """Return the spec of an array or tracer.

    Parameters
    ----------
    value : jax.Array

    Returns
    -------
    Spec
        The memory of what has the trait ``traced`` or ``deleted`` cannot be read, and of what is
        ``distributed`` only a part. The dtype of random keys is not one of numbers.
    """
    dtype, shape = value.dtype, value.shape
    if type(value) not in _plain_types and not _is_concrete(value):
        return Spec("jax", str(dtype), "cpu", shape, frozenset({"traced"}))
    device, traits = place(value.sharding)
    if value.is_deleted():
        traits |= {"deleted"}
    elif len(shape) > 1 and type(value) in _plain_types and not is_compact(value):
        traits |= {"noncontiguous"}
        if _axes(value) == (*reversed(range(len(shape))),):
            traits |= {"fortran"}
    return Spec("jax", _dtype_name(dtype), device, shape, traits, prod(shape) * dtype.itemsize)


def fast_key(value: Array) -> tuple[object, ...] | None:
    """Return what tells one array from another; None unless it lies on one device, in C order."""
    if type(value) not in _plain_types or value.is_deleted():
        return None
    device, traits = place(value.sharding)
    if traits != IMMUTABLE or (value.ndim > 1 and not is_compact(value)):
        return None
    dtype, shape = value.dtype, value.shape
    nbytes = prod(shape) * dtype.itemsize  # for which JAX takes longer
    return dtype, device, len(shape), nbytes.bit_length() >> 1  # its `size_class`


def _is_concrete(value: Array) -> bool:
    """Tell arrays from tracers, which are of many types."""
    from jax.core import Tracer

    if isinstance(value, Tracer):
        return False
    # An array of random keys has neither.
    if hasattr(type(value), "unsafe_buffer_pointer") and hasattr(type(value), "__dlpack__"):
        _plain_types.add(type(value))
    return True


@lru_cache(maxsize=256)
def place(sharding: Sharding) -> tuple[str, frozenset[str]]:
    """Return the device on which an array lies, or the type of several, and its traits."""
    devices = sorted(sharding.device_set, key=attrgetter("id"))
    traits = set(IMMUTABLE)
    name = _device_name(devices[0])
    if len(devices) > 1 or not sharding.is_fully_addressable:
        name = name.partition(":")[0]
        traits.add(_division(sharding))
    if not name.startswith("cpu") and sharding.memory_kind not in (None, "device"):
        traits.add("host_memory")
        # What lies there is page-locked. (A TPU's host memory is its own.)
        if sharding.memory_kind == "pinned_host" and name.startswith(("cuda:", "rocm:")):
            name = "cuda_host"
    return name, frozenset(traits)


def _division(sharding: Sharding) -> str:
    """Return the trait of an array that lies on several devices, or on one of another process."""
    if sharding.is_fully_replicated and sharding.addressable_devices:
        return "replicated"
    return "sharded" if sharding.is_fully_addressable else "distributed"


def _device_name(device: Device) -> str:
    """Return the name of a device; the host has numbers only where JAX divides it."""
    kind = str(device.platform)
    if kind == "gpu":
        kind = "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    whole = kind == "cpu" and len(device.client.local_devices()) == 1
    return "cpu" if whole else f"{kind}:{device.local_hardware_id}"


def is_compact(value: Array) -> bool:
    """Tell whether an array is laid out in C order."""
    return _axes(value) == (*range(value.ndim),)


def _axes(value: Array) -> tuple[int, ...]:
    """Return the axes of an array, those along which neighbours lie farthest apart first."""
    concrete: Any = value  # the types of JAX's arrays do not list `format`
    layout = concrete.format.layout
    return (*range(value.ndim),) if layout is None else (*layout.major_to_minor,)


@cache
def _dtype_name(dtype: NumpyDtype) -> str:
    return str(dtype.name)


def unless_deleted(value: Array) -> object:
    """Return an array as it is, or `NotImplemented` if its memory is gone."""
    return NotImplemented if value.is_deleted() else value


def scalar_type_name(scalar_type: Any) -> str:
    """Return the dtype that one of JAX's scalar types (``jax.numpy.float32``) stands for."""
    return str(scalar_type.dtype.name)


def memory(value: Array) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of an array, one for each device."""
    if type(value) not in _plain_types or value.is_deleted() or not value.size:
        return ()
    if len(value.sharding.device_set) == 1:
        nbytes = value.on_device_size_in_bytes()
        if value.dtype.name in PACKED:  # which JAX counts as a byte for each element from 0.8 on
            nbytes = min(nbytes, -(-value.size // (4 if value.dtype.name[-1] == "2" else 2)))
        return ((value.unsafe_buffer_pointer(), nbytes),)
    return tuple(extent for shard in value.addressable_shards for extent in memory(shard.data))
