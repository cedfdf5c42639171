"""JAX's arrays in shards: put together, and handed over shard by shard to torch's and back.

A shard is the part of the whole that is on one device. Which part, its bounds say: where it begins
and ends along each axis.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import interop
from interop.plugin import Declined

from .dense import to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jax import Array, Device
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from torch import Tensor
    from torch.distributed.tensor import DTensor

    NumpyArray = np.ndarray[Any, Any]
    #: Where a part of an array begins and ends along each axis.
    Bounds = tuple[tuple[int, int], ...]

#: Bytes that processes exchange at once.
_PIECE = 2**22


# ---------------------------------------------------------------------- to torch's


def share_shard(value: Array, *, like: DTensor) -> DTensor:
    """Return a DTensor divided as `like`, over the memory of the shard that has its local part."""
    bounds = _local_bounds(like, value)
    for shard in value.addressable_shards:
        here = _bounds(shard.index, value.shape)
        if _contains(here, bounds):
            return _dtensor(_shared(shard.data)[_relative(bounds, here)], value, like)
    raise Declined(_missing(value, bounds))


def _missing(value: Array, bounds: Bounds) -> str:
    """Say that this process has other parts than are asked for."""
    here = sorted({_bounds(shard.index, value.shape) for shard in value.addressable_shards})
    return f"this process has {here} of it, and {bounds} of the value given as like="


def join_shards(value: Array, *, like: DTensor) -> DTensor:
    """Return a DTensor divided as `like`, its local part put together from several shards."""
    import torch

    bounds = _local_bounds(like, value)
    shards = {_bounds(shard.index, value.shape): shard.data for shard in value.addressable_shards}
    inside = [key for key in shards if _contains(bounds, key)]
    if sum(map(_size, inside)) != _size(bounds):
        raise Declined(_missing(value, bounds))
    parts = [_shared(shards[key]) for key in inside]
    local = torch.empty(_lengths(bounds), dtype=parts[0].dtype, device=parts[0].device)
    for key, part in zip(inside, parts, strict=True):
        local[_relative(key, bounds)].copy_(part)
    return _dtensor(local, value, like)


def _local_bounds(like: DTensor, value: Array) -> Bounds:
    """Return which part of a value's whole is in this process if it is divided as a DTensor is."""
    if value.sharding.is_fully_addressable:
        msg = (
            "JAX has all of it in this process, and nothing tells whether the other processes "
            "have the same"
        )
        raise Declined(msg)
    return _part_here(like, value.shape)


def _part_here(like: DTensor, shape: tuple[int, ...]) -> Bounds:
    """Return which part of an array of some shape is here, on the mesh of a DTensor."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if any(not isinstance(placement, (Replicate, Shard)) for placement in like.placements):
        msg = f"its parts are added up, by the placements {like.placements}"
        raise Declined(msg)
    if like.device_mesh.get_coordinate() is None or len(like.shape) != len(shape):
        msg = f"{like.placements} on {like.device_mesh} does not divide {shape} here"
        raise Declined(msg)
    lengths, starts = compute_local_shape_and_global_offset(
        shape, like.device_mesh, like.placements
    )
    return tuple((start, start + n) for start, n in zip(starts, lengths, strict=True))


def _shared(shard: Array) -> Tensor:
    """Return a tensor over the memory of an array on one device."""
    from torch.utils.dlpack import from_dlpack

    on_host = next(iter(shard.devices())).platform == "cpu"
    return to_torch(shard) if on_host else from_dlpack(shard)


def _dtensor(local: Tensor, value: Array, like: DTensor) -> DTensor:
    """Return the DTensor of the shape of an array that has a local part, divided as another."""
    import torch
    from torch.distributed.tensor import DTensor

    shape = torch.Size(value.shape)
    return DTensor.from_local(
        local,
        like.device_mesh,
        like.placements,
        run_check=False,
        shape=shape,
        stride=torch.empty(shape, device="meta").stride(),
    )


# ---------------------------------------------------------------------- from torch's


def from_dtensor(value: DTensor, *, like: Array) -> Array:
    """Return an array sharded as `like`; each device gets a copy of its part."""
    import jax

    shape = tuple(value.shape)
    here = _part_here(value, shape)
    try:
        indices = like.sharding.addressable_devices_indices_map(shape)
    except ValueError as error:
        msg = f"{like.sharding} does not divide {shape}"
        raise Declined(msg) from error
    wanted = {device: _bounds(index or (), shape) for device, index in indices.items()}
    outside = [key for key in wanted.values() if not _contains(here, key)]
    if outside:
        msg = f"this process has {here} of it, and {outside[0]} of the value given as like="
        raise Declined(msg)
    local = value.to_local()
    parts = [_put(local[_relative(key, here)], device) for device, key in wanted.items()]
    return jax.make_array_from_single_device_arrays(shape, like.sharding, parts)


def _put(part: Tensor, device: Device) -> Array:
    """Return a copy of a tensor on one of JAX's devices."""
    import jax

    copied: Array = interop.convert(part, to="jax", copy=True)
    return copied if copied.devices() == {device} else jax.device_put(copied, device)


