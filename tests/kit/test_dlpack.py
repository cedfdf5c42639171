"""DLPack: exports are read correctly, and nothing unsound reaches a consumer."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import re
import subprocess
import sys
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

from interop._model.device import DEVICE_TYPES
from interop.errors import HandOffError
from interop.kit import dlpack
from interop.kit.dlpack import (
    ADDRESSES,
    CheckedProducer,
    Export,
    checked_export,
    export,
    plain_array,
)
from tests.cases import together
from tests.kit.capsules import (
    Legacy,
    Versioned,
    forever,
    get_pointer,
    new_capsule,
    on_deletion,
)

ROOT = Path(__file__).parents[2]


class Fake:
    """A producer that exports a NumPy array with some fields of the capsule changed."""

    def __init__(self, array, *, name=None, **faults):
        self.array = array
        self.name = name
        self.faults = faults
        self.deleted = 0
        self.calls = []

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.calls.append({"stream": stream, "max_version": max_version, "copy": copy})
        return self.capsule(max_version=max_version, copy=copy)

    def __dlpack_device__(self):
        return (1, 0)

    def capsule(self, **keywords):
        capsule = self.array.__dlpack__(**keywords)
        versioned = keywords.get("max_version") is not None
        address = get_pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
        managed = (Versioned if versioned else Legacy).from_address(address)
        self.count_deleter(managed)
        self.spoil(managed)
        if self.name is None:
            return capsule
        forever.extend((capsule, self.name))
        return new_capsule(address, self.name, None)

    def count_deleter(self, managed):
        def deleted():
            self.deleted += 1

        on_deletion(managed, deleted)

    def spoil(self, managed):
        for field, value in self.faults.items():
            if field in ("major", "minor", "flags"):
                setattr(managed, field, value)
            elif isinstance(value, tuple):
                # In the place of what is there, which of some versions of NumPy is no strides.
                numbers = (ctypes.c_int64 * len(value))(*value)
                forever.append(numbers)
                pointer = type(getattr(managed.tensor, field))
                setattr(managed.tensor, field, ctypes.cast(numbers, pointer))
            else:
                setattr(managed.tensor, field, value)


class OldFake(Fake):
    """A producer from before the keywords of 2023."""

    def __dlpack__(self, stream=None):
        self.calls.append({"stream": stream})
        return self.capsule()


class NoKeywordsFake(Fake):
    """A producer that takes nothing at all."""

    def __dlpack__(self):
        self.calls.append({})
        return self.capsule()


class GrumpyFake(Fake):
    """A producer that says in its own words that it does not know a keyword."""

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if "max_version" in keywords:
            raise TypeError("max_version is not something I know")
        return self.capsule()


def matrix():
    return np.arange(6.0).reshape(2, 3)


def at(address):
    """Return a pointer to integers at an address."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))


NULL = {"data": None}
#: Faults that a consumer must never see, and what the refusal says.
FAULTS = {
    "null": (NULL, "6 elements but no memory"),
    "null_offset": ({"data": None, "byte_offset": 64}, "6 elements but no memory"),
    "null_page": ({"data": None, "byte_offset": 4096}, "6 elements but no memory"),
    "small_address_far": ({"data": 8, "byte_offset": 2**20}, "6 elements but no memory"),
    "small_address": ({"data": 1}, "6 elements but no memory"),
    "negative_strides": ({"strides": (-3, 1)}, r"negative strides \(-3, 1\)"),
    "major_2": ({"major": 2}, "exports DLPack 2.0"),
    "unaligned": ({"byte_offset": 3}, "not aligned to 8 bytes"),
    "lanes": ({"lanes": 2}, "2 lanes"),
    "unknown_dtype": ({"code": 77}, "code 77"),
    "opaque_dtype": ({"code": 3}, "code 3"),
    "packed_dtype": ({"code": 0, "bits": 4}, "packed DLPack dtype"),
    "huge_ndim": ({"ndim": 2**30}, "has 1073741824 axes"),
    "negative_ndim": ({"ndim": -1}, "has -1 axes"),
    "major_0": ({"major": 0, "minor": 8}, "exports DLPack 0.8"),
    "small_shape_address": ({"shape": at(8)}, "has 2 axes"),
    "small_strides_address": ({"strides": at(8)}, "has 2 axes"),
    "far_offset": ({"byte_offset": 2**58}, "beyond all memory"),
    "end_of_memory": (
        {"data": ADDRESSES - 8, "strides": ctypes.POINTER(ctypes.c_int64)()},
        "strides None beyond all memory",
    ),
    "no_shape": ({"shape": ctypes.POINTER(ctypes.c_int64)()}, "has 2 axes"),
    "negative_shape": ({"shape": (-2, 3)}, r"shape \(-2, 3\)"),
    "overflow": (
        {"shape": (2**62, 2**62)},
        r"strides \(3, 1\) beyond all memory\. Report it to the producer\.$",
    ),
    "far_strides": ({"strides": (2**61, 1)}, "beyond all memory"),
    "below_zero": ({"strides": (-(2**58), 1)}, "beyond all memory|negative strides"),
}


