"""DLPack from the outside: ask a producer for its memory, and check what it hands out.

A capsule is looked at without being consumed, so that what could end the process (a NULL pointer, a
negative stride, a layout of a later version) is a Python exception before any consumer sees it.
Nothing here ever calls a deleter: a capsule that nobody consumed frees itself.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Container, Mapping
from ctypes import PYFUNCTYPE, c_char, c_char_p, c_int64, c_void_p, py_object, pythonapi
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeAlias
from weakref import WeakKeyDictionary

from interop._model.device import PAGE_LOCKED
from interop._model.typing import Value
from interop.errors import Declined, HandOffError

from .arrays import extent, is_contiguous, overlaps

#: A PyCapsule, which has no type of its own in Python.
Capsule: TypeAlias = Any

#: The newest version of the standard of which all codes are known here.
MAX_VERSION = (1, 3)

# Prototypes of our own: types set on the functions of ctypes.pythonapi would be everybody's.
_name_of = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
_pointer_of = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))

# Both in native layout: the pointers are as wide as the machine's. The dtype (type code, bits and
# lanes: BBH) is read as one number.
_DTYPE = struct.Struct("BBH")
_TENSOR = struct.Struct("PiiiIPPQ")
_VERSIONED = struct.Struct("IIPPQPiiiIPPQ")
_READ_ONLY, _COPIED, _PADDED = 1, 2, 4

# NumPy and torch stop at 64 axes; a larger number is not a number of axes.
_MAX_AXES = 64
_MAX_BYTES = 2**63 - 1


def _addresses() -> int:
    """Return the number of addresses that a process can have."""
    machine = os.uname().machine if hasattr(os, "uname") else sys.version
    # Addresses beyond are the kernel's, or nobody's. Elsewhere the upper bits may be tags.
    wide = struct.calcsize("P") == 8 and any(name in machine for name in ("x86_64", "AMD64"))
    return 2**56 if wide else int(2 ** (8 * struct.calcsize("P")))


#: The number of addresses that a process can have.
ADDRESSES: int = _addresses()
_PAGE = 4096

# Windows on memory at an address: nothing is read but what the struct asks for.
_tensor_at = (c_char * _TENSOR.size).from_address
_versioned_at = (c_char * _VERSIONED.size).from_address
_axes_at = (c_int64 * _MAX_AXES).from_address
_AXES = [struct.Struct(f"{count}q").unpack_from for count in range(_MAX_AXES + 1)]

_HOST = frozenset({1, 3, 11, 20})
_PAGE_LOCKED = frozenset({3, 11})
#: OpenCL, Vulkan, Metal: what ``data`` holds there is a handle (a ``cl_mem``, an ``id<MTLBuffer>``)
#: and no address, so that ``byte_offset`` stays beside it.
_HANDLES = frozenset({4, 7, 8})

_DEVICE_TYPES = {
    2: "cuda",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    12: "ext_dev",
    13: "cuda",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
    17: "maia",
    18: "trn",
    19: "tpu",
}

#: What the device types are called of which memory is no device's own, but can be read by one.
_SHARED_TYPES = {3: " (page-locked)", 11: " (page-locked)", 13: " (managed memory)"}

#: dtype names by DLPack's type code and bits.
DLPACK_DTYPES: dict[tuple[int, int], str] = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (2, 128): "longdouble",
    (4, 16): "bfloat16",
    (5, 32): "complex32",
    (5, 64): "complex64",
    (5, 128): "complex128",
    (6, 8): "bool",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
    # Narrower than a byte: known only where the producer says that it pads each to one.
    **{(0, bits): f"int{bits}" for bits in (1, 2, 4)},
    **{(1, bits): f"uint{bits}" for bits in (1, 2, 4)},
    (15, 6): "float6_e2m3fn",
    (16, 6): "float6_e3m2fn",
    (17, 4): "float4_e2m1fn",
}

#: Name and bytes of what fills whole bytes, by the dtype as one number.
_DTYPES = {
    int.from_bytes(_DTYPE.pack(code, bits, 1), sys.byteorder): (name, bits // 8)
    for (code, bits), name in DLPACK_DTYPES.items()
    if bits >= 8
}

#: The errors by which a producer may say that it will not export; never MemoryError.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AssertionError, AttributeError)

#: Keywords in the order in which producers learnt them, the newest first.
_NEWEST_FIRST = ("max_version", "copy", "dl_device", "stream")

#: For each type whose ``__dlpack__`` does not take every keyword: the ones to leave out.
_unknown: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


class Export(NamedTuple):
    """The memory that a producer offers through DLPack, read from its capsule.

    Parameters
    ----------
    dtype : str
        Name of the dtype.
    shape : tuple of int, in elements
        Lengths of the axes.
    strides : tuple of int or None, in elements
        Steps along the axes; None for one C-ordered block.
    device : str
        ``"cpu"``, ``"cuda_host"``, ``"cuda:0"`` …; a device type that is not known reads
        ``"device99:0"``.
    readonly : bool
        Whether the memory is flagged read-only. A legacy capsule cannot say so.
    copied : bool
        Whether the producer says that it copied.
    versioned : bool
        Whether the capsule is of the versioned kind, which has flags.
    data : int, in bytes
        Address of the first element; of OpenCL, Vulkan and Metal a handle, which is none.
    bits : int, in bits
        What one element takes in memory.
    device_type : int, without unit
        DLPack's number of the device type.
    backwards : bool
        Whether a stride is negative.
    contiguous : bool
        Whether its elements are one C-ordered block.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: str
    readonly: bool
    copied: bool
    versioned: bool
    data: int
    bits: int
    device_type: int
    backwards: bool
    contiguous: bool

    @property
    def aligned(self) -> bool:
        """Whether its elements are aligned to their size; a handle says nothing of it."""
        aligned = not self.data % (self.bits // 8) or 0 in self.shape
        return aligned or self.device_type in _HANDLES

    @property
    def broadcast(self) -> bool:
        """Whether several elements share memory, or might."""
        return not self.contiguous and overlaps(self.shape, self.strides or ())

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """The address and the length of its memory, in bytes; empty without either."""
        if self.device_type in _HANDLES:
            return ()
        size = self.bits // 8
        start, nbytes = self.data, prod(self.shape) * size
        if self.strides is not None:
            steps = [step * size for step in self.strides]
            start, nbytes = extent(start, self.shape, steps, size)
        return ((start, nbytes),) if nbytes else ()


def export(
    value: Value,
    *,
    stream: int | None = None,
    copy: bool | None = None,
    dl_device: tuple[int, int] | None = None,
) -> Capsule:
    """Return a DLPack capsule of `value`, whichever keywords its ``__dlpack__`` knows.

    Parameters
    ----------
    value : object
        Anything with ``__dlpack__``.
    stream : int or None
        The stream on which the memory will be used; None sends none.
    copy : bool or None
        What to ask of the producer; None sends nothing.
    dl_device : tuple of int or None
        The device the memory should be on, as DLPack's numbers; None: where it is.

    Returns
    -------
    capsule
        Unread. It frees itself if nobody consumes it.

    Raises
    ------
    HandOffError
        The producer refused, or does not know a keyword that cannot be left out.
    """
    keywords: dict[str, Any] = {"max_version": MAX_VERSION}
    if stream is not None:
        keywords["stream"] = stream
    if copy is not None:
        keywords["copy"] = copy
    if dl_device is not None:
        keywords["dl_device"] = dl_device
    return _ask(value, keywords)


def checked_export(value: Value, *, stream: int | None = None) -> Export:
    """Return what `value` offers through DLPack, having checked that it can be what it says.

    Negative strides, elements that are not aligned and read-only memory are reported, not refused:
    there are consumers that can take them.

    Parameters
    ----------
    value : object
        Anything with ``__dlpack__``.
    stream : int or None
        As of `export`; ``-1`` asks a device's producer not to order anything, which is enough to
        look at the metadata.

    Returns
    -------
    Export
        What the capsule says. The capsule itself is not kept.

    Raises
    ------
    HandOffError
        The producer refused, or its capsule does not describe usable memory.
    """
    return Export._make(_read(export(value, stream=stream), value))


def plain_array(value: Value) -> Value | None:
    """Return a NumPy array over a producer's memory if that is writable and on the host.

    It takes two thirds of the time that NumPy and a `CheckedProducer` need, and explains nothing.

    Parameters
    ----------
    value : object
        Anything with ``__dlpack__``.

    Returns
    -------
    numpy.ndarray or None
        None if there is no such array: the producer refuses, the memory is on a device, not usable,
        read-only, or maybe so, because nothing flags it, or NumPy lacks the dtype.
    """
    import numpy as np

    try:
        capsule = value.__dlpack__(max_version=MAX_VERSION)
        # By number, as a named tuple takes longer: device type, whether flagged, and read-only.
        fields = _read(capsule, value)
        if fields[9] not in _HOST or not fields[6] or fields[4]:
            return None
        array = np.from_dlpack(CapsuleProducer(capsule))
    except _REFUSALS:
        return None
    # For a NULL pointer NumPy makes memory of its own.
    return None if array.flags.owndata else array


class CheckedProducer:
    """Wraps a producer, and passes on only sound capsules.

    Give it to a consumer's own ``from_dlpack``, so that what the consumer does about streams and
    lifetime is kept. Keywords that the producer does not know are left out if that is harmless.

    Parameters
    ----------
    value : object
        The producer.
    negative_strides : bool
        Whether the consumer survives negative strides.
    alignment : int or None
        Bytes to which the data must be aligned; None: to the size of an element.
    readonly : bool
        Whether the consumer may be given memory that is flagged read-only.
    dtypes : container of str or None
        The dtypes the consumer knows; None: all that DLPack can name.
    device_types : container of int or None
        DLPack's numbers of the device types from which the consumer takes memory; None: it is asked
        for none that it does not take. Managed memory is of a type of its own (13), although it
        lies on a CUDA device.
    """

    __slots__ = (
        "_alignment",
        "_device_types",
        "_dtypes",
        "_negative_strides",
        "_readonly",
        "_value",
    )

    def __init__(
        self,
        value: Value,
        *,
        negative_strides: bool = False,
        alignment: int | None = None,
        readonly: bool = True,
        dtypes: Container[str] | None = None,
        device_types: Container[int] | None = None,
    ) -> None:
        self._value = value
        self._device_types = device_types
        self._negative_strides = negative_strides
        self._alignment = alignment
        self._readonly = readonly
        self._dtypes = dtypes

    def __dlpack__(self, **keywords: Any) -> Capsule:
        """Return the producer's capsule; raise HandOffError (a BufferError) if it is not sound."""
        capsule = _ask(self._value, keywords)
        # Fields by number: a named tuple would cost a third of the whole check.
        fields = _read(capsule, self._value)
        alignment = self._alignment or fields[8] // 8
        if (
            (fields[10] and not self._negative_strides)
            or (fields[7] % alignment and fields[9] not in _HANDLES)
            or (fields[4] and not self._readonly)
            or (self._dtypes is not None and fields[0] not in self._dtypes)
        ):
            self._refuse(Export._make(fields), alignment)
        return capsule

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return the producer's device; raise Declined if the consumer does not take it."""
        try:
            kind, index = self._value.__dlpack_device__()
        except _REFUSALS as error:
            raise _refused(self._value, error) from error
        if self._device_types is not None and kind not in self._device_types:
            raise Declined(_foreign_memory(int(kind)))
        # Paddle leaves the index of the CPU at None, which consumers cannot read.
        return (kind, 0 if index is None else index)

    def _refuse(self, offer: Export, alignment: int) -> None:
        """Say what stands in the way; an empty array may lie anywhere."""
        if offer.backwards and not self._negative_strides:
            _refuse(self._value, f"has negative strides {offer.strides}", "copy it first")
        if offer.readonly and not self._readonly:
            _refuse(self._value, "is read-only", "copy it first")
        if self._dtypes is not None and offer.dtype not in self._dtypes:
            _refuse(self._value, f"has dtype {offer.dtype}", "cast it to a dtype both sides know")
        if 0 not in offer.shape:
            problem = f"lies at {offer.data:#x}, which is not aligned to {alignment} bytes"
            _refuse(self._value, problem, "copy it first")


def _foreign_memory(kind: int) -> str:
    """Say that a consumer does not take memory of a device type, and what to do about it."""
    meaning = _SHARED_TYPES.get(kind, "")
    move = "; copy it into memory of the device's own first" if meaning else ""
    return f"it does not take memory of DLPack's device type {kind}{meaning}{move}"


class CapsuleProducer:
    """A producer of a capsule that was asked for already, of memory on the host.

    Parameters
    ----------
    capsule : capsule
        What `export` returns. It can be consumed once, and be read any number of times before.
    """

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Capsule) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Capsule:
        """Return the capsule."""
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's numbers of the host."""
        return (1, 0)


