"""DLPack capsules, to be read, spoilt and forged by the tests, and what NumPy says of memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from interop.testing._conformance.capsule import (
    DELETER,
    Legacy,
    Versioned,
    forever,
    get_pointer,
    new_capsule,
)

__all__ = ["DELETER", "Legacy", "Versioned", "forever", "get_pointer", "new_capsule"]

#: The lowest and the highest address of an array; NumPy 1 has it at its top.
bounds = getattr(np.lib, "array_utils", np).byte_bounds


def exported(array, **keywords):
    """Return the capsule of a NumPy array; skip the test if NumPy has none of the kind."""
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return array.__dlpack__(**keywords)
    if keywords.get("max_version") is not None:
        pytest.skip("NumPy exports versioned capsules from 2.1 on")
    return array.__dlpack__()


def on_deletion(managed, note):
    """Have a function called where the deleter of a capsule is, before it runs."""
    original = DELETER(managed.deleter)

    def deleter(address):
        note()
        original(address)

    forever.append(DELETER(deleter))
    managed.deleter = ctypes.cast(forever[-1], ctypes.c_void_p).value
