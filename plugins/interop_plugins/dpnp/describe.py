"""The specs of dpnp's arrays, and where their memory lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import EMPTY, extent, stride_traits
from interop.plugin import Spec

from .queues import is_shared, number_of

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .queues import Tensor

    #: A ``dpnp.ndarray``, which holds a tensor.
    DpnpArray: TypeAlias = Any

#: The trait of an array that lies where nobody else can share it: on a part of a device, or in a
#: context of its own.
PRIVATE = frozenset({"private_context"})

#: Filled on first use: the two types of arrays, and the names of the devices by number.
_plain_types: set[type] = set()
_device_names: dict[int, str] = {}


def describe(value: DpnpArray) -> Spec:
    """Return the spec of an array.

    Parameters
    ----------
    value : dpnp.ndarray

    Returns
    -------
    Spec
        That of the tensor that the array holds.
    """
    return _spec("dpnp", value.get_array(), value)


def describe_tensor(value: Tensor) -> Spec:
    """Return the spec of a tensor, from its flags, shape and strides.

    Parameters
    ----------
    value : dpnp.tensor.usm_ndarray
    """
    return _spec("dpnp.tensor", value, value)


def _spec(name: str, tensor: Tensor, value: DpnpArray) -> Spec:
    flags, traits = tensor.flags, EMPTY
    if not flags.c_contiguous:
        traits = stride_traits(tensor.shape, tensor.strides, 1)  # dpnp counts in elements
    if not flags.writable:
        traits = traits | {"readonly"}
    if not is_shared(tensor):
        traits = traits | PRIVATE
    if type(value) not in _plain_types and _is_subclass(value):
        traits = traits | {"subclass"}
    number = number_of(tensor.sycl_device)
    device = _device_names.get(number) or _name_device(number)
    return Spec(name, tensor.dtype.name, device, tensor.shape, traits, tensor.nbytes)


def _is_subclass(value: DpnpArray) -> bool:
    import dpnp
    import dpnp.tensor

    _plain_types.update({dpnp.ndarray, dpnp.tensor.usm_ndarray})
    return type(value) not in _plain_types


def _name_device(number: int) -> str:
    name = _device_names[number] = f"oneapi:{number}"
    return name


def memory(value: DpnpArray) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in."""
    return tensor_memory(value.get_array())


def tensor_memory(value: Tensor) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory a tensor lies in."""
    if not value.size:
        return ()
    interface, itemsize = value.__sycl_usm_array_interface__, value.itemsize
    first = interface["data"][0] + interface["offset"] * itemsize
    strides = [step * itemsize for step in value.strides]
    return (extent(first, value.shape, strides, itemsize),)