def _ask(value: Value, keywords: Mapping[str, object]) -> Capsule:
    """Call ``value.__dlpack__`` with those of `keywords` that it knows."""
    try:
        if _unknown:
            keywords = _known(value, keywords)
        return value.__dlpack__(**keywords)
    except HandOffError:
        raise
    except TypeError as error:
        if not _about_signature(error, keywords):
            raise _refused(value, error) from error
        refusal = error
    except _REFUSALS as error:
        raise _refused(value, error) from error
    try:
        return _probe(value, dict(keywords), refusal)
    finally:
        del refusal  # its traceback has this frame, and so the value


def _probe(value: Value, keywords: dict[str, Any], refusal: TypeError) -> Capsule:
    """Call ``value.__dlpack__`` with ever fewer keywords, and remember what its type took."""
    dropped, of_the_type = set(), _is_of_type(refusal, value)
    try:
        for name in _NEWEST_FIRST:
            if name not in keywords:
                continue
            _check_droppable(value, name, keywords.pop(name))
            dropped.add(name)
            try:
                capsule = value.__dlpack__(**keywords)
            except _REFUSALS as error:
                if not (isinstance(error, TypeError) and _about_signature(error, keywords)):
                    raise _refused(value, error) from error
                of_the_type = of_the_type and _is_of_type(error, value)
                refusal = error
                continue
            if of_the_type:
                _unknown[type(value)] = _unknown.get(type(value), frozenset()) | dropped
            return capsule
        raise _refused(value, refusal) from refusal
    finally:
        del refusal  # its traceback has this frame, and so the value


