"""How often and how many bytes cross the bus, or are copied on a device, as the driver reports it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interop

SIZE = 1 << 20
BYTES = 4 * SIZE

#: The copies that a call makes: what from where to where, and how many bytes.
Copies = Callable[[Callable[[], Any]], list[tuple[str, int]]]


@pytest.fixture
def copies(torch: Any, cupy: Any, tmp_path: Path) -> Copies:
    """Return a function that lists the copies a call makes, whichever library makes them."""
    from torch.profiler import ProfilerActivity, profile

    def listed(call: Callable[[], Any]) -> list[tuple[str, int]]:
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
        file = tmp_path / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
        crossings = (event for event in events if event.get("cat") == "gpu_memcpy")
        return [(event["name"].split()[1], event["args"]["bytes"]) for event in crossings]

    probe = torch.ones(SIZE)
    if listed(probe.cuda) != [("HtoD", BYTES)]:
        pytest.skip("the profiler cannot see the copies that are made here")
    return listed


def test_hand_offs_copy_nothing(torch: Any, cupy: Any, copies: Copies) -> None:
    """Sharing makes no copy of any kind, also on other streams and by the interface."""
    array, tensor = cupy.ones(SIZE, "float32"), torch.ones(SIZE, device="cuda")
    side = cupy.cuda.Stream(non_blocking=True)
    assert copies(lambda: interop.convert(array, to="torch")) == []
    assert copies(lambda: interop.convert(tensor, to="cupy")) == []
    assert copies(lambda: interop.convert(tensor, to="cupy", stream=side)) == []


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_transfers_cross_once(torch: Any, cupy: Any, copies: Copies, framework: str) -> None:
    """Every byte crosses the bus once, each way, and none is copied on the device."""
    value = np.ones(SIZE, "float32")
    there = interop.convert(value, to=framework, device="cuda")
    assert copies(lambda: interop.convert(value, to=framework, device="cuda")) == [("HtoD", BYTES)]
    assert copies(lambda: interop.convert(there, to="numpy")) == [("DtoH", BYTES)]
    assert copies(lambda: interop.convert(value, out=there)) == [("HtoD", BYTES)]


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
