"""Transfers of torch and CuPy without a device: every byte arrives, and in the right order.

The driver is that of `tests.cuda_driver`: the device is memory of the host, and what is not waited
for is not there yet. What only a device can show is tested in tests/gpu.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import staging, transfer
from interop.plugin import Declined, make_spec
from tests.cuda_driver import CudaDriver

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")

from interop_plugins.cupy import hand_offs  # noqa: E402
from interop_plugins.torch import dense  # noqa: E402
from interop_plugins.torch import transfers as torch_transfers  # noqa: E402

#: float32 elements of 20 MiB, which is five pieces.
COUNT = 5 * 2**20


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
    """A CuPy stream that notes who waits for it."""

    ptr = 99

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log = name, log

    def synchronize(self) -> None:
        self._log.append(f"the host waits for {self.name}")


@pytest.fixture
def there(cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Let CuPy work on the device, and return a function that makes arrays on it."""
    runtime = cupy.cuda.runtime
    current = CupyStream("CuPy's", cuda_driver.log)
    monkeypatch.setattr(
        runtime, "pointerGetAttributes", lambda address: SimpleNamespace(type=locked[0])
    )
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
        def get(
            *, stream: CupyStream = current, out: Any = None, blocking: bool = True
        ) -> np.ndarray[Any, Any]:
            assert blocking
            cuda_driver.log.append(f"get on {stream.name}")
            result = np.empty(memory.shape, memory.dtype) if out is None else out
            result[...] = memory
            return result

        def set_(value: Any, *, stream: CupyStream) -> None:
            cuda_driver.log.append(f"set on {stream.name}")
            memory[...] = value

        def copy(*, order: str = "C") -> Any:
            cuda_driver.log.append("gather")
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


ORDER = ["the host waits for CuPy's", "lock"]


def ways(cuda_driver: CudaDriver) -> list[str]:
    """Return the directions of the copies that the driver has made."""
    return [way for way, *_ in cuda_driver.copies]


def threads(cuda_driver: CudaDriver) -> set[int]:
    """Return the threads that have asked for copies."""
    return {thread for *_, thread in cuda_driver.copies}


def test_cupys_arrays_are_fetched_in_stages(cuda_driver: CudaDriver, there: Any) -> None:
    """A large array is on the host when the call returns, copied after what its stream has queued."""
    value = there(np.arange(COUNT, dtype="float32"))
    array = hand_offs.to_numpy(value, device="cpu")
    assert array.dtype == np.float32
    assert np.array_equal(array, np.arange(COUNT, dtype="float32"))
    assert cuda_driver.log == ORDER
    assert ways(cuda_driver) == ["down"] * 5
    assert threading.get_ident() not in threads(cuda_driver)


def test_arrays_of_the_host_are_sent_to_cupy_in_stages(cuda_driver: CudaDriver, there: Any) -> None:
    """A large array is on the device when the call returns, so that it may be overwritten."""
    value = np.arange(COUNT, dtype="float32").reshape(5, -1)
    value.flags.writeable = False
    result = hand_offs.from_numpy(value, device="cuda")
    value.flags.writeable = True
    value[:] = 0
    assert np.array_equal(result.memory.reshape(-1), np.arange(COUNT, dtype="float32"))
    assert cuda_driver.log == ORDER
    assert ways(cuda_driver) == ["up"] * 5


def test_cupy_writes_into_what_is_given(cuda_driver: CudaDriver, there: Any) -> None:
    """out= gets the bytes themselves, in stages, on the host and on the device."""
    value, out = there(np.arange(COUNT, dtype="float32")), np.zeros(COUNT, "float32")
    hand_offs.fetch_into(out, value)
    assert np.array_equal(out, value.memory)
    back = there(np.zeros(COUNT, "float32"))
    hand_offs.fill_from_numpy(back, out)
    assert np.array_equal(back.memory, value.memory)
    assert not any(entry.startswith(("get", "set")) for entry in cuda_driver.log)


