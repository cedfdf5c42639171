"""Hand-offs on a CUDA device once they are warm: the memory, the order, the loans and captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import interop

SIZE = 1 << 22


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is described from now on, which fast paths never do."""
    from interop._recognition.recognition import Recognition

    described: list[str] = []
    describe = Recognition.describe

    def noted(self: Recognition, value: Any) -> interop.Spec:
        described.append(type(value).__name__)
        return describe(self, value)

    monkeypatch.setattr(Recognition, "describe", noted)
    return described


def warm(make: Callable[[], Any], **request: Any) -> None:
    """Make a call that is planned, so that the next one like it need not be."""
    for _ in range(2):
        interop.convert(make(), **request)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.t(),
        lambda t: t[:, ::2],
        lambda t: t[1, 2],
        lambda t: t[:, :1].expand(3, 5),
        lambda t: t.requires_grad_(),
        lambda t: t.bfloat16(),
    ],
    ids=["plain", "transposed", "gaps", "scalar", "broadcast", "grad", "bfloat16"],
)
def test_torch_to_cupy(
    cupy: Any, torch: Any, planned: list[str], view: Callable[[Any], Any]
) -> None:
    """A warm hand-off shares the memory of every layout, is not planned, and holds no loan."""
    from interop_plugins.cupy.loans import _Loan

    def make() -> Any:
        return view(torch.arange(12.0, device="cuda").reshape(3, 4))

    warm(make, to="cupy")
    tensor = make()
    planned.clear()
    array = interop.convert(tensor, to="cupy")
    assert planned == []
    assert array.data.ptr == tensor.data_ptr()
    assert array.shape == tuple(tensor.shape)
    assert array.strides == tuple(step * tensor.itemsize for step in tensor.stride())
    assert array.get().astype("float32").tolist() == tensor.detach().float().tolist()
    assert not isinstance(getattr(array.data.mem, "_owner", None), _Loan)


def test_cupy_to_torch(cupy: Any, torch: Any, planned: list[str]) -> None:
    """A warm hand-off shares the memory; what torch cannot have goes another way, as before."""
    warm(lambda: cupy.ones((3, 4)), to="torch")
    array = cupy.arange(12, dtype="float32").reshape(3, 4)
    for view in (array, array.T, array[:, ::2]):
        planned.clear()
        tensor = interop.convert(view, to="torch")
        assert planned == []
        assert tensor.data_ptr() == view.data.ptr
        assert tensor.tolist() == view.get().tolist()
    backwards = interop.convert(array[::-1], to="torch")
    assert backwards.tolist() == array[::-1].get().tolist()
    assert planned


@pytest.mark.parametrize("request_", [{"copy": True}, {"dtype": "float64"}], ids=str)
@pytest.mark.parametrize("target", ["torch", "cupy"])
def test_copies_and_casts(
    cupy: Any, torch: Any, planned: list[str], target: str, request_: dict[str, Any]
) -> None:
    """A warm copy or cast is not planned, however large, and is a snapshot of its source."""

    def make() -> Any:
        if target == "cupy":
            return torch.ones(SIZE * 2, device="cuda")
        return cupy.ones(SIZE * 2, "float32")

    warm(make, to=target, **request_)
    value = make()
    planned.clear()
    result = interop.convert(value, to=target, **request_)
    assert planned == []
    value[:] = 2
    assert float(result.sum()) == SIZE * 2


@pytest.mark.parametrize("source", ["torch", "cupy"])
def test_other_streams_are_ordered(
    cupy: Any, torch: Any, keep_busy: Callable[[Any], None], source: str
) -> None:
    """What was warm on the default streams is ordered when the streams are no longer the same."""
    warm(lambda: torch.ones(4, device="cuda"), to="cupy")
    warm(lambda: cupy.ones(4), to="torch")
    side = cupy.cuda.Stream(non_blocking=True)
    outside = torch.cuda.ExternalStream(side.ptr)
    array = cupy.zeros(SIZE, "float32")
    tensor = torch.zeros(SIZE, device="cuda")
    cupy.cuda.Device().synchronize()
    keep_busy(outside)
    if source == "cupy":
        with side:
            array.fill(1)
            result = interop.convert(array, to="torch")
    else:
        with torch.cuda.stream(outside):
            tensor.fill_(1)
            result = interop.convert(tensor, to="cupy")
    assert not side.done
    assert int(result.sum()) == SIZE


