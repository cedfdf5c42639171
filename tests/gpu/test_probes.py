"""Faults that were found by reading: each is looked for where it would show, on a device."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import driver, staging

_CYCLES = 1_000_000_000  # half a second of work or more


def test_memory_that_torch_has_borrowed_is_kept_until_it_is_read(torch: Any, cupy: Any) -> None:
    """CuPy's memory by way of torch is not used again while a side stream has yet to read it."""
    count = 1 << 22
    for owner in ("torch", "cupy"):
        side = cupy.cuda.Stream(non_blocking=True)
        source = (
            cupy.ones(count, "float32") if owner == "cupy" else torch.ones(count, device="cuda")
        )
        tensor = interop.convert(source, to="torch")
        del source
        torch.cuda.synchronize()
        with side:
            array = interop.convert(tensor, to="cupy")
        with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
            torch.cuda._sleep(_CYCLES // 2)
        with side:
            total = array.sum()
        del array, tensor
        gc.collect()
        again = [cupy.full(count, 5, "float32") for _ in range(3)]
        again += [torch.full((count,), 5.0, device="cuda") for _ in range(3)]
        torch.cuda.synchronize()
        assert float(total) == count, owner
        del again


_BORROWED = """
import gc, sys
import torch, cupy, interop
seen = []
sys.unraisablehook = lambda args: seen.append(args.exc_value)
assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"
source = cupy.ones(1 << 20, "float32")
tensor = interop.convert(source, to="torch")
with cupy.cuda.Stream(non_blocking=True) as side:
    array = interop.convert(tensor, to="cupy")
    total = array.sum()
    del array
    gc.collect()
side.synchronize()
assert float(total) == 1 << 20
assert not seen, seen
print("done")
"""


def test_borrowed_memory_goes_back_with_another_allocator(in_process: Callable[..., str]) -> None:
    """With cudaMallocAsync, record_stream raises for memory of others, and no error leaves the loan."""
    backend = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    assert in_process(_BORROWED, **backend, PYTORCH_ALLOC_CONF="backend:cudaMallocAsync") == "done"


def test_a_tensor_longer_than_its_storage_is_refused_warm(torch: Any, cupy: Any) -> None:
    """What is refused cold is refused when plain tensors were handed over before."""
    for _ in range(3):
        interop.convert(torch.ones(4, device="cuda"), to="cupy")
    short = torch.ones(1 << 20, device="cuda")
    short.untyped_storage().resize_(4096)
    with pytest.raises(interop.errors.InteropError):
        interop.convert(short, to="cupy")


class Shown:
    """An address with ``__cuda_array_interface__``."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (1024,),
            "typestr": "<f4",
            "data": (address, False),
            "version": 3,
            "stream": None,
            "strides": None,
        }


@pytest.mark.parametrize("target", ["cupy", "torch"])
def test_an_interface_over_memory_of_the_host_is_refused_warm(
    torch: Any, cupy: Any, target: str
) -> None:
    """An address that the driver knows on no device is refused, however often others were taken."""
    there, host = cupy.ones(1024, "float32"), np.ones(1024, "float32")
    for _ in range(3):
        interop.convert(Shown(there.data.ptr), to=target)
    with pytest.raises(interop.errors.InteropError):
        interop.convert(Shown(host.ctypes.data), to=target)


_XLA = """
import numpy as np
import torch, cupy, jax, interop
assert jax.default_backend() == "gpu", "JAX sees no device"
for make, first in (
    (lambda: torch.arange(64., device="cuda")[1:], 1),
    (lambda: cupy.arange(64, dtype="float32")[1:], 1),
    (lambda: torch.arange(64., device="cuda").bfloat16()[3:], 3),
):
    for _ in range(3):
        array = interop.convert(make(), to="jax")
        result = np.asarray(jax.jit(lambda x: x + 1)(array)).astype("float32")
        assert np.array_equal(result, np.arange(first, 64, dtype="float32") + 1)
        try:
            interop.convert(make(), to="jax", copy=False)
        except interop.errors.InteropError:
            continue
        raise AssertionError("it was shared")
print("done")
"""


def test_jax_computes_with_what_lay_at_any_address(in_process: Callable[..., str]) -> None:
    """An address that is no multiple of 16 bytes is copied on the way, cold and warm."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    assert in_process(_XLA, XLA_PYTHON_CLIENT_PREALLOCATE="false") == "done"


_NO_WAIT = """
import time
import torch, cupy, jax, interop
assert jax.default_backend() == "gpu", "JAX sees no device"
array = None
for _ in range(3):
    array = interop.convert(jax.numpy.arange(1024.), to="cupy")
    interop.convert(array, to="cupy", copy=True)
torch.cuda.synchronize()
torch.cuda._sleep(1_000_000_000)
start = time.perf_counter()
copied = interop.convert(array, to="cupy", copy=True)
assert time.perf_counter() - start < 0.1
torch.cuda.synchronize()
print("done")
"""


def test_nobody_waits_for_memory_that_cannot_change(in_process: Callable[..., str]) -> None:
    """A copy of an array over JAX's memory is queued like any other."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    assert in_process(_NO_WAIT, XLA_PYTHON_CLIENT_PREALLOCATE="false") == "done"


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let four cores be idle, and return the bytes of each copy that the ring makes."""
    made: list[int] = []
    for name in ("fetch", "send"):
        copy = getattr(driver, name)

        def counted(*arguments: int, copy: Any = copy) -> None:
            made.append(arguments[2])
            copy(*arguments)

        monkeypatch.setattr(driver, name, counted)
    monkeypatch.setattr(staging, "idle_cores", lambda: 4)
    monkeypatch.setattr(staging, "cores", lambda: 4)
    return made


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_transfers_of_several_threads_are_independent(
    torch: Any, cupy: Any, copies: list[int], framework: str
) -> None:
    """A transfer from an idle stream does not wait for the backlog of another thread's stream."""
    there = [interop.convert(torch.ones(1 << 24, device="cuda"), to=framework) for _ in range(2)]
    for array in there:
        interop.convert(array, to="numpy")
    torch.cuda.synchronize()
    started = threading.Event()

    def other() -> None:
        busy = torch.cuda.Stream()
        with torch.cuda.stream(busy), cupy.cuda.Stream.from_external(busy):
            for _ in range(4):
                torch.cuda._sleep(_CYCLES)
            started.set()
            interop.convert(there[1], to="numpy")

    thread = threading.Thread(target=other)
    thread.start()
    started.wait()
    time.sleep(0.1)
    start = time.perf_counter()
    interop.convert(there[0], to="numpy")
    seconds = time.perf_counter() - start
    thread.join()
    assert seconds < 0.5
    assert copies


def test_page_locked_memory_is_given_back(torch: Any, copies: list[int]) -> None:
    """No allocator keeps what the ring has locked, however often it was used."""
    there = torch.ones(1 << 26, device="cuda")
    for _ in range(3):
        interop.convert(there, to="numpy")
        memory = staging._ring._memory
        assert memory is not None
        address = memory[0].ctypes.data
        assert driver.device_of(address) is not None
        del memory
        interop.free_staging_buffers()
        assert driver.device_of(address) is None


def test_frozen_parameters_and_leaves_of_many_shapes_go_through_the_ring(
    torch: Any, copies: list[int]
) -> None:
    """What is large together is staged, whatever the leaves are, as one batch of each dtype."""
    frozen = torch.nn.Parameter(torch.ones(1 << 24, device="cuda"), requires_grad=False)
    assert interop.convert(frozen, to="numpy").sum() == 1 << 24
    assert sum(copies) == 1 << 26
    tree = {n: torch.ones(16 << n % 12, 3, 1 + n % 5, device="cuda") for n in range(247)}
    tree |= {f"steps {n}": torch.tensor(n, device="cuda") for n in range(53)}
    interop.convert_tree(tree, to="numpy")
    copies.clear()
    result = interop.convert_tree(tree, to="numpy")
    floats = sum(leaf.nbytes for leaf in tree.values() if leaf.dtype is torch.float32)
    assert floats >= 1 << 24
    assert sum(copies) == floats
    assert all(np.array_equal(result[name], leaf.cpu().numpy()) for name, leaf in tree.items())


_ONE_THREAD = """
import torch, interop
from interop.kit import driver, staging
copies, fetch = [], driver.fetch
driver.fetch = lambda *arguments: (copies.append(arguments), fetch(*arguments))
staging.idle_cores = lambda: 4
there = torch.ones(1 << 24, device="cuda")
assert interop.convert(there, to="numpy").sum() == 1 << 24
print("staged" if copies or staging.cores() < 2 else "not staged")
"""


def test_the_ring_is_used_under_torchrun(in_process: Callable[..., str]) -> None:
    """OMP_NUM_THREADS=1, which torchrun sets for every process, is for threads that compute."""
    assert in_process(_ONE_THREAD, OMP_NUM_THREADS="1") == "staged"


_SECOND = """
import torch, interop
from interop.kit import staging
staging.idle_cores = staging.cores = lambda: 4
there = torch.ones(1 << 24, device="cuda:1")
interop.convert(there, to="numpy")
import ctypes
flags, active = ctypes.c_uint(), ctypes.c_int()
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
print("untouched" if not active.value else "a context on cuda:0")
"""


def test_a_process_on_the_second_device_leaves_the_first_alone(
    in_process: Callable[..., str], second_device: str
) -> None:
    """The ring's threads make a context on the device of the array alone."""
    assert in_process(_SECOND) == "untouched"
