"""Capsules: producers whose every field is chosen, and what is left of a capsule once it is used.

The structures are those of ``dlpack.h``; what becomes of a capsule is said by the `Python
specification <https://dmlc.github.io/dlpack/latest/python_spec.html>`_.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, c_char_p, c_int, c_void_p, py_object, pythonapi
from typing import Any

from interop.kit.dlpack import DLPACK_DTYPES, Capsule

READ_ONLY, COPIED = 1, 2
NAMES = {False: b"dltensor", True: b"dltensor_versioned"}

#: DLPack's type code and bits of each dtype.
CODES = {name: code for code, name in DLPACK_DTYPES.items()}


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(ctypes.c_int64)),
        ("strides", POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


DELETER = CFUNCTYPE(None, c_void_p)
get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
name_of = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))

_destructor_of = PYFUNCTYPE(c_void_p, py_object)(("PyCapsule_GetDestructor", pythonapi))

# A destructor that does nothing, so that one shows which a consumer has taken away.
_NOTHING = ctypes.cast(pythonapi.Py_IsInitialized, c_void_p).value

#: Callbacks, names and memory that compiled code may use as long as the process lives.
forever: list[Any] = []


def managed(capsule: Capsule) -> Versioned | Legacy:
    """Return the structure that an unused capsule points to, which lives as long as that.

    Raises
    ------
    ValueError
        It is neither of the kinds that the specification names.
    """
    name = name_of(capsule)
    if name not in NAMES.values():
        raise ValueError(f"the capsule is named {name!r}")
    kind = Versioned if name == NAMES[True] else Legacy
    structure = kind.from_address(get_pointer(capsule, name))
    structure.capsule = capsule  # whose end would free it while it is read
    return structure


def use(capsule: Capsule) -> Versioned | Legacy:
    """Take what a capsule manages, as a consumer does; the caller calls the deleter."""
    structure = managed(capsule)
    name = b"used_" + name_of(capsule)
    forever.append(name)
    _set_name(capsule, name)
    return structure


def delete(structure: Versioned | Legacy) -> None:
    """Call the deleter of what was taken, if it has one."""
    if structure.deleter:
        DELETER(structure.deleter)(ctypes.addressof(structure))


class Producer:
    """A producer of memory of its own, which notes what its consumer asks and does.

    Parameters
    ----------
    array : numpy.ndarray
        What it exports, as it lies in memory.
    keywords : collection of str
        The keywords that its ``__dlpack__`` knows.
    versioned : bool or None
        Whether its capsules are versioned; None: if the consumer asks for it.
    deleter : bool
        Whether its capsules have a deleter, which the standard leaves to the producer.
    refusal : Exception or None
        What it raises in the place of an answer.
    **fields : int, tuple of int or None
        Fields of the structures that are not what the array would have: ``data``, ``strides``,
        ``shape``, ``byte_offset``, ``flags``, ``major``, ``code``, ``bits``, ``device_type`` …

    Attributes
    ----------
    requests : list of dict
        The keywords of each call of ``__dlpack__``.
    deletions : int
        How often a deleter was called.
    capsules : list of capsule
        Those it has answered with, which are kept: what their consumer did shows in them.
    """

    def __init__(
        self,
        array: Any,
        *,
        keywords: tuple[str, ...] = ("stream", "max_version", "dl_device", "copy"),
        versioned: bool | None = None,
        deleter: bool = True,
        refusal: Exception | None = None,
        **fields: Any,
    ) -> None:
        self.array = array
        self.requests: list[dict[str, Any]] = []
        self.capsules: list[Capsule] = []
        self.deletions = 0
        self._keywords, self._versioned, self._deleter = keywords, versioned, deleter
        self._refusal, self._fields = refusal, fields

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's numbers of the device."""
        return (self._fields.get("device_type", 1), self._fields.get("device_id", 0))

    def __dlpack__(self, **keywords: Any) -> Capsule:
        """Return a capsule, and note the request."""
        self.requests.append(keywords)
        for name in keywords:
            if name not in self._keywords:
                raise TypeError(f"__dlpack__() got an unexpected keyword argument {name!r}")
        if self._refusal is not None:
            raise self._refusal
        if keywords.get("copy"):
            raise BufferError("this producer makes no copies")
        versioned = self._versioned
        if versioned is None:
            versioned = (keywords.get("max_version") or (0, 0))[0] >= 1
        return self.capsule(versioned=versioned)

    def capsule(self, *, versioned: bool = True) -> Capsule:
        """Return a capsule over the array."""
        structure = Versioned() if versioned else Legacy()
        if versioned:
            structure.major, structure.minor = 1, 0
        _describe(structure.tensor, self.array)
        for name, value in self._fields.items():
            holder = structure if hasattr(structure, name) else structure.tensor
            if hasattr(holder, name):  # a legacy capsule has no flags
                setattr(holder, name, _numbers(value) if isinstance(value, tuple) else value)

        def count(_: int) -> None:
            # A consumer that refuses calls it with its error on the way, which is lost in Python
            # code: it is a SystemError then.
            self.deletions += 1

        deleter = DELETER(count)
        if self._deleter:
            structure.deleter = ctypes.cast(deleter, c_void_p).value
        forever.extend((self.array, structure, deleter))
        address = ctypes.addressof(structure)
        self.capsules.append(new_capsule(address, NAMES[versioned], _NOTHING))
        return self.capsules[-1]

    @property
    def renamed(self) -> int:
        """How many of its capsules a consumer has renamed, as the specification demands."""
        return sum(name_of(capsule) not in NAMES.values() for capsule in self.capsules)

    @property
    def taken(self) -> int:
        """How many of its capsules will not call their deleter any more."""
        return sum(
            name_of(capsule) not in NAMES.values() or _destructor_of(capsule) != _NOTHING
            for capsule in self.capsules
        )


def _describe(tensor: Tensor, array: Any) -> None:
    """Write into a structure what an array is."""
    tensor.data, tensor.device_type = array.ctypes.data, 1
    tensor.ndim, tensor.lanes = array.ndim, 1
    tensor.code, tensor.bits = CODES[array.dtype.name]
    tensor.shape = _numbers(array.shape)
    tensor.strides = _numbers(tuple(step // array.itemsize for step in array.strides))


def _numbers(values: tuple[int, ...]) -> Any:
    """Return a pointer to integers, which stay where they are."""
    numbers = (ctypes.c_int64 * max(1, len(values)))(*values)
    forever.append(numbers)
    return ctypes.cast(numbers, POINTER(ctypes.c_int64))