def test_cupy_gathers_strided_arrays_on_the_device(cuda_driver: CudaDriver, there: Any) -> None:
    """The elements cross as one block, in C order."""
    memory = np.arange(COUNT, dtype="float32").reshape(5, -1).T
    array = hand_offs.to_numpy(there(memory, contiguous=False), device="cpu")
    assert np.array_equal(array, memory)
    assert array.flags.c_contiguous
    assert cuda_driver.log[0] == "gather"


def test_the_driver_reaches_page_locked_memory_by_itself(
    cuda_driver: CudaDriver, there: Any
) -> None:
    """One call of the driver's fills page-locked memory, or reads it."""
    there.locked[0] = cupy.cuda.runtime.memoryTypeHost
    value, out = there(np.arange(COUNT, dtype="float32")), np.zeros(COUNT, "float32")
    hand_offs.fetch_into(out, value)
    hand_offs.fill_from_numpy(there(np.zeros(COUNT, "float32")), out)
    assert cuda_driver.log == ["get on CuPy's", "set on CuPy's", "the host waits for CuPy's"]
    assert np.array_equal(out, value.memory)


#: The shapes of the leaves of trees, of float32, and how many pieces all of them are.
LEAVES = {
    "64 of 512 KiB": ([(1024, 128)] * 64, 8),
    "300 of 64 KiB": ([(1 << 14,)] * 300, 5),
    "mixed": ([(), (0, 3), (1 << 22,), (3, 7), (1000, 1001)], 5),
}


@pytest.mark.parametrize(("shapes", "pieces"), LEAVES.values(), ids=LEAVES)
def test_cupys_leaves_cross_together(
    cuda_driver: CudaDriver, there: Any, monkeypatch: pytest.MonkeyPatch, shapes: Any, pieces: int
) -> None:
    """The driver copies once a piece, not once a leaf; every leaf owns its memory."""
    sources = leaves(shapes)
    arrays = hand_offs.all_to_numpy([there(source) for source in sources], device="cpu")
    assert ways(cuda_driver) == ["down"] * pieces
    assert cuda_driver.log == ORDER
    check(arrays, sources)
    cuda_driver.log.clear()
    cuda_driver.copies.clear()
    results = hand_offs.all_from_numpy(arrays, device="cuda")
    assert ways(cuda_driver) == ["up"] * pieces
    assert [x for x in cuda_driver.log if x != "gather"] == ["the host waits for CuPy's"] * 2
    for array in arrays:
        array[...] = 0
    check([result.memory for result in results], sources)
    assert threading.get_ident() not in threads(cuda_driver)


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


def test_a_tree_crosses_through_the_ring(
    cuda_driver: CudaDriver, there: Any, mine: interop.Interop
) -> None:
    """The first leaf is compared with its plan, and the other 63 of 512 KiB are eight copies."""
    sources = leaves([(1024, 128)] * 64)
    tree = {f"layer{n}": there(source) for n, source in enumerate(sources)}
    result = mine.convert_tree({**tree, "tied": tree["layer5"]}, to="numpy")
    check([result[name] for name in tree], sources)
    assert result["tied"] is result["layer5"]
    assert cuda_driver.log.count("get on CuPy's") == 1
    assert ways(cuda_driver) == ["down"] * 8
    cuda_driver.log.clear()
    with interop.trace() as receipts:
        check(mine.convert_tree([*tree.values()], to="numpy"), sources)
    assert len(receipts) == cuda_driver.log.count("get on CuPy's") == 64


def test_a_link_that_fails_leaves_the_tree_to_the_driver(
    cuda_driver: CudaDriver, there: Any, mine: interop.Interop
) -> None:
    """An error in the middle ends all threads, and the leaves cross one by one."""
    sources = leaves([(1024, 128)] * 64)
    tree = [there(source) for source in sources]
    before = cuda_driver.threads()
    cuda_driver.hook = lambda number: 700 if number == 5 else 0
    check(mine.convert_tree(tree, to="numpy"), sources)
    assert cuda_driver.log.count("get on CuPy's") == 64
    assert len(cuda_driver.copies) < 9
    wait_for(lambda: cuda_driver.threads() <= before)
    assert staging._ring.room() == 8


