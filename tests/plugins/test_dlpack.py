"""Foreign values with __dlpack__ are described right and convert without a plugin."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from datetime import datetime_CAPI
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import interop
from interop.errors import HandOffError, RefusedError
from interop_plugins.dlpack import memory
from tests.cases import together
from tests.kit.capsules import bounds
from tests.kit.test_dlpack import FAULTS, Fake
from tests.plugins.test_protocols import LAYOUTS as FOREIGN
from tests.plugins.test_protocols import check_view, matrix

ROOT = Path(__file__).parents[2]
#: Faults that a consumer may take as they are, and would read beyond the array.
READABLE = {"negative_strides", "unaligned"}


class Producer:
    """A producer of versioned capsules, of a type that no plugin has."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device
        self.streams = []

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.streams.append(stream)
        return self.array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return self.device


class LegacyProducer(Producer):
    """A producer of legacy capsules."""

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


class LockedProducer(LegacyProducer):
    """A legacy producer that says in NumPy's way that it is read-only."""

    flags = SimpleNamespace(writeable=False)


#: Those that DLPack can describe.
LAYOUTS = {
    name: layout
    for name, layout in FOREIGN.items()
    if "complex" not in name and name not in ("readonly", "swapped")
}


@together("make, traits", [*LAYOUTS.values(), (lambda: matrix()[:0, ::-1], set())])
def test_a_layout_is_described(make, traits):
    """The spec of a producer has the dtype, the shape, the size and the traits of its memory."""
    array = make()
    spec, (low, high) = interop.spec(Producer(array)), bounds(array)
    assert spec.format == "dlpack"
    assert (spec.dtype, spec.device, spec.shape) == (array.dtype.name, "cpu", array.shape)
    assert spec.traits == traits
    assert spec.nbytes == array.nbytes
    assert memory(Producer(array)) == (((low, high - low),) if array.size else ())


@together(
    "kind, layout",
    [(Producer, layout) for layout in LAYOUTS]
    # NumPy itself does not export read-only memory to old consumers.
    + [(LegacyProducer, layout) for layout in LAYOUTS if layout != "broadcast"],
)
def test_numpy_shares_every_layout(layout, kind):
    """NumPy gets a view of a producer's memory, with its strides and its read-only flag."""
    array = LAYOUTS[layout][0]()
    result = interop.convert(kind(array), to="numpy", copy=False)
    check_view(result, array, writeable=array.flags.writeable and kind is Producer)


@together("layout", LAYOUTS)
def test_torch_gets_the_numbers(layout):
    """A torch tensor gets the numbers whatever the layout, and the process survives."""
    torch = pytest.importorskip("torch")
    array = LAYOUTS[layout][0]()
    result = interop.convert(Producer(array), to="torch")
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), array)
    if layout in ("plain", "transposed"):
        assert result.data_ptr() == array.ctypes.data


def test_a_fast_path_sees_a_change():
    """A read-only value of a type that took the fast path before becomes a read-only array."""
    locked = matrix()
    locked.flags.writeable = False
    assert interop.convert(Producer(matrix()), to="numpy").flags.writeable
    assert not interop.convert(Producer(locked), to="numpy").flags.writeable
    assert interop.convert(Producer(matrix().astype("int8")), to="numpy").dtype == "int8"


@pytest.mark.parametrize("kind", [Producer, LegacyProducer])
def test_the_result_keeps_the_memory_alive(kind):
    """The memory lives as long as the view and no longer."""
    array = np.arange(10.0)
    owner = weakref.ref(array)
    result = interop.convert(kind(array), to="numpy")
    del array
    gc.collect()
    np.testing.assert_array_equal(result, np.arange(10.0))
    del result
    gc.collect()
    assert owner() is None


@together("request_", [{}, {"copy": False}, {"forbid": "copy"}])
@together("array", [matrix()[:1][::-1], matrix()[:, 1:2][:, ::-1], np.arange(1.0)[::-1]])
def test_a_stride_that_leads_nowhere_is_not_negative(array, request_):
    """The stride of an axis of length 1 says nothing: torch shares the array, as is planned."""
    pytest.importorskip("torch")
    assert "negative_strides" not in interop.spec(Producer(array)).traits
    assert interop.plan(Producer(array), to="torch", **request_).aliases
    result = interop.convert(Producer(array), to="torch", **request_)
    assert result.numpy().tolist() == array.tolist()
    assert result.data_ptr() == array.ctypes.data


