"""Hand-offs in CUDA graphs: captured once, and replayed with other numbers.

A capture that fails leaves its streams unusable, so each runs in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

CAPTURED = """
import sys
import cupy, torch
import interop

target, warmth = sys.argv[1:]
side = torch.cuda.Stream()
reader = cupy.cuda.Stream.from_external(side)
source = torch.zeros(1 << 20, device="cuda")
doubled = torch.zeros(1 << 20, device="cuda")
ours, theirs = cupy.from_dlpack(source), cupy.from_dlpack(doubled)


def work():
    if target == "cupy":
        cupy.multiply(interop.convert(source, to="cupy"), 2, out=theirs)
    else:
        torch.mul(interop.convert(ours, to="torch"), 2, out=doubled)


# A kernel is compiled and loaded when it is first used, which should not be during a capture.
cupy.multiply(ours, 2, out=theirs), torch.mul(source, 2, out=doubled)
if warmth == "warm":
    with torch.cuda.stream(side), reader:
        work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=side), reader:
    work()
for number in (1, 2, 3):
    source.fill_(number)
    graph.replay()
    torch.cuda.synchronize()
    assert float(doubled.min()) == float(doubled.max()) == 2 * number
print("replayed")
"""


@pytest.mark.parametrize("warmth", ["cold", "warm"])
@pytest.mark.parametrize("target", ["cupy", "torch"])
def test_a_hand_off_is_captured(in_process: Callable[..., str], target: str, warmth: str) -> None:
    """A hand-off on the stream that captures is part of the graph, the first of its kind too."""
    assert in_process(CAPTURED, target, warmth) == "replayed"


DROPPED = """
import gc, sys
import cupy, torch
import interop

size = 1 << 20
side, third = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
other = cupy.cuda.Stream(non_blocking=True)
source = torch.zeros(size, device="cuda")
doubled = cupy.zeros(size, "float32")
early = torch.ones(size, device="cuda")
lent = interop.convert(early, to="cupy", stream=other if sys.argv[1] == "object" else other.ptr)
# Kernels are loaded, and memory is allocated, before the capture, which admits neither.
cupy.multiply(doubled, 2, out=doubled)
with other:
    lent.sum()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=side):
    with torch.cuda.stream(torch.cuda.ExternalStream(other.ptr)):
        torch.cuda._sleep(1_000_000_000)
    with other:
        total = lent.sum()
    del early, lent
    gc.collect()
    with third:
        array = interop.convert(source, to="cupy")
        cupy.multiply(array, 2, out=doubled)
        del array
        gc.collect()
    side.wait_stream(torch.cuda.ExternalStream(third.ptr))
assert not other.done
again = [torch.full((size,), 5.0, device="cuda") for _ in range(4)]
for number in (1, 2, 3):
    source.fill_(number)
    graph.replay()
    torch.cuda.synchronize()
    assert float(doubled.min()) == float(doubled.max()) == 2 * number
assert float(total) == size
print("replayed")
"""


@pytest.mark.parametrize("form", ["object", "number"])
def test_arrays_may_go_while_a_graph_is_captured(in_process: Callable[..., str], form: str) -> None:
    """An array that is dropped during a capture does not disturb it, and is not overwritten."""
    assert in_process(DROPPED, form) == "replayed"