@pytest.mark.parametrize(
    "given",
    [(source, named) for source in ("torch", "cupy") for named in ("cupy", "torch", "number")],
)
def test_a_named_stream_is_ordered(
    cupy: Any,
    torch: Any,
    planned: list[str],
    keep_busy: Callable[[Any], None],
    given: tuple[str, str],
) -> None:
    """A warm hand-off to a stream of any form waits for the producer's, shares, and is not planned."""
    source, named = given
    side = cupy.cuda.Stream(non_blocking=True)
    stream = {"cupy": side, "torch": torch.cuda.ExternalStream(side.ptr), "number": side.ptr}[named]

    def make() -> Any:
        return torch.zeros(SIZE, device="cuda") if source == "torch" else cupy.zeros(SIZE, "f4")

    target = "cupy" if source == "torch" else "torch"
    warm(make, to=target, stream=stream)
    value = make()
    cupy.cuda.Device().synchronize()
    keep_busy(torch.cuda.current_stream())
    value[:] = 1
    planned.clear()
    result = interop.convert(value, to=target, stream=stream)
    assert planned == []
    pair = (value, result) if source == "torch" else (result, value)
    assert pair[0].data_ptr() == pair[1].data.ptr
    with side, torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
        assert not torch.cuda.default_stream().query()
        assert int(result.sum()) == SIZE
    del value, pair, result
    cupy.cuda.Device().synchronize()


def test_the_producers_own_stream_takes_no_loan(cupy: Any, torch: Any, planned: list[str]) -> None:
    """What is named is the stream on which torch works, so that nobody has to wait."""
    from interop_plugins.cupy.loans import _Loan

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        warm(lambda: torch.ones(4, device="cuda"), to="cupy", stream=stream)
        tensor = torch.arange(4.0, device="cuda")
        planned.clear()
        array = interop.convert(tensor, to="cupy", stream=stream)
    assert planned == []
    assert not isinstance(getattr(array.data.mem, "_owner", None), _Loan)
    assert array.data.ptr == tensor.data_ptr()
    cupy.cuda.Device().synchronize()
    assert array.get().tolist() == [0, 1, 2, 3]


class Shown:
    """A value with ``__cuda_array_interface__`` alone, which counts how often it is asked for."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.looks = 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.looks += 1
        return {**self.array.__cuda_array_interface__, "stream": None}


@pytest.mark.parametrize("target", ["torch", "cupy"])
def test_an_interface_is_looked_at_once(
    cupy: Any, torch: Any, planned: list[str], target: str
) -> None:
    """The interface is asked for once in a warm call, and its memory is shared."""
    warm(lambda: Shown(cupy.ones(4)), to=target)
    for array in (cupy.arange(6.0), cupy.arange(12.0).reshape(3, 4).T):
        value = Shown(array)
        planned.clear()
        result = interop.convert(value, to=target)
        assert (value.looks, planned) == (1, [])
        address = result.data_ptr() if target == "torch" else result.data.ptr
        assert address == array.data.ptr
        assert result.tolist() == array.get().tolist()


_JAX = """
import cupy, interop, jax, torch
if jax.default_backend() != "gpu":
    print("no device")
    raise SystemExit
j, t = jax.numpy.arange(12.0).reshape(3, 4), torch.arange(12.0, device="cuda").reshape(3, 4)
a = cupy.arange(12, dtype="float32").reshape(3, 4)
for _ in range(3):
    to_torch, to_cupy = interop.convert(j, to="torch"), interop.convert(j, to="cupy")
    of_torch, of_cupy = interop.convert(t, to="jax"), interop.convert(a, to="jax")
    assert to_torch.data_ptr() == to_cupy.data.ptr == j.unsafe_buffer_pointer()
    assert of_torch.unsafe_buffer_pointer() == t.data_ptr()
    assert of_cupy.unsafe_buffer_pointer() == a.data.ptr
    turned = interop.convert(t.t(), to="jax")
    for result in (to_torch, to_cupy, of_torch, of_cupy, turned.T):
        assert result.tolist() == t.tolist(), result
wide = interop.convert(torch.arange(3, device="cuda", dtype=torch.int32), to="jax")
assert wide.dtype == "int32" and wide.tolist() == [0, 1, 2]
print("shared")
"""


def test_jax(in_process: Callable[..., str]) -> None:
    """JAX shares memory with torch and CuPy both ways, cold and warm, in C order."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    assert in_process(_JAX) == "shared"
