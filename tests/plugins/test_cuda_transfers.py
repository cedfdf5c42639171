"""Transfers of torch and CuPy without a device: every byte arrives, in the right order of streams.

The device is memory of the host. Its copies are queued, and made later by a thread, so that what is
not waited for is not there yet. What only a device can show is tested in tests/gpu.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import staging, transfer
from interop.plugin import Declined, make_spec

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")

from interop_plugins.cupy import hand_offs  # noqa: E402
from interop_plugins.cupy import transfers as cupy_transfers  # noqa: E402
from interop_plugins.torch import dense  # noqa: E402
from interop_plugins.torch import transfers as torch_transfers  # noqa: E402

#: float32 elements of 20 MiB, which is five pieces.
COUNT = 5 * 2**20


class Device:
    """A queue of copies that are made one after another, a while after they were asked for."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.threads: set[int] = set()
        self._queue: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (copy := self._queue.get()) is not None:
            time.sleep(0.002)
            copy()

    def put(self, copy: Callable[[], Any], what: str = "copy") -> None:
        self.log.append(what)
        self.threads.add(threading.get_ident())
        self._queue.put(copy)

    def record(self) -> Event:
        self.log.append("record")
        event = Event()
        self._queue.put(event.done.set)
        return event

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


class Event:
    """What a stream has recorded; it is done when the queue has come to it."""

    def __init__(self) -> None:
        self.done = threading.Event()

    def synchronize(self) -> None:
        assert self.done.wait(20)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """Let there be a device, four idle cores and no chunk yet."""
    monkeypatch.setattr(staging, "_ring", staging._Ring())
    monkeypatch.setattr(staging, "idle_cores", lambda: 4)
    monkeypatch.setattr(staging, "threads", lambda: 4)
    device = Device()
    yield device
    device.close()


@pytest.mark.parametrize("dtype", [None, "float16"])
@pytest.mark.parametrize(
    ("source", "there", "target", "device"),
    [
        ("torch", "cuda:0", "numpy", None),
        ("torch", "cuda:0", "torch", "cpu"),
        ("torch", "cpu", "torch", "cuda:0"),
        ("numpy", "cpu", "torch", "cuda:0"),
        ("cupy", "cuda:0", "numpy", None),
        ("numpy", "cpu", "cupy", None),
        ("torch", "cpu", "cupy", "cuda:0"),
    ],
)
def test_routes_across_the_link_take_leaves_together(
    source: str, there: str, target: str, device: str | None, dtype: str | None
) -> None:
    """The step that crosses has a batch, whatever is asked for beside it."""
    spec = make_spec(source, "float32", device=there, shape=(3, 4))
    steps = interop.plan(spec, to=target, device=device, dtype=dtype).steps
    crossing = [step for step in steps if step.before.device != step.after.device]
    assert [step.batch is not None for step in crossing] == [True]


# ---------------------------------------------------------------------- CuPy


class CupyStream:
    """A CuPy stream that notes what is recorded on it, and what it waits for."""

    ptr = 99

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log = name, log

    def record(self) -> str:
        self._log.append(f"record on {self.name}")
        return self.name

    def wait_event(self, event: str) -> None:
        self._log.append(f"{self.name} waits for {event}")

    def synchronize(self) -> None:
        self._log.append(f"the host waits for {self.name}")


