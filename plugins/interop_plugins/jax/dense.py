"""Dense JAX arrays converted: to NumPy and torch, from both and from DLPack, and within JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import interop
from interop.errors import DeviceError, HandOffError, InteropError
from interop.kit import (
    CastErrors,
    CheckedProducer,
    address,
    misfit,
    numpy_dtype,
    parallel_for,
    real_part,
    unlocked,
)
from interop.plugin import Declined

from .describe import DLPACK_DTYPES, IMMUTABLE, NARROW, PACKED, is_compact, place, unsupported_now

if TYPE_CHECKING:
    import numpy as np
    from jax import Array, Device, Ref
    from torch import Tensor

    NumpyArray = np.ndarray[Any, Any]
    NumpyDtype = np.dtype[Any]

#: XLA shares host memory that is aligned to this many bytes, and copies any other.
_ALIGNMENT = 64
#: XLA computes with memory of a device that is aligned to this many bytes, and with no other.
BLOCK = 16
#: From this many bytes on it pays to make such memory here.
_LARGE = 2**16

#: NumPy's numbers of bool, the integers up to 32 bits, float16, float32 and complex64; ml_dtypes
#: use some of its characters again.
_PLAIN_NUMBERS = frozenset({*range(7), 11, 14, 23})

#: The errors of NumPy, torch and JAX when there is nothing to hand over.
_HAND_OFF_ERRORS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: DLPack's numbers of CUDA's and ROCm's own memory: JAX takes no managed memory.
_DEVICE_TYPES = frozenset({2, 10})
#: DLPack's numbers of page-locked memory of the host, CUDA's and ROCm's.
_PAGE_LOCKED = frozenset({3, 11})

#: By narrow dtype, the integer that carries its bits, and its name; filled when it is first met.
_carriers: dict[NumpyDtype, tuple[str, str]] = {}


@cache
def _torch_from_dlpack() -> Callable[[object], Tensor]:
    """Return torch's consumer of capsules: to import it takes a fast path a tenth of its time."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


@cache
def _asarray() -> Callable[[object], NumpyArray]:
    import numpy as np

    return np.asarray


# ---------------------------------------------------------------------- out of JAX


def to_numpy(value: Array) -> NumpyArray:
    """Return a read-only NumPy array over the memory of an array on the host."""
    import numpy as np

    array = np.asarray(value)
    if array.flags.owndata and array.size:
        msg = f"JAX did not share its {value.dtype} array with NumPy but copied it"
        raise Declined(msg)
    if array.dtype.name in NARROW:
        _carriers[array.dtype] = (f"u{array.itemsize}", array.dtype.name)
    return array


def unpack(value: Array) -> NumpyArray:
    """Return a NumPy array with each of an array's packed elements in a byte of its own."""
    import numpy as np

    # The array that `asarray` would give is JAX's own, which keeps it.
    return np.array(value)


def gather(value: Array, *, device: str = "cpu") -> NumpyArray:
    """Return a NumPy array of all the parts of an array that lies on several devices."""
    import numpy as np

    return _gather_into(np.empty(value.shape, value.dtype), value)


def _gather_into(out: NumpyArray, value: Array) -> NumpyArray:
    import numpy as np

    for shard in value.addressable_shards:
        if not shard.replica_id:
            out[shard.index] = np.asarray(shard.data)
    return out


def gather_there(value: Array, *, device: str) -> Array:
    """Return an array on one device of all the parts of one that lies on several."""
    if device.startswith("cpu:") and value.dtype.name not in PACKED:
        _check_width(value.dtype)
        return _put(_gather_into(_aligned(value.shape, value.dtype), value), _host(device))
    return move(value, device=device)


def read(value: Ref) -> Array:
    """Return a copy of what a reference holds now."""
    array: Array = value[...]
    return array


def replica(value: Array) -> Array:
    """Return the array as it is on one of the devices that have the whole of it."""
    return value.addressable_data(0)


def download(value: Array, *, device: str) -> NumpyArray:
    """Return a writable NumPy array of an array on another device, complete on return."""
    import jax
    import numpy as np

    if value.dtype.name in PACKED:
        return np.array(value)
    host = jax.device_put(value, jax.devices("cpu")[0])
    array = np.asarray(host)
    bits = array.view(f"u{array.itemsize}") if array.dtype.isbuiltin != 1 else array
    # Nobody else has that array, so its memory may be written.
    writable: NumpyArray = unlocked(bits).view(array.dtype)
    return writable


