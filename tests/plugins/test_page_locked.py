"""Page-locked memory without a device: who asks for it gets it, and nobody else does.

torch is told that it has CUDA, and its page-locked memory is ordinary memory that is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import DeviceError, RefusedError
from interop.plugin import make_spec
from tests.kit.test_dlpack import Fake

torch = pytest.importorskip("torch", reason="torch is not installed here")


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Let torch lock pages, and return a function that makes tensors in them."""
    addresses: set[int] = set()
    kept: list[Any] = []
    empty = torch.empty

    def lock(*arguments: Any, pin_memory: bool = False, **keywords: Any) -> Any:
        tensor = empty(*arguments, **keywords)
        if pin_memory:
            kept.append(tensor)
            addresses.add(tensor.untyped_storage().data_ptr())
        return tensor

    def is_pinned(tensor: Any) -> bool:
        return tensor.untyped_storage().data_ptr() in addresses

    monkeypatch.setattr(torch, "empty", lock)
    monkeypatch.setattr(torch.Tensor, "is_pinned", is_pinned)
    for name in ("is_initialized", "is_available"):
        monkeypatch.setattr(torch.cuda, name, lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)

    def make(values: Any) -> Any:
        value = torch.as_tensor(values)
        return lock(value.shape, dtype=value.dtype, pin_memory=True).copy_(value)

    return make


def test_a_tensor_says_that_it_is_page_locked(locked: Callable[..., Any]) -> None:
    """The spec has DLPack's name of such memory, for views and subclasses, too."""
    tensor = locked(torch.arange(12.0).reshape(3, 4))
    for value in (tensor, tensor[1:], tensor.T, torch.nn.Parameter(tensor)):
        assert interop.spec(value).device == "cuda_host"
    assert interop.spec(torch.ones(3)).device == "cpu"


