"""Odd arrays of dpnp with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from interop.plugin import Declined

from .dense import from_array, to_array

if TYPE_CHECKING:
    from .describe import DpnpArray
    from .queues import Tensor


def _longest_axis(tensor: Tensor) -> int:
    """Return the longest axis; decline an array of too few elements to have strides of its own."""
    if tensor.ndim < 1 or tensor.size < 2:
        msg = f"an array of shape {tensor.shape} has no such strides"
        raise Declined(msg)
    return max(range(tensor.ndim), key=lambda axis: tensor.shape[axis])


def noncontiguous(tensor: Tensor) -> Tensor:
    """Return the tensor with gaps along its longest axis."""
    import dpnp.tensor

    axis = _longest_axis(tensor)
    gaps = tuple(slice(None, None, 2 if a == axis else None) for a in range(tensor.ndim))
    return dpnp.tensor.repeat(tensor, 2, axis=axis)[gaps]


def negative_strides(tensor: Tensor) -> Tensor:
    """Return the tensor stored backwards along its longest axis."""
    import dpnp.tensor

    axis = _longest_axis(tensor)
    backwards = tuple(slice(None, None, -1 if a == axis else None) for a in range(tensor.ndim))
    return dpnp.tensor.copy(tensor[backwards], order="C")[backwards]


def broadcast(tensor: Tensor) -> Tensor:
    """Return the first element along the longest axis, repeated."""
    import dpnp.tensor

    axis = _longest_axis(tensor)
    first = tuple(slice(1) if a == axis else slice(None) for a in range(tensor.ndim))
    return dpnp.tensor.broadcast_to(tensor[first], tensor.shape)


def readonly(tensor: Tensor) -> Tensor:
    """Return a view of the tensor that is locked."""
    view = tensor[...]
    view.flags.writable = False
    return view


def private_context(tensor: Tensor) -> Tensor:
    """Return the tensor in a context of its own."""
    import dpctl
    import dpnp.tensor

    context = dpctl.SyclContext([tensor.sycl_device])
    queue = dpctl.SyclQueue(context, tensor.sycl_device)
    return dpnp.tensor.asarray(dpnp.tensor.asnumpy(tensor), sycl_queue=queue)


def subclass(value: DpnpArray) -> DpnpArray:
    """Return the array as an instance of a subclass."""
    import dpnp

    class Sample(dpnp.ndarray):  # type: ignore[misc]
        """A subclass that adds nothing."""

    return Sample(value.shape, buffer=value)


def _held(variant: Callable[[Tensor], Tensor], value: DpnpArray) -> DpnpArray:
    return to_array(variant(from_array(value)))


#: Layout last, because the others make new arrays; flags after it.
TENSORS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "private_context": private_context,
    "noncontiguous": noncontiguous,
    "negative_strides": negative_strides,
    "broadcast": broadcast,
    "readonly": readonly,
}
ARRAYS: Mapping[str, Callable[[DpnpArray], DpnpArray]] = {
    **{trait: partial(_held, variant) for trait, variant in TENSORS.items()},
    "subclass": subclass,
}
