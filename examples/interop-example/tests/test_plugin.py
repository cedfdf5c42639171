"""What the plugin promises, and what its users rely on."""

from __future__ import annotations

import numpy as np
import pytest

import interop
from interop.testing import PluginTests
from interop_example.ring import Ring


class TestPromises(PluginTests):
    """Every promise of the plugin, checked."""

    plugin = "ring"


def test_a_ring_is_viewed() -> None:
    """A ring that is not rotated becomes an array over the same memory."""
    ring = Ring(np.array([1.0, 2.0, 3.0]))
    array = interop.convert(ring, to="numpy", copy=False)
    assert array.ctypes.data == ring.numbers.ctypes.data


def test_a_rotated_ring_is_put_in_order() -> None:
    """The numbers come out from the oldest to the newest, and the ring does not change."""
    ring = Ring(np.array([1.0, 2.0, 3.0]))
    ring.push(4.0)
    assert interop.convert(ring, to="numpy").tolist() == [2.0, 3.0, 4.0]
    assert ring.numbers.tolist() == [4.0, 2.0, 3.0]
    with pytest.raises(interop.errors.RefusedError, match="unroll has the effect 'copy'"):
        interop.convert(ring, to="numpy", copy=False)
