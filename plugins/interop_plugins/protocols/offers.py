"""What consumers adopt of an interface without a second look at it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from interop.kit import ADDRESSES
from interop.plugin import DTYPES, itemsize

from .interfaces import LEAST_ADDRESS, checked
from .methods import has_labels

if TYPE_CHECKING:
    from typing import Any

    from .common import Foreign

#: The traits of memory that every library on a device can have.
_USUAL = frozenset({"noncontiguous", "broadcast"})


def offer(value: Foreign) -> dict[str, Any] | Any:
    """Return the ``__cuda_array_interface__`` of a plain value, asked for once and checked.

    `NotImplemented` if it has no memory, traits that not every library knows, or labels. An error
    says that it is none: the planned route says more about it.
    """
    entries: dict[str, Any] = value.__cuda_array_interface__
    address, readonly = entries["data"]
    nbytes, alignment = _plain(entries["typestr"], entries["shape"], entries.get("strides"))
    stream = entries.get("stream")
    if (
        not nbytes
        or readonly
        or address % alignment
        or not LEAST_ADDRESS <= address <= ADDRESSES - nbytes
        or entries.get("mask") is not None
        or entries["version"] not in (2, 3)
        or (stream is not None and (type(stream) is not int or not stream))
        or has_labels(value)
    ):
        return NotImplemented
    return entries


@lru_cache(maxsize=1024)
def _plain(
    typestr: str, shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> tuple[int, int]:
    """Return how many bytes from its address on plain memory has, and what divides the address.

    There are 0 bytes of memory that is not plain, whatever its address.
    """
    entries = {"typestr": typestr, "shape": shape, "strides": strides, "data": (2**32, False)}
    interface = checked(None, entries)
    if interface.dtype not in DTYPES or not interface.traits <= _USUAL:
        return 0, 1
    return interface.high, min(itemsize(interface.dtype), 16)
