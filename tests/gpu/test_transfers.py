"""How often and how many bytes cross the bus, or are copied on a device, as the driver reports it.

With `device`, which may be pretended, each claim is made once for both kinds of devices. What is
shown by the clock of a real one, or by a driver that fails at a given copy, is shown apart: here,
and in `tests/kit/test_staging.py` and `tests/plugins/test_cuda_transfers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import staging
from tests.gpu.conftest import Copies

SIZE = 1 << 20
BYTES = 4 * SIZE


def test_hand_offs_copy_nothing(torch: Any, cupy: Any, copies: Copies) -> None:
    """Sharing makes no copy of any kind, also on other streams and by the interface."""
    array, tensor = cupy.ones(SIZE, "float32"), torch.ones(SIZE, device="cuda")
    side = cupy.cuda.Stream(non_blocking=True)
    assert copies(lambda: interop.convert(array, to="torch")) == []
    assert copies(lambda: interop.convert(tensor, to="cupy")) == []
    assert copies(lambda: interop.convert(tensor, to="cupy", stream=side)) == []


def test_transfers_cross_once(device: Any) -> None:
    """Every byte crosses the bus once, each way, and none is copied on the device."""
    value = np.ones(SIZE, "float32")
    there = device.convert(value, to=device.name, device="cuda")
    up = lambda: device.convert(value, to=device.name, device="cuda")  # noqa: E731
    assert device.copies(up) == [("HtoD", BYTES)]
    assert device.copies(lambda: device.convert(there, to="numpy")) == [("DtoH", BYTES)]
    assert device.copies(lambda: device.convert(value, out=there)) == [("HtoD", BYTES)]


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_narrower_numbers_cross_as_such(
    torch: Any, cupy: Any, copies: Copies, framework: str
) -> None:
    """A narrowing cast comes before the transfer, so that half of the bytes cross."""
    value = np.ones(SIZE, "float32")
    there = interop.convert(value, to=framework, device="cuda")
    down = copies(lambda: interop.convert(there, to="numpy", dtype="float16"))
    assert down == [("DtoH", BYTES // 2)]
    up = copies(lambda: interop.convert(value, to=framework, dtype="float16", device="cuda"))
    assert up == [("HtoD", BYTES // 2)]


def test_sparse_arrays_cross_by_component(torch: Any, cupy: Any, copies: Copies) -> None:
    """Values, indices and pointers cross once each, and nothing else does."""
    import cupyx.scipy.sparse

    pytest.importorskip("scipy", reason="SciPy is not installed here")
    array = cupyx.scipy.sparse.csr_array(cupy.eye(64, dtype="float32"))
    interop.spec(array)  # asks whether it is sorted, on the device
    crossed = copies(lambda: interop.convert(array, to="scipy.csr"))
    parts = (array.data, array.indices, array.indptr)
    large = [(name, size) for name, size in crossed if size > 8]
    assert sorted(large) == sorted(("DtoH", part.nbytes) for part in parts)


# ---------------------------------------------------------------------- large transfers, in stages

LARGE = 5 << 22
#: Elements of what is staged in five pieces of 4 MiB, and in pieces of 8 MiB with a remainder.
STAGED, MORE = 5 << 20, (1 << 24) + 4_321


def numbers(size: int) -> Any:
    return np.arange(size, dtype="float32")


@pytest.mark.parametrize("size", [STAGED, MORE])
def test_every_byte_arrives(device: Any, size: int) -> None:
    """Both ways the bytes are equal when the call returns, although the source changes at once."""
    source = numbers(size)
    there = device.convert(source, to=device.name, device="cuda")
    source[:] = -1
    array = device.convert(there, to="numpy")
    there[...] = -2
    assert np.array_equal(array, numbers(size))


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_pending_work_comes_first(torch: Any, cupy: Any, framework: str) -> None:
    """What the current stream has queued is in the result, and not overtaken by it."""
    if framework == "torch":
        there = torch.zeros(LARGE, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(200_000_000)
            there.fill_(3)
            array = interop.convert(there, to="numpy")
    else:
        there = cupy.zeros(LARGE, "float32")
        busy = cupy.ones((4096, 4096), "float32")
        cupy.cuda.Device().synchronize()
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(50):
                busy = busy @ busy
            there.fill(3)
            array = interop.convert(there, to="numpy")
    assert (array == 3).all()


def test_strided_arrays_are_gathered_there(device: Any) -> None:
    """A transposed array crosses once, whole, and arrives in C order."""
    value = numbers(STAGED).reshape(5, -1)
    there = device.convert(value, to=device.name, device="cuda").T
    array = device.convert(there, to="numpy")
    assert np.array_equal(array, value.T)
    assert array.flags.c_contiguous
    crossed = device.copies(lambda: device.convert(there, to="numpy"))
    assert sum(length for way, length in crossed if way == "DtoH") == 4 * STAGED


@pytest.mark.parametrize("size", [100, STAGED])
def test_out_is_written_in_place(device: Any, size: int) -> None:
    """out= of NumPy, of torch on the host and of the device keep their memory; bytes cross once."""
    import torch

    there = device.convert(numbers(size), to=device.name, device="cuda")
    array, tensor = np.zeros(size, "float32"), torch.zeros(size)
    for out in (array, tensor):
        device.convert(there, out=out)
        assert np.array_equal(np.asarray(out), numbers(size))
        crossed = device.copies(lambda out=out: device.convert(there, out=out))
        assert sum(length for _, length in crossed) == 4 * size
    back = device.convert(np.zeros(size, "float32"), to=device.name, device="cuda")
    device.convert(array, out=back)
    assert np.array_equal(device.convert(back, to="numpy"), numbers(size))


def test_page_locked_outs_are_written_by_the_driver(device: Any) -> None:
    """A page-locked tensor, and the NumPy array over it, are filled by one copy."""
    there = device.convert(numbers(STAGED), to=device.name, device="cuda")
    tensor = device.page_locked(STAGED)
    for out in (tensor, tensor.numpy()):
        out[:] = 0
        address = tensor.data_ptr()
        device.convert(there, out=out)
        assert np.array_equal(tensor.numpy(), numbers(STAGED))
        assert tensor.data_ptr() == address
        crossed = device.copies(lambda out=out: device.convert(there, out=out))
        assert crossed == [("DtoH", 4 * STAGED)]


@pytest.mark.parametrize("size", [0, 1, 100, LARGE])
@pytest.mark.parametrize("to", ["torch", "numpy"])
@pytest.mark.parametrize("source", ["torch", "cupy", "numpy"])
def test_page_locked_results(torch: Any, cupy: Any, source: str, to: str, size: int) -> None:
    """``device="cuda_host"`` gives page-locked memory, and what lies there serves as the host."""
    torch.cuda.init()  # before that, no tensor is asked
    value = numbers(size)
    if source != "numpy":
        value = interop.convert(value, to=source, device="cuda")
    result = interop.convert(value, to=to, device="cuda_host")
    tensor = torch.from_numpy(result) if to == "numpy" else result
    assert np.array_equal(tensor.numpy(), numbers(size))
    if size:
        assert tensor.is_pinned()
        assert interop.spec(tensor).device == "cuda_host"
        assert interop.convert(tensor, to="numpy", copy=False).ctypes.data == tensor.data_ptr()
    assert interop.convert(tensor, to="torch", device="cpu", copy=False) is tensor


@pytest.mark.usefixtures("idle")
def test_both_libraries_use_the_same_chunks(torch: Any, cupy: Any) -> None:
    """Chunks that one library has locked serve the other, in both orders, until they are freed."""
    for first, second in (("torch", "cupy"), ("cupy", "torch")):
        interop.free_staging_buffers()
        for framework in (first, second):
            there = interop.convert(numbers(LARGE), to=framework, device="cuda")
            assert np.array_equal(interop.convert(there, to="numpy"), numbers(LARGE))
        memory = staging._ring._memory
        assert memory is not None
        assert staging._ring.room() == 8
        interop.free_staging_buffers()
        assert staging._ring._memory is None


@pytest.mark.usefixtures("idle")
def test_threads_transfer_at_once(torch: Any, cupy: Any) -> None:
    """Transfers in several threads, of both libraries and both ways, are all right."""

    def run(framework: str) -> bool:
        there = interop.convert(numbers(LARGE), to=framework, device="cuda")
        return np.array_equal(interop.convert(there, to="numpy"), numbers(LARGE))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, ["torch", "cupy"] * 9))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "bool", "complex64"])
@pytest.mark.parametrize("device", ["torch", "pretended torch"], indirect=True)
def test_every_width_crosses_in_stages(device: Any, dtype: str) -> None:
    """The bits of dtypes that NumPy lacks come back as they were, also in inference mode."""
    import torch

    bits = torch.arange(STAGED, dtype=torch.int32).view(torch.uint8)
    value = (bits > 7) if dtype == "bool" else bits.view(getattr(torch, dtype))
    for inference in (False, True):
        with torch.inference_mode(inference):
            there = device.convert(value, to=device.name, device="cuda")
            back = device.convert(there, to="torch", device="cpu")
            assert torch.equal(back.view(torch.uint8), value.view(torch.uint8))
            array = device.convert(there, to="numpy")
            assert np.array_equal(array.view("u1"), value.view(torch.uint8).numpy())


@pytest.mark.usefixtures("idle")
def test_a_graph_crosses_with_its_gradients(torch: Any) -> None:
    """A large tensor that requires a gradient stays in its graph."""
    leaf = torch.ones(LARGE, device="cuda", requires_grad=True)
    moved = interop.convert(leaf, to="torch", device="cpu")
    (gradient,) = torch.autograd.grad(moved.sum(), leaf)
    assert bool((gradient == 1).all())


# ---------------------------------------------------------------------- trees, in stages

#: The shapes of the leaves of a tree, and the most copies in which they may cross.
TREES = {
    "64 of 512 KiB": ([(1024, 128)] * 64, 9),
    "300 of 64 KiB": ([(1 << 14,)] * 300, 6),
    "of any shape": ([(), (0, 3), (1 << 22,), (3, 7), (1000, 1001)], 8),
}


def leaves(shapes: list[tuple[int, ...]]) -> dict[str, Any]:
    """Return the leaves of a state dict, in which no two elements are alike."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    block = np.split(numbers(sum(sizes)), np.cumsum(sizes)[:-1])
    return {
        f"layer{n}": part.reshape(shape).copy()
        for n, (part, shape) in enumerate(zip(block, shapes, strict=True))
    }


