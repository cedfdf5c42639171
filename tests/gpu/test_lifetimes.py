"""Lifetimes: streams, threads and processes that end before the memory that was used in them.

What goes wrong here ends the process, so each program runs in one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec

import pytest

TO_CUPY = """
import gc, sys
import cupy, torch
import interop

way, order = sys.argv[1:]
size = 1 << 22


class Handle:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


tensor = torch.ones(size, device="cuda", dtype=torch.float64)
stream = cupy.cuda.Stream(non_blocking=True)
if way == "current":
    with stream:
        array = interop.convert(tensor, to="cupy")
elif way == "current by its handle":
    with cupy.cuda.Stream.from_external(Handle(stream.ptr)):
        array = interop.convert(tensor, to="cupy")
else:
    named = {
        "object": stream,
        "another object": Handle(stream.ptr),
        "torch's object": torch.cuda.ExternalStream(stream.ptr),
    }.get(way, stream.ptr)
    request = {"copy": {"copy": True}, "cast": {"dtype": "float32"}}.get(way, {})
    array = interop.convert(tensor, to="cupy", stream=named, **request)
    del named
with stream:
    total = array.sum()
if order == "stream first":
    del stream
    gc.collect()
del array
gc.collect()
stream = None
gc.collect()
del tensor
gc.collect()
again = [torch.full((size,), 5.0, device="cuda", dtype=torch.float64) for _ in range(4)]
torch.cuda.synchronize()
assert float(total) == size
print("alive")
"""


@pytest.mark.parametrize("order", ["stream first", "array first"])
@pytest.mark.parametrize(
    "way",
    [
        *("current", "current by its handle", "object", "another object", "torch's object"),
        *("number", "copy", "cast"),
    ],
)
def test_a_stream_may_die_before_the_tensor(
    in_process: Callable[..., str], way: str, order: str
) -> None:
    """A tensor that was used on a CuPy stream is freed in peace after the stream is gone."""
    assert in_process(TO_CUPY, way, order) == "alive"


TO_TORCH = """
import gc, sys
import cupy, torch
import interop

request = {"copy": {"copy": True}, "cast": {"dtype": "float32"}, "share": {}}[sys.argv[1]]
array = cupy.ones(1 << 20)
stream = cupy.cuda.Stream(non_blocking=True)
named = stream if sys.argv[2] == "object" else stream.ptr
tensor = interop.convert(array, to="torch", stream=named, **request)
with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
    total = tensor.sum()
stream.synchronize()
del stream, named
gc.collect()
tensor += 1
del tensor
gc.collect()
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert float(total) == 1 << 20
print("alive")
"""


@pytest.mark.parametrize("form", ["number", "object"])
@pytest.mark.parametrize("request_", ["share", "copy", "cast"])
def test_a_stream_may_die_before_torchs_result(
    in_process: Callable[..., str], request_: str, form: str
) -> None:
    """torch's result of a conversion on a named stream is used and freed after the stream is gone."""
    assert in_process(TO_TORCH, request_, form) == "alive"


THREAD = """
import gc, threading
import cupy, torch
import interop

size, arrays, totals = 1 << 20, [], []


def work():
    with cupy.cuda.Stream(non_blocking=True):
        arrays.append(interop.convert(torch.ones(size, device="cuda"), to="cupy"))
        totals.append(arrays[-1].sum())
    arrays.append(interop.convert(torch.ones(size, device="cuda"), to="cupy", stream=2))
    with cupy.cuda.Stream.ptds:
        totals.append(arrays[-1].sum())


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
arrays.clear()
gc.collect()
again = [torch.full((size,), 5.0, device="cuda") for _ in range(8)]
torch.cuda.synchronize()
assert [float(total) for total in totals] == [size] * 8
print("alive")
"""


def test_a_thread_may_end_before_the_array(in_process: Callable[..., str]) -> None:
    """An array that a thread has made on its own stream, or on its default one, may outlive it."""
    assert in_process(THREAD) == "alive"


FORK = """
import gc, os
import cupy, torch
import interop

stream = cupy.cuda.Stream(non_blocking=True)
tensor = torch.ones(1000, device="cuda")
arrays = [interop.convert(tensor, to="cupy", stream=given) for given in (stream, stream.ptr)]
child = os.fork()
if not child:
    arrays.clear()
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert [float(array.sum()) for array in arrays] == [1000, 1000]
del arrays
gc.collect()
torch.cuda.synchronize()
print("alive")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_leaves_the_device_alone(in_process: Callable[..., str]) -> None:
    """Arrays that a child has inherited end there without a call of CUDA's, and live on here."""
    assert in_process(FORK) == "alive"


EXIT = """
import atexit
import cupy, torch
import interop

stream = cupy.cuda.Stream(non_blocking=True)
tensor = torch.ones(1000, device="cuda")
held = [interop.convert(tensor, to="cupy", stream=given) for given in (stream, stream.ptr)]
late = [interop.convert(tensor, to="cupy", stream=given) for given in (stream, stream.ptr)]
atexit.register(late.clear)
print("alive")
"""


def test_the_interpreter_may_end_with_arrays(in_process: Callable[..., str]) -> None:
    """Arrays that are there when the interpreter ends, or go shortly before, do no harm."""
    assert in_process(EXIT) == "alive"


DONATED = """
import gc
import interop, jax, numpy as np

if jax.default_backend() != "gpu":
    print("no device")
    raise SystemExit
step = jax.jit(lambda x: x * 0, donate_argnums=0)
for target in ("torch", "cupy"):
    for end in ("donate", "delete", "drop"):
        value = jax.device_put(np.arange(1024, dtype="float32")) + 0
        address = value.unsafe_buffer_pointer()
        result = interop.convert(value, to=target)
        assert interop.spec(result).device.startswith("cuda")
        if end == "donate":
            try:
                zeros = jax.block_until_ready(step(value))
            except (RuntimeError, ValueError):
                pass  # refused aloud
            else:
                assert zeros.unsafe_buffer_pointer() != address
                assert not np.asarray(zeros).any()
        elif end == "delete":
            value.delete()
        del value
        gc.collect()
        again = [jax.device_put(np.full(1024, 5, "float32")) + 0 for _ in range(8)]
        assert interop.convert(result, to="numpy").tolist() == list(range(1024))
        assert (result.data_ptr() if target == "torch" else result.data.ptr) == address
print("alive")
"""


def test_jax_gives_nothing_away_that_was_handed_over(in_process: Callable[..., str]) -> None:
    """JAX does not donate memory that others share, and keeps it when the array is deleted."""
    if find_spec("jax") is None:
        pytest.skip("JAX is not installed here")
    printed = in_process(DONATED)
    if printed == "no device":
        pytest.skip("this JAX has no CUDA device")
    assert printed == "alive"
