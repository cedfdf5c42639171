"""The helpers that plugins call for their arrays."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from interop.plugin import MemoryAt, extent, extents


def test_extents_are_addresses_and_lengths() -> None:
    """Strided and backwards arrays count from their lowest address; empty ones are left out."""
    base = np.zeros((4, 6))
    address = base.ctypes.data
    assert extents([base, base[1:, ::2], base[::-1], base[:0]]) == (
        (address, 192),
        (address + 48, 136),
        (address, 192),
    )
    assert extents([]) == ()


def test_an_extent_spans_what_is_touched() -> None:
    """The extent reaches from the lowest to the highest byte that any stride leads to."""
    assert extent(1000, (4, 6), (48, 8), 8) == (1000, 192)
    assert extent(1144, (4, 6), (-48, 8), 8) == (1000, 192)
    assert extent(1000, (5, 3), (0, 16), 8) == (1000, 40)
    assert extent(1000, (), (), 4) == (1000, 4)
    assert extent(1000, (3, 0), (8, 8), 8) == (1000, 0)


def test_memory_at_an_address_keeps_its_owner_alive() -> None:
    """An array over a `MemoryAt` holds the owner until the array is gone."""
    base = np.arange(3.0)
    alive = weakref.ref(base)
    array = np.asarray(MemoryAt(base.__array_interface__, base))
    del base
    gc.collect()
    assert alive() is not None
    assert array.tolist() == [0.0, 1.0, 2.0]
    del array
    gc.collect()
    assert alive() is None
