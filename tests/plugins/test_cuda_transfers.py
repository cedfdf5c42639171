"""Transfers of torch and CuPy that cross together, that fail, and that are left to the libraries.

The device is pretended, by `tests.pretended`. What a real one shows as well is in tests/gpu.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import staging
from interop.plugin import Declined, make_spec
from tests.cases import together
from tests.cuda_driver import CudaDriver
from tests.plugins.values import numpy_dtype

pretended = pytest.importorskip("tests.pretended")
torch, SETTLED, THERE = pretended.torch, pretended.SETTLED, pretended.THERE

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


@pytest.fixture(params=["torch", "cupy"])
def device(
    request: pytest.FixtureRequest, cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A framework on a pretended device."""
    return pretended.FRAMEWORKS[request.param](cuda_driver, monkeypatch)


on_torch = pytest.mark.parametrize("device", ["torch"], indirect=True)
#: What brings leaves to the host and back at once, by framework.
BATCHES = {
    "torch": [(dense.download_all, dense.upload_all), (dense.move_all, dense.move_all)],
    "cupy": [(hand_offs.all_to_numpy, hand_offs.all_from_numpy)],
}


def leaves(shapes: Any, dtype: str = "float32") -> list[Any]:
    """Return arrays in which no two elements are alike, as far as the dtype can tell them apart."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [
        np.arange(end - int(np.prod(shape)), end).reshape(shape).astype(numpy_dtype(dtype))
        for end, shape in zip(ends, shapes, strict=True)
    ]


def check(arrays: Any, expected: Any) -> None:
    """Check bits, shapes, dtypes and that no two share memory or keep that of others alive."""
    for array, source in zip(arrays, expected, strict=True):
        assert array.tobytes() == source.tobytes()
        assert (array.shape, array.dtype) == (source.shape, source.dtype)
        owner = array if array.base is None else array.base
        assert getattr(owner, "nbytes", array.nbytes) == array.nbytes
    assert len({array.ctypes.data for array in arrays if array.size}) == sum(
        array.size > 0 for array in arrays
    )


@pytest.mark.parametrize(
    ("dtype", "shapes", "pieces"),
    [
        ("bfloat16", [(1024, 256)] * 64, 8),
        ("float32", [(1 << 14,)] * 300, 5),
        ("float32", [(), (0, 3), (1 << 22,), (3, 7), (1000, 1001)], 5),
        *(
            (dtype, [(8, 8), (), (3, 0), (64,)] * 50, 1)
            for dtype in ("float32", "bfloat16", "bool")
        ),
    ],
    ids=[
        "of 16 bits",
        "of 64 KiB",
        "of any shape",
        "small",
        "small 16",
        "small bool",
    ],
)
def test_leaves_cross_together(device: Any, dtype: str, shapes: Any, pieces: int) -> None:
    """They cross as one block, in pieces if it is large, both ways; every leaf owns its memory.

    The block is waited for before it is staged, and what is copied out of it when the call returns.
    """
    sources = leaves(shapes, dtype)
    total, staged = sum(source.nbytes for source in sources), pieces > 1
    for down, up in BATCHES[device.framework]:
        values, hosts, results = [device.make(source) for source in sources], [], []
        for cross, given, made, way, place in (
            (down, values, hosts, "DtoH", "cpu"),
            (up, hosts, results, "HtoD", "cuda"),
        ):
            crossed = device.copies(lambda: made.extend(cross(given, device=place)))  # noqa: B023
            assert [name for name, _ in crossed] == [way] * pieces
            assert sum(length for _, length in crossed) == total
            assert device.driver.log.count(SETTLED) == staged + (way == "HtoD")
        arrays = [interop.convert(host, to="numpy") for host in hosts]
        check(arrays, sources)
        for array in arrays:
            array[...] = 0
        check([device.numbers(result) for result in results], sources)
        assert all(
            device.held(x) == source.nbytes for x, source in zip(results, sources, strict=True)
        )


def test_leaves_that_gain_nothing_cross_one_by_one(device: Any) -> None:
    """Those that are neither large together nor each small, of several dtypes, or strided there."""
    between, mixed = leaves([(2**16,)] * 2), [*leaves([(COUNT,)]), *leaves([(COUNT,)], "int32")]
    strided = [array.T for array in leaves([(1 << 11, 1 << 11)] * 2)]
    locked = [device.page_locked(COUNT).numpy() for _ in range(2)]
    for down, up in BATCHES[device.framework]:
        for sources in (between, mixed):
            values = [device.make(source) for source in sources]
            assert down(values, device="cpu") is NotImplemented
        for sources in (between, mixed, strided, locked):
            hosts = sources if up is not dense.move_all else [*map(torch.from_numpy, sources)]
            assert up(hosts, device="cuda") is NotImplemented
    assert (device.driver.log, device.driver.copies, device.crossed) == ([], [], [])


@on_torch
@pytest.mark.parametrize("why", ["grad", "conj", "captured", "tangent", "xpu"])
def test_odd_leaves_are_left_to_torch(
    device: Any, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Graphs, lazy bits, tangents, captures and devices of other types are torch's, one by one."""
    values = [torch.from_numpy(array) for array in leaves([(COUNT,)] * 2)]
    if why == "grad":
        values[1].requires_grad_()
    if why == "conj":
        values = [torch.ones(COUNT, dtype=torch.complex64).conj()] * 2
    if why == "captured":
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    if why == "tangent":
        monkeypatch.setattr(dense, "has_tangent", lambda value: True)
    there = [device.make(value) for value in values]
    assert dense.move_all(values, device="xpu" if why == "xpu" else "cuda") is NotImplemented
    assert dense.move_all(there, device="xpu" if why == "xpu" else "cpu") is NotImplemented
    if why not in ("tangent", "xpu"):
        assert dense.download_all(there, device="cpu") is NotImplemented
    assert device.driver.log == []


