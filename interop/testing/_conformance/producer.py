"""Checks of a producer: what ``__dlpack__`` and ``__dlpack_device__`` of its arrays answer."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from contextlib import suppress
from functools import partial
from typing import Any

from interop.errors import HandOffError
from interop.kit.dlpack import (
    MAX_VERSION,
    Capsule,
    CapsuleProducer,
    Export,
    checked_export,
    device_named,
)
from interop.testing._memory import overwrite_freed
from interop.testing._sample import NoSample
from interop.testing._table import PRODUCER, Refused

from . import rules
from .capsule import COPIED, NAMES, Producer, delete, managed, name_of, use
from .library import Library, compare, memory, numpy_dtype
from .rules import HEADER, NOTES, SPECIFICATION, STANDARD, UntrueError, expect, rule, shown

_rule = partial(rule, PRODUCER)

_HOST, _NOWHERE = (1, 0), (99, 0)

DTYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16"),
    *("float8_e4m3fn", "float8_e5m2"),
)
LAYOUTS = (
    *("one block", "transposed", "every second", "reversed", "offset"),
    *("axis of one", "no elements", "no axes"),
)
_INDEX = {
    "every second": slice(None, None, 2),
    "reversed": slice(None, None, -1),
    "offset": slice(1, None),
    "axis of one": slice(None, 1),
    "no elements": slice(None, 0),
}
#: Each layout, and one block of each dtype.
CASES = (*LAYOUTS, *DTYPES)
_LAID_OUT = ("one block", "transposed")


def sample(dtype: str) -> Any:
    """Return six numbers of a dtype in two rows, none of which another dtype would read."""
    import numpy as np

    values = np.array([[1, 0, 2], [3, 5, 1]]).astype(numpy_dtype(dtype))
    return values + values * values.dtype.type(2j) if dtype.startswith("complex") else values


def arranged(array: Any, layout: str, axes: int = 2) -> Any:
    """Return an array, of NumPy or of a library, in another layout; by its own indexing.

    Raises
    ------
    NoSample
        An array of one axis has no such layout.
    """
    flat = axes < 2
    if layout == "transposed":
        if flat:
            raise NoSample("the library's arrays have one axis")
        return array.T
    if layout not in _INDEX:
        return array
    index = _INDEX[layout]
    if flat:
        return array[index]
    return array[(..., index) if layout == "every second" else (index, ...)]


def block_of(case: str) -> tuple[Any, str]:
    """Return NumPy's array for a case, which is a layout or a dtype, and the layout of the case."""
    import numpy as np

    block = sample(case if case in DTYPES else "float32")
    block = np.array(block[1, 1]) if case == "no axes" else block
    return block, case if case in LAYOUTS else "one block"


class Produced:
    """An array of a library in a layout, and what NumPy's array in that layout holds.

    Parameters
    ----------
    library : Library
    case : str
        A layout, or a dtype, which then is one block.
    """

    def __init__(self, library: Library, case: str) -> None:
        self.library = library
        block, layout = block_of(case)
        try:
            self.value = self._block(block)
        except Exception:  # noqa: BLE001 - there are libraries whose arrays have one axis
            block = block.reshape(-1)
            self.value = self._block(block)
        self.expected = arranged(block, layout, block.ndim)
        self.value = arranged(self.value, layout, block.ndim)
        shape = getattr(self.value, "shape", None)
        if isinstance(shape, tuple) and tuple(shape) != self.expected.shape:
            raise NoSample(f"the library makes an array of shape {tuple(shape)} of it")
        self._exports()

    def _exports(self) -> None:
        """Raise unless the array has what the checks look at."""
        if not hasattr(self.value, "__dlpack__"):
            raise NoSample(f"{type(self.value).__name__} has no __dlpack__")

    def _block(self, block: Any) -> Any:
        """Return an array of the library, for a dtype that NumPy lacks by way of DLPack."""
        import numpy as np

        try:
            return self.library.maker()(np.array(block))
        except (TypeError, ValueError):
            if block.dtype == "float32":
                raise
            return self.library.consumer()(Producer(np.array(block)))

    def lock(self) -> int:
        """Make the array anew of one that may not be written; return the address of that."""
        import numpy as np

        array = np.array(self.expected)
        array.flags.writeable = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library may say that it has no read-only arrays
            self.value = self.library.maker()(array)
        self.expected = array
        return int(array.ctypes.data)

    def ask(self, **keywords: Any) -> Capsule:
        """Return a capsule; what the library refuses, by whatever error, is a refusal."""
        try:
            return self.value.__dlpack__(**keywords)
        except Exception as error:
            raise Refused(shown(error)) from error

    def newest(self, **keywords: Any) -> Capsule:
        """Return a capsule of the newest kind that the producer knows."""
        try:
            return self.ask(max_version=MAX_VERSION, **keywords)
        except Refused as error:
            if not isinstance(error.__cause__, TypeError):
                raise
            if keywords:
                raise NoSample(f"it does not know {', '.join(keywords)}") from error
            return self.ask()

    def export(self, capsule: Capsule | None = None) -> Export:
        """Return what a capsule says."""
        try:
            return checked_export(CapsuleProducer(capsule or self.newest()))
        except HandOffError as error:
            raise UntrueError(str(error)) from error

    def numbers(self, capsule: Capsule | None = None) -> Any:
        """Return the numbers that a capsule leads to, over its memory."""
        export = self.export(capsule)
        if export.device != "cpu":
            raise NoSample(f"the memory is on {export.device}")
        return memory(export.dtype, export.shape, export.strides, export.data)


