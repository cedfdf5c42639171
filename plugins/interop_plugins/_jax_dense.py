"""Dense JAX arrays: what they are, and how they come and go."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import NotInstalledError
from interop.plugin import CheckedProducer, Declined, Spec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "DLPACK_DTYPES",
    "DTYPES",
    "PACKED",
    "WIDE",
    "as_it_is",
    "cast",
    "copy",
    "describe",
    "download",
    "from_dlpack",
    "from_numpy",
    "from_torch",
    "gather",
    "jax_fast_path",
    "memory",
    "move",
    "numpy_fast_path",
    "scalar_type_name",
    "to_numpy",
    "to_torch",
    "torch_fast_path",
    "unpack",
    "unsupported_now",
    "upload",
]

#: What JAX takes only while its option ``jax_enable_x64`` is on, and would else narrow in silence.
WIDE = frozenset({"int64", "uint64", "float64", "complex128"})
#: What it packs several to a byte; NumPy gets each in a byte of its own.
PACKED = frozenset({"int2", "int4", "uint2", "uint4", "float4_e2m1fn"})
#: Reals of 8 and 16 bits that NumPy knows by ml_dtypes only.
_NARROW = frozenset(
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
DLPACK_DTYPES = (
    WIDE
    | _NARROW
    | {"bool", "float16", "float32", "complex64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)}
)
DTYPES = DLPACK_DTYPES | PACKED

_NONE: frozenset[str] = frozenset()
_IMMUTABLE = frozenset({"immutable"})

#: XLA shares host memory that is aligned to this many bytes, and copies any other.
_ALIGNMENT = 64
#: Bytes from which on it pays to make that memory here.
_LARGE = 2**16

#: NumPy's codes of bool, the integers up to 32 bits, float16, float32 and complex64.
_PLAIN_CODES = "?bBhHiIefF"

_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})

#: What NumPy, torch or JAX raise when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: Filled on first use: the type of concrete arrays, and torch's consumer of capsules.
_plain_types: set[type] = set()
_torch_from_dlpack: list[Callable[[Any], Any]] = []
#: numpy.asarray, likewise.
_asarray: list[Callable[[Any], Array]] = []
#: By narrow dtype that was met: the integer that carries its bits, and its name.
_carriers: dict[Any, tuple[str, str]] = {}


def unsupported_now() -> frozenset[str]:
    """Return the dtypes that JAX would narrow as it is set up now, in this thread."""
    config = getattr(sys.modules.get("jax"), "config", None)
    if config is None:  # it would start with what the environment says
        on = os.environ.get("JAX_ENABLE_X64", "").lower() in _TRUE
    else:
        on = bool(config.jax_enable_x64)
    return _NONE if on else WIDE


def describe(value: Any) -> Spec:
    """Return the spec of an array or tracer.

    Parameters
    ----------
    value : jax.Array

    Returns
    -------
    Spec
        Memory cannot be read of what has the trait ``traced`` or ``deleted``, or is on devices of
        other processes (``remote``). Random keys have a dtype that is none of numbers.
    """
    dtype, shape = value.dtype, value.shape
    if type(value) not in _plain_types and not _is_concrete(value):
        return Spec("jax", str(dtype), "cpu", shape, frozenset({"traced"}))
    device, traits = _place(value.sharding)
    if value.is_deleted():
        traits |= {"deleted"}
    elif len(shape) > 1 and type(value) in _plain_types and not _is_compact(value):
        traits |= {"noncontiguous"}
    return Spec("jax", _name(dtype), device, shape, traits, prod(shape) * dtype.itemsize)


def _is_concrete(value: Any) -> bool:
    """Tell arrays from tracers, whose types are many."""
    from jax.core import Tracer

    if isinstance(value, Tracer):
        return False
    if hasattr(type(value), "unsafe_buffer_pointer") and hasattr(type(value), "__dlpack__"):
        _plain_types.add(type(value))  # which an array of random keys is not
    return True


@lru_cache(maxsize=256)
def _place(sharding: Any) -> tuple[str, frozenset[str]]:
    """Return the device on which an array lies, or the first of several, and its traits."""
    devices = sorted(sharding.device_set, key=lambda device: device.id)
    traits = set(_IMMUTABLE)
    if len(devices) > 1:
        traits.add("sharded")
    if not sharding.is_fully_addressable:
        traits.add("remote")
    name = _device_name(devices[0])
    if name != "cpu" and sharding.memory_kind not in (None, "device"):
        traits.add("host_memory")
    return name, frozenset(traits)


def _device_name(device: Any) -> str:
    kind = str(device.platform)
    if kind == "gpu":
        kind = "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    return "cpu" if kind == "cpu" else f"{kind}:{device.local_hardware_id}"


def _is_compact(value: Any) -> bool:
    """Tell whether an array is laid out in C order."""
    layout = value.format.layout
    return layout is None or tuple(layout.major_to_minor) == tuple(range(value.ndim))


@cache
def _name(dtype: Any) -> str:
    return str(dtype.name)


def as_it_is(value: Any) -> Any:
    """Return an array as it is, unless its memory is gone."""
    return NotImplemented if value.is_deleted() else value


def scalar_type_name(kind: Any) -> str:
    """Return the dtype that one of JAX's scalar types (``jax.numpy.float32``) stands for."""
    return str(kind.dtype.name)


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of an array, one for each device."""
    if type(value) not in _plain_types or value.is_deleted() or not value.size:
        return ()
    if len(value.sharding.device_set) == 1:
        return ((value.unsafe_buffer_pointer(), value.on_device_size_in_bytes()),)
    return tuple(each for shard in value.addressable_shards for each in memory(shard.data))


# ---------------------------------------------------------------------- out of JAX


def to_numpy(value: Any) -> Array:
    """Return a read-only NumPy array over the memory of an array on the host."""
    import numpy as np

    if not _asarray:
        _asarray.append(np.asarray)
    array = np.asarray(value)
    if array.flags.owndata and array.size:
        msg = f"JAX did not share its {value.dtype} array with NumPy but copied it"
        raise Declined(msg)
    if array.dtype.name in _NARROW:
        _learn_carrier(array.dtype)
    return array


def unpack(value: Any) -> Array:
    """Return a NumPy array with each of an array's packed elements in a byte of its own."""
    import numpy as np

    # The one that `asarray` gives is JAX's own, kept in the array.
    return np.array(value)