def test_page_locked_memory_is_read_by_the_driver(device: Any) -> None:
    """One call of the driver's reads it; the array is on the device when the call returns."""
    locked, value = device.page_locked(COUNT), np.arange(COUNT, dtype="float32")
    locked.copy_(torch.from_numpy(value))
    out = device.make(np.zeros(COUNT, "float32"))
    crossed = device.copies(lambda: device.convert(locked.numpy(), out=out))
    assert crossed == [("HtoD", 4 * COUNT)]
    assert np.array_equal(device.numbers(out), value)


def test_rocm_knows_no_memory_of_the_host(
    cuda_driver: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error when it is asked for ordinary memory says that it is not page-locked."""
    device = pretended.FRAMEWORKS["cupy"](cuda_driver, monkeypatch)
    runtime = pretended.cupy.cuda.runtime

    def unknown(address: int) -> None:
        raise runtime.CUDARuntimeError(1)

    monkeypatch.setattr(runtime, "pointerGetAttributes", unknown)
    (value,) = leaves([(COUNT,)])
    assert len(device.copies(lambda: device.convert(value, to=THERE, device="cuda"))) == 5


@together(
    "out",
    [np.zeros(12, "float32")[::2], np.zeros(6, ">f4"), np.zeros(25, "u1")[1:].view("f4")],
)
def test_odd_outs_are_left_to_others(device: Any, out: Any) -> None:
    """What is not one aligned block of native elements is declined before anything is written."""
    into = {"torch": dense.download_into, "cupy": hand_offs.fetch_into}[device.framework]
    with pytest.raises(Declined):
        into(out, device.make(np.ones(6, "float32")))
    assert not out.any()


def test_a_tree_crosses_through_the_ring(device: Any) -> None:
    """Tied leaves stay tied, and in a trace each leaf crosses alone, with its receipt."""
    sources = leaves([(1024, 128)] * 64)
    tree = {f"layer{n}": device.make(source) for n, source in enumerate(sources)}
    result = device.convert_tree({**tree, "tied": tree["layer5"]}, to="numpy")
    check([result[name] for name in tree], sources)
    assert result["tied"] is result["layer5"]
    device.crossed.clear()
    with interop.trace() as receipts:
        check(device.convert_tree([*tree.values()], to="numpy"), sources)
    assert len(receipts) == len(device.crossed) == 64


def test_a_link_that_fails_leaves_the_tree_to_the_driver(
    device: Any, cuda_driver: CudaDriver
) -> None:
    """An error in the middle ends all threads, and the leaves cross one by one."""
    sources = leaves([(1024, 128)] * 64)
    tree = [device.make(source) for source in sources]
    before = cuda_driver.threads()
    cuda_driver.hook = lambda number: 700 if number == 5 else 0
    check(device.convert_tree(tree, to="numpy"), sources)
    assert len(device.crossed) == 64
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
def test_an_interruption_of_a_tree_leaves_no_thread(device: Any, cuda_driver: CudaDriver) -> None:
    """Ctrl-C ends the call once no thread copies, every chunk is free, and the tree is whole again."""
    sources = leaves([(1024, 128)] * 64)
    tree = [device.make(source) for source in sources]
    expected, before = [*tree], cuda_driver.threads()

    def interrupted(number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return 0

    cuda_driver.hook = interrupted
    with pytest.raises(KeyboardInterrupt):
        device.convert_tree(tree, to="numpy", consume=True)
    assert len(tree) == 64
    assert tree[1:] == expected[1:]
    wait_for(lambda: cuda_driver.threads() <= before)
    assert staging._ring.room() == 8
    check(device.convert_tree(expected, to="numpy"), sources)


# ---------------------------------------------------------------------- torch


def numbers() -> Any:
    return torch.arange(COUNT, dtype=torch.float32)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_bsr])
def test_sparse_tensors_are_moved_by_torch(layout: Any) -> None:
    """Not every layout says how many bytes it has."""
    blocks = {"blocksize": (2, 2)} if layout is torch.sparse_bsr else {}
    value = torch.eye(4).to_sparse(layout=layout, **blocks)
    moved = dense.move(value, device="meta")
    assert (moved.layout, moved.shape) == (layout, value.shape)


def test_frozen_parameters_are_staged() -> None:
    """A Parameter that requires no gradient, as all do in inference, is as plain as a tensor."""
    assert torch_transfers._is_plain(torch.nn.Parameter(torch.ones(3), requires_grad=False))
    assert not torch_transfers._is_plain(torch.nn.Parameter(torch.ones(3)))


@on_torch
@pytest.mark.parametrize("why", ["grad", "conj", "dtype", "small", "strided", "locked", "captured"])
def test_what_is_not_plain_is_left_to_torch(
    device: Any, monkeypatch: pytest.MonkeyPatch, why: str
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
    assert not torch_transfers.stage(out, device.make(value))
    assert device.driver.log == []
    if why not in ("small", "strided", "locked", "captured"):
        assert torch_transfers.stage(torch.zeros(COUNT), device.make(numbers()))
