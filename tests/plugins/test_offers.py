"""Hand-offs on a device in one step: what is offered and adopted where nobody has to wait.

Values on a device are stood in for by values of the host that say they lie there, and streams by
numbers. No library reads what it adopts here: the numbers are read at the addresses.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop._planning.step import hand_off
from interop._request.request import Request
from interop.errors import BadRequestError
from interop.plugin import Declined, make_spec
from tests.cases import together

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")
jax = pytest.importorskip("jax", reason="JAX is not installed here")

from interop_plugins.cupy import hand_offs, loans  # noqa: E402
from interop_plugins.cupy import offers as cupy_offers  # noqa: E402
from interop_plugins.jax import dense as jax_dense  # noqa: E402
from interop_plugins.jax import offers as jax_offers  # noqa: E402
from interop_plugins.protocols import offers as interface_offers  # noqa: E402
from interop_plugins.torch import cuda  # noqa: E402
from interop_plugins.torch import offers as torch_offers  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{beginning}:UserWarning")
    for beginning in (
        "Sparse BSR tensor support",
        "torch.quantize_per_tensor",
        "ComplexHalf support",
        "The PyTorch API of nested tensors",
    )
]

#: The handles of the streams that torch and CuPy work on, and of JAX's.
TORCHS, CUPYS, JAXS = 0, 0, 77
CUDA, MANAGED = 2, 13

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def capsule_of(tensor: Any, device_type: int = CUDA, index: int = 0) -> Any:
    """Return a capsule of a tensor or array of the host that says that it lies on a device."""
    is_array = isinstance(tensor, np.ndarray)
    capsule = tensor.__dlpack__() if is_array else torch.utils.dlpack.to_dlpack(tensor)
    device = (ctypes.c_int32 * 2).from_address(_pointer_of(capsule, b"dltensor") + 8)
    device[:] = [device_type, index]
    return capsule


class OnDevice:
    """A tensor of the host that says that it lies on a device."""

    is_cuda = True

    def __init__(self, tensor: Any, index: int = 0) -> None:
        self.tensor = tensor
        self._index = index

    def get_device(self) -> int:
        return self._index

    def detach(self) -> OnDevice:
        return OnDevice(self.tensor.detach(), self._index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name)


class Streams:
    """The handles of the current streams, and who was told to wait for whom."""

    def __init__(self) -> None:
        self.torchs, self.cupys = TORCHS, CUPYS
        self.waits: list[str] = []


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    """Let torch and CuPy work on streams of which only the handles are known."""
    streams = Streams()
    monkeypatch.setattr(torch_offers, "_handle", lambda: lambda index: streams.torchs)
    monkeypatch.setattr(
        cupy_offers, "_current_stream", lambda: lambda index: SimpleNamespace(ptr=streams.cupys)
    )

    def export(value: Any) -> Any:
        assert not value.requires_grad, "torch refuses to export from a graph"
        return capsule_of(value.tensor, index=value.get_device())

    monkeypatch.setattr(torch_offers, "_export", lambda: export)
    monkeypatch.setattr(
        torch_offers,
        "queue_behind",
        lambda *handles: streams.waits.append("{} waits for {} on {}".format(*handles)),
    )
    return streams


def numbers_at(array: Any, dtype: str = "float32") -> list[float]:
    """Return the numbers of a contiguous CuPy array that lies on the host."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.data.ptr)
    return np.frombuffer(memory, dtype).tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------- what the core puts together


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("torch", "cupy"), ("cupy", "torch"), ("torch", "jax"), ("jax", "torch")),
        *(("cupy", "jax"), ("jax", "cupy")),
        *(("cuda_array_interface", "torch"), ("cuda_array_interface", "cupy")),
    ],
)
@pytest.mark.parametrize("request_", [{}, {"dtype": "int32"}, {"copy": True}], ids=str)
def test_hand_offs_on_a_device_are_adopted(
    source: str, target: str, request_: dict[str, Any]
) -> None:
    """The step between two frameworks has its hand-off, whatever is asked for beside the target."""
    device = "cuda" if source == "cuda_array_interface" else "cuda:0"
    spec = make_spec(source, "float32", device=device, shape=(3, 4))
    between = [
        step
        for step in interop.plan(spec, to=target, **request_).steps
        if step.before.format != step.after.format
    ]
    assert [step.hand_off is not None for step in between] == [True]
    # A view is what a type may take. A copy may be what few of its values need.
    assert (between[0].fast_path is None) == between[0].writes


def test_the_host_keeps_its_own_fast_paths() -> None:
    """What lies on the host is not offered: torch and NumPy share by their own functions."""
    for source, target in (("torch", "numpy"), ("numpy", "torch"), ("jax", "torch")):
        (step,) = interop.plan(make_spec(source, "float32", shape=(3, 4)), to=target).steps
        assert step.hand_off is None
        assert step.fast_path is not None