def consume_all():
    """Offer every fault to both consumers; return what happened and how often deleters ran."""
    import torch

    outcomes = {}
    for fault, (fields, _) in FAULTS.items():
        for consumer in (np.from_dlpack, torch.from_dlpack):
            fake = Fake(matrix(), **fields)
            try:
                consumer(CheckedProducer(fake))
                outcome = "consumed"
            except HandOffError as error:
                outcome = str(error)
            gc.collect()
            outcomes[f"{fault} {consumer.__module__}"] = [outcome, fake.deleted]
    return outcomes


@pytest.fixture(scope="module")
def outcomes():
    program = subprocess.run(
        [sys.executable, "-m", "tests.kit.test_dlpack"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert program.returncode == 0, program.stderr
    return json.loads(program.stdout)


@pytest.mark.parametrize("consumer", ["numpy", "torch.utils.dlpack"])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_never_reaches_a_consumer(outcomes, fault, consumer):
    """An unsound capsule raises HandOffError before NumPy or torch sees it, and is freed exactly once."""
    message, deleted = next(
        outcome for key, outcome in outcomes.items() if key.split()[0] == fault and consumer in key
    )
    assert re.search(FAULTS[fault][1], message)
    assert message.endswith(".")
    assert deleted == 1


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"negative_strides", "unaligned"}))
def test_memory_that_cannot_be_usable_is_refused(fault):
    """`checked_export` raises, there is no `plain_array`, and each capsule is freed exactly once."""
    fields, message = FAULTS[fault]
    fakes = Fake(matrix(), **fields), Fake(matrix(), **fields)
    with pytest.raises(HandOffError, match=message):
        checked_export(fakes[0])
    assert plain_array(fakes[1]) is None
    gc.collect()
    assert [(len(fake.calls), fake.deleted) for fake in fakes] == [(1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("fields", "is_plain"),
    [
        ({}, True),
        ({"strides": (-3, 1), "byte_offset": 24}, True),  # which NumPy can walk
        ({"flags": 2}, True),  # a copy
        ({"device_type": 2}, False),
        ({"flags": 1}, False),  # read-only
    ],
)
def test_a_plain_array_is_of_writable_memory_on_the_host(fields, is_plain):
    """It lies in the producer's memory, which is freed with it; there is none of other memory."""
    array = matrix()
    fake = Fake(array, **fields)
    result = plain_array(fake)
    assert (result is not None) == is_plain
    if result is not None:
        assert result.ctypes.data == array.ctypes.data + fields.get("byte_offset", 0)
        assert result.flags.writeable
        assert fake.deleted == 0
    del result
    gc.collect()
    assert (len(fake.calls), fake.deleted) == (1, 1)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_no_plain_array_is_of_numpys_own_memory(shape):
    """For an array without memory NumPy would make some; such an array is not plain."""
    array = np.zeros(shape)
    result = plain_array(Fake(array, **NULL) if not array.size else Fake(array))
    assert (result is None) == (not array.size)


def test_a_capsule_without_flags_is_not_plain():
    """A capsule of the first kind may be of read-only memory, so there is no plain array."""

    class Producer(Fake):
        def __dlpack__(self, **keywords):
            return self.capsule()

    assert plain_array(Producer(matrix())) is None
    assert plain_array(OldFake(matrix())) is None


def test_checked_export_reads_every_field():
    """A sound capsule is read without being consumed, and freed exactly once."""
    array = matrix()
    fake = Fake(array)
    offer = checked_export(fake)
    layout = "float64", (2, 3), (3, 1), "cpu"
    assert offer[:9] == (*layout, False, False, True, array.ctypes.data, 64)
    assert offer.contiguous
    assert offer.aligned
    assert (offer.broadcast, offer.backwards) == (False, False)
    assert fake.deleted == 1


def test_looking_does_not_consume():
    """The consumer gets the capsule that was checked, whose deleter runs once, at the end."""
    array = matrix()
    fake = Fake(array)
    result = np.from_dlpack(CheckedProducer(fake))
    assert result.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(result, array)
    assert fake.deleted == 0
    del result
    gc.collect()
    assert fake.deleted == 1


def test_the_layout_is_reported():
    """Negative, broadcast, permuted and unaligned layouts are reported, and not refused."""
    array = matrix()
    assert checked_export(Fake(array, byte_offset=16)).data == array.ctypes.data + 16
    one_block = checked_export(Fake(array, strides=ctypes.POINTER(ctypes.c_int64)()))
    assert (one_block.strides, one_block.contiguous) == (None, True)
    backwards = checked_export(matrix()[::-1])
    assert backwards.backwards
    assert not backwards.contiguous
    repeated = checked_export(np.broadcast_to(np.arange(3), (2, 3)))
    assert repeated.broadcast
    assert repeated.readonly
    assert not checked_export(matrix().T).contiguous
    assert checked_export(np.ones((1, 3, 1)).transpose(2, 1, 0)).contiguous
    assert not checked_export(Fake(matrix(), byte_offset=3)).aligned
    numbers = np.zeros(3, "complex128").view("f8")
    assert checked_export(numbers[2:].view("complex128")).aligned
    assert not checked_export(numbers[1:-1].view("complex128")).aligned


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_arrays_may_lie_anywhere(shape):
    """An empty array needs no memory, no alignment and no strides that make sense."""
    fake = Fake(np.zeros(shape), data=None, byte_offset=3)
    offer = checked_export(fake)
    assert offer.shape == shape
    assert offer.aligned
    assert offer.contiguous
    assert np.from_dlpack(CheckedProducer(fake)).shape == shape


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "cpu"),
        (2, "cuda:1"),
        (3, "cuda_host"),
        (8, "metal:1"),
        (10, "rocm:1"),
        (11, "cuda_host"),
        (13, "cuda:1"),
        (99, "device99:1"),
    ],
)
def test_devices_have_names(number, name):
    """Every device type has a name, unknown ones included."""
    offer = checked_export(Fake(matrix(), device_type=number, device_id=1))
    assert (offer.device, offer.device_type) == (name, number)