def numpy_fast_path(value: Array) -> object:
    """Share a plain array on the host with NumPy, or answer `NotImplemented`.

    Arrays on one host device that are in C order, not deleted, and of a dtype that Python can name
    offer the buffer protocol, and no others do. So asking for it is the guard.
    """
    try:
        return _asarray()(memoryview(value))
    except _HAND_OFF_ERRORS:
        return _narrow_numpy_fast_path(value)


def _narrow_numpy_fast_path(value: Array) -> object:
    import numpy as np

    try:
        if value.dtype not in _carriers or place(value.sharding) != ("cpu", IMMUTABLE):
            return NotImplemented
        array = np.asarray(value)
    except _HAND_OFF_ERRORS:
        return NotImplemented
    return NotImplemented if array.flags.owndata else array


def to_torch(value: Array) -> Tensor:
    """Return a tensor over the memory of an array on the host, by way of a NumPy view."""
    array = to_numpy(value)
    carrier = _carriers.get(array.dtype)
    if carrier is None:
        return _torch_from_dlpack()(_capsule(array))
    import torch

    integer, name = carrier
    bits = _torch_from_dlpack()(_capsule(array.view(integer)))
    return bits.view(getattr(torch, name))


def _capsule(array: NumpyArray) -> object:
    """Return the memory of a read-only array for a consumer that cannot carry the flag.

    Whether the consumer may have the memory all the same was for the policy to say.
    """
    if _takes_versions():
        return array.__dlpack__(max_version=(1, 0))

    return unlocked(array).__dlpack__()


@cache
def _takes_versions() -> bool:
    """Tell whether torch takes capsules that can be read-only, which 2.6 for one does not."""
    import numpy as np

    try:
        _torch_from_dlpack()(np.zeros(1).__dlpack__(max_version=(1, 0)))
    except RuntimeError:
        return False
    return True


def torch_fast_path(value: Array) -> object:
    """Share a plain array on the host with torch, or answer `NotImplemented`.

    A NumPy view and a capsule of it take a third of the time that a capsule of JAX's own takes.
    """
    try:
        array = _asarray()(memoryview(value))
        return _torch_from_dlpack()(_capsule(array))
    except _HAND_OFF_ERRORS:
        return _narrow_torch_fast_path(value)


def _narrow_torch_fast_path(value: Array) -> object:
    """Share an array that the buffer protocol does not know, by a capsule of JAX's own."""
    try:
        if value.dtype not in _carriers or place(value.sharding) != ("cpu", IMMUTABLE):
            return NotImplemented
        return _torch_from_dlpack()(value.__dlpack__())
    except _HAND_OFF_ERRORS:
        return NotImplemented


# ---------------------------------------------------------------------- into JAX


def from_numpy(value: NumpyArray, *, dtype: str | None = None, device: str | None = None) -> Array:
    """Return an array on the host with a copy of a NumPy array's elements, cast on the way.

    With `device` it is on that part of the host, and stays there.

    XLA shares memory that happens to be aligned to 64 bytes, and copies any other. The result never
    shares memory, so that this does not depend on an address.
    """
    target = value.dtype.newbyteorder("=") if dtype is None else numpy_dtype(dtype)
    _check_width(target)
    host = _host(device)
    if value.dtype == target and (target.name in PACKED or (not host and value.nbytes < _LARGE)):
        return _copy_by_jax(value, host)
    out = _aligned(value.shape, target)
    _write(out, value)
    return _put(out, host)


def from_numpy_if_exact(value: NumpyArray, *, dtype: str) -> Array:
    """Return what `from_numpy` does if the dtype holds every integer of the array."""
    if reason := misfit(value, dtype):
        raise Declined(reason)
    return from_numpy(value, dtype=dtype)


def jax_fast_path(value: NumpyArray) -> object:
    """Copy a plain array of at most 32 bits an element to JAX, or answer `NotImplemented`."""
    dtype = value.dtype
    return from_numpy(value) if dtype.num in _PLAIN_NUMBERS and dtype.isnative else NotImplemented


def _copy_by_jax(value: NumpyArray, host: Device | None) -> Array:
    """Return a copy that JAX itself makes, which packs elements.

    It is quicker for few bytes, and several times slower than `_put` where the device is named.
    """
    import jax
    import jax.numpy as jnp

    try:
        return jnp.array(value, device=host)
    except jax.errors.JaxRuntimeError:  # of a transfer guard, to which this is no explicit transfer
        return _put(value.copy(), host)


