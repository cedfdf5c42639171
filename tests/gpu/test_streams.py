"""Streams and lifetime: who waits for whom, shown with work that is slow to finish.

In each race a side stream is kept busy before the values are written, so that a hand-off that
ordered nothing would read what was there before. That the busy stream has not finished when
`convert` returns shows that the host did not wait in place of the streams.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop

SIZE = 1 << 22


def test_torch_to_cupy_race(torch: Any, cupy: Any, keep_busy: Callable[[Any], None]) -> None:
    """CuPy's current stream waits for the torch stream on which the values are written."""
    side = torch.cuda.Stream()
    tensor = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    keep_busy(side)
    with torch.cuda.stream(side):
        tensor.fill_(1)
        array = interop.convert(tensor, to="cupy")
    assert not side.query()
    assert int(array.sum()) == SIZE


def test_cupy_to_torch_race(torch: Any, cupy: Any, keep_busy: Callable[[Any], None]) -> None:
    """The current stream of torch waits for the CuPy stream on which the values are written."""
    side = cupy.cuda.Stream(non_blocking=True)
    array = cupy.zeros(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    keep_busy(torch.cuda.ExternalStream(side.ptr))
    with side:
        array.fill(1)
        tensor = interop.convert(array, to="torch")
    assert not side.done
    assert int(tensor.sum()) == SIZE


def test_interface_to_torch_race(torch: Any, cupy: Any, keep_busy: Callable[[Any], None]) -> None:
    """torch's current stream waits for the stream that a ``__cuda_array_interface__`` names."""
    side = cupy.cuda.Stream(non_blocking=True)
    array = cupy.zeros(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    keep_busy(torch.cuda.ExternalStream(side.ptr))
    with side:
        array.fill(1)
        tensor = interop.convert(Shown(array.__cuda_array_interface__), to="torch")
    assert not side.done
    assert int(tensor.sum()) == SIZE


class Shown:
    """A value with ``__cuda_array_interface__``, and nothing else."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.__cuda_array_interface__ = entries


@pytest.mark.parametrize("form", ["number", "object"])
def test_torch_to_cupy_on_a_stream(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], form: str
) -> None:
    """stream= names the stream that will read; it waits, and so does CuPy's current one.

    The stream outlives the array here; those that do not are in test_lifetimes.py.
    """
    consumer = cupy.cuda.Stream(non_blocking=True)
    side = torch.cuda.Stream()
    tensor = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    keep_busy(side)
    with torch.cuda.stream(side):
        tensor.fill_(1)
        stream = consumer.ptr if form == "number" else consumer
        array = interop.convert(tensor, to="cupy", stream=stream)
    assert not side.query()
    with consumer:
        assert int(array.sum()) == SIZE
    assert int(array.sum()) == SIZE
    del array


@pytest.mark.parametrize("form", ["number", "object", "CuPy's object"])
def test_cupy_to_torch_on_a_stream(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], form: str
) -> None:
    """stream= names the stream that will read, in any form, and it waits for CuPy's."""
    reader = cupy.cuda.Stream(non_blocking=True)
    consumer = torch.cuda.ExternalStream(reader.ptr)
    side = cupy.cuda.Stream(non_blocking=True)
    array = cupy.zeros(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    keep_busy(torch.cuda.ExternalStream(side.ptr))
    stream = {"number": reader.ptr, "object": consumer, "CuPy's object": reader}[form]
    with side:
        array.fill(1)
        tensor = interop.convert(array, to="torch", stream=stream)
    assert not side.done
    with torch.cuda.stream(consumer):
        assert int(tensor.sum()) == SIZE


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("source", ["torch", "cupy"])
def test_default_streams_have_numbers(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], source: str, stream: int
) -> None:
    """0 and 1 name the legacy default stream, and 2 that of the thread, for either library."""
    target = "cupy" if source == "torch" else "torch"
    side = cupy.cuda.Stream(non_blocking=True)
    array = cupy.zeros(SIZE, "float32")
    value = interop.convert(array, to=source)
    cupy.cuda.Device().synchronize()
    outside = torch.cuda.ExternalStream(side.ptr)
    keep_busy(outside)
    with side, torch.cuda.stream(outside):
        array.fill(1)
        result = interop.convert(value, to=target, stream=stream)
    assert not side.done
    if stream == 2:
        with cupy.cuda.Stream.ptds, torch.cuda.stream(torch.cuda.ExternalStream(2)):
            assert int(result.sum()) == SIZE
    else:
        assert int(result.sum()) == SIZE


def test_steps_stay_on_the_stream(torch: Any, cupy: Any, keep_busy: Callable[[Any], None]) -> None:
    """A cast on the way comes after the producer's work, and before that of the named stream."""
    consumer = cupy.cuda.Stream(non_blocking=True)
    side = torch.cuda.Stream()
    tensor = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    keep_busy(side)
    with torch.cuda.stream(side):
        tensor.fill_(1)
        array = interop.convert(tensor, to="cupy", dtype="int32", stream=consumer.ptr)
    assert not side.query()
    with consumer:
        assert int(array.sum()) == SIZE
    del array


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_complete_on_the_host(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], framework: str
) -> None:
    """What convert returns on the host is all there, however busy its stream was."""
    side = cupy.cuda.Stream(non_blocking=True)
    outside = torch.cuda.ExternalStream(side.ptr)
    array = cupy.zeros(SIZE, "float32")
    tensor = interop.convert(array, to="torch")
    cupy.cuda.Device().synchronize()
    keep_busy(outside)
    with side, torch.cuda.stream(outside):
        array.fill(1)
        value = interop.convert(array if framework == "cupy" else tensor, to="numpy")
    assert float(value.min()) == 1


def test_fetched_on_a_stream(torch: Any, cupy: Any, keep_busy: Callable[[Any], None]) -> None:
    """A transfer to the host on a named stream starts after CuPy's current one."""
    side, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    array = cupy.zeros(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    keep_busy(torch.cuda.ExternalStream(side.ptr))
    with side:
        array.fill(1)
        value = interop.convert(array, to="numpy", stream=other.ptr)
    assert float(value.min()) == 1


def test_sent_on_a_stream(cupy: Any) -> None:
    """A transfer from the host on a named stream is complete when convert returns."""
    side = cupy.cuda.Stream(non_blocking=True)
    array = interop.convert(np.ones(SIZE, "float32"), to="cupy", stream=side.ptr)
    assert float(array.min()) == 1


def test_memory_is_not_reused_too_early(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None]
) -> None:
    """A tensor dropped while a side stream has yet to read it is not overwritten by the next."""
    consumer = cupy.cuda.Stream(non_blocking=True)
    keep_busy(torch.cuda.ExternalStream(consumer.ptr))
    tensor = torch.ones(SIZE, device="cuda")
    address = tensor.data_ptr()
    array = interop.convert(tensor, to="cupy", stream=consumer)
    keep_busy(torch.cuda.ExternalStream(consumer.ptr))
    with consumer:
        total = array.sum()
    del tensor, array
    gc.collect()
    assert not consumer.done
    following = torch.full((SIZE,), 5.0, device="cuda")
    assert following.data_ptr() != address
    torch.cuda.synchronize()
    assert int(total) == SIZE


def test_the_device_has_finished_when_memory_of_a_number_comes_back(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None]
) -> None:
    """If all that is known of the stream is its number, the host waits when the array is gone."""
    consumer = cupy.cuda.Stream(non_blocking=True)
    tensor = torch.ones(SIZE, device="cuda")
    array = interop.convert(tensor, to="cupy", stream=consumer.ptr)
    keep_busy(torch.cuda.ExternalStream(consumer.ptr))
    with consumer:
        total = array.sum()
    assert not consumer.done
    del array
    gc.collect()
    assert consumer.done
    assert int(total) == SIZE