@pytest.mark.parametrize(("flags", "readonly", "copied"), [(1, True, False), (2, False, True)])
def test_flags_are_read(flags, readonly, copied):
    """The flags of a versioned capsule are reported."""
    offer = checked_export(Fake(matrix(), flags=flags))
    assert (offer.readonly, offer.copied) == (readonly, copied)


def test_padded_narrow_dtypes_are_known():
    """A dtype narrower than a byte is known if each element is padded to a byte."""
    offer = checked_export(Fake(np.zeros(4, "uint8"), code=17, bits=4, flags=4))
    assert (offer.dtype, offer.bits) == ("float4_e2m1fn", 8)


DTYPES = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]
DTYPES += ["bool", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_dtypes_have_their_names(name):
    """A dtype that NumPy exports has NumPy's name."""
    assert checked_export(np.zeros(3, name)).dtype == name


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu", "complex32"],
)
def test_torch_dtypes_have_their_names(name):
    """A dtype that only torch exports has torch's name, which is also ml_dtypes'."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's, that complex32 is experimental
        tensor = torch.zeros(3, dtype=getattr(torch, name))
    assert checked_export(tensor).dtype == name


def test_longdouble_and_packed_float4_are_refused():
    """Dtypes without a standard meaning raise HandOffError and say what to do."""
    torch = pytest.importorskip("torch")
    with pytest.raises(HandOffError):
        checked_export(np.zeros(2, "longdouble"))
    packed = torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with pytest.raises(HandOffError):
        checked_export(packed)


class Nameless:
    """Offers a capsule without a name."""

    def __dlpack__(self, **keywords):
        return new_capsule(id(forever), None, None)


class NoCapsule:
    """Offers a number."""

    def __dlpack__(self, **keywords):
        return 7

    def __dlpack_device__(self):
        return (1, None)


@pytest.mark.parametrize("kind", [OldFake, NoKeywordsFake, GrumpyFake])
def test_old_signatures_serve_modern_consumers(kind):
    """Producers that know fewer keywords share memory with today's NumPy and torch."""
    torch = pytest.importorskip("torch")
    array = matrix()
    for consumer in (np.from_dlpack, torch.from_dlpack):
        fake = kind(array)
        result = consumer(CheckedProducer(fake))
        assert np.asarray(result).ctypes.data == array.ctypes.data
        del result
        gc.collect()
        assert fake.deleted == 1
    assert checked_export(kind(array)).versioned is False


