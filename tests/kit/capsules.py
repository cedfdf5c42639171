"""DLPack capsules, to be read, spoilt and forged by the tests, and what NumPy says of memory."""

from __future__ import annotations

import ctypes

import numpy as np

from interop.testing._conformance.capsule import (
    DELETER,
    Legacy,
    Versioned,
    forever,
    get_pointer,
    new_capsule,
)

__all__ = ["DELETER", "Legacy", "Versioned", "forever", "get_pointer", "new_capsule"]

#: The lowest and the highest address of an array.
bounds = np.lib.array_utils.byte_bounds


def on_deletion(managed, note):
    """Have a function called where the deleter of a capsule is, before it runs."""
    original = DELETER(managed.deleter)

    def deleter(address):
        note()
        original(address)

    forever.append(DELETER(deleter))
    managed.deleter = ctypes.cast(forever[-1], ctypes.c_void_p).value
