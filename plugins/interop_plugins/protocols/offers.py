"""What consumers adopt of an interface without a second look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interfaces import cuda_interface
from .methods import has_labels

if TYPE_CHECKING:
    from typing import Any

    from .common import Foreign

#: The traits of memory that every library on a device can have.
_USUAL = frozenset({"noncontiguous", "broadcast"})


def offer(value: Foreign) -> dict[str, Any] | Any:
    """Return the ``__cuda_array_interface__`` of a plain value, asked for once and checked.

    `NotImplemented` if it has no memory, traits that not every library knows, or labels.
    """
    entries, interface = cuda_interface(value)
    if not interface.high or not interface.traits <= _USUAL or has_labels(value):
        return NotImplemented
    return entries
