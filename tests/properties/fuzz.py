"""Foreign memory that is odd, and lies about it, offered at random, in a program of its own.

Every case is written to standard error before it is tried, so that the last line names the one
that ended the process. What is offered is either sound, and must come out right or be refused; or
it cannot be true, and must be refused. Lies that nobody can tell from the truth (an address of
memory that is not the producer's) are not told.
"""

from __future__ import annotations

import collections
import ctypes
import gc
import json
import sys
import warnings
from random import Random
from typing import Any

import numpy as np

import interop
from interop.errors import InteropError
from tests.kit.capsules import Legacy, Versioned, forever, get_pointer, new_capsule, on_deletion

BUFFER = 2**14
DTYPES = "<f8 <f4 <f2 <i8 <i4 <i2 |i1 |u1 <u2 <u4 <u8 <c8 <c16".split()
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5}

Outcomes = collections.Counter[str]


class WrongError(AssertionError):
    """Something came out that should not have."""


def layout(rng: Random, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return a shape, strides in elements and an offset in bytes that lie inside the buffer."""
    ndim = rng.choice((0, 1, 1, 2, 2, 3, 4))
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 5)) for _ in range(ndim))
    room = BUFFER // itemsize // 8
    strides = tuple(
        rng.choice((0, 1, 2, 3, 7, -1, -2)) if n > 1 else rng.choice((1, 0, -3, 2**40, -(2**40)))
        for n in shape
    )
    if rng.random() < 0.5:
        strides = tuple(int(np.prod(shape[axis + 1 :], initial=1)) for axis in range(ndim))
    low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 1 and s < 0)
    high = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 1 and s > 0)
    offset = (-low + rng.randrange(room)) * itemsize + rng.choice((0, 0, 0, 1, 4))
    assert offset + (high + 1) * itemsize <= BUFFER
    return shape, strides, offset


def expected(memory: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> np.ndarray:
    """Return what sound memory holds, gathered element by element."""
    array = np.zeros(shape, dtype)
    size = np.dtype(dtype).itemsize
    raw = bytes(memory)
    for place in np.ndindex(*shape):
        at = offset + size * sum(n * s for n, s in zip(place, strides, strict=True))
        array[place] = np.frombuffer(raw[at : at + size], dtype)[0]
    return array


# ---------------------------------------------------------------------- DLPack


class Producer:
    """A producer whose capsule is made by hand, its deleter counted."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.memory = (ctypes.c_ubyte * BUFFER)(*rng.randbytes(BUFFER))
        self.dtype = np.dtype(rng.choice(DTYPES))
        self.shape, self.strides, self.offset = layout(rng, self.dtype.itemsize)
        self.versioned = rng.random() < 0.6
        self.made = self.deleted = 0
        self.sound = True
        self.fault = ""
        self.cached: Any = None
        if rng.random() < 0.6:
            self.fault = rng.choice(list(FAULTS))
            self.sound = self.fault in HARMLESS

    def __dlpack_device__(self) -> Any:
        answers = {"device_none": None, "device_text": "cpu", "device_short": (1,)}
        if self.fault == "device_raises":
            raise KeyError("device")
        return answers.get(self.fault, (1, 0))

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.fault == "answers_none":
            return None
        if self.fault == "same_capsule":
            self.cached = self.cached or self._capsule()
            return self.cached
        return self._capsule()

    def _capsule(self) -> Any:
        # NumPy's own capsule, whose destructor is C: only what is inside is replaced.
        base = np.zeros(1)
        capsule = base.__dlpack__(max_version=(1, 0)) if self.versioned else base.__dlpack__()
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        managed = (Versioned if self.versioned else Legacy).from_address(get_pointer(capsule, name))
        self.made += 1
        on_deletion(managed, self._deleted)
        tensor = managed.tensor
        ndim = len(self.shape)
        lengths = (ctypes.c_int64 * max(ndim, 1))(*self.shape)
        steps = (ctypes.c_int64 * max(ndim, 1))(*self.strides)
        forever.extend((self.memory, lengths, steps))
        tensor.data = ctypes.addressof(self.memory)
        tensor.ndim = ndim
        tensor.code, tensor.bits, tensor.lanes = _CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1
        tensor.shape = ctypes.cast(lengths, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
        tensor.byte_offset = self.offset
        if self.fault in FAULTS:
            FAULTS[self.fault](self.rng, managed, lengths, steps)
        if self.fault == "wrong_name":
            forever.append(capsule)
            self.made -= 1  # nobody is asked to free it
            return new_capsule(get_pointer(capsule, name), b"dltensor_misspelt", None)
        return capsule

    def _deleted(self) -> None:
        self.deleted += 1


def _set(field: str, *choices: Any) -> Any:
    def fault(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
        setattr(managed.tensor, field, rng.choice(choices))

    return fault


def _code(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
    # Of 16 bits, code 4 is the sound bfloat16.
    managed.tensor.code = rng.choice((3, 18, 77, 255, 3 if managed.tensor.bits == 16 else 4))


def _axis(of: str, *choices: int) -> Any:
    def fault(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
        # Two axes with elements, so that the fault is one.
        managed.tensor.ndim = 2
        shape, strides = (ctypes.c_int64 * 2)(2, 2), (ctypes.c_int64 * 2)(2, 1)
        (shape if of == "shape" else strides)[0] = rng.choice(choices)
        forever.extend((shape, strides))
        managed.tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        managed.tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))

    return fault


def _null_shape(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
    managed.tensor.ndim = rng.choice((1, 2, 64))
    managed.tensor.shape = ctypes.POINTER(ctypes.c_int64)()


def _major(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
    if isinstance(managed, Versioned):
        managed.major = rng.choice((0, 2, 3, 2**32 - 1))
    else:
        managed.tensor.ndim = -1


def _null_data(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
    _axis("shape", 2)(rng, managed, lengths, steps)
    managed.tensor.data = rng.choice((None, 1, 64, 4000))
    managed.tensor.byte_offset = rng.choice((0, 8, 4096, 2**20))


def _no_deleter(rng: Random, managed: Any, lengths: Any, steps: Any) -> None:
    managed.deleter = None


def _nothing(*_: Any) -> None:
    """Change nothing: the fault is elsewhere."""


FAULTS: dict[str, Any] = {
    "null_data": _null_data,
    "ndim": _set("ndim", -1, -(2**31), 65, 2**20, 2**31 - 1),
    "null_shape": _null_shape,
    "negative_length": _axis("shape", -1, -(2**63)),
    "huge_length": _axis("shape", 2**62, 2**63 - 1),
    "huge_stride": _axis("strides", 2**62, -(2**62), 2**63 - 1, -(2**63)),
    "code": _code,
    "bits": _set("bits", 0, 1, 3, 7, 24, 255),
    "lanes": _set("lanes", 0, 2, 4, 65535),
    "huge_offset": _set("byte_offset", 2**63, 2**64 - 1, 2**64 - 4096),
    "major": _major,
    "wrong_name": _nothing,
    "answers_none": _nothing,
    "device_type": _set("device_type", 0, -1, 2, 8, 14, 99, 2**31 - 1),
    "same_capsule": _nothing,
    "no_deleter": _no_deleter,
    "device_none": _nothing,
    "device_text": _nothing,
    "device_short": _nothing,
    "device_raises": _nothing,
}
#: Those that may be overlooked where the result is right all the same.
HARMLESS = {"same_capsule", "no_deleter", *(name for name in FAULTS if name.startswith("device_"))}
HARMLESS -= {"device_type"}


def capsules(rng: Random, target: str, outcomes: Outcomes) -> None:
    """Offer one capsule."""
    producer = Producer(rng)
    geometry = producer.shape, producer.strides, producer.offset
    tell(target, producer.fault, *geometry, producer.dtype.str, producer.versioned)
    copy = rng.choice((None, None, True, False))
    try:
        for _ in range(2 if producer.fault == "same_capsule" else 1):
            result = read(interop.convert(producer, to=target, copy=copy))
            if not producer.sound and not (producer.fault in EMPTY and 0 in producer.shape):
                raise WrongError(f"{producer.fault} was believed")
            if producer.sound:
                compare(result, expected(producer.memory, producer.dtype.str, *geometry))
            outcomes["right"] += 1
            del result
    except InteropError:
        outcomes["refused"] += 1
    except KeyError:
        if producer.fault != "device_raises":  # the producer's own exception may pass
            raise
        outcomes["refused"] += 1
    producer.cached = None
    if producer.deleted != producer.made:
        gc.collect()
    if producer.fault != "no_deleter" and producer.deleted != producer.made:
        raise WrongError(f"{producer.made} capsules were made, and {producer.deleted} deleted")


#: Faults that are none where there are no elements.
EMPTY = {"huge_offset"}


# ---------------------------------------------------------------------- the array interface


class Liar:
    """An object that shows whatever it is given."""

    def __init__(self, **shown: Any) -> None:
        self.__dict__.update(shown)


class Array(Liar):
    """One that shows an array interface."""

    @property
    def __array_interface__(self) -> Any:
        return self.interface


class Cuda(Liar):
    """One that shows a CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.interface


class Answer(Liar):
    """One that answers ``__array__``."""

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


#: What may stand in any entry, and is true in none.
NONSENSE: list[Any] = [
    None, True, -1, 2**64, 2**200, 0.5, float("nan"), "", "x", b"<f8", [], {}, object(), (None,),
    (-1,), (2**63,), (2**62, 2**62), ("3",), (1.5,), (0, 0, 0), ((1,),), slice(3), np.float64(3), print,
]  # fmt: skip


def interfaces(rng: Random, target: str, outcomes: Outcomes) -> None:
    """Offer one array interface."""
    memory = bytearray(rng.randbytes(BUFFER))
    address = ctypes.addressof((ctypes.c_ubyte * BUFFER).from_buffer(memory))
    dtype = np.dtype(rng.choice(DTYPES))
    shape, strides, offset = layout(rng, dtype.itemsize)
    interface: Any = {
        "version": 3,
        "shape": shape,
        "typestr": dtype.str,
        "strides": tuple(s * dtype.itemsize for s in strides),
        "data": (address + offset, rng.random() < 0.3),
    }
    lies = [entry for entry in interface if entry != "version" and rng.random() < 0.15]
    for entry in lies:
        interface[entry] = rng.choice(NONSENSE)
    if lies == ["strides"] and interface["strides"] is None:
        lies = ["strides of another array"]
    if rng.random() < 0.03:
        interface, lies = rng.choice(NONSENSE), ["all"]
    kind = rng.choice((Array, Array, Array, Cuda))
    tell(target, kind.__name__, lies, interface)
    try:
        result = read(interop.convert(kind(interface=interface, memory=memory), to=target))
    except InteropError:
        outcomes["refused"] += 1
        return
    if kind is Cuda:
        raise WrongError("memory of a device came to the host")
    if not lies:
        compare(result, expected(memory, dtype.str, shape, strides, offset))
    outcomes["right"] += 1


def answers(rng: Random, target: str, outcomes: Outcomes) -> None:
    """Offer one answer to ``__array__``."""
    answer = rng.choice(
        [
            *NONSENSE,
            np.zeros(3),
            np.zeros(3, object),
            np.zeros(2, "M8[s]"),
            np.ma.masked_array([1.0, 2.0], mask=[0, 1]),
            np.zeros(2, [("a", "i4")]),
            np.array("text"),
            np.broadcast_to(np.float32(1), (3, 3)),
            ValueError("no"),
            MemoryError(),
            RecursionError("deep"),
        ]
    )
    labels = {}
    if rng.random() < 0.5:
        labels["dtype"] = rng.choice([*NONSENSE, np.dtype("f8"), np.dtype("i4"), "float64"])
        labels["shape"] = rng.choice([*NONSENSE, (3,), (2,), ()])
    tell(target, "answer", repr(answer), labels)
    try:
        result = read(interop.convert(Answer(answer=answer, **labels), to=target))
    except (InteropError, MemoryError):
        outcomes["refused"] += 1
        return
    if isinstance(answer, np.ma.MaskedArray) or not isinstance(answer, np.ndarray):
        raise WrongError(f"{answer!r} was taken for an array")
    compare(result, answer)
    outcomes["right"] += 1


# ---------------------------------------------------------------------- all of them


def read(result: Any) -> np.ndarray:
    """Return the numbers of a result, read by its own framework, every element of them."""
    return np.array(result.numpy() if hasattr(result, "numpy") else result)


def compare(result: np.ndarray, expected: np.ndarray) -> None:
    """Compare values, which may have been widened."""
    if not result.size and not expected.size:
        return  # a list does not remember the other lengths
    if result.shape != expected.shape:
        raise WrongError(f"{result.shape} instead of {expected.shape}")
    with np.errstate(all="ignore"):
        right = result.tobytes() == expected.astype(result.dtype).tobytes()
    nans = expected.dtype.kind in "fc" and np.isnan(expected).any()
    if not right and not (nans and np.array_equal(result, expected, equal_nan=True)):
        raise WrongError(f"{result!r} instead of {expected!r}")


def tell(*items: Any) -> None:
    """Write what comes next, for the case that it ends the process."""
    print(*items, file=sys.stderr, flush=True)


KINDS = {"capsules": capsules, "interfaces": interfaces, "answers": answers}


def main(kind: str, targets: str, seed: int, count: int) -> None:
    """Offer so many things of a kind, and print what has become of them."""
    warnings.simplefilter("ignore")
    outcomes: Outcomes = collections.Counter()
    for number in range(seed, seed + count):
        rng = Random(number)
        KINDS[kind](rng, rng.choice(targets.split(",")), outcomes)
        if number % 100 == 0:
            del forever[:]
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
