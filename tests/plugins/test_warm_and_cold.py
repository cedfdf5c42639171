"""Whatever a warm hand-off takes, the cold one takes as well: every offer, every adopter, odd values.

Values on a device are stood in for by values of the host that say they lie there, and libraries
import a capsule by looking at it. The cold call is made as planned, checks and all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop._model.spec import spec_class
from interop._planning.step import Step
from interop.errors import InteropError
from interop.kit import dlpack
from interop.plugin import make_spec
from tests.cuda_driver import CudaDriver
from tests.plugins.test_offers import CUDA, OnDevice, Shown, capsule_of

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")
jax = pytest.importorskip("jax", reason="JAX is not installed here")

from interop_plugins.cupy import hand_offs  # noqa: E402
from interop_plugins.cupy import offers as cupy_offers  # noqa: E402
from interop_plugins.jax import offers as jax_offers  # noqa: E402
from interop_plugins.torch import cuda, dense  # noqa: E402
from interop_plugins.torch import offers as torch_offers  # noqa: E402
from interop_plugins.torch.samples import DENSE  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{beginning}:UserWarning")
    for beginning in ("Sparse", "torch.quantize_per_tensor", "ComplexHalf", "The PyTorch API of")
]

Made = tuple[Any, interop.Spec]


# ---------------------------------------------------------------------- odd values


def tensors() -> Iterator[tuple[str, Any]]:
    """Yield plain and odd tensors of several dtypes, on the host."""
    for name in ("float32", "bfloat16", "int64", "bool", "complex64", "float8_e5m2", "complex32"):
        plain = torch.ones(4, 6).to(getattr(torch, name))
        yield f"plain {name}", plain
        for trait, make in DENSE.items():
            if trait == "subclass":  # hand-offs are looked up by the very type of a value
                continue
            try:
                yield f"{trait} {name}", make(plain)
            except (interop.plugin.Declined, RuntimeError):  # the dtype has no such values
                continue
    plain = torch.ones(4, 6)
    yield "one element further", torch.ones(25)[1:]
    yield "every second column", plain[:, ::2]
    yield "transposed, in a graph", plain.t().detach().requires_grad_()
    yield "no elements", plain[:0]
    yield "no axes", plain[1, 2]
    yield "overlapping", torch.as_strided(plain, (4, 6), (2, 1))
    for name, view in (("", plain), ("transposed", torch.ones(64, 64).t()), ("graph", None)):
        short = torch.ones(64, requires_grad=True) if view is None else view.clone()
        short.untyped_storage().resize_(len(short.untyped_storage()) // 2)
        yield f"longer than its storage {name}", short
    for layout in ("sparse_coo", "sparse_csr", "sparse_csc"):
        yield layout, torch.eye(4).to_sparse(layout=getattr(torch, layout))
    yield "sparse_bsr", torch.eye(4).to_sparse_bsr((2, 2))
    yield "quantized", torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8)
    yield "mkldnn", plain.to_mkldnn()
    yield "nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def torch_values() -> Iterator[tuple[str, Made]]:
    for name, tensor in tensors():
        yield name, (Tensor(tensor), interop.spec(tensor)._replace(device="cuda:0"))


class Tensor(OnDevice):
    """A tensor of the host that says that it lies on a device, and exports itself as torch does."""

    def detach(self) -> Tensor:
        return Tensor(self.tensor.detach())

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: object) -> Any:
        tensor = self.tensor
        if tensor.requires_grad or tensor.is_conj() or tensor.layout is not torch.strided:
            msg = "torch refuses it"
            raise BufferError(msg)
        return capsule_of(tensor)


class CupyArray:
    """An array of NumPy's that is read as one of CuPy's on a device."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.data = SimpleNamespace(ptr=array.ctypes.data, device_id=0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: object) -> Any:
        return capsule_of(self._array)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


def cupy_values() -> Iterator[tuple[str, Made]]:
    block = np.ones((4, 6), "float32")
    shifted = np.zeros(97, "u1")[1:].view("float32")
    for name, array in {
        "plain": block,
        "64 bits": np.ones((4, 6)),
        "transposed": block.T,
        "backwards": block[::-1],
        "broadcast": np.lib.stride_tricks.as_strided(block, strides=(0, 4)),
        "one element further": np.ones(25, "float32")[1:],
        "unaligned": shifted,
        "no elements": block[:0],
        "no axes": block[1:2, 2:3].reshape(()),
    }.items():
        flags = array.flags
        traits = set() if flags.c_contiguous else {"noncontiguous"}
        traits |= {"negative_strides"} if min(array.strides, default=0) < 0 else set()
        traits |= {"broadcast"} if 0 in array.strides else set()
        spec = make_spec(
            "cupy", array.dtype.name, device="cuda:0", shape=array.shape, traits=traits
        )
        yield name, (CupyArray(array), spec)