# ---------------------------------------------------------------------- torch offers


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("view", ["plain", "transposed", "broadcast", "scalar"])
def test_torch_to_cupy_on_one_stream(streams: Streams, dtype: Any, view: str) -> None:
    """CuPy gets torch's memory, dtype, shape and strides, and holds no loan."""
    plain = torch.ones(3, 4).to(dtype)
    tensor = {
        "plain": plain,
        "transposed": plain.t(),
        "broadcast": plain[:, :1].expand(3, 5),
        "scalar": plain[1, 2],
    }[view]
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(tensor, index=1))
    assert type(array) is cupy.ndarray
    assert array.data.ptr == tensor.data_ptr()
    assert array.shape == tuple(tensor.shape)
    assert array.strides == tuple(step * tensor.itemsize for step in tensor.stride())
    assert str(array.dtype) == str(dtype).removeprefix("torch.")
    assert array.data.device_id == 1
    assert not isinstance(getattr(array.data.mem, "_owner", None), loans._Loan)
    assert streams.waits == []


def test_torch_offers_what_is_in_a_graph_outside_of_it(streams: Streams) -> None:
    """The guard of graphs: torch would refuse to export the tensor itself."""
    tensor = torch.arange(3.0, requires_grad=True)
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(tensor))
    assert numbers_at(array) == [0, 1, 2]


def test_the_memory_lives_as_long_as_the_array(streams: Streams) -> None:
    """A tensor that is dropped keeps its memory while CuPy's array is there, and not longer."""
    freed: list[int] = []
    source = np.arange(1000, dtype="float32")

    class Owner:
        def __del__(self) -> None:
            freed.append(1)

    holder = (ctypes.c_char * source.nbytes).from_buffer(source)
    holder.owner = Owner()
    tensor = torch.from_numpy(np.frombuffer(holder, "float32"))
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(tensor))
    del tensor, holder
    assert freed == []
    assert numbers_at(array)[-1] == 999
    del array
    assert freed == [1]


def _short(tensor: Any) -> Any:
    """Return a tensor whose storage has been shrunk to half of it."""
    tensor.untyped_storage().resize_(len(tensor.untyped_storage()) // 2)
    return tensor


def _unaligned() -> Any:
    return torch.from_numpy(np.zeros(17, "uint8")[1:].view("float32"))


@pytest.mark.parametrize(
    ("guard", "make"),
    [
        ("layout", lambda: torch.eye(3).to_sparse()),
        ("layout of blocks", lambda: torch.eye(4).to_sparse_bsr((2, 2))),
        ("conjugate", lambda: torch.ones(3, dtype=torch.complex64).conj()),
        ("negative", lambda: torch._neg_view(torch.ones(3))),
        ("no elements", lambda: torch.ones(0, 3)),
        ("zeros that are not stored", lambda: torch._efficientzerotensor((3,))),
        ("alignment", _unaligned),
        ("storage", lambda: _short(torch.ones(64, 64))),
        ("storage of a transposed tensor", lambda: _short(torch.ones(64, 64).t())),
        ("storage of every second column", lambda: _short(torch.ones(64, 64)[:, ::2])),
    ],
)
def test_torch_offers_no_odd_value(streams: Streams, guard: str, make: Callable[[], Any]) -> None:
    """Each guard has a value that needs it; the planned route knows what to do with it."""
    assert torch_offers.offer(OnDevice(make()), lambda index: TORCHS, True) is NotImplemented


@together(
    "make, words",
    [
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), {}),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), {}),
        (lambda: torch.ones(3).to(torch.float8_e5m2), {}),
        (lambda: torch.ones(3).to(torch.complex32), {}),
        (lambda: torch.ones(3), {"stream": "it"}),
    ],
)
def test_what_a_library_refuses_is_left_to_the_plan(
    streams: Streams, make: Callable[[], Any], words: dict[str, Any]
) -> None:
    """An error of torch or CuPy is none of the hand-off: the plan casts, or names what was given."""
    path = hand_off(cupy_offers.adopt, torch_offers.offer)
    assert path(OnDevice(make()), **words) is NotImplemented
    assert streams.waits == []


def test_torch_offers_nothing_inside_a_transform(streams: Streams) -> None:
    """A tensor that stands for others has no address."""
    path, results = hand_off(cupy_offers.adopt, torch_offers.offer), []

    def watched(tensor: Any) -> Any:
        results.append(path(OnDevice(tensor)))
        return tensor

    torch.vmap(watched)(torch.ones(2, 3))
    assert results == [NotImplemented]


def test_torch_offers_nothing_of_the_host(streams: Streams) -> None:
    """The guard of devices: memory of the host has ways of its own."""
    asked: list[int] = []
    answer = torch_offers.offer(torch.ones(3), asked.append, True)
    assert answer is NotImplemented
    assert asked == []


@together("torchs, cupys", [(0, 99), (0, 2), (99, 0), (99, 99)])
def test_torch_leaves_another_stream_to_the_plan(streams: Streams, torchs: int, cupys: int) -> None:
    """Where the handles differ, the loan of the planned step is needed; a thread's default is 2."""
    streams.torchs, streams.cupys = torchs, cupys
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(torch.ones(3)))
    assert (array is not NotImplemented) == (torchs == cupys)
    assert streams.waits == []


