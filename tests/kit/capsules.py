"""DLPack capsules, to be read, spoilt and forged by the tests, and what NumPy says of memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

#: The lowest and the highest address of an array; NumPy 1 has it at its top.
bounds = getattr(np.lib, "array_utils", np).byte_bounds


def exported(array, **keywords):
    """Return the capsule of a NumPy array; skip the test if NumPy has none of the kind."""
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return array.__dlpack__(**keywords)
    if keywords.get("max_version") is not None:
        pytest.skip("NumPy exports versioned capsules from 2.1 on")
    return array.__dlpack__()


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))

#: Callbacks and names that C code may use as long as the process lives.
forever = []


def on_deletion(managed, note):
    """Have a function called where the deleter of a capsule is, before it runs."""
    original = DELETER(managed.deleter)

    def deleter(address):
        note()
        original(address)

    forever.append(DELETER(deleter))
    managed.deleter = ctypes.cast(forever[-1], ctypes.c_void_p).value