def state() -> dict[str, Any]:
    """Return 16 leaves of 4 MiB each."""
    return leaves([(1 << 20,)] * 16)


@pytest.mark.parametrize(("shapes", "most"), TREES.values(), ids=TREES)
def test_a_state_dict_crosses_in_pieces(device: Any, shapes: Any, most: int) -> None:
    """Both ways, cold and warm, values are equal, each leaf has its memory, and leaves share copies."""
    expected, source = leaves(shapes), leaves(shapes)
    full = [name for name, array in expected.items() if array.size]
    for _ in range(2):
        there = device.convert_tree(source, to=device.name, device="cuda")
        for array in source.values():
            array[...] = -1
        assert len({device.address(there[name]) for name in full}) == len(full)
        assert all(device.held(there[name]) in {None, expected[name].nbytes} for name in full)
        source = device.convert_tree(there, to="numpy")
        assert source.keys() == expected.keys()
        for name, array in source.items():
            assert (array.dtype, array.shape) == ("float32", expected[name].shape)
            assert np.array_equal(array, expected[name])
            assert array.base is None or array.base.nbytes == array.nbytes
    for call, way in (
        (lambda: device.convert_tree(there, to="numpy"), "DtoH"),
        (lambda: device.convert_tree(source, to=device.name, device="cuda"), "HtoD"),
    ):
        crossed = [length for name, length in device.copies(call) if name == way]
        assert sum(crossed) == sum(array.nbytes for array in expected.values())
        assert len(crossed) <= most


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_pending_work_comes_before_a_tree(torch: Any, cupy: Any, framework: str) -> None:
    """What the current stream has queued is in every leaf, and later work is in none."""
    there = interop.convert_tree(state(), to=framework, device="cuda")
    interop.convert_tree(there, to="numpy")
    if framework == "torch":
        torch.cuda.synchronize()
        context = torch.cuda.stream(torch.cuda.Stream())
    else:
        cupy.cuda.Device().synchronize()
        context = cupy.cuda.Stream(non_blocking=True)
    with context:
        if framework == "torch":
            torch.cuda._sleep(200_000_000)
        else:
            busy = cupy.ones((4096, 4096), "float32")
            for _ in range(50):
                busy = busy @ busy
        for array in there.values():
            array[...] = 3
        result = interop.convert_tree(there, to="numpy")
        for array in there.values():
            array[...] = 4
    assert all((array == 3).all() for array in result.values())


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_a_tree_is_safe_on_every_stream(torch: Any, cupy: Any, framework: str) -> None:
    """Leaves that were sent are complete when the call returns, for a stream that waits for none."""
    interop.convert_tree(state(), to=framework, device="cuda")
    source = state()
    expected = {name: float(array.sum(dtype="float64")) for name, array in source.items()}
    there = interop.convert_tree(source, to=framework, device="cuda")
    side = torch.cuda.Stream() if framework == "torch" else cupy.cuda.Stream(non_blocking=True)
    with torch.cuda.stream(side) if framework == "torch" else side:
        kind = torch.float64 if framework == "torch" else "float64"
        sums = {name: float(array.sum(dtype=kind)) for name, array in there.items()}
    assert sums == expected


