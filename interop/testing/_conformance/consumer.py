"""Checks of a consumer: what ``from_dlpack`` makes of capsules whose every field is known.

Each check gives it a `Producer` of memory on the host.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import partial
from typing import Any

from interop.errors import HandOffError
from interop.kit.dlpack import checked_export
from interop.testing._sample import NoSample
from interop.testing._table import CONSUMER, Refused

from . import rules
from .capsule import READ_ONLY, Producer, managed
from .library import Library, compare, numbers
from .producer import CASES, arranged, block_of
from .rules import HEADER, NOTES, SPECIFICATION, STANDARD, UntrueError, expect, rule, shown

_rule = partial(rule, CONSUMER)
_RAISES = f"{STANDARD}, from_dlpack, raises"
_VERSIONS = f"{HEADER}, DLPackVersion"


class Consumed:
    """A consumer, and an array that a producer of ours exports to it.

    Parameters
    ----------
    library : Library
    case : str
        A layout, or a dtype, which then is one block.
    """

    def __init__(self, library: Library, case: str) -> None:
        block, layout = block_of(case)
        self.array = arranged(_aligned(block), layout)
        self.consume = library.consumer()

    def take(self, producer: Producer, **keywords: Any) -> Any:
        """Return what the consumer makes of a producer; its errors are refusals."""
        try:
            return self.consume(producer, **keywords)
        # A SystemError, too: the error was lost when our deleter, which is Python, was called.
        except Exception as error:
            raise Refused(shown(error)) from error

    def check(self, producer: Producer, **keywords: Any) -> bool | None:
        """Consume, compare the numbers, and return whether the memory is shared, if that shows."""
        before = self.array.copy()
        result = self.take(producer, **keywords)
        shared = _shares(result, self.array)
        compare(_read(result), before)
        return shared

    def refuses(self, what: object, producer: Producer, **fields: object) -> bool:
        """Return whether it refuses a producer; what it takes has to say fields again itself."""
        try:
            result = self.take(producer)
        except Refused:
            return True
        dtype = getattr(result, "dtype", type(result).__name__)
        expect(fields and _passes_on(result, fields), f"it takes {what}, as {dtype}")
        return False

    def versioned(self, **fields: Any) -> Producer:
        """Return a producer of versioned capsules, if the consumer asks for any."""
        asked = Producer(self.array)
        self.take(asked)
        if not any(request.get("max_version") for request in asked.requests):
            raise NoSample("it asks for no versioned capsule")
        return Producer(self.array, versioned=True, **fields)


def _aligned(array: Any) -> Any:
    """Return an array as a copy at a multiple of 64, since some consumers copy all others."""
    import numpy as np

    memory = np.empty(array.nbytes + 64, np.uint8)
    aligned = np.ndarray(array.shape, array.dtype, memory, -memory.ctypes.data % 64)
    aligned[...] = array
    return aligned


def _shares(result: Any, array: Any) -> bool | None:
    """Return whether a result's first element lies where the array's does; None: unknown."""
    with suppress(HandOffError, AttributeError, TypeError):
        return bool(checked_export(result).data == array.ctypes.data)
    interface = getattr(result, "__array_interface__", None)
    if isinstance(interface, dict):
        return bool(interface["data"][0] == array.ctypes.data)
    return None


def _read(result: Any) -> Any:
    try:
        return numbers(result)
    except Exception as error:
        raise NoSample(f"the result cannot be read: {shown(error)}") from error


def _passes_on(result: Any, fields: dict[str, object]) -> bool:
    """Return whether a result, when it is exported again, says what its producer said."""
    try:
        tensor = managed(result.__dlpack__()).tensor
    except Exception:  # noqa: BLE001 - of a library that is looked at
        return False
    return all(getattr(tensor, name) == value for name, value in fields.items())


def _expect_deleted(producer: Producer) -> None:
    """Raise unless each capsule is left to its destructor, or its deleter was called once."""
    gc.collect()
    taken, deleted = producer.taken, producer.deletions
    expect(deleted == taken, f"it used {taken} capsules, and called {deleted} deleters")


@_rule("Shape and numbers are those of the producer", HEADER, *CASES)
def _numbers(case: Consumed) -> None:
    case.check(Producer(case.array))


@_rule("Without strides, an array is one C-ordered block (before version 1.2)", rules.STRIDES)
def _no_strides(case: Consumed) -> None:
    case.check(Producer(case.array, strides=None))


@_rule("The offset in bytes counts", f"{HEADER}, DLTensor.byte_offset")
def _byte_offset(case: Consumed) -> None:
    address, row = case.array.ctypes.data, case.array.strides[0]
    case.array = case.array[1:]
    case.check(Producer(case.array, data=address, byte_offset=row))


@_rule("Strides of an axis of length one mean nothing", rules.STRIDES, "axis of one")
def _strides_of_one(case: Consumed) -> None:
    case.check(Producer(case.array, strides=(2**40, 1)))


@_rule("Elements that share memory are read as often as they occur", rules.STRIDES)
def _broadcast(case: Consumed) -> None:
    rows = case.array[[0, 0]]
    compare(_read(case.take(Producer(case.array, strides=(0, 1)))), rows)


@_rule("An array without elements needs no memory", rules.DATA, "no elements")
def _no_memory_without_elements(case: Consumed) -> None:
    case.check(Producer(case.array, data=None))


@_rule(
    "It asks for versioned capsules, which alone can say that memory is read-only",
    rules.MAX_VERSION,
    must=False,
)
def _asks_for_version_1(case: Consumed) -> None:
    producer = Producer(case.array)
    case.take(producer)
    asked = any(request.get("max_version") for request in producer.requests)
    expect(asked, f"it asks with {producer.requests}")


@_rule("Whoever asks for versioned capsules takes an unversioned one as well", rules.MAX_VERSION)
def _unversioned_answers(case: Consumed) -> None:
    case.check(Producer(case.array, versioned=False))


@_rule("A producer that knows no keyword but stream is asked without the others", NOTES)
def _old_producers(case: Consumed) -> None:
    case.check(Producer(case.array, keywords=("stream",)))


@_rule("A later minor version is taken", _VERSIONS)
def _later_minor_versions(case: Consumed) -> None:
    case.check(case.versioned(minor=99))


@_rule("Of a later major version no field is used, and its deleter is called", _VERSIONS)
def _later_major_versions(case: Consumed) -> None:
    producer = case.versioned(major=2)
    case.refuses("an array whose layout it cannot know", producer)
    _expect_deleted(producer)


@_rule(
    "A used capsule is renamed, and the deleter is called once, when the result is gone",
    SPECIFICATION,
)
def _lifetime(case: Consumed) -> None:
    producer = Producer(case.array)
    result = case.take(producer)
    shared = _shares(result, case.array)
    gc.collect()
    renamed, total = producer.renamed, len(producer.capsules)
    expect(renamed == 1, f"{renamed} of {total} capsules are renamed, {producer.taken} are taken")
    early = producer.deletions
    expect(not (shared and early), "the deleter was called while the memory is in use")
    compare(_read(result), case.array)
    del result
    gc.collect()
    count = producer.deletions
    expect(count == 1, f"the deleter was called {count} times when the result was gone")


@_rule("A capsule that is refused is deleted once, whoever does it", SPECIFICATION)
def _refused_capsules(case: Consumed) -> None:
    producer = Producer(case.array, code=77)
    if case.refuses("a dtype with the type code 77, which nobody has", producer, code=77):
        _expect_deleted(producer)


@_rule("A capsule may have no deleter", f"{HEADER}, deleter")
def _no_deleter(case: Consumed) -> None:
    case.check(Producer(case.array, deleter=False))
    gc.collect()


@_rule(
    "A dtype that it lacks is refused, and not read as another: lanes, packed numbers",
    f"{HEADER}, DLDataType",
)
def _strange_dtypes(case: Consumed) -> None:
    case.refuses("two lanes", Producer(case.array, lanes=2), lanes=2)
    case.refuses("packed float4", Producer(case.array, code=17, bits=4), code=17, bits=4)


@_rule(
    "Memory of a device that it does not have is refused, and not read",
    f"{SPECIFICATION}, semantics",
    must=False,
)
def _foreign_devices(case: Consumed) -> None:
    device: dict[str, Any] = {"device_type": 12, "device_id": 5}
    case.refuses("memory of an extension device", Producer(case.array, **device), **device)


@_rule("The errors of a producer reach the caller", _RAISES)
def _errors_of_producers(case: Consumed) -> None:
    try:
        case.take(Producer(case.array, refusal=BufferError("not today")))
    except Refused as error:
        expect(str(error) == "BufferError: not today", f"the error is {error}")
        return
    raise UntrueError("there is no error")


@_rule("An object without __dlpack__ is an AttributeError", _RAISES, must=False)
def _objects_without_dlpack(case: Consumed) -> None:
    try:
        case.consume(object())
    except AttributeError:
        return
    except Exception as error:
        raise UntrueError(f"the error is {shown(error)}") from error
    raise UntrueError("there is no error")


@_rule(
    "Memory that is flagged read-only is not written to by way of the result",
    rules.READ_ONLY_FLAG,
    must=False,
)
def _read_only(case: Consumed) -> None:
    before = case.array.copy()
    result = case.take(case.versioned(flags=READ_ONLY))
    try:
        result[0, 0] = 99
    except Exception:  # noqa: BLE001 - of a library that is looked at
        return
    expect((case.array == before).all(), "a write to the result changes the memory")


@_rule("copy=False shares or raises; copy=True does not share", f"{STANDARD}, from_dlpack, copy")
def _copy_keyword(case: Consumed) -> None:
    try:
        shared = case.check(Producer(case.array), copy=False)
    except Refused as error:
        if "keyword" in str(error) or "argument" in str(error):
            raise UntrueError(f"it does not know copy=: {error}") from error
        shared = None
    expect(shared is not False, "copy=False gives a copy")
    with suppress(Refused):  # this producer makes no copies, and says so
        shared = case.check(Producer(case.array), copy=True)
        expect(not shared, "copy=True shares the memory")


@_rule("An address that no element of the dtype may have is read right, or refused", rules.DATA)
def _unaligned(case: Consumed) -> None:
    import numpy as np

    memory = np.zeros(case.array.nbytes + 1, np.uint8)
    array = np.ndarray(case.array.shape, case.array.dtype, memory, 1)
    array[...] = case.array
    case.array = array
    case.check(Producer(array))


@_rule(
    "Elements without memory are refused, and do not end the process",
    "robustness: no sentence of the standard demands it",
    must=False,
)
def _lies(case: Consumed) -> None:
    for fields in ({"data": None}, {"shape": (-2, 3)}, {"ndim": -1}):
        case.refuses(fields, Producer(case.array, **fields))