def test_the_stream_of_the_memorys_device_counts(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams of one device are compared, whichever device is current."""
    monkeypatch.setattr(torch_offers, "_handle", lambda: {0: 5, 1: 7}.__getitem__)
    monkeypatch.setattr(
        cupy_offers,
        "_current_stream",
        lambda: lambda index: SimpleNamespace(ptr={0: 6, 1: 7}[index]),
    )
    assert cupy_offers.adopt(torch_offers.offer, OnDevice(torch.ones(3))) is NotImplemented
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(torch.ones(3), index=1))
    assert array.data.device_id == 1


def test_torchs_handle_has_a_public_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch lacks its raw function, the stream object tells the handle."""
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda index: SimpleNamespace(cuda_stream=40 + index)
    )
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", None, raising=False)
    assert torch_offers._handle.__wrapped__()(2) == 42
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: index, raising=False)
    assert torch_offers._handle.__wrapped__()(2) == 2


# ---------------------------------------------------------------------- CuPy offers


class Array:
    """A CuPy array that notes for which stream it is exported."""

    def __init__(self, **facts: Any) -> None:
        self.streams: list[int] = []
        self.data = SimpleNamespace(ptr=facts.get("ptr", 0x7F0000000000), device_id=1)
        self.size = facts.get("size", 12)
        self.itemsize = 4
        self.strides = facts.get("strides", (16, 4))
        self.flags = SimpleNamespace(c_contiguous=self.strides == (16, 4))

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return capsule_of(torch.ones(3, 4))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what torch has adopted; its build may lack CUDA."""
    capsules: list[Any] = []

    def share(capsule: Any) -> Any:
        capsules.append(capsule)
        return torch.ones(3, 4)

    monkeypatch.setattr(torch_offers, "_share", lambda: share)
    return capsules


@pytest.mark.parametrize("strides", [(16, 4), (4, 12), (0, 4)], ids=str)
def test_cupy_to_torch_on_one_stream(
    streams: Streams, taken: list[Any], strides: tuple[int, ...]
) -> None:
    """CuPy is told to order nothing, and torch adopts what it exports."""
    array = Array(strides=strides)
    assert torch_offers.adopt(cupy_offers.offer, array).shape == (3, 4)
    assert array.streams == [-1]
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("guard", "facts"),
    [
        ("no elements", {"size": 0}),
        ("alignment", {"ptr": 0x7F0000000002}),
        ("backwards", {"strides": (-16, 4)}),
    ],
)
def test_cupy_offers_no_odd_value(streams: Streams, guard: str, facts: dict[str, Any]) -> None:
    """Each guard has a value that needs it; torch would end the process on some."""
    array = Array(**facts)
    assert cupy_offers.offer(array, lambda index: CUPYS, True) is NotImplemented
    assert array.streams == []


def test_the_guards_read_real_arrays(streams: Streams) -> None:
    """Arrays of CuPy's own have what the guards look at; nothing is exported without a driver."""
    memory = cupy.cuda.UnownedMemory(0x7F0000000000, 1 << 20, None, 0)
    plain = cupy.ndarray((6, 8), "float32", cupy.cuda.MemoryPointer(memory, 0))
    odd = cupy.ndarray((6, 8), "float32", cupy.cuda.MemoryPointer(memory, 2))
    for array in (plain[::-1], plain[:0], odd):
        assert cupy_offers.offer(array, lambda index: CUPYS, True) is NotImplemented
    streams.cupys = 99
    for array in (plain, plain.T, plain[:, ::2]):  # which pass all guards but the last
        assert cupy_offers.offer(array, lambda index: CUPYS, False) is NotImplemented


def test_cupy_leaves_another_stream_to_the_plan(streams: Streams, taken: list[Any]) -> None:
    """Where the handles differ, nothing is exported."""
    streams.torchs, array = 99, Array()
    assert torch_offers.adopt(cupy_offers.offer, array) is NotImplemented
    assert (array.streams, taken) == ([], [])


@pytest.mark.parametrize("device", [0, 1])
def test_cupy_lets_a_stream_wait_that_needs_no_loan(
    streams: Streams, monkeypatch: pytest.MonkeyPatch, device: int
) -> None:
    """CuPy orders its stream of the current device, so that this has to be the array's."""
    monkeypatch.setattr(cupy_offers, "_current_device", lambda: device)
    array = Array()
    offered = cupy_offers.offer(array, lambda index: JAXS, True)
    assert array.streams == ([JAXS] if device == 1 else [])
    assert (offered is NotImplemented) == (device == 0)
    if device == 1:
        assert offered[1:] == (1, False)


def test_torch_takes_no_managed_memory() -> None:
    """What torch cannot import is an error of torch's, and the plan says more about it."""
    offer = lambda *_: (capsule_of(torch.ones(3), MANAGED), 0, True)  # noqa: E731
    with pytest.raises(Exception, match=r"(?i)device"):
        torch_offers.adopt(offer, None)
    assert hand_off(torch_offers.adopt, offer)(None) is NotImplemented


# ---------------------------------------------------------------------- copies and casts