def test_keywords_that_a_signature_lacks_are_remembered():
    """A type whose method does not take a keyword is not asked for it again."""

    class Producer(OldFake):
        pass

    export(Producer(matrix()))
    assert dlpack._unknown[Producer] == {"max_version"}
    assert export(Producer(matrix())) is not None


class Wrapper:
    """A wrapper of any producer, which passes on what it is asked for."""

    def __init__(self, producer):
        self.producer = producer

    def __dlpack__(self, **keywords):
        return self.producer.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.producer.__dlpack_device__()


class Own(Fake):
    """A producer of which each may have a method of its own."""

    def __init__(self, array, method=None):
        super().__init__(array)
        if method is not None:
            self.__dlpack__ = method


@pytest.mark.parametrize("kind", [OldFake, NoKeywordsFake, GrumpyFake])
@pytest.mark.parametrize("wrap", [Wrapper, lambda old: Own(old.array, old.__dlpack__)])
def test_keywords_that_one_value_refuses_are_asked_of_the_next(wrap, kind):
    """A value of the same type that knows more keywords is asked for them all."""
    assert not checked_export(wrap(kind(matrix()))).versioned
    new = Fake(matrix())
    after = Wrapper(new) if wrap is Wrapper else Own(matrix())
    assert checked_export(after).versioned


def old_signature(self, stream=None):
    return self.producer.__dlpack__()


def no_keywords(self):
    return self.producer.__dlpack__()


def grumpy(self, **keywords):
    if keywords:
        raise TypeError("max_version is not something I know")
    return self.producer.__dlpack__()


@pytest.mark.slow
@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"dl_device": (2, 0)}, {"stream": 7}])
@pytest.mark.parametrize("method", [old_signature, no_keywords, grumpy, Wrapper.__dlpack__])
def test_refusals_keep_no_value_of_a_new_type_alive(method, keywords):
    """A value of a type that was met for the first time is freed at once, also if it refuses."""
    kind = type("Producer", (Wrapper,), {"__dlpack__": method})
    gc.collect()
    gc.disable()
    try:
        value = kind(matrix())
        reference = weakref.ref(value)
        with contextlib.suppress(HandOffError):
            export(value, **keywords)
        del value
        assert reference() is None
    finally:
        gc.enable()


def test_own_type_errors_are_not_probed():
    """A TypeError of the producer's own is a refusal at the first call."""

    class Producer(Fake):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            raise TypeError("my elements are strings")

    fake = Producer(matrix())
    with pytest.raises(HandOffError) as caught:
        export(fake)
    assert isinstance(caught.value.__cause__, TypeError)
    assert len(fake.calls) == 1


def test_a_copy_is_never_quietly_not_made():
    """A producer that does not know copy= is refused for copy=True, and not for copy=False."""
    with pytest.raises(HandOffError):
        export(OldFake(matrix()), copy=True)
    with pytest.raises(HandOffError):
        export(OldFake(matrix()), dl_device=(2, 0))
    with pytest.raises(HandOffError):
        export(NoKeywordsFake(matrix()), stream=7)
    export(OldFake(matrix()), copy=False, dl_device=(1, 0))
    export(NoKeywordsFake(matrix()), stream=-1)


def test_copy_and_stream_are_forwarded():
    """Keywords reach a producer that knows them unchanged."""
    fake = Fake(matrix())
    np.from_dlpack(CheckedProducer(fake), copy=True)
    assert fake.calls[-1]["copy"] is True
    CheckedProducer(fake).__dlpack__(stream=5)
    assert fake.calls[-1] == {"stream": 5, "max_version": None, "copy": None}
    export(fake)
    assert fake.calls[-1]["max_version"] == (1, 3)