@_rule(
    "__dlpack_device__ answers with two integers, and the capsule's memory is on that device",
    f"{STANDARD}, __dlpack_device__",
)
def _device(case: Produced) -> None:
    device = case.value.__dlpack_device__()
    pair = isinstance(device, tuple) and len(device) == 2
    expect(pair and all(isinstance(n, int) for n in device), f"it answers {device!r}")
    said, held = device_named(int(device[0]), int(device[1])), case.export().device
    expect(said == held, f"it answers {said}, and the capsule says {held}")


@_rule("A consumer that names no max_version gets an unversioned capsule, or a BufferError", NOTES)
def _capsules_for_old_consumers(case: Produced) -> None:
    try:
        name = name_of(case.value.__dlpack__())
    except BufferError as error:
        raise Refused(shown(error)) from error
    expect(name == NAMES[False], f"the capsule is named {name!r}")


@_rule(
    "A consumer that names max_version=(1, 0) gets a capsule of version 1, or an unversioned one",
    NOTES,
)
def _versions(case: Produced) -> None:
    capsule = case.ask(max_version=(1, 0))
    structure, name = managed(capsule), name_of(capsule)
    if name == NAMES[True]:
        expect(structure.major == 1, f"the capsule is of version {structure.major}")
    newer = name_of(case.ask(max_version=(2, 0)))
    expect(newer in NAMES.values(), f"for max_version=(2, 0) the capsule is named {newer!r}")


@_rule(
    "A consumer that names max_version=(0, 8) gets an unversioned capsule, or a BufferError",
    NOTES,
    must=False,
)
def _versions_before_1(case: Produced) -> None:
    name = name_of(case.ask(max_version=(0, 8)))
    expect(name == NAMES[False], f"the capsule is named {name!r}")


@_rule(
    "__dlpack__ takes stream, max_version, dl_device and copy, each of them None",
    f"{STANDARD}, __dlpack__",
)
def _keywords(case: Produced) -> None:
    try:
        case.value.__dlpack__(stream=None, max_version=MAX_VERSION, dl_device=None, copy=None)
    except TypeError as error:
        raise UntrueError(shown(error)) from error


@_rule("Shape and numbers are those of the array", HEADER, *CASES)
def _numbers(case: Produced) -> None:
    compare(case.numbers(), case.expected)


@_rule("Type code and bits are those of the array's dtype", f"{HEADER}, DLDataType", *DTYPES)
def _dtypes(case: Produced) -> None:
    named = str(getattr(case.value, "dtype", "")).rpartition(".")[2].strip("'>")
    held = case.export().dtype
    if named not in DTYPES:
        raise NoSample(f"the library's dtype reads {named!r}")
    expect(held == named, f"the capsule says {held}, and the array {named}")


@_rule(
    "From version 1.2 of DLPack on, an array with axes has strides",
    f"{HEADER} 1.2, DLTensor.strides",
)
def _strides(case: Produced) -> None:
    structure = managed(case.newest())
    version = (getattr(structure, "major", 0), getattr(structure, "minor", 0))
    if version < (1, 2):
        raise NoSample(f"the capsule is of version {version[0]}.{version[1]}")
    expect(bool(structure.tensor.strides), "there are no strides")


@_rule("An array without elements has no address", rules.DATA, "no elements", must=False)
def _no_address_without_elements(case: Produced) -> None:
    tensor = managed(case.newest()).tensor
    expect(not tensor.data, f"its address is {tensor.data:#x}" if tensor.data else "")