class JaxArray:
    """An array of JAX's on a device; its place tells what is odd about it."""

    itemsize = 4

    def __init__(self, traits: frozenset[str], dtype: str = "float32") -> None:
        self.sharding = (
            "cuda:0" if traits <= {"deleted"} else "cuda",
            frozenset({"immutable"} | traits - {"deleted"}),
        )
        self.dtype = SimpleNamespace(name=dtype)
        self._is_deleted = "deleted" in traits

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: object) -> Any:
        if self._is_deleted:
            msg = "Array has been deleted"
            raise RuntimeError(msg)
        return capsule_of(torch.ones(4, 6))


def jax_values() -> Iterator[tuple[str, Made]]:
    for traits in ((), ("deleted",), ("sharded",), ("replicated",), ("distributed",)):
        spec = make_spec(
            "jax", "float32", device="cuda:0", shape=(4, 6), traits={"immutable", *traits}
        )
        yield " ".join(traits) or "plain", (JaxArray(frozenset(traits)), spec)
    spec = make_spec("jax", "int4", device="cuda:0", shape=(4, 6), traits={"immutable"})
    yield "packed", (JaxArray(frozenset(), "int4"), spec)


#: By the name of a format that offers memory on a device, its values with their specs there.
VALUES: dict[str, Callable[[], Iterator[tuple[str, Made]]]] = {
    "torch": torch_values,
    "cupy": cupy_values,
    "jax": jax_values,
}


# ---------------------------------------------------------------------- warm and cold


@pytest.fixture
def libraries(
    monkeypatch: pytest.MonkeyPatch, loaded: interop.Interop, cuda_driver: CudaDriver
) -> CudaDriver:
    """Let all libraries work on one stream, and import a capsule by looking at it."""

    def importer(name: str) -> Callable[[Any], Any]:
        """Return what imports a capsule, or refuses it as a library does that lacks the dtype."""
        dtypes = loaded._registry.formats[name].dtypes

        def imported(producer: Any) -> Any:
            if hasattr(producer, "__dlpack__"):
                producer.__dlpack_device__()
                producer = producer.__dlpack__(stream=1)
            if dlpack._read(producer, None)[0] not in dtypes:
                msg = "it has no such dtype"
                raise BufferError(msg)
            return shared

        return imported

    for target in VALUES:
        loaded.plan(make_spec("torch", "float32", device="cuda:0", shape=(3,)), to=target)

    stream = SimpleNamespace(ptr=0, cuda_stream=0, synchronize=lambda: None)
    shared = SimpleNamespace(
        data=SimpleNamespace(device=0),
        device=torch.device("cuda", 0),
        copy=lambda order: "imported",
    )
    monkeypatch.setattr(torch_offers, "_handle", lambda: lambda index: 0)
    monkeypatch.setattr(torch_offers, "_export", lambda: lambda value: capsule_of(value.tensor))
    monkeypatch.setattr(cupy_offers, "_current_stream", lambda: lambda index: stream)
    monkeypatch.setattr(cupy_offers, "_current_device", lambda: 0)
    monkeypatch.setattr(torch_offers, "_share", lambda: importer("torch"))
    monkeypatch.setattr(cupy_offers, "_share", lambda: importer("cupy"))
    monkeypatch.setattr(jax_offers, "_from_dlpack", lambda: importer("jax"))
    monkeypatch.setattr(jax_offers, "place", lambda sharding: sharding)
    monkeypatch.setattr(jax_offers, "_index", jax_offers._index.__wrapped__)
    for module in (torch_offers, cupy_offers, hand_offs, cuda):
        monkeypatch.setattr(module, "working", lambda device, named: nullcontext(stream))
    for module in (cupy_offers, hand_offs):
        monkeypatch.setattr(module, "let_wait", lambda value, stream: None)
        monkeypatch.setattr(module, "lend", lambda array, value, stream: array)
    for module in (torch_offers, cuda):
        monkeypatch.setattr(module, "let_wait", lambda value, device: None)
        monkeypatch.setattr(module, "cast", lambda value, dtype: shared)
    monkeypatch.setattr(hand_offs, "_exporting", lambda value, index: nullcontext())
    monkeypatch.setattr(dense, "sharing", lambda index, stream: nullcontext())
    monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", importer("torch"))
    monkeypatch.setattr(cupy, "from_dlpack", importer("cupy"))
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda index=0: stream)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: nullcontext())
    monkeypatch.setattr(jax.dlpack, "from_dlpack", importer("jax"))
    return cuda_driver


#: What is asked for beside the target.
REQUESTS: tuple[dict[str, Any], ...] = ({}, {"copy": True}, {"dtype": "complex64"})