@pytest.fixture
def there(device: Device, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Let CuPy work on the device, and return a function that makes arrays on it."""
    runtime = cupy.cuda.runtime

    def memcpy(out: int, value: int, nbytes: int, kind: int, stream: int) -> None:
        assert stream == CupyStream.ptr
        device.put(lambda: ctypes.memmove(out, value, nbytes), f"copy of kind {kind}")

    class CupyEvent(Event):
        def __init__(self, *, disable_timing: bool) -> None:
            assert disable_timing

        def record(self, stream: CupyStream) -> None:
            self.done = device.record().done

    own, current = CupyStream("the link", device.log), CupyStream("CuPy's", device.log)
    monkeypatch.setattr(runtime, "memcpyAsync", memcpy)
    monkeypatch.setattr(
        runtime, "pointerGetAttributes", lambda address: SimpleNamespace(type=locked[0])
    )
    monkeypatch.setattr(cupy.cuda, "Event", CupyEvent)
    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", bytearray)
    monkeypatch.setattr(cupy_transfers, "_stream", lambda index: own)
    monkeypatch.setattr(hand_offs, "working", lambda place, stream: nullcontext(current))
    monkeypatch.setattr(hand_offs, "device_named", lambda name: None)
    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: make(np.zeros(shape, dtype)))
    monkeypatch.setattr(
        cupy,
        "concatenate",
        lambda arrays: make(np.concatenate([array.memory for array in arrays])),
    )
    locked = [0]

    def make(memory: Any, *, contiguous: bool = True) -> Any:
        def get(*, stream: CupyStream, out: Any, blocking: bool) -> None:
            assert blocking
            device.log.append(f"get on {stream.name}")
            out[...] = memory

        def set_(value: Any, *, stream: CupyStream) -> None:
            device.log.append(f"set on {stream.name}")
            memory[...] = value

        def copy(*, order: str = "C") -> Any:
            device.log.append("gather")
            return make(memory.copy(order))

        address, place = memory.ctypes.data, nullcontext()
        return Pretended(
            make=make,
            memory=memory,
            shape=memory.shape,
            dtype=memory.dtype,
            size=memory.size,
            nbytes=memory.nbytes,
            flags=SimpleNamespace(c_contiguous=contiguous),
            data=SimpleNamespace(ptr=address, device=place, device_id=0),
            get=get,
            set=set_,
            copy=copy,
        )

    make.locked = locked  # type: ignore[attr-defined]
    return make


class Pretended(SimpleNamespace):
    """A CuPy array in memory of the host."""

    def __getitem__(self, part: slice) -> Pretended:
        return self.make(self.memory[part])  # type: ignore[no-any-return]

    def ravel(self) -> Pretended:
        return self.make(self.memory.ravel())  # type: ignore[no-any-return]

    def reshape(self, shape: tuple[int, ...]) -> Pretended:
        return self.make(self.memory.reshape(shape))  # type: ignore[no-any-return]


ORDER = ["record on CuPy's", "the link waits for CuPy's"]


def test_cupys_arrays_are_fetched_in_stages(device: Device, there: Any) -> None:
    """A large array is on the host when the call returns, copied after what its stream has queued."""
    value = there(np.arange(COUNT, dtype="float32"))
    array = hand_offs.to_numpy(value, device="cpu")
    assert array.dtype == np.float32
    assert np.array_equal(array, np.arange(COUNT, dtype="float32"))
    assert device.log[:2] == ORDER
    assert device.log.count(f"copy of kind {cupy.cuda.runtime.memcpyDeviceToHost}") == 5
    assert threading.get_ident() not in device.threads


def test_arrays_of_the_host_are_sent_to_cupy_in_stages(device: Device, there: Any) -> None:
    """A large array is on the device when the call returns, so that it may be overwritten."""
    value = np.arange(COUNT, dtype="float32").reshape(5, -1)
    value.flags.writeable = False
    result = hand_offs.from_numpy(value, device="cuda")
    value.flags.writeable = True
    value[:] = 0
    assert np.array_equal(result.memory.reshape(-1), np.arange(COUNT, dtype="float32"))
    assert device.log[:2] == ORDER
    assert device.log.count(f"copy of kind {cupy.cuda.runtime.memcpyHostToDevice}") == 5


def test_cupy_writes_into_what_is_given(device: Device, there: Any) -> None:
    """out= gets the bytes themselves, in stages, on the host and on the device."""
    value, out = there(np.arange(COUNT, dtype="float32")), np.zeros(COUNT, "float32")
    hand_offs.fetch_into(out, value)
    assert np.array_equal(out, value.memory)
    back = there(np.zeros(COUNT, "float32"))
    hand_offs.fill_from_numpy(back, out)
    assert np.array_equal(back.memory, value.memory)
    assert not any(entry.startswith(("get", "set")) for entry in device.log)


def test_cupy_gathers_strided_arrays_on_the_device(device: Device, there: Any) -> None:
    """The elements cross as one block, in C order."""
    memory = np.arange(COUNT, dtype="float32").reshape(5, -1).T
    array = hand_offs.to_numpy(there(memory, contiguous=False), device="cpu")
    assert np.array_equal(array, memory)
    assert array.flags.c_contiguous
    assert device.log[0] == "gather"


def test_the_driver_reaches_page_locked_memory_by_itself(device: Device, there: Any) -> None:
    """One call of the driver's fills page-locked memory, or reads it."""
    there.locked[0] = cupy.cuda.runtime.memoryTypeHost
    value, out = there(np.arange(COUNT, dtype="float32")), np.zeros(COUNT, "float32")
    hand_offs.fetch_into(out, value)
    hand_offs.fill_from_numpy(there(np.zeros(COUNT, "float32")), out)
    assert device.log == ["get on CuPy's", "set on CuPy's", "the host waits for CuPy's"]
    assert np.array_equal(out, value.memory)


#: The shapes of the leaves of trees, of float32, and how many pieces all of them are.
LEAVES = {
    "64 of 512 KiB": ([(1024, 128)] * 64, 8),
    "300 of 64 KiB": ([(1 << 14,)] * 300, 5),
    "mixed": ([(), (0, 3), (1 << 22,), (3, 7), (1000, 1001)], 5),
}


@pytest.mark.parametrize(("shapes", "pieces"), LEAVES.values(), ids=LEAVES)
def test_cupys_leaves_cross_together(
    device: Device, there: Any, monkeypatch: pytest.MonkeyPatch, shapes: Any, pieces: int
) -> None:
    """The driver copies and records once a piece, not once a leaf; every leaf owns its memory."""
    sources = leaves(shapes)
    arrays = hand_offs.all_to_numpy([there(source) for source in sources], device="cpu")
    assert device.log.count(f"copy of kind {cupy.cuda.runtime.memcpyDeviceToHost}") == pieces
    assert device.log.count("record") == pieces
    assert device.log[:2] == ORDER
    check(arrays, sources)
    device.log.clear()
    results = hand_offs.all_from_numpy(arrays, device="cuda")
    assert device.log.count(f"copy of kind {cupy.cuda.runtime.memcpyHostToDevice}") == pieces
    assert device.log.count("record") == pieces
    assert (device.log[:2], device.log[-1]) == (ORDER, "the host waits for CuPy's")
    for array in arrays:
        array[...] = 0
    check([result.memory for result in results], sources)
    assert threading.get_ident() not in device.threads


@pytest.fixture
def mine() -> interop.Interop:
    """Return an instance that converts what lies on the device as CuPy's arrays are converted."""

    def described(value: Pretended) -> interop.Spec:
        return make_spec("pretended", "float32", device="cuda:0", shape=value.shape)

    mine = interop.Interop()
    mine.register(
        interop.Format(
            "pretended",
            types=(f"{__name__}:Pretended",),
            describe=described,
            dtypes={"float32"},
            devices=("cuda",),
        ),
        transfer(
            "pretended",
            "numpy",
            hand_offs.to_numpy,
            {"cuda"},
            {"cpu"},
            stream=True,
            batch=hand_offs.all_to_numpy,
        ),
    )
    return mine


def test_a_tree_crosses_through_the_ring(device: Device, there: Any, mine: interop.Interop) -> None:
    """The first leaf is compared with its plan, and the other 63 of 512 KiB are eight copies."""
    sources = leaves([(1024, 128)] * 64)
    tree = {f"layer{n}": there(source) for n, source in enumerate(sources)}
    result = mine.convert_tree({**tree, "tied": tree["layer5"]}, to="numpy")
    check([result[name] for name in tree], sources)
    assert result["tied"] is result["layer5"]
    assert device.log.count("get on CuPy's") == 1
    assert device.log.count(f"copy of kind {cupy.cuda.runtime.memcpyDeviceToHost}") == 8
    device.log.clear()
    with interop.trace() as receipts:
        check(mine.convert_tree([*tree.values()], to="numpy"), sources)
    assert len(receipts) == device.log.count("get on CuPy's") == 64


def test_a_link_that_fails_leaves_the_tree_to_the_driver(
    device: Device, there: Any, mine: interop.Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle ends all threads, loses its chunk, and the leaves cross one by one."""
    sources = leaves([(1024, 128)] * 64)
    tree = [there(source) for source in sources]
    before, copy, copies = {*sys._current_frames()}, cupy_transfers._Link.copy, []

    def failing(link: Any, chunk: Any, start: int) -> None:
        copies.append(start)
        if len(copies) == 5:
            raise OSError("the link is down")
        copy(link, chunk, start)

    monkeypatch.setattr(cupy_transfers._Link, "copy", failing)
    check(mine.convert_tree(tree, to="numpy"), sources)
    assert device.log.count("get on CuPy's") == 64
    assert len(copies) < 9
    end = time.monotonic() + 5
    while not {*sys._current_frames()} <= before:
        assert time.monotonic() < end
    assert staging._ring.room() == 8


def test_an_interruption_of_a_tree_leaves_no_thread(
    device: Device, there: Any, mine: interop.Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the call once no thread copies, every chunk is free, and the tree is whole again."""
    sources = leaves([(1024, 128)] * 64)
    tree = [there(source) for source in sources]
    expected = [*tree]
    before, copy, copies = {*sys._current_frames()}, cupy_transfers._Link.copy, []

    def interrupted(link: Any, chunk: Any, start: int) -> None:
        copy(link, chunk, start)
        copies.append(start)
        if len(copies) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with monkeypatch.context() as patches:
        patches.setattr(cupy_transfers._Link, "copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine.convert_tree(tree, to="numpy", consume=True)
    assert len(tree) == 64
    assert tree[1:] == expected[1:]
    end = time.monotonic() + 5
    while not {*sys._current_frames()} <= before:
        assert time.monotonic() < end
    assert staging._ring.room() == 8
    check(mine.convert_tree(expected, to="numpy"), sources)


def leaves(shapes: Any) -> list[Any]:
    """Return arrays in which no two elements are alike."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [
        np.arange(end - int(np.prod(shape)), end, dtype="float32").reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]


def check(arrays: Any, expected: Any) -> None:
    """Check values, shapes, dtypes and that no two share memory or keep that of others alive."""
    for array, source in zip(arrays, expected, strict=True):
        assert np.array_equal(array, source)
        assert (array.shape, array.dtype) == (source.shape, source.dtype)
        owner = array if array.base is None else array.base
        assert (owner.base, owner.nbytes) == (None, array.nbytes)
    assert len({array.ctypes.data for array in arrays if array.size}) == sum(
        array.size > 0 for array in arrays
    )


def test_few_leaves_are_left_to_cupy(device: Device, there: Any) -> None:
    """Leaves that are small together, or of several dtypes, are converted one by one."""
    small = [there(np.zeros(1000, "float32"))] * 2
    mixed = [there(np.zeros(COUNT, dtype)) for dtype in ("float32", "int32")]
    for values in (small, mixed):
        assert hand_offs.all_to_numpy(values, device="cpu") is NotImplemented
    strided = [np.zeros((1 << 11, 1 << 11), "float32").T] * 2
    assert hand_offs.all_from_numpy(strided, device="cuda") is NotImplemented
    there.locked[0] = cupy.cuda.runtime.memoryTypeHost
    locked = [np.zeros(COUNT, "float32")] * 2
    assert hand_offs.all_from_numpy(locked, device="cuda") is NotImplemented
    assert device.log == []


@pytest.mark.parametrize(
    "out",
    [np.zeros(6, "float64"), np.zeros(12, "float32")[::2], np.zeros(6, ">f4")],
    ids=["dtype", "strided", "byteswapped"],
)
def test_odd_outs_are_left_to_others(there: Any, out: Any) -> None:
    """What is not one block of the same bytes is declined before anything is written."""
    with pytest.raises(Declined, match="the driver copies bytes"):
        hand_offs.fetch_into(out, there(np.ones(6, "float32")))
    assert not out.any()


# ---------------------------------------------------------------------- torch


class There(torch.Tensor):  # type: ignore[misc]
    """A tensor that says that it is on a device."""

    is_cuda, is_cpu = True, False


@pytest.fixture
def cuda(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """Let torch work on the device."""

    class TorchEvent(Event):
        def record(self) -> None:
            self.done = device.record().done

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, stream: Stream) -> None:
            device.log.append(f"{self.name} waits for {stream.name}")

        def synchronize(self) -> None:
            device.log.append(f"the host waits for {self.name}")

    @contextmanager
    def on(stream: Stream) -> Iterator[None]:
        assert stream.name == "the link"
        yield

    plain = torch_transfers._is_plain

    def is_plain(value: Any) -> bool:
        with torch._C.DisableTorchFunctionSubclass():
            return plain(value.as_subclass(torch.Tensor))

    copy, contiguous, empty = torch.Tensor.copy_, torch.Tensor.contiguous, torch.empty

    def queued(out: Any, value: Any, *, non_blocking: bool = False) -> Any:
        if not non_blocking:
            return copy(out, value)
        in_inference = torch.is_inference_mode_enabled()

        def work() -> None:
            with torch.inference_mode(in_inference):
                copy(out, value)

        device.put(work)
        return out

    def gathered(value: Any) -> Any:
        if not value.is_contiguous():
            device.log.append("gather")
        return contiguous(value)

    monkeypatch.setattr(torch, "empty", lambda *shape, dtype, device: empty(*shape, dtype=dtype))
    monkeypatch.setattr(torch.Tensor, "copy_", queued)
    monkeypatch.setattr(torch.Tensor, "contiguous", gathered)
    monkeypatch.setattr(torch_transfers, "_is_plain", is_plain)
    monkeypatch.setattr(torch_transfers, "_stream", lambda index: Stream("the link"))
    monkeypatch.setattr(
        torch_transfers._Link, "allocate", lambda link, nbytes: np.zeros(nbytes, np.uint8)
    )
    monkeypatch.setattr(torch.cuda, "current_stream", lambda place: Stream("torch's"))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "Event", TorchEvent)
    monkeypatch.setattr(torch.cuda, "stream", on)
    return device


#: What happens first and last where leaves are copied out of a block on the device.
LINKED = "the link waits for torch's", "the host waits for torch's"


def numbers() -> Any:
    return torch.arange(COUNT, dtype=torch.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool"])
def test_tensors_are_fetched_in_stages(cuda: Device, dtype: str) -> None:
    """A large tensor is on the host when the call returns, copied after what its stream has queued."""
    values = (
        numbers().view(getattr(torch, dtype)) if dtype != "bool" else numbers().bool().repeat(4)
    )
    array = dense.download(values.as_subclass(There), device="cpu")
    assert torch.equal(torch.from_numpy(array.view("u1")), values.view(torch.uint8))
    assert cuda.log[0] == "the link waits for torch's"
    assert cuda.log.count("copy") == 5
    assert threading.get_ident() not in cuda.threads


@pytest.mark.parametrize(("shapes", "pieces"), LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_cross_together(cuda: Device, dtype: str, shapes: Any, pieces: int) -> None:
    """torch copies and records once a piece, not once a leaf; every leaf owns its memory."""
    sources = [torch.from_numpy(source) for source in leaves(shapes)]
    if dtype == "bfloat16":  # of which there are as many bytes
        sources = [
            torch.cat([source.bfloat16()] * 2) if source.ndim else source.bfloat16().repeat(2)
            for source in sources
        ]
    values = [source.as_subclass(There) for source in sources]
    arrays = dense.download_all(values, device="cpu")
    assert cuda.log.count("copy") == cuda.log.count("record") == pieces
    assert cuda.log[0] == "the link waits for torch's"
    numbers = [source.flatten().view(torch.uint8).numpy() for source in sources]
    check([array.reshape(-1).view("u1") for array in arrays], numbers)
    assert [array.shape for array in arrays] == [tuple(source.shape) for source in sources]
    moved = dense.move_all(values, device="cpu")
    assert cuda.log.count("copy") == 2 * pieces
    assert all(type(tensor) is torch.Tensor for tensor in moved)
    assert all(map(torch.equal, moved, sources))
    cuda.log.clear()
    for send in (dense.upload_all, dense.move_all):
        results = send(arrays if send is dense.upload_all else moved, device="cuda")
        assert cuda.log.count("copy") == cuda.log.count("record") == pieces
        assert (cuda.log[0], cuda.log[-1]) == LINKED
        assert all(map(torch.equal, results, sources))
        assert [result.untyped_storage().nbytes() for result in results] == [
            source.nbytes for source in sources
        ]
        cuda.log.clear()
    assert threading.get_ident() not in cuda.threads


@pytest.mark.parametrize("why", ["grad", "conj", "dtypes", "small", "captured", "tangent"])
def test_odd_leaves_are_left_to_torch(
    cuda: Device, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Graphs, lazy bits, several dtypes, tangents and captures are torch's, one by one."""
    values = [numbers(), numbers()]
    if why == "grad":
        values[1].requires_grad_()
    if why == "conj":
        values = [torch.ones(COUNT, dtype=torch.complex64).conj()] * 2
    if why == "dtypes":
        values[1] = values[1].int()
    if why == "small":
        values = [value[:1000] for value in values]
    if why == "captured":
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    if why == "tangent":
        monkeypatch.setattr(dense, "has_tangent", lambda value: True)
    there = [value.as_subclass(There) for value in values]
    assert dense.move_all(values, device="cuda") is NotImplemented
    assert dense.move_all(there, device="cpu") is NotImplemented
    if why != "tangent":
        assert dense.download_all(there, device="cpu") is NotImplemented
    assert cuda.log == []


def test_leaves_cross_to_no_third_device(cuda: Device) -> None:
    """Only the link between the host and a CUDA device has a ring."""
    values = [numbers(), numbers()]
    assert dense.move_all(values, device="xpu") is NotImplemented
    assert dense.move_all([x.as_subclass(There) for x in values], device="xpu") is NotImplemented
    strided = [torch.zeros(1 << 11, 1 << 12)[:, ::2]] * 2
    assert dense.move_all(strided, device="cuda") is NotImplemented
    assert cuda.log == []


@pytest.mark.parametrize("inference", [False, True])
def test_tensors_are_sent_in_stages(cuda: Device, inference: bool) -> None:
    """A large tensor is on the device when the call returns, also one made in inference mode."""
    with torch.inference_mode(inference):
        out, value = torch.zeros(COUNT).as_subclass(There), numbers()
        dense.fill(out, value)
        value.zero_()
        assert torch.equal(out.as_subclass(torch.Tensor), numbers())
    assert cuda.log[0] == "the link waits for torch's"
    assert cuda.log.count("copy") == 5


def test_torch_writes_into_what_is_given(cuda: Device) -> None:
    """out= of NumPy or of torch gets the bytes themselves, in stages."""
    value, array, tensor = (
        numbers().as_subclass(There),
        np.zeros(COUNT, "float32"),
        torch.zeros(COUNT),
    )
    dense.download_into(array, value)
    dense.move_into(tensor, value)
    assert np.array_equal(array, numbers().numpy())
    assert torch.equal(tensor, numbers())
    assert cuda.log.count("copy") == 10


def test_a_large_move_is_made_in_stages(cuda: Device) -> None:
    """A torch tensor on the host lies in NumPy memory, which has huge pages."""
    value = numbers().as_subclass(There)
    result = dense.move(value, device="cpu")
    assert type(result) is torch.Tensor
    assert torch.equal(result, numbers())
    assert result.data_ptr() != value.data_ptr()
    assert cuda.log.count("copy") == 5


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_bsr])
def test_sparse_tensors_are_moved_by_torch(layout: Any) -> None:
    """Not every layout says how many bytes it has."""
    blocks = {"blocksize": (2, 2)} if layout is torch.sparse_bsr else {}
    value = torch.eye(4).to_sparse(layout=layout, **blocks)
    moved = dense.move(value, device="meta")
    assert (moved.layout, moved.shape) == (layout, value.shape)


def test_torch_gathers_strided_tensors_on_the_device(cuda: Device) -> None:
    """The elements cross as one block, in C order."""
    value = numbers().reshape(5, -1).T
    array = dense.download(value.as_subclass(There), device="cpu")
    assert np.array_equal(array, value.numpy())
    assert array.flags.c_contiguous
    assert cuda.log.index("gather") < cuda.log.index("the link waits for torch's")


@pytest.mark.parametrize("why", ["grad", "conj", "dtype", "small", "strided", "locked", "captured"])
def test_what_is_not_plain_is_left_to_torch(
    cuda: Device, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Graphs, lazy bits, casts, odd layouts, page-locked memory and captures are torch's to copy."""
    value, out = numbers(), torch.zeros(COUNT)
    if why == "grad":
        value.requires_grad_()
    if why == "conj":
        value, out = torch.ones(COUNT, dtype=torch.complex64).conj(), torch.zeros(COUNT) + 0j
    if why == "dtype":
        out = out.double()
    if why == "small":
        value, out = value[:1000], out[:1000]
    if why == "strided":
        out = torch.zeros(COUNT, 2)[:, 0]
    if why == "locked":
        monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    if why == "captured":
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not torch_transfers.stage(out, value.as_subclass(There))
    assert cuda.log == []
    if why not in ("small", "strided", "locked", "captured"):
        assert torch_transfers.stage(torch.zeros(COUNT), numbers().as_subclass(There))


@pytest.mark.parametrize(
    "out",
    [np.zeros(12, "float32")[::2], np.zeros(6, ">f4"), np.zeros(25, "u1")[1:].view("f4")],
    ids=["strided", "byteswapped", "unaligned"],
)
def test_torch_leaves_odd_outs_to_others(out: Any) -> None:
    """What is not one aligned block of native elements is declined before anything is written."""
    with pytest.raises(Declined, match="the driver copies bytes"):
        dense.download_into(out, torch.ones(6))
    assert not out.any()


def test_torch_locks_pages_whatever_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunks are memory of the host, which torch's allocator locks."""
    asked: list[dict[str, Any]] = []
    empty = torch.empty

    def noted(nbytes: int, **keywords: Any) -> Any:
        asked.append(keywords)
        return empty(nbytes, dtype=keywords["dtype"], device=keywords["device"])

    monkeypatch.setattr(torch, "empty", noted)
    with torch.device("meta"):
        chunk = torch_transfers._Link.allocate(None, 1000)
    assert (chunk.nbytes, chunk.dtype) == (1000, np.uint8)
    assert asked == [{"dtype": torch.uint8, "device": "cpu", "pin_memory": True}]