def gather(value: Any, *, device: str = "cpu") -> Array:
    """Return a NumPy array of all the parts of an array that lies on several devices."""
    import numpy as np

    out = np.empty(value.shape, value.dtype)
    for shard in value.addressable_shards:
        if not shard.replica_id:
            out[shard.index] = np.asarray(shard.data)
    return out


class _Memory:
    """Memory at an address, kept alive by its owner; NumPy makes it the base of the array."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def download(value: Any, *, device: str) -> Array:
    """Return a writable NumPy array of an array on another device, complete on return."""
    import jax
    import numpy as np

    if value.dtype.name in PACKED:
        return np.array(value)
    host = jax.device_put(value, jax.devices("cpu")[0])
    array = np.asarray(host)
    bits = array.view(f"u{array.itemsize}") if array.dtype.isbuiltin != 1 else array
    # Nobody else has that array, so that its memory may be written.
    interface = dict(bits.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, array)).view(array.dtype)


def numpy_fast_path(value: Any) -> Any:
    """Share a plain array on the host with NumPy, or answer `NotImplemented`.

    The buffer protocol is offered by arrays on one host device, in C order and not deleted, of the
    dtypes that Python can name; so asking for it is the guard.
    """
    try:
        return _asarray[0](memoryview(value))
    except (*_REFUSALS, IndexError):
        return _narrow_numpy_fast_path(value)


def _narrow_numpy_fast_path(value: Any) -> Any:
    import numpy as np

    try:
        if value.dtype not in _carriers or _place(value.sharding) != ("cpu", _IMMUTABLE):
            return NotImplemented
        array = np.asarray(value)
    except _REFUSALS:
        return NotImplemented
    return NotImplemented if array.flags.owndata else array


def _learn_carrier(dtype: Any) -> tuple[str, str]:
    """Take notice of a narrow real that others know by the bits."""
    _carriers[dtype] = (f"u{dtype.itemsize}", dtype.name)
    return _carriers[dtype]


def to_torch(value: Any) -> Any:
    """Return a tensor over the memory of an array on the host, by way of a view of NumPy's."""
    from torch.utils.dlpack import from_dlpack as share

    if not _torch_from_dlpack:
        _torch_from_dlpack.append(share)
    return _shared_with_torch(to_numpy(value))


def _shared_with_torch(array: Array) -> Any:
    carrier = _carriers.get(array.dtype)
    if carrier is None:
        return _torch_from_dlpack[0](_capsule(array))
    import torch

    bits = _torch_from_dlpack[0](_capsule(array.view(carrier[0])))
    return bits.view(getattr(torch, carrier[1]))


def _capsule(array: Array) -> Any:
    """Return the memory of a read-only array for a consumer that cannot carry the flag.

    Whether it may have the memory all the same was the policy's to say.
    """
    exported: Any = array.__dlpack__  # NumPy's types know nothing of `max_version`
    return exported(max_version=(1, 0))


def torch_fast_path(value: Any) -> Any:
    """Share a plain array on the host with torch, or answer `NotImplemented`.

    NumPy's view and a capsule of it take a third of the time that a capsule of JAX's does.
    """
    try:
        exported: Any = _asarray[0](memoryview(value)).__dlpack__
        return _torch_from_dlpack[0](exported(max_version=(1, 0)))
    except (*_REFUSALS, IndexError):
        return _narrow_torch_fast_path(value)


def _narrow_torch_fast_path(value: Any) -> Any:
    """Share an array that the buffer protocol does not know, by a capsule of JAX's own."""
    try:
        if value.dtype not in _carriers or _place(value.sharding) != ("cpu", _IMMUTABLE):
            return NotImplemented
        return _torch_from_dlpack[0](value.__dlpack__())
    except (*_REFUSALS, IndexError):
        return NotImplemented