@pytest.mark.usefixtures("idle")
def test_tied_leaves_stay_tied_across_the_link(torch: Any) -> None:
    """One tensor at two places is one array, among leaves that cross together."""
    there = interop.convert_tree(state(), to="torch", device="cuda")
    there["head"] = there["layer3"].view(there["layer3"].shape)
    for _ in range(2):
        result = interop.convert_tree(there, to="numpy")
        assert result["head"] is result["layer3"]
        assert np.array_equal(result["layer15"], state()["layer15"])


#: A transfer with four idle cores, after which `{end}` comes.
_PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import torch
import interop
from interop.kit import staging

staging.idle_cores = staging.cores = lambda: 4
there = torch.arange(1 << 28, dtype=torch.float32, device="cuda")
expected = there.cpu().numpy()
assert np.array_equal(interop.convert(there, to="numpy"), expected)
{end}
"""

_CTRL_C = """
before = threading.active_count(), len(sys._current_frames())
threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(100):
        interop.convert(there, to="numpy")
except KeyboardInterrupt:
    print("done")
time.sleep(0.2)
assert (threading.active_count(), len(sys._current_frames())) == before
assert staging._ring.room() == 8
assert np.array_equal(interop.convert(there, to="numpy"), expected)
"""

_CTRL_C_IN_A_TREE = """
tree = [*there.view(64, -1)]
interop.convert_tree(tree, to="numpy")
before = threading.active_count(), len(sys._current_frames())
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(100):
        interop.convert_tree(tree, to="numpy")
except KeyboardInterrupt:
    print("done")
time.sleep(0.2)
assert (threading.active_count(), len(sys._current_frames())) == before
assert staging._ring.room() == 8
assert np.array_equal(np.concatenate(interop.convert_tree(tree, to="numpy")), expected)
"""

_FORK = """
child = os.fork()
if child == 0:
    assert staging._ring.room() == 0
    array = interop.convert(np.ones(1 << 23, "float32"), to="numpy", dtype="float64")
    assert array.sum() == 1 << 23
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(interop.convert(there, to="numpy"), expected)
print("done")
"""


@pytest.mark.parametrize(
    "end", [_CTRL_C, _CTRL_C_IN_A_TREE, _FORK], ids=["Ctrl-C", "in a tree", "fork"]
)
def test_nothing_is_left_behind(in_process: Callable[..., str], end: str) -> None:
    """After Ctrl-C there is no thread and every chunk is free; a child leaves the chunks alone."""
    assert in_process(_PROGRAM.replace("{end}", end)) == "done"
