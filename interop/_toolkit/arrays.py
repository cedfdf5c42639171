"""What many plugins say of their arrays: common sets of names, and where memory lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def extents(arrays: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """Return the address and the length in bytes of the memory of some NumPy arrays.

    Parameters
    ----------
    arrays : iterable of numpy.ndarray
        Those without elements are left out.

    Returns
    -------
    tuple of tuple of int
        For each array, the lowest address it touches and how many bytes lie from there to the end
        of the highest.
    """
    from numpy.lib.array_utils import byte_bounds

    bounds = (byte_bounds(array) for array in arrays if array.size)
    return tuple((low, high - low) for low, high in bounds)