def _is_of_type(refusal: TypeError, value: Value) -> bool:
    """Return whether all values of a type refuse a keyword because one did.

    It is not so if a method took the keyword and something that it called did not: a wrapper's
    answer depends on what it wraps.
    """
    frames = refusal.__traceback__  # the first is the caller's
    called = frames is not None and frames.tb_next is None
    method = getattr(type(value), "__dlpack__", None)
    return called and callable(method) and "__dlpack__" not in getattr(value, "__dict__", ())


def _known(value: Value, keywords: Mapping[str, object]) -> Mapping[str, object]:
    unknown = _unknown.get(type(value))
    if not unknown or unknown.isdisjoint(keywords):
        return keywords
    for name in unknown & keywords.keys():
        _check_droppable(value, name, keywords[name])
    return {name: value for name, value in keywords.items() if name not in unknown}


def _about_signature(error: TypeError, keywords: Mapping[str, object]) -> bool:
    """Return whether a TypeError is about the keywords sent, and not the producer's own."""
    text = str(error)
    return "argument" in text or any(name in text for name in keywords)


def _check_droppable(value: Value, name: str, argument: Any) -> None:
    """Refuse to leave out a keyword if the producer would then do something else."""
    if name == "copy" and argument:
        _refuse(value, "cannot be asked for a copy", "share it and copy the result")
    if name == "dl_device" and argument is not None and tuple(argument) != _device_of(value):
        _refuse(value, f"cannot be asked for device {argument}", "move it there first")
    if name == "stream" and argument not in (None, -1):
        _refuse(value, "cannot be asked to wait for a stream", "synchronise and share on the host")