@pytest.mark.parametrize(
    "kind",
    [BufferError, ValueError, RuntimeError, TypeError, NotImplementedError, AssertionError],
)
def test_refusals_of_producers(kind):
    """Whatever exception a producer refuses with becomes a HandOffError with that cause."""

    class Producer:
        def __dlpack__(self, **keywords):
            raise kind("not today")

        def __dlpack_device__(self):
            raise kind("nowhere")

    with pytest.raises(HandOffError) as caught:
        checked_export(Producer())
    assert type(caught.value.__cause__) is kind
    with pytest.raises(BufferError, match="nowhere"):
        CheckedProducer(Producer()).__dlpack_device__()


def test_a_hand_off_error_of_a_producer_is_passed_on():
    """A wrapper around a checked producer refuses with the text of the first refusal."""
    inner = CheckedProducer(Fake(matrix(), data=None))
    with pytest.raises(HandOffError) as first:
        inner.__dlpack__()
    with pytest.raises(HandOffError) as second:
        CheckedProducer(inner).__dlpack__()
    assert str(second.value) == str(first.value)


def test_memory_errors_are_not_refusals():
    """A producer's MemoryError passes through."""

    class Producer:
        def __dlpack__(self, **keywords):
            raise MemoryError

    with pytest.raises(MemoryError) as caught:
        export(Producer())
    assert type(caught.value) is MemoryError


def test_limits_of_a_consumer():
    """The checked producer refuses what its consumer does not take, and passes what it allows."""
    readonly = matrix()
    readonly.flags.writeable = False
    with pytest.raises(HandOffError):
        np.from_dlpack(CheckedProducer(readonly, readonly=False))
    assert not np.from_dlpack(CheckedProducer(readonly)).flags.writeable
    with pytest.raises(HandOffError):
        np.from_dlpack(CheckedProducer(matrix(), dtypes={"float32"}))
    with pytest.raises(HandOffError):
        np.from_dlpack(CheckedProducer(Fake(matrix(), byte_offset=8), alignment=64))
    flipped = matrix()[::-1]
    result = np.from_dlpack(CheckedProducer(flipped, negative_strides=True))
    assert result.ctypes.data == flipped.ctypes.data
    np.testing.assert_array_equal(result, flipped)
    unaligned = np.from_dlpack(CheckedProducer(Fake(np.zeros(9, "i2"), byte_offset=1), alignment=1))
    assert not unaligned.flags.aligned


def test_device_without_an_index():
    """A device index of None, as Paddle gives for the CPU, becomes 0."""
    assert CheckedProducer(NoCapsule()).__dlpack_device__() == (1, 0)


def test_export_is_plain_data():
    """An Export holds no reference to the producer or its memory."""
    array = matrix()
    offer = checked_export(array)
    assert isinstance(offer, Export)
    before = sys.getrefcount(array)
    del offer
    assert sys.getrefcount(array) == before


def test_devices_that_dlpack_numbers_have_names_that_devices_may_have():
    """What a capsule's device is called, a caller may ask for and a plugin declare."""
    names = {dlpack.device_named(number, 0).partition(":")[0] for number in range(1, 19)}
    assert {name for name in names if not name.startswith("device")} <= DEVICE_TYPES
    assert "trn" in names


if __name__ == "__main__":
    sys.stdout.write(json.dumps(consume_all()))


@together("device_type", [4, 7, 8])
def test_a_handle_is_no_address(device_type):
    """Of OpenCL, Vulkan and Metal the data is a handle: no offset is added, and nothing reckoned with it."""
    fake = Fake(matrix(), device_type=device_type, data=8, byte_offset=3)
    offer = checked_export(fake)
    assert offer.data == 8
    assert offer.extents == ()
    assert offer.aligned
    producer = CheckedProducer(Fake(matrix(), device_type=device_type, data=8, byte_offset=3))
    assert producer.__dlpack__(max_version=(1, 0)) is not None
    with pytest.raises(HandOffError):
        checked_export(Fake(matrix(), device_type=device_type, data=None))


def test_memory_of_a_tpus_host_is_the_hosts():
    """The device types that DLPack has got for TPUs are known: 19 is the device, 20 its host's memory."""
    assert checked_export(Fake(matrix(), device_type=19, device_id=1)).device == "tpu:1"
    assert checked_export(Fake(matrix(), device_type=20)).device == "cpu"
