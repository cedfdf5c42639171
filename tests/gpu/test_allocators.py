"""Hand-offs with every allocator of torch and CuPy, and with default streams of each thread.

They are chosen for a whole process, so each runs in one of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

HAND_OFFS = """
import gc, sys
import cupy, torch
import interop

is_asynchronous = sys.argv[1] == "CuPy's asynchronous pool"
if is_asynchronous:
    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)
size = 1 << 17
torch_side, cupy_side = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
outside = torch.cuda.ExternalStream(cupy_side.ptr)
per_thread = torch.cuda.ExternalStream(2)
to_cupy = [
    (None, cupy.cuda.get_current_stream()),
    (cupy_side, cupy_side),
    (cupy_side.ptr, cupy_side),
    (torch_side, cupy.cuda.Stream.from_external(torch_side)),
    (1, cupy.cuda.Stream.null),
    (2, cupy.cuda.Stream.ptds),
]
to_torch = [
    (None, torch.cuda.current_stream()),
    (torch_side, torch_side),
    (cupy_side, outside),
    (cupy_side.ptr, outside),
    (1, torch.cuda.default_stream()),
    (2, per_thread),
]
requests = [{}, {"copy": True}, {"dtype": "float32"}]
totals, kept = [], []
for number in range(180):
    request = requests[number % 3]
    producer = (torch.cuda.default_stream(), torch_side)[number % 2]
    stream, reader = to_cupy[number % 6]
    with torch.cuda.stream(producer):
        torch.cuda._sleep(200_000)
        tensor = torch.full((size,), float(number), device="cuda", dtype=torch.float64)
        array = interop.convert(tensor, to="cupy", stream=stream, **request)
    with reader:
        totals.append(array.sum(dtype="float64"))
    if is_asynchronous and "copy" in request:
        kept.append(array)  # the pool frees it on the current stream, which does not wait
    del tensor, array
    producer = (cupy.cuda.get_current_stream(), cupy_side)[number % 2]
    stream, reader = to_torch[number % 6]
    with producer:
        array = cupy.full(size, float(number))
        tensor = interop.convert(array, to="torch", stream=stream, **request)
    with torch.cuda.stream(reader):
        totals.append(tensor.sum(dtype=torch.float64))
    kept.append((array, tensor))
gc.collect()
torch.cuda.synchronize()
wrong = [index for index, total in enumerate(totals) if float(total) != index // 2 * size]
assert not wrong, wrong
kept.clear()
totals.clear()
gc.collect()
torch.cuda.synchronize()
torch.cuda.empty_cache()
print("right")
"""

_ENVIRONMENTS = {
    "the default ones": {},
    "cudaMallocAsync": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "expandable segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "CuPy's asynchronous pool": {},
    "default streams of threads": {"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
}


@pytest.mark.parametrize("name", _ENVIRONMENTS)
def test_hand_offs_are_right(in_process: Callable[..., str], name: str) -> None:
    """Each result is right on its stream, whoever allocates, while arrays come and go."""
    assert in_process(HAND_OFFS, name, **_ENVIRONMENTS[name]) == "right"


DEFAULT_STREAMS = """
import cupy, torch
import interop

size = 1 << 22
assert cupy.cuda.get_current_stream().ptr == 2
side = torch.cuda.Stream()
tensor = torch.zeros(size, device="cuda")
array = interop.convert(tensor, to="cupy")
array.fill(0)
int(array.sum()), int(interop.convert(array, to="torch").sum())
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.cuda._sleep(1_000_000_000)
    tensor.fill_(1)
    array = interop.convert(tensor, to="cupy")
assert not side.query()
assert array.data.ptr == tensor.data_ptr()
assert int(array.sum()) == size
busy = torch.cuda.ExternalStream(2)
with torch.cuda.stream(busy):
    torch.cuda._sleep(1_000_000_000)
array.fill(2)
with torch.cuda.stream(side):
    back = interop.convert(array, to="torch")
    assert not busy.query()
    assert int(back.sum()) == 2 * size
print("right")
"""


def test_default_streams_of_threads_wait(in_process: Callable[..., str]) -> None:
    """torch exports to a thread's default stream, and reads from it, in order and without a copy."""
    environment = {"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}
    assert in_process(DEFAULT_STREAMS, **environment) == "right"