def _device_of(value: Value) -> tuple[int, int]:
    kind, index = CheckedProducer(value).__dlpack_device__()
    return int(kind), int(index)


def _read(capsule: Capsule, value: Value) -> tuple[Any, ...]:
    """Return the fields of an `Export`; refuse what cannot be usable memory."""
    try:
        address = _pointer_of(capsule, b"dltensor_versioned")
        header = _VERSIONED.unpack_from(_versioned_at(address))
    except ValueError:
        address, header = None, _legacy(capsule, value)
    if header[0] != 1:
        _refuse_version(value, header)
    _, _, _, _, flags, data, device_type, index, ndim, dtype, shape_at, strides_at, offset = header
    name, itemsize = _DTYPES.get(dtype) or _narrow_dtype(value, dtype, flags)
    if not _has_axes(ndim, shape_at, strides_at):
        _refuse(value, f"has {ndim} axes", "report it to the producer")
    shape = _AXES[ndim](_axes_at(shape_at)) if ndim else ()
    strides = _AXES[ndim](_axes_at(strides_at)) if ndim and strides_at else None
    low, high, problem, backwards, contiguous = _span(shape, strides, itemsize)
    data = data or 0
    start = data + offset
    if device_type in _HANDLES and data:
        start, low, high = data, 0, 0
    # An offset from NULL, however large, is no address either: no system maps its first page.
    if problem or (high and (data < _PAGE or start + low < 0 or start + high > ADDRESSES)):
        _refuse_memory(value, data, shape, strides, problem)
    device = device_named(device_type, index)
    return (
        name,
        shape,
        strides,
        device,
        flags & _READ_ONLY != 0,
        flags & _COPIED != 0,
        address is not None,
        start,
        8 * itemsize,
        device_type,
        backwards,
        contiguous,
    )