def wait_for(condition: Callable[[], bool]) -> None:
    """Give a thread that has released its last lock the time to disappear."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interruption_of_a_tree_leaves_no_thread(
    cuda_driver: CudaDriver, there: Any, mine: interop.Interop
) -> None:
    """Ctrl-C ends the call once no thread copies, every chunk is free, and the tree is whole again."""
    sources = leaves([(1024, 128)] * 64)
    tree = [there(source) for source in sources]
    expected, before = [*tree], cuda_driver.threads()

    def interrupted(number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return 0

    cuda_driver.hook = interrupted
    with pytest.raises(KeyboardInterrupt):
        mine.convert_tree(tree, to="numpy", consume=True)
    assert len(tree) == 64
    assert tree[1:] == expected[1:]
    wait_for(lambda: cuda_driver.threads() <= before)
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


def test_few_leaves_are_left_to_cupy(cuda_driver: CudaDriver, there: Any) -> None:
    """Leaves that are neither large together nor each small, or of several dtypes, are not gathered."""
    between = [there(np.zeros(2**16, "float32"))] * 2
    mixed = [there(np.zeros(COUNT, dtype)) for dtype in ("float32", "int32")]
    empty = [there(np.zeros(0, "float32"))] * 2
    for values in (between, mixed, empty):
        assert hand_offs.all_to_numpy(values, device="cpu") is NotImplemented
    strided = [np.zeros((1 << 11, 1 << 11), "float32").T] * 2
    assert hand_offs.all_from_numpy(strided, device="cuda") is NotImplemented
    there.locked[0] = cupy.cuda.runtime.memoryTypeHost
    locked = [np.zeros(COUNT, "float32")] * 2
    assert hand_offs.all_from_numpy(locked, device="cuda") is NotImplemented
    assert (cuda_driver.log, cuda_driver.copies) == ([], [])


def test_small_leaves_cross_as_one_block(cuda_driver: CudaDriver, there: Any) -> None:
    """Two hundred small leaves are one copy of the driver's, and every leaf owns its memory."""
    sources = leaves([(8, 8), (), (3, 0), (64,)] * 50)
    arrays = hand_offs.all_to_numpy([there(source) for source in sources], device="cpu")
    assert cuda_driver.log == ["get on CuPy's"]
    check(arrays, sources)
    cuda_driver.log.clear()
    results = hand_offs.all_from_numpy(arrays, device="cuda")
    assert (cuda_driver.log[0], cuda_driver.log[-1]) == (
        "set on CuPy's",
        "the host waits for CuPy's",
    )
    assert cuda_driver.log[1:-1] == ["gather"] * len(sources)  # each owns its memory there
    check([result.memory for result in results], sources)


@pytest.mark.parametrize(
    "out",
    [np.zeros(6, "float64"), np.zeros(12, "float32")[::2], np.zeros(6, ">f4")],
    ids=["dtype", "strided", "byteswapped"],
)
def test_odd_outs_are_left_to_others(there: Any, out: Any) -> None:
    """What is not one block of the same bytes is declined before anything is written."""
    with pytest.raises(Declined):
        hand_offs.fetch_into(out, there(np.ones(6, "float32")))
    assert not out.any()


# ---------------------------------------------------------------------- torch


class There(torch.Tensor):  # type: ignore[misc]
    """A tensor that says that it is on a device."""

    is_cuda, is_cpu = True, False

    def get_device(self) -> int:
        return 0

    def cpu(self) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            crossed.append(self.numel())
            return self.as_subclass(torch.Tensor).clone()


#: How many elements torch itself has copied to the host.
crossed: list[int] = []