def test_readonly_memory_is_not_shared_with_torch():
    """No torch tensor is read-only, so torch gets a copy of read-only memory."""
    pytest.importorskip("torch")
    array = matrix()
    array.flags.writeable = False
    result = interop.convert(Producer(array), to="torch")
    assert result.data_ptr() != array.ctypes.data
    assert array.tolist() == result.tolist()


class WritableProducer(LegacyProducer):
    """A legacy producer that says in NumPy's way that it is writable."""

    @property
    def flags(self):
        return self.array.flags


def test_a_legacy_capsule_is_writable_only_if_its_value_says_so():
    """A capsule without flags may come from a framework that never changes its arrays."""
    assert interop.spec(LegacyProducer(matrix())).traits == {"immutable"}
    assert not interop.convert(LegacyProducer(matrix()), to="numpy").flags.writeable
    assert interop.convert(LegacyProducer(matrix()), to="numpy", copy=True).flags.writeable
    assert interop.spec(WritableProducer(matrix())).traits == set()
    assert interop.convert(WritableProducer(matrix()), to="numpy").flags.writeable
    locked = LockedProducer(matrix())
    assert interop.spec(locked).traits == {"readonly"}
    assert not interop.convert(locked, to="numpy").flags.writeable


def test_sharing_a_legacy_capsule_with_torch_is_an_effect():
    """What may be immutable is shared with torch by default, and copied if that is forbidden."""
    torch = pytest.importorskip("torch")
    source = matrix()
    assert interop.plan(LegacyProducer(source), to="torch").effects == {"alias_immutable"}
    shared = interop.convert(LegacyProducer(source), to="torch")
    assert isinstance(shared, torch.Tensor)
    assert shared.data_ptr() == source.ctypes.data
    with interop.policy(forbid="alias_immutable"):
        assert interop.convert(LegacyProducer(source), to="torch").data_ptr() != source.ctypes.data


@pytest.mark.parametrize("number", [1, 2, 8, 10, 13])
def test_describing_names_no_stream(number):
    """No stream is named to read the metadata, because -1 is a handle to some producers."""
    producer = Producer(matrix(), device=(number, 0))
    interop.spec(producer)
    assert producer.streams == [None]


def test_bfloat16_of_a_producer():
    """A dtype that NumPy lacks is named as ml_dtypes names it, and shared with it."""
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4, dtype=torch.bfloat16)
    producer = Producer(tensor)
    assert interop.spec(producer).dtype == "bfloat16"
    result = interop.convert(producer, to="numpy")
    assert result.dtype.name == "bfloat16"
    assert result.ctypes.data == tensor.data_ptr()
    assert result.astype("float32").tolist() == [0, 1, 2, 3]


def test_a_wrapper_without_memory_is_refused():
    """A tensor that wraps others has a NULL pointer, which would be garbage or a crash."""
    torch = pytest.importorskip("torch")

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (3,), dtype=torch.float32)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Disguise:
        def __init__(self):
            self.tensor = Wrapper()

        def __dlpack__(self, **keywords):
            return torch.Tensor.__dlpack__(self.tensor, **keywords)

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(HandOffError):
        interop.convert(Disguise(), to="numpy")


@pytest.mark.parametrize("version", [None, (1, 0)], ids=["legacy", "versioned"])
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_a_bare_capsule_is_a_source(target, version):
    """A capsule in the caller's hand is described, shared and kept alive as its producer is."""
    array = np.arange(6.0).reshape(2, 3)
    owner = weakref.ref(array)
    address = array.ctypes.data
    capsule = array.__dlpack__(max_version=version)
    del array
    spec = interop.spec(capsule)
    assert (spec.dtype, spec.shape, spec.device) == ("float64", (2, 3), "cpu")
    assert spec.traits == (frozenset() if version else {"immutable"})
    result = interop.convert(capsule, to=target)
    assert (interop.spec(result).dtype, interop.spec(result).shape) == ("float64", (2, 3))
    assert np.asarray(result).ctypes.data == address
    del capsule
    gc.collect()
    assert np.asarray(result).tolist() == [[0, 1, 2], [3, 4, 5]]
    del result
    gc.collect()
    assert owner() is None


def test_a_capsule_that_nobody_consumes_frees_its_memory():
    """To plan, and to be refused, leaves a capsule as it was, and it frees itself."""
    array = np.arange(3.0)
    owner, capsule = weakref.ref(array), array.__dlpack__(max_version=(1, 0))
    del array
    interop.plan(capsule, to="numpy")
    with pytest.raises(RefusedError):
        interop.convert(capsule, to="numpy", dtype="float32", copy=False)
    assert interop.spec(capsule).shape == (3,)
    del capsule
    gc.collect()
    assert owner() is None