def hand_offs_of(mine: interop.Interop) -> Iterator[tuple[str, str, dict[str, Any], Step]]:
    """Yield the steps that adopt an offer, as they are planned for plain values of each format."""
    for source, target in permutations(VALUES, 2):
        for request in REQUESTS:
            for dtype in ("float32", "complex64"):
                spec = make_spec(source, dtype, device="cuda:0", shape=(4, 6))
                steps = mine.plan(spec, to=target, **request).steps
                crossing = [step for step in steps if step.before.format != step.after.format]
                if len(steps) == len(crossing) == 1:
                    yield source, target, request, crossing[0]


def is_taken_cold(mine: interop.Interop, made: Made, target: str, request: Any, warm: Step) -> bool:
    """Tell whether the planned call takes a value, by the step that would adopt it."""
    value, spec = made
    try:
        steps = mine.plan(spec, to=target, **request).steps
        if [step.label for step in steps if step.label != "detach"] != [warm.label]:
            return False
        for step in steps:
            value = step.call(value)
    except (InteropError, BufferError, RuntimeError):
        return False
    return True


def test_warm_takes_no_more_than_cold(libraries: CudaDriver, loaded: interop.Interop) -> None:
    """A value that is adopted is one that the planned call takes, by the same step, and no other."""
    taken: dict[tuple[str, str, str], list[str]] = {}
    wrong = []
    for source, target, request, step in hand_offs_of(loaded):
        assert step.hand_off is not None
        for name, made in VALUES[source]():
            # With a keyword, a plan serves the values whose fast keys are equal.
            is_served = not request or spec_class(made[1]) == spec_class(step.before)
            if not is_served or step.hand_off(made[0]) is NotImplemented:
                continue
            taken.setdefault((source, target, step.label), []).append(name)
            if not is_taken_cold(loaded, made, target, request, step):
                wrong.append((source, target, step.label, name))
    assert wrong == []
    # Every pair shares plain memory, and more than that.
    shared = {pair[:2] for pair, names in taken.items() if any("plain" in name for name in names)}
    assert shared == {*permutations(VALUES, 2)}
    assert len(taken) > len(shared)
    assert "transposed, in a graph" in taken["torch", "cupy", "from_dlpack"]


def test_all_that_offer_memory_on_a_device_have_odd_values(
    libraries: CudaDriver, loaded: interop.Interop
) -> None:
    """A format that offers its memory by DLPack has values here, so that no guard is forgotten."""
    formats = loaded._registry.formats.items()
    assert {name for name, format_ in formats if "dlpack" in format_.advanced.offers} == {*VALUES}


#: Odd entries of ``__cuda_array_interface__``.
ENTRIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strided": {"strides": (8,)},
    "read-only": {"data": (0x7F0000000000, True)},
    "masked": {"mask": object()},
    "byte order": {"typestr": ">f4"},
    "alignment": {"data": (0x7F0000000002, False)},
    "backwards": {"strides": (-4,)},
    "broadcast": {"strides": (0,)},
    "no elements": {"shape": (0,), "data": (0, False)},
    "no address": {"data": (16, False)},
    "beyond all memory": {"data": (2**64, False)},
    "no number": {"typestr": "|V4"},
    "steps between elements": {"strides": (6,)},
    "no stream": {"stream": 0},
    "a stream": {"stream": 7},
    "version": {"version": 1},
    "the host's": {},
}


@pytest.mark.parametrize("request_", [{}, {"copy": True}], ids=str)
@pytest.mark.parametrize("target", ["torch", "cupy"])
def test_warm_takes_no_more_of_an_interface_than_cold(
    libraries: CudaDriver,
    loaded: interop.Interop,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    request_: dict[str, Any],
) -> None:
    """What is adopted of an interface has none but the traits that the planned step takes."""
    memory = cupy.cuda.UnownedMemory
    monkeypatch.setattr(
        cupy.cuda,
        "UnownedMemory",
        lambda address, nbytes, owner: memory(
            address, nbytes, owner, libraries.owners.get(address, -2)
        ),
    )
    monkeypatch.setattr(cupy_offers, "copy", lambda array, stream: array)
    monkeypatch.setattr(torch, "as_tensor", lambda memory, device: SimpleNamespace(device=device))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: SimpleNamespace(cuda_stream=0))
    plain = Shown(np.zeros(3, "float32"))
    (step,) = loaded.plan(loaded.spec(plain), to=target, **request_).steps
    assert step.hand_off is not None
    taken = []
    for name, entries in ENTRIES.items():
        value = Shown(np.zeros(3, "float32"), **entries)
        libraries.owners.clear()
        if name != "the host's":
            libraries.owners[value._entries["data"][0]] = 0
        # With a keyword, other views have plans of their own.
        if (request_ and "strides" in entries) or step.hand_off(value) is NotImplemented:
            continue
        taken.append(name)
        steps = loaded.plan(loaded.spec(value), to=target, **request_).steps
        assert [step.label for step in steps] == [step.label], name
    views = [] if request_ else ["strided", "broadcast"]
    assert taken == ["plain", *views, *["a stream"] * (target == "torch")]