@pytest.fixture
def cuda(cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch) -> CudaDriver:
    """Let torch work on the device."""
    contiguous, empty = torch.Tensor.contiguous, torch.empty

    def gathered(value: Any) -> Any:
        if not value.is_contiguous():
            cuda_driver.log.append("gather")
        return contiguous(value)

    def made(*shape: Any, dtype: Any, device: str) -> Any:
        return empty(*shape, dtype=dtype).as_subclass(There if device == "cuda" else torch.Tensor)

    crossed.clear()
    stream = SimpleNamespace(synchronize=lambda: cuda_driver.log.append(SETTLED))
    monkeypatch.setattr(torch, "empty", made)
    monkeypatch.setattr(torch.Tensor, "contiguous", gathered)
    types = frozenset({torch.Tensor, There})
    monkeypatch.setattr(torch_transfers, "_plain_types", lambda: types)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda place: stream)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return cuda_driver


SETTLED = "the host waits for torch's"
#: What happens before the first copy.
FIRST = [SETTLED, "lock"]


def numbers() -> Any:
    return torch.arange(COUNT, dtype=torch.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool"])
def test_tensors_are_fetched_in_stages(cuda: CudaDriver, dtype: str) -> None:
    """A large tensor is on the host when the call returns, copied after what its stream has queued."""
    values = (
        numbers().view(getattr(torch, dtype)) if dtype != "bool" else numbers().bool().repeat(4)
    )
    array = dense.download(values.as_subclass(There), device="cpu")
    assert torch.equal(torch.from_numpy(array.view("u1")), values.view(torch.uint8))
    assert cuda.log == FIRST
    assert ways(cuda) == ["down"] * 5
    assert threading.get_ident() not in threads(cuda)


@pytest.mark.parametrize(("shapes", "pieces"), LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_cross_together(cuda: CudaDriver, dtype: str, shapes: Any, pieces: int) -> None:
    """The driver copies once a piece, not once a leaf; every leaf owns its memory."""
    sources = [torch.from_numpy(source) for source in leaves(shapes)]
    if dtype == "bfloat16":  # of which there are as many bytes
        sources = [
            torch.cat([source.bfloat16()] * 2) if source.ndim else source.bfloat16().repeat(2)
            for source in sources
        ]
    values = [source.as_subclass(There) for source in sources]
    arrays = dense.download_all(values, device="cpu")
    assert ways(cuda) == ["down"] * pieces
    assert cuda.log == FIRST
    numbers = [source.flatten().view(torch.uint8).numpy() for source in sources]
    check([array.reshape(-1).view("u1") for array in arrays], numbers)
    assert [array.shape for array in arrays] == [tuple(source.shape) for source in sources]
    moved = dense.move_all(values, device="cpu")
    assert ways(cuda) == ["down"] * 2 * pieces
    assert all(type(tensor) is torch.Tensor for tensor in moved)
    assert all(map(torch.equal, moved, sources))
    for send in (dense.upload_all, dense.move_all):
        cuda.log.clear()
        cuda.copies.clear()
        results = send(arrays if send is dense.upload_all else moved, device="cuda")
        assert ways(cuda) == ["up"] * pieces
        assert cuda.log == [SETTLED] * 2
        assert all(map(torch.equal, results, sources))
        assert [result.untyped_storage().nbytes() for result in results] == [
            source.nbytes for source in sources
        ]
    assert threading.get_ident() not in threads(cuda)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_small_tensors_cross_as_one_block(cuda: CudaDriver, dtype: str) -> None:
    """Two hundred small leaves are one copy of torch's, and every leaf owns its memory."""
    shapes = [(8, 8), (), (3, 0), (64,)] * 50
    sources = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in leaves(shapes)]
    values = [source.as_subclass(There) for source in sources]
    total = sum(source.numel() for source in sources)
    arrays = dense.download_all(values, device="cpu")
    moved = dense.move_all(values, device="cpu")
    assert crossed == [total] * 2
    assert (cuda.log, cuda.copies) == ([], [])
    check(
        [array.reshape(-1).view("u1") for array in arrays],
        [source.flatten().view(torch.uint8).numpy() for source in sources],
    )
    assert [array.shape for array in arrays] == [tuple(source.shape) for source in sources]
    for results in (moved, dense.upload_all(arrays, device="cuda")):
        assert all(map(torch.equal, results, sources))
        assert [result.untyped_storage().nbytes() for result in results] == [
            source.nbytes for source in sources
        ]
    assert cuda.log == [SETTLED]  # of the copies out of the block on the device


@pytest.mark.parametrize("why", ["grad", "conj", "dtypes", "small", "captured", "tangent"])
def test_odd_leaves_are_left_to_torch(
    cuda: CudaDriver, monkeypatch: pytest.MonkeyPatch, why: str
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
        values = [value[: 2**16] for value in values]
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


def test_leaves_cross_to_no_third_device(cuda: CudaDriver) -> None:
    """Only the link between the host and a CUDA device has a ring."""
    values = [numbers(), numbers()]
    assert dense.move_all(values, device="xpu") is NotImplemented
    assert dense.move_all([x.as_subclass(There) for x in values], device="xpu") is NotImplemented
    strided = [torch.zeros(1 << 11, 1 << 12)[:, ::2]] * 2
    assert dense.move_all(strided, device="cuda") is NotImplemented
    assert cuda.log == []


@pytest.mark.parametrize("inference", [False, True])
def test_tensors_are_sent_in_stages(cuda: CudaDriver, inference: bool) -> None:
    """A large tensor is on the device when the call returns, also one made in inference mode."""
    with torch.inference_mode(inference):
        out, value = torch.zeros(COUNT).as_subclass(There), numbers()
        dense.fill(out, value)
        value.zero_()
        assert torch.equal(out.as_subclass(torch.Tensor), numbers())
    assert cuda.log == FIRST
    assert ways(cuda) == ["up"] * 5


def test_frozen_parameters_are_staged() -> None:
    """A Parameter that requires no gradient, as all do in inference, is as plain as a tensor."""
    assert torch_transfers._is_plain(torch.nn.Parameter(torch.ones(3), requires_grad=False))
    assert not torch_transfers._is_plain(torch.nn.Parameter(torch.ones(3)))


def test_torch_writes_into_what_is_given(cuda: CudaDriver) -> None:
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
    assert ways(cuda) == ["down"] * 10


def test_a_large_move_is_made_in_stages(cuda: CudaDriver) -> None:
    """A torch tensor on the host lies in NumPy memory, which has huge pages."""
    value = numbers().as_subclass(There)
    result = dense.move(value, device="cpu")
    assert type(result) is torch.Tensor
    assert torch.equal(result, numbers())
    assert result.data_ptr() != value.data_ptr()
    assert ways(cuda) == ["down"] * 5


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_bsr])
def test_sparse_tensors_are_moved_by_torch(layout: Any) -> None:
    """Not every layout says how many bytes it has."""
    blocks = {"blocksize": (2, 2)} if layout is torch.sparse_bsr else {}
    value = torch.eye(4).to_sparse(layout=layout, **blocks)
    moved = dense.move(value, device="meta")
    assert (moved.layout, moved.shape) == (layout, value.shape)


def test_torch_gathers_strided_tensors_on_the_device(cuda: CudaDriver) -> None:
    """The elements cross as one block, in C order."""
    value = numbers().reshape(5, -1).T
    array = dense.download(value.as_subclass(There), device="cpu")
    assert np.array_equal(array, value.numpy())
    assert array.flags.c_contiguous
    assert [*dict.fromkeys(cuda.log)] == ["gather", *FIRST]


@pytest.mark.parametrize("why", ["grad", "conj", "dtype", "small", "strided", "locked", "captured"])
def test_what_is_not_plain_is_left_to_torch(
    cuda: CudaDriver, monkeypatch: pytest.MonkeyPatch, why: str
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
    with pytest.raises(Declined):
        dense.download_into(out, torch.ones(6))
    assert not out.any()
