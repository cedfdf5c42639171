"""Checks of a consumer: what ``from_dlpack`` makes of capsules whose every field is known.

Each check gives it a `Producer` of memory on the host.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

from interop.errors import HandOffError
from interop.kit.dlpack import checked_export

from .capsule import READ_ONLY, Producer, managed
from .library import Library, numbers
from .producer import DTYPES, LAYOUTS, arranged, sample
from .rules import (
    HEADER,
    SPECIFICATION,
    STANDARD,
    NotTriedError,
    RefusalError,
    UntrueError,
    expect,
    rule,
    shown,
)

_ONE = ("one block",)


class Consumed:
    """A consumer, and an array that a producer of ours exports to it.

    Parameters
    ----------
    library : Library
    case : str
        A layout, or a dtype, which then is one block.
    """

    def __init__(self, library: Library, case: str) -> None:
        import numpy as np

        dtype = case if case in DTYPES else "float32"
        block = sample(dtype)
        block = np.array(block[1, 1]) if case == "no axes" else block
        self.array = arranged(block, case if case in LAYOUTS else "one block")
        self.consume = library.consumer()

    def take(self, producer: Producer, **keywords: Any) -> Any:
        """Return what the consumer makes of a producer; its errors are refusals."""
        try:
            return self.consume(producer, **keywords)
        # A SystemError, too: the error was lost when our deleter, which is Python, was called.
        except Exception as error:
            raise RefusalError(shown(error)) from error

    def check(self, producer: Producer, **keywords: Any) -> bool | None:
        """Consume, compare the numbers, and return whether the memory is shared, if that shows."""
        before = self.array.copy()
        result = self.take(producer, **keywords)
        shared = _shares(result, self.array)
        read = _read(result)
        expect(read.shape == before.shape, f"the shape is {read.shape}, not {before.shape}")
        expect(_same(read, before), f"the numbers are {read.tolist()}, not {before.tolist()}")
        return shared

    def versioned(self, **fields: Any) -> Producer:
        """Return a producer of versioned capsules, if the consumer asks for any."""
        asked = Producer(self.array)
        self.take(asked)
        if not any(request.get("max_version") for request in asked.requests):
            raise NotTriedError("it asks for no versioned capsule")
        return Producer(self.array, versioned=True, **fields)


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
        raise NotTriedError(f"the result cannot be read: {shown(error)}") from error


def _same(left: Any, right: Any) -> bool:
    import numpy as np

    return bool(np.array_equal(left.astype("complex128"), right.astype("complex128")))


@rule("consumer", "Shape and numbers are those of the producer", HEADER, *LAYOUTS, *DTYPES)
def _numbers(case: Consumed) -> None:
    case.check(Producer(case.array))


@rule(
    "consumer",
    "Without strides, an array is one C-ordered block (before version 1.2)",
    f"{HEADER}, DLTensor.strides",
    *_ONE,
)
def _no_strides(case: Consumed) -> None:
    case.check(Producer(case.array, strides=None))


@rule(
    "consumer",
    "The offset in bytes counts",
    f"{HEADER}, DLTensor.byte_offset",
    *_ONE,
)
def _byte_offset(case: Consumed) -> None:
    row = case.array.strides[0]
    inner = case.array[1:]
    producer = Producer(inner, data=case.array.ctypes.data, byte_offset=row)
    case.array = inner
    case.check(producer)


@rule(
    "consumer",
    "Strides of an axis of length one mean nothing",
    f"{HEADER}, DLTensor.strides",
    "axis of one",
)
def _strides_of_one(case: Consumed) -> None:
    case.check(Producer(case.array, strides=(2**40, 1)))


@rule(
    "consumer",
    "Elements that share memory are read as often as they occur",
    f"{HEADER}, DLTensor.strides",
    *_ONE,
)
def _broadcast(case: Consumed) -> None:
    expected = case.array.copy()
    expected[1] = expected[0]
    read = _read(case.take(Producer(case.array, strides=(0, 1))))
    expect(_same(read, expected), f"the numbers are {read.tolist()}, not {expected.tolist()}")


@rule(
    "consumer",
    "An array without elements needs no memory",
    f"{HEADER}, DLTensor.data",
    "no elements",
)
def _no_memory_without_elements(case: Consumed) -> None:
    case.check(Producer(case.array, data=None))


@rule(
    "consumer",
    "It takes the kind of capsule that it asks for",
    f"{STANDARD}, __dlpack__, notes",
    *_ONE,
)
def _versions(case: Consumed) -> None:
    case.check(Producer(case.array))


@rule(
    "consumer",
    "It asks for versioned capsules, which alone can say that memory is read-only",
    f"{STANDARD}, __dlpack__, max_version",
    *_ONE,
    must=False,
)
def _asks_for_version_1(case: Consumed) -> None:
    producer = Producer(case.array)
    case.take(producer)
    asked = any(request.get("max_version") for request in producer.requests)
    expect(asked, f"it asks with {producer.requests}")


@rule(
    "consumer",
    "Whoever asks for versioned capsules takes an unversioned one as well",
    f"{STANDARD}, __dlpack__, max_version",
    *_ONE,
)
def _unversioned_answers(case: Consumed) -> None:
    case.check(Producer(case.array, versioned=False))


@rule(
    "consumer",
    "A producer that knows no keyword but stream is asked without the others",
    f"{STANDARD}, __dlpack__, notes",
    *_ONE,
)
def _old_producers(case: Consumed) -> None:
    case.check(Producer(case.array, keywords=("stream",)))


@rule(
    "consumer",
    "A later minor version is taken",
    f"{HEADER}, DLPackVersion",
    *_ONE,
)
def _later_minor_versions(case: Consumed) -> None:
    case.check(case.versioned(minor=99))


@rule(
    "consumer",
    "Of a later major version no field is used, and its deleter is called",
    f"{HEADER}, DLPackVersion",
    *_ONE,
)
def _later_major_versions(case: Consumed) -> None:
    producer = case.versioned(major=2)
    try:
        case.take(producer)
    except RefusalError:
        _expect_deleted(producer)
        return
    raise UntrueError("it takes an array whose layout it cannot know")


@rule(
    "consumer",
    "A used capsule is renamed, and the deleter is called once, when the result is gone",
    SPECIFICATION,
    *_ONE,
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
    read = _read(result)
    expect(_same(read, case.array), f"the numbers are {read.tolist()}")
    del result, read
    gc.collect()
    count = producer.deletions
    expect(count == 1, f"the deleter was called {count} times when the result was gone")


def _expect_deleted(producer: Producer) -> None:
    """Raise unless each capsule is left to its destructor, or its deleter was called once."""
    gc.collect()
    taken, deleted = producer.taken, producer.deletions
    expect(deleted == taken, f"it used {taken} capsules, and called {deleted} deleters")


@rule(
    "consumer",
    "A capsule that is refused is deleted once, whoever does it",
    SPECIFICATION,
    *_ONE,
)
def _refused_capsules(case: Consumed) -> None:
    producer = Producer(case.array, code=77)
    try:
        result = case.take(producer)
    except RefusalError:
        _expect_deleted(producer)
        return
    if not _passes_on(result, code=77):
        raise UntrueError("it takes a dtype with the type code 77, which nobody has")


@rule("consumer", "A capsule may have no deleter", f"{HEADER}, deleter", *_ONE)
def _no_deleter(case: Consumed) -> None:
    result = case.take(Producer(case.array, deleter=False))
    read = _read(result)
    expect(_same(read, case.array), f"the numbers are {read.tolist()}")
    del result, read
    gc.collect()


@rule(
    "consumer",
    "A dtype that it lacks is refused, and not read as another: lanes, packed numbers",
    f"{HEADER}, DLDataType",
    *_ONE,
)
def _strange_dtypes(case: Consumed) -> None:
    strange: dict[str, Any] = {"two lanes": {"lanes": 2}, "packed float4": {"code": 17, "bits": 4}}
    for name, fields in strange.items():
        with suppress(RefusalError):
            result = case.take(Producer(case.array, **fields))
            dtype = getattr(result, "dtype", type(result).__name__)
            expect(_passes_on(result, **fields), f"it takes {name} as {dtype}")


def _passes_on(result: Any, **fields: int) -> bool:
    """Return whether a result, when it is exported again, says what its producer said."""
    try:
        tensor = managed(result.__dlpack__()).tensor
    except Exception:  # noqa: BLE001 - of a library that is looked at
        return False
    return all(getattr(tensor, name) == value for name, value in fields.items())


@rule(
    "consumer",
    "Memory of a device that it does not have is refused, and not read",
    f"{SPECIFICATION}, semantics",
    *_ONE,
    must=False,
)
def _foreign_devices(case: Consumed) -> None:
    try:
        result = case.take(Producer(case.array, device_type=12, device_id=5))
    except RefusalError:
        return
    if not _passes_on(result, device_type=12, device_id=5):
        raise UntrueError(f"it takes memory of an extension device as {type(result).__name__}")


@rule(
    "consumer",
    "The errors of a producer reach the caller",
    f"{STANDARD}, from_dlpack, raises",
    *_ONE,
)
def _errors_of_producers(case: Consumed) -> None:
    try:
        case.take(Producer(case.array, refusal=BufferError("not today")))
    except RefusalError as error:
        expect(str(error) == "BufferError: not today", f"the error is {error}")
        return
    raise UntrueError("there is no error")


@rule(
    "consumer",
    "An object without __dlpack__ is an AttributeError",
    f"{STANDARD}, from_dlpack, raises",
    *_ONE,
    must=False,
)
def _objects_without_dlpack(case: Consumed) -> None:
    try:
        case.consume(object())
    except AttributeError:
        return
    except Exception as error:
        raise UntrueError(f"the error is {shown(error)}") from error
    raise UntrueError("there is no error")


@rule(
    "consumer",
    "Memory that is flagged read-only is not written to by way of the result",
    f"{HEADER}, DLPACK_FLAG_BITMASK_READ_ONLY",
    *_ONE,
    must=False,
)
def _read_only(case: Consumed) -> None:
    before = case.array.copy()
    result = case.take(case.versioned(flags=READ_ONLY))
    try:
        result[0, 0] = 99
    except Exception:  # noqa: BLE001 - of a library that is looked at
        return
    expect(_same(case.array, before), "a write to the result changes the memory")


@rule(
    "consumer",
    "copy=False shares or raises; copy=True does not share",
    f"{STANDARD}, from_dlpack, copy",
    *_ONE,
)
def _copy_keyword(case: Consumed) -> None:
    try:
        shared = case.check(Producer(case.array), copy=False)
    except RefusalError as error:
        if "keyword" in str(error) or "argument" in str(error):
            raise UntrueError(f"it does not know copy=: {error}") from error
        shared = None
    expect(shared is not False, "copy=False gives a copy")
    try:
        shared = case.check(Producer(case.array), copy=True)
    except RefusalError:
        return  # this producer makes no copies, and says so
    expect(not shared, "copy=True shares the memory")


@rule(
    "consumer",
    "An address that no element of the dtype may have is read right, or refused",
    f"{HEADER}, DLTensor.data",
    *_ONE,
)
def _unaligned(case: Consumed) -> None:
    import numpy as np

    memory = np.zeros(case.array.nbytes + 1, np.uint8)
    array = np.ndarray(case.array.shape, case.array.dtype, memory, 1)
    array[...] = case.array
    case.array = array
    case.check(Producer(array))


@rule(
    "consumer",
    "Elements without memory are refused, and do not end the process",
    "robustness: no sentence of the standard demands it",
    *_ONE,
    must=False,
)
def _lies(case: Consumed) -> None:
    for fields in ({"data": None}, {"shape": (-2, 3)}, {"ndim": -1}):
        with suppress(RefusalError):
            result = case.take(Producer(case.array, **fields))
            raise UntrueError(f"it takes {fields} as {type(result).__name__}")