@pytest.mark.parametrize("form", ["number", "object", "torch's object"])
def test_copies_on_a_stream_let_nobody_wait_later(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], form: str
) -> None:
    """A copy on a named stream lends no memory beyond the call, in which the host does not wait."""
    consumer = cupy.cuda.Stream(non_blocking=True)
    outside = torch.cuda.ExternalStream(consumer.ptr)
    tensor = torch.ones(SIZE, device="cuda")
    keep_busy(outside)
    stream = {"number": consumer.ptr, "object": consumer, "torch's object": outside}[form]
    array = interop.convert(tensor, to="cupy", copy=True, stream=stream)
    tensor.fill_(5)
    assert not consumer.done
    with consumer:
        total = array.sum()
    del array
    gc.collect()
    assert not consumer.done
    consumer.synchronize()
    assert int(total) == SIZE


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_moves_wait_for_both_ends(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], second_device: str, framework: str
) -> None:
    """A move to another device waits for the writes, and is complete for every stream there."""
    side = cupy.cuda.Stream(non_blocking=True)
    outside = torch.cuda.ExternalStream(side.ptr)
    array = cupy.zeros(SIZE, "float32")
    value = interop.convert(array, to=framework)
    cupy.cuda.Device().synchronize()
    keep_busy(outside)
    with side, torch.cuda.stream(outside):
        array.fill(1)
        moved = interop.convert(value, to="cupy", device=second_device)
    assert side.done
    with cupy.cuda.Device(1), cupy.cuda.Stream(non_blocking=True):
        assert int(moved.sum()) == SIZE


