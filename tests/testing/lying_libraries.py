"""A library of arrays written in Python, and its lies: each has one fault in its DLPack.

The arrays hold one of NumPy's, whose capsules they change; the consumers read a capsule by hand.
"""

from __future__ import annotations

import numpy as np

from interop.kit.dlpack import CapsuleProducer, checked_export
from interop.testing._conformance.capsule import (
    COPIED,
    READ_ONLY,
    Producer,
    delete,
    forever,
    managed,
    name_of,
    use,
)
from interop.testing._conformance.library import c_order, memory


class Array:
    """An honest array."""

    def __init__(self, array):
        self.array = array

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return self.array.shape

    @property
    def T(self):  # noqa: N802 - the standard's name
        return type(self)(self.array.T)

    def __getitem__(self, index):
        return type(self)(self.array[index])

    def numpy(self):
        return self.array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise BufferError("there are no streams on the host")
        return self.capsule(max_version=max_version, dl_device=dl_device, copy=copy)

    def capsule(self, **keywords):
        return self.array.__dlpack__(**keywords)


class OtherDevice(Array):
    def __dlpack_device__(self):
        return (1.0, 0)


class NoKeywords(Array):
    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()


class AlwaysVersioned(Array):
    def capsule(self, *, max_version=None, **keywords):
        return self.array.__dlpack__(max_version=(1, 0), **keywords)


class OtherShape(Array):
    def capsule(self, **keywords):
        return self.array.reshape(-1).__dlpack__(**keywords)


class OtherDtype(Array):
    def capsule(self, **keywords):
        array = self.array.view("u1") if self.array.dtype == "i1" else self.array
        return array.__dlpack__(**keywords)


class ForgetsOffset(Array):
    def capsule(self, **keywords):
        base = self.array if self.array.base is None else self.array.base
        array = np.lib.stride_tricks.as_strided(base, self.array.shape, self.array.strides)
        return array.__dlpack__(**keywords)


class NoStrides(Array):
    def capsule(self, **keywords):
        capsule = self.array.__dlpack__(**keywords)
        if name_of(capsule) == b"dltensor_versioned":
            structure = managed(capsule)
            structure.minor, structure.tensor.strides = 3, None
        return capsule


class SharesCopies(Array):
    def capsule(self, *, copy=None, **keywords):
        return self.array.__dlpack__(copy=None, **keywords)


class FlagsNoCopy(Array):
    def capsule(self, *, copy=None, **keywords):
        capsule = self.array.__dlpack__(copy=copy, **keywords)
        if copy and name_of(capsule) == b"dltensor_versioned":
            managed(capsule).flags &= ~COPIED
        return capsule


class AlwaysCopies(Array):
    def capsule(self, *, copy=None, **keywords):
        return self.array.__dlpack__(copy=True, **keywords)


class AnyDevice(Array):
    def capsule(self, *, dl_device=None, **keywords):
        return self.array.__dlpack__(**keywords)


class AnyStream(Array):
    def __dlpack__(self, *, stream=None, **keywords):
        return self.capsule(**keywords)


class Writable(Array):
    def capsule(self, *, max_version=None, **keywords):
        if self.array.flags.writeable:
            return self.array.__dlpack__(max_version=max_version, **keywords)
        capsule = self.array.__dlpack__(max_version=(1, 0), **keywords)
        managed(capsule).flags &= ~READ_ONLY
        return capsule


class Leaks(Array):
    def capsule(self, **keywords):
        forever.append(self)
        return self.array.__dlpack__(**keywords)


class Forgets(Array):
    """Its memory is that of an array of the moment, which its capsules do not keep."""

    def capsule(self, *, max_version=None, **keywords):
        if not hasattr(self, "memory"):
            self.memory = np.array(self.array)
        producer = Producer(np.array(self.array), data=self.memory.ctypes.data)
        return producer.capsule(versioned=max_version is not None)


class TypeErrors(Array):
    def capsule(self, **keywords):
        try:
            return self.array.__dlpack__(**keywords)
        except BufferError as error:
            if keywords.get("dl_device"):
                raise
            raise KeyError(str(error)) from error


class Taken:
    """What a consumer made of a capsule; it calls the deleter at its end."""

    def __init__(self, structure, array, *, deletions=1, readonly=False):
        self._structure, self.array, self._deletions = structure, array, deletions
        self._readonly = readonly

    def numpy(self):
        return self.array.copy()

    def __setitem__(self, index, value):
        if self._readonly:
            raise ValueError("read-only")
        self.array[index] = value

    @property
    def __array_interface__(self):
        return self.array.__array_interface__

    def __del__(self):
        for _ in range(self._deletions):
            delete(self._structure)


def _taken(
    value,
    *,
    copy=None,
    newest=True,
    offset=True,
    strides=True,
    read_only=True,
    deletions=1,
    rename=True,
    early=False,
    strict=True,
    errors=True,
    absent=AttributeError,
    shares_copies=False,
    leaks=False,
):
    if not hasattr(value, "__dlpack__"):
        raise absent("no __dlpack__")
    try:
        capsule = _asked(value, newest)
    except BufferError as error:
        if errors:
            raise
        raise RuntimeError("something went wrong") from error
    structure = managed(capsule)
    if strict and getattr(structure, "major", 1) != 1:
        raise BufferError("a later version")
    tensor = structure.tensor
    if leaks and tensor.code == 77:
        use(capsule)
        raise BufferError("no such dtype")
    if not strict and (
        getattr(structure, "major", 1) != 1 or tensor.code == 77 or tensor.lanes == 2
    ):
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        structure.major = 1
    export = checked_export(CapsuleProducer(capsule))
    if export.device != "cpu" and strict:
        raise BufferError("not on the host")
    steps = export.strides if strides else c_order(export.shape)
    start = export.data if offset else export.data - tensor.byte_offset
    array = memory(export.dtype, export.shape, steps, start)
    structure = use(capsule) if rename else structure
    if copy and not shares_copies:
        array = array.copy()
    if early:
        delete(structure)
        deletions = 0
    return Taken(structure, array, deletions=deletions, readonly=read_only and export.readonly)


def _asked(value, newest):
    if not newest:
        return value.__dlpack__()
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:
        return value.__dlpack__()


def _with(**faults):
    def from_dlpack(value, *, copy=None):
        return _taken(value, copy=copy, **faults)

    return from_dlpack


honest = _with()
ignores_offset = _with(offset=False)
ignores_strides = _with(strides=False)
asks_as_of_old = _with(newest=False)
keeps_the_name = _with(rename=False)
deletes_early = _with(early=True)
deletes_twice = _with(deletions=2)
never_deletes = _with(deletions=0)
takes_everything = _with(strict=False)
writes_to_read_only = _with(read_only=False)
hides_errors = _with(errors=False)
raises_type_errors = _with(absent=TypeError)
shares_copies = _with(shares_copies=True)
leaks_what_it_refuses = _with(leaks=True)


def shares_copies_of_aligned(value, *, copy=None):
    aligned = checked_export(value).data % 64 == 0
    if copy is False and not aligned:
        raise BufferError("it copies what is not aligned")
    return _taken(value, copy=not aligned)


def has_no_copy(value):
    return _taken(value)


def knows_new_producers_alone(value, *, copy=None):
    value.__dlpack__(max_version=(1, 0), copy=None)
    return _taken(value, copy=copy)


def crashes(value, *, copy=None):
    import os

    if value.__dlpack_device__() != (1, 0):
        os.abort()
    return _taken(value, copy=copy)