def test_nobody_is_asked_before_cuda_is_in_use(
    locked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question would start CUDA, so that a tensor is then on the host."""
    tensor = locked([1.0])
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert interop.spec(tensor).device == "cpu"


@pytest.mark.parametrize("to", ["torch", "numpy"])
@pytest.mark.parametrize("source", ["numpy", "torch", "list", "strided"])
def test_page_locked_memory_is_asked_for(locked: Callable[..., Any], to: str, source: str) -> None:
    """``device="cuda_host"`` gives a copy there, with the numbers, of what lies elsewhere."""
    numbers = np.arange(12, dtype="float32").reshape(3, 4)
    value = {
        "numpy": numbers,
        "torch": torch.from_numpy(numbers),
        "list": numbers.tolist(),
        "strided": numbers.T,
    }[source]
    expected = numbers.T if source == "strided" else numbers
    for _ in range(3):  # also when the route is known
        result = interop.convert(value, to=to, device="cuda_host", dtype="float32")
        tensor = torch.from_numpy(result) if to == "numpy" else result
        assert tensor.is_pinned()
        assert tensor.dtype is torch.float32
        assert np.array_equal(tensor.numpy(), expected)
        assert not np.shares_memory(tensor.numpy(), numbers)


def test_a_page_locked_tensor_is_on_the_host(locked: Callable[..., Any]) -> None:
    """It serves for either device as it is, and is shared with NumPy."""
    tensor = locked([1.0, 2.0])
    for device in (None, "cpu", "cuda_host"):
        assert interop.convert(tensor, to="torch", device=device, copy=False) is tensor
        array = interop.convert(tensor, to="numpy", device=device, copy=False)
        assert array.ctypes.data == tensor.data_ptr()
    assert interop.plan(tensor, to="numpy", device="cuda_host").result.device == "cuda_host"


def test_an_ordinary_tensor_is_not_taken_for_a_locked_one(locked: Callable[..., Any]) -> None:
    """What was learnt from a page-locked tensor is not used for one that is alike."""
    tensor, convert = locked([1.0, 2.0]), interop.converter("torch", device="cuda_host")
    for _ in range(3):
        assert convert(tensor) is tensor
        assert interop.convert(tensor, to="torch", device="cuda_host") is tensor
    ordinary = torch.tensor([3.0, 4.0])
    for result in (convert(ordinary), interop.convert(ordinary, to="torch", device="cuda_host")):
        assert result.is_pinned()
        assert result.tolist() == [3.0, 4.0]
    with pytest.raises(RefusedError):
        interop.convert(ordinary, to="torch", device="cuda_host", copy=False)


def test_results_are_locked_only_on_request(locked: Callable[..., Any]) -> None:
    """Copies, casts, likes and the results of accepted arrays lie in ordinary memory."""
    tensor, array = locked([1.0, 2.0]), np.ones(2, "float32")
    copies = [
        interop.convert(tensor, to="torch", copy=True),
        interop.convert(tensor, to="torch", dtype="float64"),
        interop.convert(tensor, to="torch", dtype="float64", device="cpu"),
        interop.accepts("numpy")(lambda x: x + 1)(tensor),
    ]
    for result in copies:
        assert interop.spec(result).device == "cpu"
    shared = interop.convert(array, like=tensor)
    assert shared.data_ptr() == array.ctypes.data


def test_a_graph_goes_on_in_page_locked_memory(locked: Callable[..., Any]) -> None:
    """The copy is part of the graph of what was copied."""
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    result = interop.convert(leaf, to="torch", device="cuda_host")
    assert result.is_pinned()
    (gradient,) = torch.autograd.grad(result.sum(), leaf)
    assert gradient.tolist() == [1.0, 1.0]


def test_a_page_locked_out_is_written_into(locked: Callable[..., Any]) -> None:
    """out= is an array of the host like any other, small ones on the fast path as well."""
    out, address = locked([0.0, 0.0]), None
    for number in range(4):
        address = out.data_ptr()
        interop.convert(np.full(2, number, "float32"), out=out)
        assert out.tolist() == [number, number]
        assert out.data_ptr() == address
    array = np.zeros(2, "float32")
    interop.convert(locked([5.0, 6.0]), out=array)
    assert array.tolist() == [5.0, 6.0]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """A stand-in for JAX with a device; what it was handed, by DLPack's device.

    JAX calls its arrays there ``pinned_host``, and takes them from 0.12 on.
    """
    jax = pytest.importorskip("jax", reason="jax is not installed here")
    from interop_plugins.jax import describe

    share, handed = jax.dlpack.from_dlpack, []

    def from_dlpack(producer: Any) -> Any:
        kind, index = producer.__dlpack_device__()
        handed.append((int(kind), index))
        capsule = producer.__dlpack__(stream=None)
        host = SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))
        return share(host)

    monkeypatch.setattr(jax.dlpack, "from_dlpack", from_dlpack)
    traits = frozenset({"immutable", "host_memory"})
    monkeypatch.setattr(describe, "place", lambda sharding: ("cuda_host", traits))
    return handed


def test_jax_shares_page_locked_memory_with_who_asks_for_it(
    locked: Callable[..., Any], reader: list[tuple[int, int]]
) -> None:
    """``device="cuda_host"`` hands a page-locked tensor to JAX as it is, or one that is made so."""
    tensor = locked(torch.arange(12.0).reshape(3, 4))
    for keywords in ({}, {"copy": False}):
        result = interop.convert(tensor, to="jax", device="cuda_host", **keywords)
        assert result.unsafe_buffer_pointer() == tensor.data_ptr()
        assert np.array_equal(np.asarray(result), tensor.numpy())
        assert interop.spec(result).device == "cuda_host"
    assert reader == [(3, 0), (3, 0)]
    ordinary = np.arange(3, dtype="float32")
    result = interop.convert(ordinary, to="jax", device="cuda_host")
    assert np.asarray(result).tolist() == [0, 1, 2]
    assert reader[2:] == [(3, 0)]
    with pytest.raises(RefusedError):
        interop.convert(ordinary, to="jax", device="cuda_host", copy=False)


def test_jax_copies_page_locked_memory_for_all_others(locked: Callable[..., Any]) -> None:
    """JAX reads when it computes, and the memory may be written again before, so it is copied."""
    pytest.importorskip("jax", reason="jax is not installed here")
    tensor = locked([1.0, 2.0])
    for device in (None, "cpu"):
        result = interop.convert(tensor, to="jax", device=device)
        tensor.zero_()
        assert np.asarray(result).tolist() == [1.0, 2.0]
        tensor.copy_(torch.tensor([1.0, 2.0]))


def test_jax_without_a_device_says_so(locked: Callable[..., Any]) -> None:
    """A JAX that has no device, or is too old, refuses with its own reason."""
    jax = pytest.importorskip("jax", reason="jax is not installed here")
    if jax.default_backend() != "cpu":
        pytest.skip("JAX has a device here")
    with pytest.raises(RefusedError, match="JAX does not share page-locked memory here"):
        interop.convert(locked([1.0]), to="jax", device="cuda_host")


def test_arrays_in_the_host_memory_of_a_device_go_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's ``pinned_host`` is page-locked memory of the host, which is moved to the device."""
    jax = pytest.importorskip("jax", reason="jax is not installed here")
    from interop_plugins.jax import dense, describe

    device = jax.devices("cpu")[0]
    place = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    value = jax.device_put(np.arange(3, dtype="float32"), place)
    monkeypatch.setattr(describe, "_device_name", lambda device: "cuda:0")
    monkeypatch.setattr(dense, "_device", lambda name: device)
    monkeypatch.setattr(describe, "place", describe.place.__wrapped__)
    spec = interop.spec(value)
    assert (spec.device, spec.traits) == ("cuda_host", {"immutable", "host_memory"})
    moved = interop.convert(value, to="jax", device="cuda:0")
    assert moved.sharding.memory_kind == "device"
    assert np.asarray(moved).tolist() == [0, 1, 2]


def test_others_have_it_as_the_host(locked: Callable[..., Any]) -> None:
    """A framework that cannot ask for locked pages takes them."""
    tensor = locked([[1.0, 2.0]])
    assert interop.convert(tensor, to="python") == [[1.0, 2.0]]


@pytest.mark.parametrize("source", ["torch", "cupy"])
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_the_bytes_cross_straight_into_locked_pages(source: str, to: str) -> None:
    """From a device it is one transfer, into page-locked memory at once."""
    spec = make_spec(source, "float32", device="cuda:0", shape=(64, 64), traits={"noncontiguous"})
    route = interop.plan(spec, to=to, device="cuda_host")
    assert route.result.device == "cuda_host"
    assert route.effects == {"transfer"}
    assert [step.label for step in route.steps if step.writes] in (
        ["lock_pages"],
        ["to_page_locked"],
    )


def test_a_machine_without_a_driver_says_so() -> None:
    """Where nothing can lock pages the device is missing."""
    if torch.cuda.is_available():
        pytest.skip("this machine has a device")
    with pytest.raises(DeviceError, match="torch finds no cuda device"):
        interop.convert(np.ones(3), to="torch", device="cuda_host")


@pytest.mark.parametrize("number", [3, 11], ids=["CUDA", "ROCm"])
def test_foreign_memory_says_that_it_is_page_locked(number: int) -> None:
    """What DLPack calls page-locked is described as such, serves as the host, and is shared."""
    producer = Fake(np.arange(3.0), device_type=number)
    assert interop.spec(producer).device == "cuda_host"
    for device in (None, "cpu", "cuda_host"):
        array = interop.convert(producer, to="numpy", device=device, copy=False)
        assert array.tolist() == [0, 1, 2]
