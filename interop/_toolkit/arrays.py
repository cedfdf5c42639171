"""What many plugins say of their arrays: common sets of names, and where memory lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "COMPLEX",
    "COPY",
    "CPU",
    "DEVICE",
    "DTYPE",
    "EMPTY",
    "INTEGERS",
    "REALS",
    "TRANSFER",
    "MemoryAt",
    "extent",
    "extents",
]

#: No names at all: of traits, of effects, of dtypes.
EMPTY: frozenset[str] = frozenset()

#: The effects of most steps that write bytes.
COPY, TRANSFER = frozenset({"copy"}), frozenset({"transfer"})

#: What most conversions change, if they change anything.
DTYPE, DEVICE = frozenset({"dtype"}), frozenset({"device"})

#: The host, as a set of device types.
CPU = frozenset({"cpu"})

#: The dtypes that nearly every framework holds.
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
REALS = frozenset({"float16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})


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
    """
    if 0 in shape:
        return address, 0
    steps = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0)
    return address + low, high - low + itemsize


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
        extent(array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)
        for array in arrays
        if array.size
    )
