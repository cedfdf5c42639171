"""What is fuzzed: a function of bytes for each reader of what others wrote. It raises if interop is wrong."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import interop
from interop._cli import notation
from interop.errors import InteropError
from tests.kit.capsules import Legacy, Versioned, bounds, forever, get_pointer, on_deletion
from tests.properties.fuzz import Array, Producer, compare, expected

#: Bytes of the memory that capsules and interfaces are about.
ROOM = 2**12
MEMORY = (ctypes.c_ubyte * ROOM).from_buffer_copy(bytes(range(256)) * (ROOM // 256))
ADDRESS = ctypes.addressof(MEMORY)
#: More axes than any array has.
_AXES = 80
#: Results of more elements are not compared one by one.
_FEW = 2**10
#: The fields of a tensor, and what leads to its axes: see `_Capsule`.
_FIELDS = struct.Struct("<BBBBbBBHQ")


class _Capsule(Producer):
    """A producer of the capsule that some bytes describe.

    They are: flags, the kind of address, the device type, the major version, the number of axes, code, bits and lanes,
    the offset, and then lengths and strides in turn.
    """

    def __init__(self, data: bytes) -> None:
        fields, rest = data[: _FIELDS.size].ljust(_FIELDS.size, b"\0"), data[_FIELDS.size :]
        self.fields = _FIELDS.unpack(fields)
        numbers = struct.unpack(f"<{len(rest) // 8}q", rest[: len(rest) // 8 * 8])[: 2 * _AXES]
        lengths, steps = numbers[::2], numbers[1::2]
        self.lengths = (ctypes.c_int64 * _AXES)(*lengths)
        self.steps = (ctypes.c_int64 * _AXES)(*steps)
        self.versioned = bool(self.fields[0] & 1)
        self.made = self.deleted = 0

    def __dlpack_device__(self) -> Any:
        return 1, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        flags, place, device, major, ndim, code, bits, lanes, offset = self.fields
        base = np.zeros(1)
        capsule = base.__dlpack__(max_version=(1, 0)) if self.versioned else base.__dlpack__()
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        managed = (Versioned if self.versioned else Legacy).from_address(get_pointer(capsule, name))
        self.made += 1
        on_deletion(managed, self._deleted)
        forever.extend((self.lengths, self.steps))
        if isinstance(managed, Versioned):
            managed.major = major % 4
        tensor = managed.tensor
        tensor.data = (ADDRESS, ADDRESS + 8, ADDRESS + 1, None, 64, 2**63, 2**64 - 8)[place % 7]
        tensor.device_type = (1, 1, 1, 2, 0, 99)[device % 6]
        tensor.ndim = ndim
        tensor.code, tensor.bits, tensor.lanes = code, bits, lanes
        tensor.byte_offset = offset
        for field, axes, flag in (("shape", self.lengths, 2), ("strides", self.steps, 4)):
            pointer = ctypes.POINTER(ctypes.c_int64)
            setattr(tensor, field, pointer() if flags & flag else ctypes.cast(axes, pointer))
        return capsule


def capsule(data: bytes) -> None:
    """Read a DLPack capsule: it is refused, or an array over the memory that it names; and it is freed once."""
    producer = _Capsule(data)
    try:
        array = interop.convert(producer, to="numpy", copy=False)
    except InteropError:
        array = None
    if array is not None:
        _check_inside(array)
    del array
    if producer.made != producer.deleted:
        gc.collect()
    if producer.made != producer.deleted:
        raise AssertionError(f"{producer.made} capsules were made, and {producer.deleted} deleted")
    del forever[:]


def interface(data: bytes) -> None:
    """Read an array interface, as JSON; ``["at", 8, false]`` is an address, ``"bytes"`` a buffer, in its data."""
    try:
        entries = json.loads(data, parse_constant=str)
    except (ValueError, RecursionError):
        return
    buffer = bytearray(MEMORY)
    if isinstance(entries, dict):
        entries = {name: _as_tuples(entry) for name, entry in entries.items()}
        memory = entries.get("data")
        if memory == "bytes":
            entries["data"] = buffer
        elif isinstance(memory, tuple) and memory[:1] == ("at",) and len(memory) == 3:
            shift = memory[1] if type(memory[1]) is int else 0
            entries["data"] = (ADDRESS + shift, memory[2])
    try:
        array = interop.convert(Array(interface=entries), to="numpy", copy=False)
    except InteropError:
        return
    if entries["data"] is not buffer:
        _check_inside(array)
    elif array.size:
        start = ctypes.addressof((ctypes.c_ubyte * ROOM).from_buffer(buffer))
        low, high = bounds(array)
        if not start <= low <= high <= start + ROOM:
            raise AssertionError("it reaches beyond its buffer")


def _as_tuples(entry: Any) -> Any:
    return tuple(map(_as_tuples, entry)) if isinstance(entry, list) else entry


def _check_inside(array: np.ndarray[Any, Any]) -> None:
    """Compare the numbers of an array with the memory, if it lies there; where it does not, it was told so."""
    if not array.size or array.size > _FEW:
        return
    low, high = bounds(array)
    if low >= ADDRESS and high <= ADDRESS + ROOM:
        steps = tuple(step // array.itemsize for step in array.strides)
        if all(step % array.itemsize == 0 for step in array.strides):
            offset = array.__array_interface__["data"][0] - ADDRESS
            numbers = expected(MEMORY, array.dtype, array.shape, steps, offset)
            if array.dtype != bool or not np.array_equal(
                array, numbers
            ):  # a true byte may be any but 0
                compare(array, numbers)


def names(data: bytes) -> None:
    """Read a text as a value on the command line, as a target, as a dtype and as a device."""
    text = data.decode("utf-8", "surrogateescape")
    value = np.zeros(2, "float32")
    for read in (
        lambda: notation.read(interop.default, text),
        lambda: interop.plan(value, to=text),
        lambda: interop.plan(value, to="numpy", dtype=text),
        lambda: interop.plan(value, to="numpy", device=text),
    ):
        try:
            read()
        except InteropError as error:
            str(error).encode("utf-8", "backslashreplace")


def arrow(data: bytes) -> None:
    """Read a file or a stream of Arrow's: columns of numbers, and lists of them, are right or refused.

    Text is left out: whoever reads it from others validates it.
    """
    import pyarrow as pa

    for read in (pa.ipc.open_file, pa.ipc.open_stream):
        try:
            table = read(io.BytesIO(data)).read_all()
            table.validate()
            columns = table.columns  # their names need be no text
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, EOFError):
            continue
        for column in columns:
            if _holds_numbers(column.type) and table.num_rows <= _FEW:
                _check_column(column)


def _check_column(column: Any) -> None:
    """Convert a column, which is right or refused: so are offsets in which Arrow finds a fault."""
    import pyarrow as pa

    fault = ""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        fault = str(error)
    for target in ("numpy", "python"):
        try:
            result = interop.convert(column, to=target, allow={"pad", "drop_mask"})
        except InteropError:
            continue
        if "offset" in fault.lower():
            raise AssertionError(f"{column.type} was believed: {fault}")
        if (
            target == "python"
            and not (fault or column.null_count)
            and "list" not in str(column.type)
        ):
            assert str(result) == str(column.to_pylist()), "the numbers are others"


def _holds_numbers(type_: Any) -> bool:
    import pyarrow as pa

    while pa.types.is_list(type_) or pa.types.is_large_list(type_):
        type_ = type_.value_type
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "capsule": capsule,
    "interface": interface,
    "names": names,
    "arrow": arrow,
}