# ---------------------------------------------------------------------- all in one place


def gather_processes(value: Array, *, device: str = "cpu") -> NumpyArray:
    """Return a NumPy array of all the parts of an array, those of other processes among them.

    Every process that has a part has to call. Parts arrive one by one where they belong, because
    JAX's own `process_allgather` lets every device have the whole beside the result.
    """
    import jax
    import numpy as np

    if not value.sharding.addressable_devices:
        msg = "none of its parts is in this process"
        raise Declined(msg)
    shape, whole = value.shape, np.empty(value.shape, value.dtype)
    here = {_bounds(shard.index, shape): shard.data for shard in value.addressable_shards}
    indices: dict[Any, Any] = dict(value.sharding.devices_indices_map(shape))
    devices = sorted(indices, key=lambda device: device.id)
    members = {device.process_index: device for device in reversed(devices)}
    mesh = jax.sharding.Mesh(np.array([members[number] for number in sorted(members)]), ("owner",))
    owners = {_bounds(indices[device], shape): device for device in reversed(devices)}
    for bounds in sorted(owners):
        part = whole[tuple(slice(*ends) for ends in bounds)]
        buffer = part if part.flags.c_contiguous else np.empty(part.shape, part.dtype)
        is_mine = owners[bounds].process_index == jax.process_index()
        if is_mine:
            np.copyto(buffer, np.asarray(here[bounds]))
        _broadcast(buffer.reshape(-1).view(np.uint8), mesh, is_mine=is_mine)
        if buffer is not part:
            np.copyto(part, buffer)
    return whole


def _broadcast(buffer: NumpyArray, mesh: Mesh, *, is_mine: bool) -> None:
    """Write what one process has in a buffer into that of the others, some bytes at a time.

    JAX has no collective for it. The bytes of all are added up, which are zero but for the owner's.
    """
    import jax
    import numpy as np

    rows = _sharding(mesh, "owner")
    (here,) = rows.addressable_devices
    for start in range(0, len(buffer), _PIECE):
        piece = buffer[start : start + _PIECE]
        row = jax.device_put((piece if is_mine else np.zeros_like(piece))[None], here)
        shape = (mesh.size, len(piece))
        each = jax.make_array_from_single_device_arrays(shape, rows, [row])
        received = np.asarray(_summed(mesh)(each).addressable_data(0))
        if not is_mine:
            piece[...] = received


@lru_cache(maxsize=16)
def _summed(mesh: Mesh) -> Callable[[Array], Array]:
    """Return what adds up the rows of an array over the processes, for all of them."""
    import jax

    total: Callable[[Array], Array] = jax.jit(
        lambda rows: rows.sum(0, dtype=rows.dtype), out_shardings=_sharding(mesh)
    )
    return total


def _sharding(mesh: Mesh, *axes: str) -> NamedSharding:
    import jax

    divided: Callable[..., PartitionSpec] = jax.sharding.PartitionSpec
    return jax.sharding.NamedSharding(mesh, divided(*axes))


# ---------------------------------------------------------------------- bounds


def _bounds(index: tuple[slice[Any, Any, Any], ...], shape: tuple[int, ...]) -> Bounds:
    """Return where the part at an index of an array begins and ends."""
    return tuple(part.indices(n)[:2] for part, n in zip(index, shape, strict=True))


def _lengths(bounds: Bounds) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in bounds)


def _size(bounds: Bounds) -> int:
    return prod(_lengths(bounds))


def _contains(outer: Bounds, inner: Bounds) -> bool:
    """Tell whether one part of an array lies within another."""
    pairs = zip(outer, inner, strict=True)
    return all(out[0] <= part[0] and part[1] <= out[1] for out, part in pairs)


def _relative(inner: Bounds, outer: Bounds) -> tuple[slice, ...]:
    """Return the index of one part of an array in another that it lies within."""
    pairs = zip(inner, outer, strict=True)
    return tuple(slice(start - first, stop - first) for (start, stop), (first, _) in pairs)