def _has_axes(ndim: int, shape_at: int, strides_at: int) -> bool:
    """Return whether lengths and strides can be read from where they are said to lie."""
    if not ndim:
        return True
    return (
        0 < ndim <= _MAX_AXES
        and _PAGE <= shape_at < ADDRESSES
        and (not strides_at or _PAGE <= strides_at < ADDRESSES)
    )


def _legacy(capsule: Capsule, value: Value) -> tuple[Any, ...]:
    """Return the header of an unversioned capsule as if it were versioned and had no flags."""
    try:
        name = _name_of(capsule)
    except ValueError as error:
        kind = type(capsule).__name__
        problem = f"answered __dlpack__ with an object of type {kind}, which is not a capsule"
        raise _problem(value, problem, "report it to the producer") from error
    if name != b"dltensor":
        shown = name.decode(errors="replace") if name else name
        _refuse(value, f"offers a capsule named {shown!r}", "ask the producer for a fresh one")
    return (1, 0, 0, 0, 0, *_TENSOR.unpack_from(_tensor_at(_pointer_of(capsule, name))))


@lru_cache(maxsize=1024)
def _span(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
) -> tuple[int, int, str, bool, bool]:
    """Return the bytes reached before and after the first element, and what is wrong, if anything.

    Both are 0 for an empty array. The last two items tell whether a stride is negative and whether
    the elements are one C-ordered block.
    """
    if shape and min(shape) < 0:
        return 0, 0, f"has the shape {shape}", False, False
    size, backwards = prod(shape), bool(strides) and min(strides or (0,)) < 0
    if not size:
        return 0, 0, "", backwards, True
    low, high = 0, size - 1
    if strides is not None:
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    if (high - low + 1) * itemsize > _MAX_BYTES or size * itemsize > _MAX_BYTES:
        return 0, 0, f"has a shape {shape} and strides {strides} beyond all memory", False, False
    contiguous = strides is None or is_contiguous(shape, strides)
    return low * itemsize, (high + 1) * itemsize, "", backwards, contiguous


def _refuse_memory(
    value: Value, data: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, problem: str
) -> NoReturn:
    if not problem and data < _PAGE:
        problem = f"has {prod(shape)} elements but no memory (does it wrap other arrays?)"
        _refuse(value, problem, "turn it into a plain array with its framework first")
    problem = problem or f"has a shape {shape} and strides {strides} beyond all memory"
    _refuse(value, problem, "report it to the producer")


@lru_cache(maxsize=256)
def device_named(device_type: int, index: int) -> str:
    """Return the name of a device by DLPack's numbers."""
    if device_type in _HOST:
        return PAGE_LOCKED if device_type in _PAGE_LOCKED else "cpu"
    kind = _DEVICE_TYPES.get(device_type, f"device{device_type}")
    return f"{kind}:{index}"


def _narrow_dtype(value: Value, dtype: int, flags: int) -> tuple[str, int]:
    """Return a dtype narrower than a byte, if each is padded to one; refuse any other."""
    code, bits, lanes = _DTYPE.unpack(dtype.to_bytes(_DTYPE.size, sys.byteorder))
    name = DLPACK_DTYPES.get((code, bits))
    if name is None or lanes != 1 or not flags & _PADDED:
        packed = "packed " if bits < 8 else ""
        problem = f"has the {packed}DLPack dtype (code {code}, {bits} bits, {lanes} lanes)"
        _refuse(value, problem, "cast it with its own framework first")
    return name, 1


def _refuse_version(value: Value, header: tuple[Any, ...]) -> NoReturn:
    problem = f"exports DLPack {header[0]}.{header[1]}, and only version 1 can be read here"
    _refuse(value, problem, "ask it for max_version=(1, 3)")


def _refused(value: Value, error: Exception) -> HandOffError:
    problem = f"would not export its memory: {str(error).rstrip('.') or type(error).__name__}"
    return _problem(value, problem, "turn it into a plain array with its framework first")


def _refuse(value: Value, problem: str, move: str) -> NoReturn:
    raise _problem(value, problem, move)


def _problem(value: Value, problem: str, move: str) -> HandOffError:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return HandOffError(f"DLPack hand-off: {name} {problem}. {move[0].upper()}{move[1:]}.")