# ---------------------------------------------------------------------- into JAX


def from_numpy(value: Array, *, dtype: str | None = None) -> Any:
    """Return an array on the host with a copy of a NumPy array's elements, cast on the way.

    XLA shares memory that happens to be aligned to 64 bytes, and copies what is not. Whether the
    result shares memory must not depend on that, so it never does.
    """
    import numpy as np

    wanted = value.dtype.newbyteorder("=") if dtype is None else _dtype(dtype)
    _check_width(wanted)
    if value.nbytes < _LARGE and value.dtype == wanted:
        return _small(value)
    out = _aligned(value.shape, wanted)
    with np.errstate(all="ignore"):
        real = value.dtype.kind == "c" and wanted.kind not in "cb"
        np.copyto(out, value.real if real else value, casting="unsafe")
    return _put(out)


def jax_fast_path(value: Array) -> Any:
    """Copy a plain array of at most 32 bits an element to JAX, or answer `NotImplemented`."""
    dtype = value.dtype
    return from_numpy(value) if dtype.char in _PLAIN_CODES and dtype.isnative else NotImplemented


def _small(value: Array) -> Any:
    """Return a copy made by JAX itself, which costs less to ask for."""
    import jax.numpy as jnp

    return jnp.array(value, device=_host())


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a new array at an address where XLA can share it."""
    import numpy as np

    nbytes = prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + _ALIGNMENT - 1, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNMENT
    array: Array = raw[start : start + nbytes].view(dtype).reshape(shape)
    return array


def _put(array: Array) -> Any:
    """Return a JAX array over memory that nobody else has."""
    import jax

    return jax.device_put(array, _host())


def _host() -> Any:
    """Return the host as JAX's device, or None if arrays are made there anyway.

    An array that was put on a device by name cannot be computed with another's.
    """
    import jax

    config: Any = jax.config  # whose options its types do not list
    if jax.default_backend() == "cpu" and config.jax_default_device is None:
        return None
    return jax.devices("cpu")[0]


@cache
def _dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def _check_width(dtype: Any) -> None:
    """Refuse what JAX would narrow in silence; a plan may be older than the option is."""
    if dtype.itemsize >= 8 and dtype.name in unsupported_now():
        msg = f"JAX's option jax_enable_x64 is off, and it would narrow {dtype.name} in silence"
        raise Declined(msg)


def from_torch(value: Any) -> Any:
    """Return an array on the host with a copy of a tensor's elements, written by torch."""
    import torch

    name = str(value.dtype).removeprefix("torch.")
    if name in _NARROW:
        bits = f"uint{8 * value.itemsize}"
        value = value.view(getattr(torch, bits))
    if value.nbytes < _LARGE:
        return from_numpy(value.numpy().view(_dtype(name)))
    _check_width(_dtype(name))
    out = _aligned(tuple(value.shape), _dtype(name))
    torch.from_numpy(out.view(bits) if name in _NARROW else out).copy_(value)
    return _put(out)


def upload(value: Array, *, device: str) -> Any:
    """Return an array on another device with a NumPy array's elements, complete on return."""
    import jax

    _check_width(value.dtype)
    # JAX would read the memory whenever it gets to it, and its owner may write to it before.
    return jax.device_put(value, _device(device)).block_until_ready()


def _device(name: str) -> Any:
    """Return JAX's object for a device."""
    import jax

    kind, _, index = name.partition(":")
    reason: RuntimeError | None = None
    try:
        there = jax.local_devices(backend=kind)
    except RuntimeError as error:
        there, reason = [], error
    found = [d for d in there if kind == "cpu" or d.local_hardware_id == int(index or 0)]
    if not found:
        msg = f"JAX finds no device {name}; install its support for {kind}, or name another device."
        raise NotInstalledError(msg, name="jax") from reason
    return found[0]


def from_dlpack(value: Any) -> Any:
    """Return an array over the memory of a producer on an accelerator."""
    import jax

    dtypes = DLPACK_DTYPES - unsupported_now()
    return jax.dlpack.from_dlpack(CheckedProducer(value, dtypes=dtypes))


# ---------------------------------------------------------------------- within JAX


def copy(value: Any) -> Any:
    """Return a copy on the same devices."""
    import numpy as np

    plain = _place(value.sharding) == ("cpu", _IMMUTABLE)
    if not plain or value.dtype.name in unsupported_now() | PACKED or not _is_compact(value):
        return value.copy()
    # JAX's own is compiled for every shape, and is slow where memory is fresh.
    return from_numpy(np.asarray(value))


def cast(value: Any, *, dtype: str) -> Any:
    """Return a copy of another dtype, which of complex numbers keeps the real part."""
    wanted = _dtype(dtype)
    _check_width(wanted)
    if value.dtype.kind == "c" and wanted.kind not in "cb":
        value = value.real
    return value.astype(wanted)


def move(value: Any, *, device: str) -> Any:
    """Return the array on another device, complete on return."""
    import jax

    return jax.device_put(value, _device(device)).block_until_ready()