@pytest.mark.parametrize("together", [True, False])
def test_torch_copies_what_is_offered(
    streams: Streams, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """The copy is a snapshot: a producer on another stream waits, and on the same it is in order."""
    shared, told = torch.arange(3.0), []
    monkeypatch.setattr(torch_offers, "_share", lambda: lambda capsule: capsule)
    monkeypatch.setattr(torch_offers, "let_wait", lambda value, device: told.append(value))
    result = torch_offers.copy_adopted(lambda *_: (shared, 0, together), "it", dtype="int32")
    assert result.tolist() == [0, 1, 2]
    assert result.dtype == torch.int32
    assert result.data_ptr() != shared.data_ptr()
    assert told == ([] if together else ["it"])


def test_a_warm_request_takes_the_hand_off_of_its_step() -> None:
    """A step that is called by its key is its hand-off, and the planned call where that declines."""
    calls: list[str] = []

    def adopt(offer: Callable[[Any], Any], value: Any, *, dtype: str) -> Any:
        offered = offer(value)
        calls.append("adopted" if offered is not NotImplemented else "declined")
        return NotImplemented if offered is NotImplemented else Held("b", dtype)

    def copied(value: Any, *, dtype: str) -> Any:
        calls.append("planned")
        return Held("b", dtype)

    offered: list[Any] = [object()]
    mine = interop.Interop(plugins=False)
    key = interop.plugin.advanced.Advanced
    mine.register(
        held("a", exports={"there": {"float32"}})._replace(
            advanced=key(fast_key=lambda held: held.kind, offers={"there": lambda _: offered[0]})
        ),
        held("there"),
        held("b"),
        interop.Conversion(
            "there", "b", copied, adopt=adopt, changes={"dtype"}, effects={"copy"}, devices=None
        ),
    )
    for expected in ("planned", "adopted"):
        calls.clear()
        assert mine.convert(Held("a"), to="b", dtype="float64").dtype == "float64"
        assert calls == [expected]
    offered[0] = NotImplemented
    calls.clear()
    assert mine.convert(Held("a"), to="b", dtype="float64").dtype == "float64"
    assert calls == ["declined", "planned"]


class Held:
    """A value of a toy framework on a device."""

    def __init__(self, kind: str, dtype: str = "float32") -> None:
        self.kind, self.dtype = kind, dtype


def held(name: str, **facts: Any) -> interop.Format:
    """Return the format of a toy framework on a device."""
    return interop.Format(
        name,
        types=(f"{__name__}:Held",),
        describe=lambda value: interop.Spec(value.kind, value.dtype, "cuda:0", (3,), nbytes=12),
        dtypes={"float32", "float64"},
        devices=("cuda",),
        **facts,
    )


# ---------------------------------------------------------------------- a named stream


@pytest.fixture
def order(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which streams CuPy and torch work on, and which the producer waits for."""
    log = streams.waits

    @contextmanager
    def working(device: Any, stream: Any) -> Iterator[Any]:
        log.append(f"before {stream}")
        yield SimpleNamespace(ptr=stream)
        log.append(f"after {stream}")

    def joined(device: Any, stream: Any) -> Any:
        log.append(f"joined {stream}")
        return SimpleNamespace(ptr=stream)

    monkeypatch.setattr(cupy_offers, "joined", joined)
    monkeypatch.setattr(cupy_offers, "working", working)
    monkeypatch.setattr(torch_offers, "working", working)
    monkeypatch.setattr(cupy_offers, "let_wait", lambda value, stream: log.append("told"))
    monkeypatch.setattr(torch_offers, "let_wait", lambda value, device: log.append("told"))
    monkeypatch.setattr(cupy_offers, "lend", lambda array, value, stream: ("lent", stream.ptr))
    monkeypatch.setattr(cupy_offers, "_current_device", lambda: 1)
    return log


NAMED = 55


def test_cupy_takes_torchs_memory_for_a_named_stream(streams: Streams, order: list[str]) -> None:
    """The stream waits for torch's and is lent the memory; it has its place beside CuPy's own."""
    lent = cupy_offers.adopt(torch_offers.offer, OnDevice(torch.ones(3), index=1), stream=NAMED)
    assert lent == ("lent", NAMED)
    assert order == ["55 waits for 0 on 1", "joined 55"]


def test_cupy_takes_torchs_memory_for_torchs_own_stream(streams: Streams, order: list[str]) -> None:
    """Nobody waits for torch and nothing is lent, whichever stream is CuPy's."""
    streams.torchs, streams.cupys, tensor = NAMED, 99, torch.ones(3)
    array = cupy_offers.adopt(torch_offers.offer, OnDevice(tensor), stream=NAMED)
    assert array.data.ptr == tensor.data_ptr()
    assert order == ["joined 55"]


def test_torch_takes_cupys_memory_for_a_named_stream(
    streams: Streams, order: list[str], taken: list[Any]
) -> None:
    """CuPy lets that stream wait, unless it is its own."""
    array = Array()
    for cupys, exported in ((99, NAMED), (NAMED, -1)):
        streams.cupys = cupys
        torch_offers.adopt(
            cupy_offers.offer, array, stream=SimpleNamespace(__cuda_stream__=lambda: (0, NAMED))
        )
        assert array.streams[-1] == exported
    assert order == []
    assert len(taken) == 2


@pytest.mark.parametrize("together", [True, False])
def test_copies_are_made_on_a_named_stream(
    streams: Streams, order: list[str], monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """The producer is told to wait for that stream while the copy's place is beside the current."""
    asked: list[Any] = []

    def offer(value: object, stream_of: Callable[[int], int], waits: bool) -> Any:
        asked.append((stream_of(0), waits))
        return capsule_of(torch.arange(3.0)), 0, together

    class Shared:
        data = SimpleNamespace(device=0)
        device = 0

        def copy(self, *, order: str) -> str:
            log.append("copy")
            return order

    log = order
    monkeypatch.setattr(torch_offers, "_share", lambda: lambda capsule: Shared())
    monkeypatch.setattr(cupy_offers, "_share", lambda: lambda capsule: Shared())
    monkeypatch.setattr(torch_offers, "cast", lambda value, dtype: value.copy(order=dtype))
    assert cupy_offers.copy_adopted(offer, "it", stream=NAMED) == "C"
    assert torch_offers.copy_adopted(offer, "it", stream=NAMED, dtype="int32") == "int32"
    told = [] if together else ["told"]
    assert log == ["before 55", "copy", *told, "after 55"] * 2
    assert asked == [(NAMED, True)] * 2


def test_a_named_stream_takes_the_hand_off_of_a_step() -> None:
    """The stream reaches what adopts, and the planned call where that answers nothing or fails."""
    calls: list[tuple[str, object]] = []
    answers: list[Any] = [Held("b")]

    def adopt(offer: Callable[[Any], Any], value: Any, *, stream: object = None) -> Any:
        calls.append(("adopted", stream))
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    def share(value: Any, *, stream: object = None) -> Any:
        calls.append(("planned", stream))
        return Held("b")

    mine = interop.Interop(plugins=False)
    mine.register(
        held("a", exports={"there": {"float32"}})._replace(
            advanced=interop.plugin.advanced.Advanced(offers={"there": lambda value: value})
        ),
        held("there"),
        held("b"),
        interop.Conversion("there", "b", share, adopt=adopt, devices=None, stream=True),
    )
    for _ in range(2):
        assert mine.convert(Held("a"), to="b", stream=5) is answers[0]
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(mine._registry.recognition, "describe", lambda value: 1 / 0)
        assert mine.convert(Held("a"), to="b", stream=5) is answers[0]
        assert mine.convert(Held("a"), to="b") is answers[0]
    assert calls == [("adopted", 5)] * 3 + [("adopted", None)]
    for answer in (NotImplemented, TypeError("no such stream")):
        calls.clear()
        answers[0] = answer
        assert mine.convert(Held("a"), to="b", stream=5).kind == "b"
        assert calls == [("adopted", 5)] * 2 + [("planned", 5)]
    for words in ({"to": ["b"]}, {"to": "b", "copy": False}, {"to": "b", "dtype": "float32"}):
        calls.clear()
        assert mine.convert(Held("a"), stream=5, **words).kind == "b"
        assert calls == [("adopted", 5), ("planned", 5)]
    calls.clear()
    with interop.trace() as receipts:
        mine.convert(Held("a"), to="b", stream=5)
    assert len(receipts) == 1


@pytest.mark.usefixtures("driver")
def test_interfaces_are_taken_for_a_named_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch gets the stream; for CuPy there is nothing to wait for, as the interface names none."""
    value = Shown(np.ones(3, "float32"))
    array = cupy_offers.adopt_interface(interface_offers.offer, value, stream=NAMED)
    assert array.data.ptr == value.array.ctypes.data
    with pytest.raises(BadRequestError):
        cupy_offers.adopt_interface(interface_offers.offer, value, stream="it")
    monkeypatch.setattr(cuda, "_share", lambda *given, stream=None: (given, stream))
    shared = cuda.adopt_interface(interface_offers.offer, value, stream=NAMED)
    assert shared == ((value._entries, value), NAMED)


# ---------------------------------------------------------------------- JAX


class JaxArray:
    """A JAX array on a device that notes for which stream it is exported."""

    itemsize = 4

    def __init__(self, dtype: str = "float32", device_type: int = CUDA) -> None:
        self.sharding = "on cuda:1"
        self.dtype = SimpleNamespace(name=dtype)
        self.streams: list[int] = []
        self._device_type = device_type

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return capsule_of(torch.ones(3, 4))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device_type, 1


@pytest.fixture
def jax_on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let JAX's arrays lie on the second device."""
    monkeypatch.setattr(jax_offers, "_index", lambda sharding: 1)


@pytest.mark.parametrize(("handle", "named"), [(0, 1), (99, 99)])
def test_jax_is_told_the_stream_of_torch(
    streams: Streams, taken: list[Any], jax_on_device: None, handle: int, named: int
) -> None:
    """JAX orders by itself whichever stream it is; DLPack calls the legacy default one 1."""
    streams.torchs, array = handle, JaxArray()
    assert torch_offers.adopt(jax_offers.offer, array).shape == (3, 4)
    assert array.streams == [named]


def test_jax_needs_no_loan(
    streams: Streams, jax_on_device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes JAX's memory, so that no later step on the array makes the host wait for it."""
    monkeypatch.setattr(cupy_offers, "_current_stream", lambda: lambda index: stream)
    monkeypatch.setattr(jax, "Array", JaxArray)
    stream, value = SimpleNamespace(ptr=99, __cuda_stream__=lambda: (0, 99)), JaxArray()
    array = cupy_offers.adopt(jax_offers.offer, value)
    assert not isinstance(getattr(array.data.mem, "_owner", None), loans._Loan)
    assert value.streams == [99]
    assert array.shape == (3, 4)
    assert loans.lend(array, value, stream) is array  # neither does the planned step lend it
    monkeypatch.setattr(loans, "working", lambda device, stream: nullcontext(None))
    with loans.reading(array, None):  # where a stream would be waited for
        pass


def test_a_copy_of_jaxs_memory_is_waited_for(
    streams: Streams, jax_on_device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The array may be dropped once the call has returned, and JAX uses its memory again then."""
    waits: list[str] = []
    stream = SimpleNamespace(ptr=99, synchronize=lambda: waits.append("the host"))
    monkeypatch.setattr(cupy_offers, "working", lambda device, named: nullcontext(stream))
    monkeypatch.setattr(
        cupy_offers,
        "_share",
        lambda: (
            lambda capsule: SimpleNamespace(
                data=SimpleNamespace(device=0), copy=lambda order: "the copy"
            )
        ),
    )
    assert cupy_offers.copy_adopted(jax_offers.offer, JaxArray()) == "the copy"
    assert waits == ["the host"]


def test_jax_offers_what_lies_on_one_device(streams: Streams) -> None:
    """Arrays of the host, of several devices and of packed elements are left to the plan."""
    assert jax_offers.offer(jax.numpy.ones(3), lambda index: 0, False) is NotImplemented
    places = {"cuda:3": 3, "cuda": None, "rocm:0": None, "cpu": None}
    for name, index in places.items():
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(jax_offers, "place", lambda _, name=name: (name, jax_offers.IMMUTABLE))
            assert jax_offers._index.__wrapped__(name) == index
            patches.setattr(jax_offers, "place", lambda _: ("cuda:3", frozenset({"sharded"})))
            assert jax_offers._index.__wrapped__(name) is None


def test_jax_offers_no_packed_elements(jax_on_device: None) -> None:
    """Several of them share a byte, which other libraries do not know."""
    array = JaxArray("int4")
    assert jax_offers.offer(array, lambda index: 0, False) is NotImplemented
    assert array.streams == []


@pytest.fixture
def from_dlpack(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let JAX take one capsule, for the stream that it names at that moment."""
    results: list[Any] = [jax.numpy.ones((3, 4))]

    def share(producer: Any) -> Any:
        assert producer.__dlpack_device__() == (CUDA, 1)
        producer.__dlpack__(stream=JAXS, max_version=(1, 3))
        return results[-1]

    monkeypatch.setattr(jax_offers, "_from_dlpack", lambda: share)
    return results


@pytest.mark.parametrize("stream", [TORCHS, JAXS])
def test_torch_to_jax(streams: Streams, from_dlpack: list[Any], stream: int) -> None:
    """The stream that JAX names waits for torch's, unless it is the same."""
    streams.torchs = stream
    value = OnDevice(torch.ones(3, 4), index=1)
    value.__dlpack_device__ = lambda: (CUDA, 1)  # type: ignore[attr-defined]
    assert jax_offers.adopt(torch_offers.offer, value) is from_dlpack[-1]
    assert streams.waits == ([] if stream == JAXS else [f"{JAXS} waits for {stream} on 1"])


def test_jax_refuses_what_is_not_offered(streams: Streams, from_dlpack: list[Any]) -> None:
    """The refusal reaches JAX as the protocol's own, and the plan is made then."""
    value = OnDevice(torch.ones(3, 4)[:0], index=1)
    value.__dlpack_device__ = lambda: (CUDA, 1)  # type: ignore[attr-defined]
    with pytest.raises(BufferError, match="nothing is offered"):
        jax_offers.adopt(torch_offers.offer, value)
    assert hand_off(jax_offers.adopt, torch_offers.offer)(value) is NotImplemented


def test_jax_is_asked_for_nothing_of_the_host(streams: Streams) -> None:
    """What lies on the host costs one look at its device."""
    assert jax_offers.adopt(torch_offers.offer, JaxArray(device_type=1)) is NotImplemented


@pytest.mark.parametrize(
    ("guard", "make"),
    [
        ("order", lambda: torch.ones(4, 3).t()),
        ("address", lambda: torch.ones(13)[1:].view(3, 4)),
        ("64 bits", lambda: torch.ones(3, 4, dtype=torch.int64)),
    ],
)
def test_jax_adopts_only_what_it_computes_with(
    streams: Streams, from_dlpack: list[Any], guard: str, make: Callable[[], Any]
) -> None:
    """XLA takes addresses that are multiples of 16 bytes, keeps other orders, and narrows 64 bits."""
    value = OnDevice(make(), index=1)
    value.__dlpack_device__ = lambda: (CUDA, 1)  # type: ignore[attr-defined]
    assert hand_off(jax_offers.adopt, torch_offers.offer)(value) is NotImplemented
    strides, address = ((16, 4), 4) if guard == "address" else ((4, 12), 0)
    array = Array(strides=strides, ptr=0x7F0000000000 + address)
    if guard != "64 bits":
        assert cupy_offers.offer(array, lambda index: JAXS, True, 16) is NotImplemented
        assert array.streams == []


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_an_address_that_xla_refuses_is_copied_by_its_own_framework(
    loaded: interop.Interop, monkeypatch: pytest.MonkeyPatch, framework: str
) -> None:
    """The step that shares declines it before JAX sees it, and the next one copies it first."""
    tensor = torch.arange(13.0)[1:]

    class Producer:
        def __dlpack_device__(self) -> tuple[int, int]:
            return CUDA, 0

        def __dlpack__(self, **_: object) -> Any:
            return capsule_of(tensor)

    monkeypatch.setattr(jax.dlpack, "from_dlpack", lambda producer: producer.__dlpack__())
    with pytest.raises(Declined, match="not aligned to 16 bytes"):
        jax_dense.from_dlpack(Producer())
    spec = make_spec(framework, "float32", device="cuda:0", shape=(12,))
    loaded.plan(spec, "jax")
    planner, declined = loaded._planner, set()
    labels = []
    for _ in range(8):
        route = planner.route(spec, Request(("jax",)), frozenset(declined))
        if route is None:
            break
        labels.append([step.label for step in route[1]])
        declined.add(next(s for s in route[1] if s.after.format == "jax").origin)
    assert labels[0] == ["jax_from_dlpack"]
    assert ["jax_copy_from_dlpack"] in labels

    copied: list[Any] = []
    monkeypatch.setattr(
        jax_dense.interop, "convert", lambda value, like, copy: copied.append(like) or "copied"
    )
    monkeypatch.setattr(jax_dense, "from_dlpack", lambda value: value)
    assert jax_dense.copy_from_dlpack(tensor) == "copied"
    assert copied[0] is tensor


# ---------------------------------------------------------------------- the interface


@pytest.mark.usefixtures("driver")
def test_cupy_adopts_no_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of such an address CuPy knows no device, and the next kernel that reads it would fail."""
    memory = SimpleNamespace(device_id=-2)
    monkeypatch.setattr(cupy.cuda, "UnownedMemory", lambda address, nbytes, owner: memory)
    value = Shown(np.zeros(3, "float32"))
    for adopt in (cupy_offers.adopt_interface, cupy_offers.copy_adopted_interface):
        assert hand_off(adopt, interface_offers.offer)(value) is NotImplemented


class Shown:
    """A value with ``__cuda_array_interface__``, which notes how often that is asked for."""

    def __init__(self, array: Any, **entries: Any) -> None:
        self.looks = 0
        self.array = array
        address = array.__array_interface__["data"][0]
        own = {"shape": array.shape, "typestr": array.dtype.str, "data": (address, False)}
        self._entries = {"version": 3, "strides": None, "stream": None, **own, **entries}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.looks += 1
        return self._entries


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, streams: Streams) -> None:
    """Let the driver find all memory on the second device, where CuPy works on a stream."""
    runtime = cupy.cuda.runtime
    stream = SimpleNamespace(ptr=CUPYS, __cuda_stream__=lambda: (0, CUPYS))
    found = SimpleNamespace(device=1)
    monkeypatch.setattr(runtime, "pointerGetAttributes", lambda address: found)
    memory = cupy.cuda.UnownedMemory

    def unowned(address: int, nbytes: int, owner: Any, index: int = -1) -> Any:
        # Without an index CuPy asks the driver, which is not here.
        return memory(address, nbytes, owner, found.device if index < 0 else index)

    monkeypatch.setattr(cupy.cuda, "UnownedMemory", unowned)
    monkeypatch.setattr(hand_offs, "working", lambda device, named: nullcontext(stream))
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: index)

    def asarray(value: Any) -> Any:
        entries = value.__cuda_array_interface__
        memory = cupy.cuda.UnownedMemory(entries["data"][0], 1 << 10, value, 1)
        pointer = cupy.cuda.MemoryPointer(memory, 0)
        return cupy.ndarray(entries["shape"], entries["typestr"], pointer, entries["strides"])

    monkeypatch.setattr(cupy, "asarray", asarray)


@pytest.mark.usefixtures("driver")
def test_a_warm_hand_off_looks_at_an_interface_once() -> None:
    """CuPy gets the memory, shape, dtype and strides, and holds the value, from one look."""
    mine = interop.Interop()
    numbers = np.arange(12.0, dtype="float32").reshape(3, 4)
    for array in (numbers, numbers, numbers[:, ::2], numbers.T, np.int16([1, 2])):
        value = Shown(array, strides=None if array.flags.carray else array.strides)
        result = mine.convert(value, to="cupy")
    assert value.looks == 1
    assert result.data.ptr == array.__array_interface__["data"][0]
    assert (result.shape, result.dtype, result.strides) == (array.shape, array.dtype, array.strides)
    assert result.data.device_id == 1
    loan = result.data.mem._owner
    assert isinstance(loan, loans._Loan)
    assert loan._lent.array is value


def calls_of(function: Callable[[], Any]) -> int:
    """Return how many functions of Python's one call enters."""
    entered: list[str] = []
    sys.setprofile(lambda frame, event, _: entered.append(event) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(entered)


@pytest.mark.usefixtures("driver")
def test_a_warm_interface_takes_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from dtype, shape and strides is worked out once: the pointer alone is checked."""
    monkeypatch.setattr(torch, "as_tensor", lambda memory, device: memory)
    monkeypatch.setattr(cuda, "device_of", lambda address: 0)
    for adopt in (cuda.adopt_interface, cupy_offers.adopt_interface):
        path = hand_off(adopt, interface_offers.offer)
        value, other = Shown(np.ones((3, 4), "float32")), Shown(np.ones((3, 4), "float32"))
        assert path(value) is not NotImplemented
        looks = other.looks
        assert calls_of(lambda path=path, other=other: path(other)) <= 14
        assert other.looks == looks + 1


@pytest.mark.usefixtures("jax_on_device")
def test_warm_hand_offs_take_few_calls(
    streams: Streams, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked twice, and nothing is made to be thrown away, on any way between three."""
    made = jax.numpy.ones((3, 4))
    monkeypatch.setattr(jax, "Array", JaxArray)
    monkeypatch.setattr(cupy_offers, "_current_device", lambda: 1)

    def share(producer: Any) -> Any:
        producer.__dlpack_device__(), producer.__dlpack__(stream=JAXS)
        return made

    monkeypatch.setattr(jax_offers, "_from_dlpack", lambda: share)
    array, value = Array(), JaxArray()
    array.__dlpack_device__ = lambda: (CUDA, 1)  # type: ignore[attr-defined]
    for path, given, most in (
        (hand_off(torch_offers.adopt, cupy_offers.offer), array, 16),
        (hand_off(torch_offers.adopt, jax_offers.offer), value, 16),
        (hand_off(cupy_offers.adopt, jax_offers.offer), value, 20),
        (hand_off(jax_offers.adopt, cupy_offers.offer), array, 24),
    ):
        assert path(given) is not NotImplemented
        assert calls_of(lambda path=path, given=given: path(given)) <= most


def test_torch_adopts_an_interface_from_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch gets the entries that were checked, and the device that the driver names."""
    taken: list[Any] = []

    def as_tensor(memory: Any, *, device: Any) -> Any:
        taken.append((memory.__cuda_array_interface__, device))
        return torch.zeros(3)

    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    monkeypatch.setattr(cuda, "device_of", lambda address: 1)
    value = Shown(np.zeros(3, "float32"))
    assert cuda.adopt_interface(interface_offers.offer, value).shape == (3,)
    assert value.looks == 1
    entries, device = taken[0]
    assert entries["data"][0] == value.array.ctypes.data
    assert device == torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("guard", "entries"),
    [
        ("read-only", {"data": (0x7F0000000000, True)}),
        ("masked", {"mask": object()}),
        ("byte order", {"typestr": ">f4"}),
        ("alignment", {"data": (0x7F0000000002, False)}),
        ("backwards", {"strides": (-4,)}),
        ("no elements", {"shape": (0,), "data": (0, False)}),
        ("no address", {"data": (16, False)}),
        ("beyond all memory", {"data": (2**64, False)}),
        ("no number", {"typestr": "|V4"}),
        ("steps between elements", {"strides": (6,)}),
        ("no stream", {"stream": 0}),
        ("version", {"version": 1}),
    ],
)
def test_an_odd_interface_is_not_offered(guard: str, entries: dict[str, Any]) -> None:
    """Each guard has a value that needs it."""
    value = Shown(np.zeros(3, "float32"), **entries)
    assert interface_offers.offer(value) is NotImplemented


def test_a_unit_is_not_offered() -> None:
    """The numbers of a quantity stand for others, and a policy may forbid to drop the unit."""
    value = Shown(np.zeros(3, "float32"))
    assert interface_offers.offer(value) is value._entries
    value.units = "m"  # type: ignore[attr-defined]
    assert interface_offers.offer(value) is NotImplemented


@together(
    "adopt, entries",
    [
        (cuda.adopt_interface, {"data": (8, False)}),
        (cuda.adopt_interface, {"version": 1}),
        (cupy_offers.adopt_interface, {"stream": 7}),
    ],
)
def test_an_interface_that_needs_more_is_left_to_the_plan(
    driver: None, adopt: Any, entries: dict[str, Any]
) -> None:
    """The planned route alone names a value that cannot be, and waits for the stream of another."""
    path = hand_off(adopt, interface_offers.offer)
    assert path(Shown(np.zeros(3, "float32"), **entries)) is NotImplemented