def test_hand_offs_on_the_second_device_wait(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], second_device: str
) -> None:
    """Memory of a device that is not current is ordered after CuPy's stream of its own device."""
    with cupy.cuda.Device(1):
        side = cupy.cuda.Stream(non_blocking=True)
        array = cupy.zeros(SIZE, "float32")
        cupy.cuda.Device().synchronize()
        keep_busy(torch.cuda.ExternalStream(side.ptr, device=second_device))
        side.use()
        array.fill(1)
    try:
        tensor = interop.convert(array, to="torch")
        assert not side.done
        assert int(tensor.sum()) == SIZE
    finally:
        with cupy.cuda.Device(1):
            cupy.cuda.Stream.null.use()


def test_streams_of_conversions_leave_nothing_behind(torch: Any, cupy: Any) -> None:
    """A hundred conversions on a stream each keep no memory once the device has done its work."""
    tensor = torch.ones(1024, device="cuda")
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(100):
        with cupy.cuda.Stream(non_blocking=True):
            interop.convert(tensor.clone(), to="cupy").sum()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # looks which events have passed
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("order", ["producer first", "consumer first"])
def test_torch_memory_is_freed(torch: Any, cupy: Any, order: str) -> None:
    """A tensor's memory is freed when both sides have let go of it, and not before."""
    gc.collect()
    before = torch.cuda.memory_allocated()
    tensor = torch.ones(SIZE, device="cuda")
    array = interop.convert(tensor, to="cupy")
    assert torch.cuda.memory_allocated() == before + 4 * SIZE
    if order == "producer first":
        del tensor
        gc.collect()
        assert float(array.min()) == 1
        assert torch.cuda.memory_allocated() == before + 4 * SIZE
        del array
    else:
        del array
        gc.collect()
        assert torch.cuda.memory_allocated() == before + 4 * SIZE
        del tensor
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_cupy_memory_is_freed(torch: Any, cupy: Any) -> None:
    """An array's memory is freed when the tensor made from it is gone too."""
    gc.collect()
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    array = cupy.ones(SIZE, "float32")
    tensor = interop.convert(array, to="torch")
    del array
    gc.collect()
    assert pool.used_bytes() == before + 4 * SIZE
    assert float(tensor.min()) == 1
    del tensor
    gc.collect()
    assert pool.used_bytes() == before


def test_conversions_leave_nothing_behind(torch: Any, cupy: Any) -> None:
    """A thousand conversions hold no more memory than one."""
    tensor = torch.ones(1024, device="cuda")
    interop.convert(tensor, to="cupy")
    gc.collect()
    before = torch.cuda.memory_allocated(), cupy.get_default_memory_pool().used_bytes()
    for _ in range(1000):
        interop.convert(interop.convert(tensor, to="cupy"), to="torch")
    gc.collect()
    assert (torch.cuda.memory_allocated(), cupy.get_default_memory_pool().used_bytes()) == before
