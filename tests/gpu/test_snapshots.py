"""Copies and ``out=`` across libraries: what the producer writes later is not in them.

In each race the reader's stream is kept busy, so that the copy waits in its queue while the
producer writes again on another stream. That the reader has not finished when the producer has been
told to write shows that the host did not wait in place of the streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from tests.gpu.test_any_device import Foreign

SIZE = 1 << 22


@pytest.mark.parametrize("request_", [{"copy": True}, {"dtype": "int32"}], ids=["copy", "dtype"])
def test_torch_to_cupy(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], request_: dict[str, Any]
) -> None:
    """A CuPy copy of a tensor has what the tensor held, whatever torch writes next."""
    side, reader = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    tensor = torch.ones(SIZE, device="cuda")
    torch.cuda.synchronize()
    keep_busy(torch.cuda.ExternalStream(reader.ptr))
    with torch.cuda.stream(side), reader:
        array = interop.convert(tensor, to="cupy", **request_)
        tensor.fill_(5)
    assert not reader.done
    with reader:
        assert int(array.sum()) == SIZE
    side.synchronize()
    assert float(tensor.min()) == 5


@pytest.mark.parametrize("request_", [{"copy": True}, {"dtype": "int32"}], ids=["copy", "dtype"])
def test_cupy_to_torch(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], request_: dict[str, Any]
) -> None:
    """A tensor copied from a CuPy array has what the array held, whatever CuPy writes next."""
    side, reader = cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    array = cupy.ones(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    keep_busy(reader)
    with side, torch.cuda.stream(reader):
        tensor = interop.convert(array, to="torch", **request_)
        array.fill(5)
    assert not reader.query()
    with torch.cuda.stream(reader):
        assert int(tensor.sum()) == SIZE
    side.synchronize()
    assert float(array.min()) == 5


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_torch_into_cupy(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], dtype: str, traced: bool
) -> None:
    """A CuPy array given as ``out=`` has what the tensor held when convert was called."""
    side, reader = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    tensor, out = torch.ones(SIZE, device="cuda"), cupy.zeros(SIZE, dtype)
    torch.cuda.synchronize()
    keep_busy(torch.cuda.ExternalStream(reader.ptr))
    with torch.cuda.stream(side), reader:
        _convert_into(tensor, out, traced)
        tensor.fill_(5)
    assert not reader.done
    with reader:
        assert int(out.sum()) == SIZE


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_cupy_into_torch(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None], dtype: str, traced: bool
) -> None:
    """A tensor given as ``out=`` has what the array held when convert was called; no host waits."""
    side, reader = cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    array = cupy.ones(SIZE, "float32")
    out = torch.zeros(SIZE, device="cuda", dtype=getattr(torch, dtype))
    cupy.cuda.Device().synchronize()
    keep_busy(reader)
    with side, torch.cuda.stream(reader):
        _convert_into(array, out, traced)
        array.fill(5)
    assert not reader.query()
    with torch.cuda.stream(reader):
        assert int(out.sum()) == SIZE


def _convert_into(value: Any, out: Any, traced: bool) -> None:
    if traced:
        with interop.trace():
            interop.convert(value, out=out)
    else:
        interop.convert(value, out=out)


def test_foreign_memory_is_read_before_convert_returns(
    torch: Any, cupy: Any, keep_busy: Callable[[Any], None]
) -> None:
    """A producer whose stream is not known is made to wait by the host."""
    array = cupy.ones(SIZE, "float32")
    cupy.cuda.Device().synchronize()
    reader = torch.cuda.Stream()
    keep_busy(reader)
    with torch.cuda.stream(reader):
        tensor = interop.convert(Foreign(array), to="torch", copy=True)
    assert reader.query()
    consumer = cupy.cuda.Stream(non_blocking=True)
    keep_busy(torch.cuda.ExternalStream(consumer.ptr))
    with consumer:
        copied = interop.convert(Foreign(array), to="cupy", copy=True)
    assert consumer.done
    array.fill(5)
    assert float(tensor.max()) == float(copied.max()) == 1


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_numpy_into_a_device_needs_no_memory_beside(torch: Any, cupy: Any, framework: str) -> None:
    """An array is written straight into ``out=``: no other memory of the device is taken."""
    value = np.arange(SIZE, dtype="float32")
    pool = cupy.get_default_memory_pool()
    if framework == "torch":
        out = torch.zeros(SIZE, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        interop.convert(value, out=out)
        assert torch.cuda.max_memory_allocated() == before
    else:
        out = cupy.zeros(SIZE, "float32")
        pool.free_all_blocks()
        before = pool.total_bytes()
        interop.convert(value, out=out)
        assert pool.total_bytes() == before
    assert np.array_equal(interop.convert(out, to="numpy"), value)


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_numpy_is_written_into_any_out(torch: Any, cupy: Any, framework: str) -> None:
    """Gaps and another dtype in ``out=`` are no obstacle, and what lies between is left alone."""
    base = interop.convert(np.zeros((4, 6)), to=framework, device="cuda")
    interop.convert(np.arange(6, dtype="float32").reshape(2, 3), out=base[1:3, ::2])
    expected = np.zeros((4, 6))
    expected[1:3, ::2] = np.arange(6).reshape(2, 3)
    assert np.array_equal(interop.convert(base, to="numpy"), expected)