def test_a_capsule_is_good_for_one_conversion():
    """What was consumed is refused, and so is a capsule of something else."""
    capsule = np.arange(3.0).__dlpack__(max_version=(1, 0))
    interop.convert(capsule, to="torch")
    for other in (capsule, datetime_CAPI):
        with pytest.raises(HandOffError):
            interop.convert(other, to="torch")


def test_a_capsule_leaves_a_receipt():
    """A trace of what can be read only once says that it does not know whether it is shared."""
    with interop.trace() as receipts:
        interop.convert(np.arange(3.0).__dlpack__(max_version=(1, 0)), to="torch")
    assert [receipt.aliased for receipt in receipts] == [None]


def test_capsules_are_copied_cast_and_written_by_later_steps():
    """A copy, a cast and ``out=`` are steps of their own, for nobody can ask a capsule for them."""
    array = np.arange(3.0)
    for keywords in ({"copy": True}, {"dtype": "float32"}, {"copy": "writable"}):
        capsule = array.__dlpack__()
        result = interop.convert(capsule, to="numpy", **keywords)
        assert result.flags.writeable
        assert not np.shares_memory(result, array)
        assert result.tolist() == [0, 1, 2]
    out = np.zeros(3)
    interop.convert(array.__dlpack__(), out=out)
    assert out.tolist() == [0, 1, 2]


class NarrowLegacyProducer(LegacyProducer):
    """A legacy producer of numbers that NumPy itself cannot name in DLPack."""

    def __dlpack__(self, stream=None):
        torch = pytest.importorskip("torch")
        return torch.from_numpy(self.array).to(torch.bfloat16).__dlpack__(stream=stream)


def test_a_legacy_capsule_of_a_narrow_dtype_is_locked_as_well():
    """What may be immutable cannot be written through an array of an ml_dtypes dtype either."""
    assert interop.spec(NarrowLegacyProducer(matrix())).traits == {"immutable"}
    array = interop.convert(NarrowLegacyProducer(matrix()), to="numpy", forbid="alias_immutable")
    assert array.dtype.name == "bfloat16"
    assert not array.flags.writeable
    assert array.astype("float32").tolist() == matrix().tolist()


def offer_when_warm(target):
    """Offer every fault after a sound value of its type, and in a bare capsule."""
    outcomes = {}
    for fault in sorted(FAULTS.keys() - READABLE):
        interop.convert(Fake(matrix()), to=target)
        interop.convert(Fake(matrix()), to=target)
        fake = Fake(matrix(), **FAULTS[fault][0])
        for name, value in ((fault, fake), (f"{fault} bare", fake.capsule(max_version=(1, 0)))):
            try:
                outcomes[name] = str(interop.convert(value, to=target).dtype)
            except HandOffError as error:
                outcomes[name] = str(error)
    return outcomes


@pytest.mark.parametrize(
    "target",
    ["numpy", "torch"],
)
def test_a_warm_conversion_checks_as_a_cold_one_does(target):
    """What a value did before does not vouch for a later one's capsule, nor for a bare one."""
    matrix().__dlpack__(max_version=(1, 0))
    program = subprocess.run(
        [sys.executable, "-m", "tests.plugins.test_dlpack", target],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert program.returncode == 0, program.stderr
    outcomes = json.loads(program.stdout)
    faults = FAULTS.keys() - READABLE
    assert outcomes.keys() == faults | {f"{fault} bare" for fault in faults}
    assert {f: text for f, text in outcomes.items() if "DLPack hand-off" not in text} == {}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(offer_when_warm(sys.argv[1])))


@pytest.mark.parametrize("warm", [False, True])
def test_shared_memory_outlives_the_end(in_fork, warm):
    """Views that are released while the interpreter ends, in whatever order, free nothing twice."""
    program = f"""
        import gc
        import numpy as np
        import torch
        import interop
        tensor = torch.arange(6.0).reshape(2, 3)
        array = interop.convert(tensor, to="numpy")
        class Keeper:
            pass
        keeper = Keeper()
        keeper.self, keeper.views = keeper, [interop.convert(array, to="torch") for _ in range(99)]
        keeper.capsule = tensor.__dlpack__()
        keeper.back = interop.convert(keeper.views[3], to="numpy", copy=False)
        del tensor
        if {warm}:
            del keeper
            gc.collect()
        print(array.sum())
    """
    assert in_fork(program) == "15.0\n"