def _aligned(shape: tuple[int, ...], dtype: NumpyDtype) -> NumpyArray:
    """Return a new array at an address where XLA can share it."""
    import numpy as np

    nbytes = prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + _ALIGNMENT - 1, np.uint8)
    start = -address(raw) % _ALIGNMENT
    array: NumpyArray = raw[start : start + nbytes].view(dtype).reshape(shape)
    return array


def _write(out: NumpyArray, value: NumpyArray) -> None:
    """Write `value` into `out`, which is in C order, and cast on the way."""
    import numpy as np

    value = real_part(value, out.dtype)
    if value.flags.c_contiguous:
        out, value = out.reshape(-1), value.reshape(-1)

    errors = CastErrors()

    def work(start: int, stop: int) -> None:
        errors.run(np.copyto, out[start:stop], value[start:stop], "unsafe")

    parallel_for(work, len(out), out.nbytes, touching=True)
    errors.tell()


def _put(array: NumpyArray, host: Device | None) -> Array:
    """Return a JAX array over memory that nobody else has."""
    import jax

    put: Array = jax.device_put(array, host)
    return put


def _host(device: str | None = None) -> Device | None:
    """Return a part of the host, or the host as JAX's device; None if JAX makes arrays there.

    JAX refuses to compute with an array that was put on a device by name and one of another device.
    """
    if device is not None:
        return _device(device)
    import jax

    config: Any = jax.config  # its types do not list the options
    default = config.jax_default_device  # a device, or the name of a platform
    platform = jax.default_backend() if default is None else getattr(default, "platform", default)
    return None if platform == "cpu" else jax.devices("cpu")[0]


def _check_width(dtype: NumpyDtype) -> None:
    """Refuse what JAX would narrow silently; the option may have changed since the planning."""
    if dtype.itemsize >= 8 and dtype.name in unsupported_now():
        msg = f"JAX's option jax_enable_x64 is off, and it would narrow {dtype.name} silently"
        raise Declined(msg)


def from_torch(value: Tensor) -> Array:
    """Return an array on the host with a copy of a tensor's elements, written by torch."""
    import torch

    name = str(value.dtype).removeprefix("torch.")
    if name in NARROW:
        bits = f"uint{8 * value.itemsize}"
        value = value.view(getattr(torch, bits))
    # torch writes what is strided faster than NumPy, but waits for its threads on busy cores.
    if value.nbytes < _LARGE or value.is_contiguous():
        return from_numpy(value.numpy().view(numpy_dtype(name)))
    _check_width(numpy_dtype(name))
    out = _aligned(tuple(value.shape), numpy_dtype(name))
    torch.from_numpy(out.view(bits) if name in NARROW else out).copy_(value)
    return _put(out, _host())


def from_torch_fast_path(value: Tensor) -> object:
    """Copy a plain tensor of at most 32 bits an element to JAX, or answer `NotImplemented`."""
    # What torch would refuse is looked at first: a refusal takes as long as the copy.
    if value.requires_grad or value.dtype not in _torch_dtypes():
        return NotImplemented
    carrier, dtype = _torch_dtypes()[value.dtype]
    try:
        if value.nbytes >= _LARGE:
            return NotImplemented
        array = (value if carrier is None else value.view(carrier)).numpy()
    except (RuntimeError, TypeError, ValueError):
        return NotImplemented
    # Of a tensor without memory torch makes an array that owns garbage.
    if array.flags.owndata or not array.flags.carray:
        return NotImplemented
    return from_numpy(array if carrier is None else array.view(dtype))


@cache
def _torch_dtypes() -> dict[object, tuple[Any, Any]]:
    """Return torch's dtypes that JAX has however it is set up.

    With those that NumPy lacks goes the dtype that carries their bits, and the one of ml_dtypes.
    """
    import torch

    names = "bool uint8 int8 int16 int32 float16 float32 complex64"
    plain: dict[object, tuple[Any, Any]] = {
        getattr(torch, name): (None, None) for name in names.split()
    }
    return plain | {torch.bfloat16: (torch.uint16, numpy_dtype("bfloat16"))}