@_rule("copy=True gives memory of the capsule's own, flagged as a copy", rules.COPY, *_LAID_OUT)
def _copies(case: Produced) -> None:
    shared = case.export()
    capsule = case.newest(copy=True)
    copied = case.export(capsule)
    expect(copied.data != shared.data, "the memory is shared")
    flagged = getattr(managed(capsule), "flags", COPIED) & COPIED
    expect(bool(flagged), "the copy is not flagged as one")


@_rule("copy=False gives the array's own memory, and no flag of a copy", rules.COPY, *_LAID_OUT)
def _no_copies(case: Produced) -> None:
    shared = case.export(case.newest(copy=False))
    again = case.export(case.newest(copy=False))
    expect(shared.data == again.data, "each capsule has memory of its own")
    expect(not shared.copied, "the memory is flagged as a copy")


@_rule("dl_device=(1, 0), the host, gives memory of the host", rules.DL_DEVICE)
def _to_the_host(case: Produced) -> None:
    device = case.export(case.newest(dl_device=_HOST)).device
    expect(device == "cpu", f"the memory is on {device}")


@_rule("A dl_device that the library does not have is a BufferError", rules.DL_DEVICE)
def _to_an_unknown_device(case: Produced) -> None:
    try:
        capsule = case.newest(dl_device=_NOWHERE)
    except Refused as error:
        expect(isinstance(error.__cause__, BufferError), f"the error is {error}")
        return
    raise UntrueError(f"it exports memory on {case.export(capsule).device}")


@_rule(
    "On the host, a stream other than None is refused",
    f"{STANDARD}, __dlpack__, stream",
    must=False,
)
def _streams_on_the_host(case: Produced) -> None:
    if tuple(case.value.__dlpack_device__()) != _HOST:
        raise NoSample("the memory is not on the host")
    with suppress(Refused):
        case.ask(stream=1)
        raise UntrueError("stream=1 is taken")


@_rule(
    "Memory that may not be written is flagged as read-only, or not exported without the flag",
    rules.READ_ONLY_FLAG,
    must=False,
)
def _read_only(case: Produced) -> None:
    address, export = case.lock(), case.export()
    if export.data != address:
        raise NoSample("the library copies an array that may not be written")
    expect(export.readonly, "it exports memory of a read-only array as writable")
    with suppress(Refused):
        name = name_of(case.ask())
        raise UntrueError(f"it exports the memory in a capsule named {name!r}, which has no flag")


@_rule(
    "What cannot be exported is refused by a BufferError",
    f"{STANDARD}, __dlpack__, raises",
    *CASES,
    must=False,
)
def _errors(case: Produced) -> None:
    try:
        case.newest()
    except Refused as error:
        expect(isinstance(error.__cause__, BufferError), f"the error is {error}")


@_rule(
    "The memory stays as it is while the capsule lives, also when the array is gone", SPECIFICATION
)
def _memory_outlives_the_array(case: Produced) -> None:
    capsule = case.newest()
    numbers = case.numbers(capsule)
    before = numbers.copy()
    case.value = None
    filler = overwrite_freed(before.nbytes)
    expect((numbers == before).all(), f"the numbers have become {numbers.tolist()}")
    del filler, capsule


@_rule("A capsule that nobody uses lets go of the array when it is destroyed", SPECIFICATION)
def _unused_capsules_let_go(case: Produced) -> None:
    count = sys.getrefcount(case.value)
    for _ in range(3):
        case.newest()
    gc.collect()
    left = sys.getrefcount(case.value) - count
    expect(left == 0, f"{left} references to the array are left after three capsules")
    watcher = _watched(case.value)
    capsule = case.newest()
    case.value = None
    del capsule
    gc.collect()
    expect(watcher() is None, "the array is kept although its capsule is gone")


@_rule(
    "A used capsule leaves its memory to the consumer, whose call of the deleter lets go of it",
    SPECIFICATION,
)
def _used_capsules_let_go(case: Produced) -> None:
    capsule = case.newest()
    numbers = case.numbers(capsule)
    before, watcher = numbers.copy(), _watched(case.value)
    structure = use(capsule)
    case.value = None
    del capsule
    filler = overwrite_freed(before.nbytes)
    same = (numbers == before).all()
    expect(same, f"without the capsule the numbers have become {numbers.tolist()}")
    delete(structure)
    del filler
    gc.collect()
    expect(watcher() is None, "the array is kept although the deleter was called")


@_rule("Two capsules of one array do not depend on each other", SPECIFICATION)
def _two_capsules(case: Produced) -> None:
    first, second = case.newest(), case.newest()
    before = case.numbers(second).copy()
    delete(use(first))
    del first
    gc.collect()
    expect((case.numbers(second) == before).all(), "the second is gone with the first")


def _watched(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:  # what cannot be watched is counted alone
        return lambda: None
