"""torch's tensors in shards, `DTensor`: described, and put together across processes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from interop.kit import EMPTY
from interop.plugin import Declined, Spec

from .describe import describe as describe_local
from .describe import dtype_name
from .describe import memory as memory_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor

#: The traits that a local shard may have, and the whole does not.
_OF_SHARDS = frozenset(
    {"noncontiguous", "broadcast", "unaligned", "conj", "neg", "grad", "zero_tensor"}
)


def describe(value: DTensor) -> Spec:
    """Return the spec of the whole tensor, of which this process has its local shard.

    Parameters
    ----------
    value : torch.distributed.tensor.DTensor

    Returns
    -------
    Spec
        A tensor that is ``replicated`` has the traits of the local tensor. One that is
        ``distributed`` has not, since it has yet to be put together.
    """
    local = describe_local(value._local_tensor)
    shape, dtype = tuple(value.shape), dtype_name(value.dtype)
    if value.device_mesh.get_coordinate() is None:
        traits = frozenset({"elsewhere"})
    elif local.format != "torch":
        traits = frozenset({"no_storage"})
    elif _is_replicated(value):
        traits = local.traits - {"grad"} | {"replicated"}
    else:
        traits = local.traits - _OF_SHARDS | {"distributed"}
    traits |= frozenset({"grad"}) if value.requires_grad else EMPTY
    nbytes = prod(shape) * value.dtype.itemsize
    return Spec("torch.dtensor", dtype, local.device, shape, traits, nbytes)


def _is_replicated(value: DTensor) -> bool:
    """Tell whether every process of the mesh has the whole tensor."""
    mesh = value.device_mesh
    return all(
        placement.is_replicate() or mesh.size(axis) == 1
        for axis, placement in enumerate(value.placements)
    )


def memory(value: DTensor) -> tuple[tuple[int, int], ...]:
    """Return the address and the length in bytes of the local shard."""
    return memory_of(value._local_tensor)


def copy(value: DTensor) -> DTensor:
    """Return a copy, for which no process waits: torch's own adds up what is partial."""
    return type(value).from_local(
        value.to_local().clone(),
        value.device_mesh,
        value.placements,
        run_check=False,
        shape=value.shape,
        stride=value.stride(),
    )


def detach(value: DTensor) -> Tensor:
    """Return the tensor, still in shards, outside of its graph."""
    return value.detach()


def place(value: Tensor, *, like: DTensor) -> DTensor:
    """Return a tensor that this process alone has as a DTensor on the mesh of another."""
    from torch.distributed.tensor import DTensor

    mesh = like.device_mesh
    if mesh.size() > 1:
        msg = (
            f"the mesh of the value given as like= has {mesh.size()} processes, and nothing tells "
            "whether each of them has the same; DTensor.from_local(x, mesh, [Replicate()]) states "
            "it, and its redistribute(placements=...) then divides it"
        )
        raise Declined(msg)
    return DTensor.from_local(value, mesh, like.placements, run_check=False)


def replica(value: DTensor) -> Tensor:
    """Return the local tensor of one that every process has."""
    return value.to_local()


def gather_in_graph(value: DTensor) -> Tensor:
    """Return the whole tensor, as torch puts it together in a graph."""
    return value.full_tensor()


def gather(value: DTensor) -> Tensor:
    """Return the whole tensor on this process's device; every process of the mesh has to call.

    Shards arrive one by one where they belong, because torch's own `full_tensor` may take as much
    memory again as the result.
    """
    from torch.distributed.tensor import Replicate, Shard

    if any(type(placement) not in (Replicate, Shard) for placement in value.placements):
        return value.full_tensor()  # which adds up what is partial
    local: Tensor = value.to_local()
    *divisions, shape = _shapes(value)
    if tuple(local.shape) != shape:
        msg = f"its local shard is of shape {tuple(local.shape)}, and its placements say {shape}"
        raise Declined(msg)
    for axis, whole in reversed(list(enumerate(divisions))):
        placement = value.placements[axis]
        # All processes have to decide alike, whatever the length of the shard here.
        if isinstance(placement, Shard) and value.device_mesh.size(axis) > 1:
            local = _joined(local, placement.dim, whole, value.device_mesh, axis)
    return local


def _shapes(value: DTensor) -> Iterator[tuple[int, ...]]:
    """Yield the shape of the whole, and of the part that is here after each axis of the mesh."""
    from torch.distributed.tensor import Shard

    mesh, shape = value.device_mesh, tuple(value.shape)
    position = mesh.get_coordinate() or ()
    yield shape
    for axis, placement in enumerate(value.placements):
        if isinstance(placement, Shard):
            dim = placement.dim
            start, stop = _bounds(shape[dim], mesh.size(axis), position[axis])
            shape = (*shape[:dim], stop - start, *shape[dim + 1 :])
        yield shape


def _bounds(length: int, count: int, index: int) -> tuple[int, int]:
    """Return where one of some shards begins and ends; the last may be shorter, or empty."""
    step = -(-length // count)
    return min(index * step, length), min((index + 1) * step, length)


def _joined(local: Tensor, dim: int, shape: tuple[int, ...], mesh: DeviceMesh, axis: int) -> Tensor:
    """Return the shards of the processes along an axis of the mesh, as one tensor."""
    import torch

    here: list[int | slice] = list(mesh.get_coordinate() or ())
    index = here[axis]
    here[axis] = slice(None)
    ranks: list[int] = mesh.mesh[tuple(here)].tolist()
    joined = torch.empty(shape, dtype=local.dtype, device=local.device)
    for number, rank in enumerate(ranks):
        start, stop = _bounds(shape[dim], len(ranks), number)
        part = joined.narrow(dim, start, stop - start)
        if number == index:
            part.copy_(local)
        _broadcast(part, rank, mesh.get_group(axis))
    return joined


def _broadcast(part: Tensor, rank: int, group: ProcessGroup) -> None:
    """Write what one process of a group has in a part of a tensor into that of the others.

    It travels as bytes, since not every library of processes knows every dtype.
    """
    import torch
    from torch.distributed import broadcast

    if part.numel():
        buffer = part.contiguous()
        broadcast(buffer.view(-1).view(torch.uint8), rank, group)
        if buffer.data_ptr() != part.data_ptr():
            part.copy_(buffer)