def upload(value: NumpyArray, *, device: str) -> Array:
    """Return an array on another device with a NumPy array's elements, which may be overwritten."""
    import jax

    _check_width(value.dtype)
    # JAX reads the memory some time later, and before that its owner may write to it. To wait takes
    # longer than to copy a few numbers.
    is_small = value.nbytes < _LARGE
    copied: Array = jax.device_put(value.copy() if is_small else value, _device(device))
    return copied if is_small else copied.block_until_ready()


def _device(name: str) -> Device:
    """Return JAX's object for a device."""
    import jax

    kind, _, index = name.partition(":")
    try:
        devices = jax.local_devices(backend=kind)
    except RuntimeError:  # not kept, since its traceback keeps the array
        raise _not_found(name) from None
    for device in devices:
        if not index or device.local_hardware_id == int(index):
            return device
    raise _not_found(name, len(devices))


def _not_found(device: str, count: int = 0) -> DeviceError:
    kind = device.partition(":")[0]
    move = f"install its support for {kind}, or name another device"
    if count:
        move = f"it has {count} of that type, counted from {kind}:0"
    if count == 1 and kind == "cpu":
        move = "it divides the host if its option jax_num_cpu_devices is set before its first use"
    msg = f"JAX finds no device {device}; {move}."
    return DeviceError(msg)


def from_dlpack(value: object) -> Array:
    """Return an array over the memory of a producer on an accelerator."""
    try:
        return _adopt(value, _DEVICE_TYPES)
    except HandOffError as reason:  # there may be a copy that JAX can take
        raise Declined(str(reason)) from reason


def from_page_locked(value: object) -> Array:
    """Return an array over page-locked memory of the host, where JAX has a device that reads it."""
    try:
        return _adopt(value, _PAGE_LOCKED)
    # Before 0.12 JAX raises TypeError, and without the device RuntimeError.
    except (HandOffError, TypeError, RuntimeError) as reason:
        msg = f"JAX does not share page-locked memory here: {reason}"
        raise Declined(msg) from reason


def _adopt(value: object, device_types: frozenset[int]) -> Array:
    import jax

    dtypes = DLPACK_DTYPES - unsupported_now()
    producer = CheckedProducer(value, alignment=BLOCK, dtypes=dtypes, device_types=device_types)
    array: Array = jax.dlpack.from_dlpack(producer)
    return array


def copy_from_dlpack(value: object) -> Array:
    """Return an array over a copy that the producer's own framework makes, where JAX can take it.

    XLA shares memory at any address of a device, and then refuses to compute with it.
    """
    try:
        owned = interop.convert(value, like=value, copy=True)
    except InteropError as reason:
        msg = f"its own framework does not copy it: {reason}"
        raise Declined(msg) from reason
    return from_dlpack(owned)


# ---------------------------------------------------------------------- within JAX


def copy(value: Array) -> Array:
    """Return a copy on the same devices."""
    import numpy as np

    plain = place(value.sharding) == ("cpu", IMMUTABLE)
    if not plain or value.dtype.name in unsupported_now() | PACKED or not is_compact(value):
        return value.copy()
    # JAX compiles its own copy for every shape, and is slow where memory is fresh.
    return from_numpy(np.asarray(value))


def cast(value: Array, *, dtype: str) -> Array:
    """Return a copy of another dtype; a cast from complex to real numbers keeps the real part."""
    target = numpy_dtype(dtype)
    _check_width(target)
    if value.dtype == target:  # `astype` would return an array over the same memory
        return value.copy()
    value = real_part(value, target)
    return value.astype(target)


def stack(value: Sequence[object], *, dtype: str) -> Array:
    """Return an array of the elements of a sequence, on their device."""
    import jax.numpy as jnp

    convert, target = interop.converter("jax"), numpy_dtype(dtype)
    rows = (convert(element) for element in value)
    return jnp.stack(
        [row if row.dtype == target else interop.convert(row, "jax", dtype=target) for row in rows]
    )


def move(value: Array, *, device: str) -> Array:
    """Return the array on another device, complete on return."""
    import jax

    target = _device(device)
    if value.devices() == {target}:  # it was a replica, of which only the type of device was known
        return value.copy()
    moved: Array = jax.device_put(value, target)
    return moved.block_until_ready()


def from_host_memory(value: Array, *, device: str) -> Array:
    """Return an array of an accelerator's host memory on a device, complete on return."""
    import jax
    from jax.sharding import SingleDeviceSharding

    place = SingleDeviceSharding(_device(device), memory_kind="device")
    moved: Array = jax.device_put(value, place)
    return moved.block_until_ready()
