"""CUDA hand-offs without a device: which stream waits for which, what is kept alive, and until when.

Streams are stood in for by objects that note what they are asked. What only a device can show is
tested in tests/gpu.
"""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop._request.request import Request
from interop.errors import BadRequestError, DeviceError, HandOffError, RefusedError
from interop.kit import driver as calls
from interop.plugin import Declined, make_spec
from tests.cases import together
from tests.cuda_driver import CudaDriver
from tests.toys import Box, toy

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")

from interop_plugins.cupy import dense as cupy_dense  # noqa: E402
from interop_plugins.cupy import hand_offs, loans  # noqa: E402
from interop_plugins.cupy import streams as cupy_streams  # noqa: E402
from interop_plugins.quantized import components  # noqa: E402
from interop_plugins.torch import cuda, dense, quantized, streams  # noqa: E402

ADDRESS = 0x7F0000000000


#: The handles of the events that have not been destroyed.
living: list[int] = []


class Stream:
    """A stream that notes what is recorded on it, and what it waits for."""

    def __init__(self, name: str, log: list[str], handle: int = 7) -> None:
        self.name, self.log = name, log
        self.ptr = self.cuda_stream = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.ptr)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def record_event(self) -> Event:
        self.log.append(f"record on {self.name}")
        return Event(self)

    record = record_event

    def wait_event(self, event: Event) -> None:
        self.log.append(f"{self.name} waits for {event.stream.name}")

    def wait_stream(self, stream: Stream) -> None:
        self.wait_event(Event(stream))

    def synchronize(self) -> None:
        self.log.append(f"the host waits for {self.name}")


class Event:
    """What a stream has recorded. As in CuPy, nobody can wait for it once nothing holds it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.ptr = stream.ptr
        living.append(self.ptr)

    def __del__(self) -> None:
        living.remove(self.ptr)

    def synchronize(self) -> None:
        self.stream.synchronize()


@pytest.fixture
def log(cuda_driver: CudaDriver) -> list[str]:
    """Return what the streams and the driver have been asked, in order."""
    return cuda_driver.log


@pytest.fixture
def torch_streams(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    """Let torch have a current stream and a default one; a stream by its handle is made external."""

    def external(handle: int, *, device: object) -> Stream:
        assert handle > 1, "0 makes torch take a stream of its own, and for 1 it raises"
        return Stream(f"external {handle}", log, handle)

    @contextmanager
    def current(stream: Stream) -> Iterator[None]:
        log.append(f"on {stream.name}")
        yield
        log.append(f"off {stream.name}")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("torch's", log))
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: Stream("the default", log, 0))
    monkeypatch.setattr(torch.cuda, "ExternalStream", external)
    monkeypatch.setattr(torch.cuda, "stream", current)


class Place:
    """CuPy's object for a device, which may be made current."""

    id = 0

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def on_device(shape: tuple[int, ...] = (3, 4), dtype: Any = "float32", owner: Any = None) -> Any:
    """Return a CuPy array over an address that is never read."""
    memory = cupy.cuda.UnownedMemory(ADDRESS, 1 << 20, owner, 0)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def interface(stream: int | None = None, address: int = ADDRESS) -> Any:
    """Return a value that shows memory by ``__cuda_array_interface__``, and in no other way."""
    entries = {"shape": (2, 3), "typestr": "<f8", "data": (address, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**entries, "stream": stream})


# ---------------------------------------------------------------------- torch streams


@together(
    "given, name",
    [
        *((legacy, "the default") for legacy in (0, 1, Stream("CuPy's null", [], 0))),
        *((other, "external 99") for other in (99, Stream("side", [], 99))),
        (2, "external 2"),
    ],
)
def test_torch_finds_every_stream(torch_streams: None, given: Any, name: str) -> None:
    """All names of the legacy default stream are torch's; other handles are external streams."""
    assert streams.stream_on(0, given).name == name


def test_torch_works_on_a_named_stream_between_two_waits(
    torch_streams: None, log: list[str]
) -> None:
    """The named stream starts after the current one, which then waits for it."""
    with streams.working(torch.device("cuda", 0), 99):
        log.append("work")
    before, after = "99 waits for 7", "7 waits for 99"
    assert log == [before, "on external 99", "work", "off external 99", after]


def test_the_current_stream_waits_although_a_step_fails(
    torch_streams: None, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a step has queued before it runs out of memory is waited for in both libraries."""
    with pytest.raises(MemoryError), streams.working(torch.device("cuda", 0), 99):
        raise MemoryError
    assert log[-1] == "7 waits for 99"

    current, named = Stream("CuPy's", log, 8), Stream("named", log, 99)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: current)
    monkeypatch.setattr(cupy_streams, "_cupy_stream", lambda stream, current: named)
    with pytest.raises(MemoryError), cupy_streams.working(Place(), named):
        raise MemoryError
    assert log[-1] == "8 waits for 99"

    value = SimpleNamespace(data=SimpleNamespace(device=None, mem=SimpleNamespace()))
    value.data.mem._owner = loans._Loan(loans._Lent(None, None, None))
    monkeypatch.setattr(loans, "working", lambda device, stream: nullcontext(named))
    with pytest.raises(MemoryError), loans.reading(value, None):
        raise MemoryError
    assert log[-1] == "the host waits for named"


@pytest.mark.parametrize(
    ("device", "stream", "expected"),
    [(0, None, []), (1, None, ["device 1"]), (1, 99, ["on external 99", "off external 99"])],
)
@pytest.mark.usefixtures("torch_streams")
def test_memory_is_shared_on_its_own_device(
    log: list[str],
    monkeypatch: pytest.MonkeyPatch,
    device: int,
    stream: int | None,
    expected: list[str],
) -> None:
    """The device of the memory is made current, because CuPy waits for its stream of that one."""

    def made_current(index: int) -> Any:
        log.append(f"device {index}")
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", made_current)
    with streams.sharing(device, stream):
        pass
    assert log == expected


def test_cupy_waits_for_what_torch_reads(
    torch_streams: None, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CuPy producer's current stream waits for torch's, and the host does not."""
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda index: Stream("CuPy's", log, 99))
    streams.let_wait(on_device(), torch.device("cuda", 0))
    assert log == ["99 waits for 7"]


def test_the_host_waits_where_no_producer_can(torch_streams: None, log: list[str]) -> None:
    """Of any other producer the stream is not known, so the host waits."""
    streams.let_wait(object(), torch.device("cuda", 0))
    assert log == ["the host waits for torch's"]


# ---------------------------------------------------------------------- copies in torch


@pytest.mark.parametrize("way", ["copy", "fill"])
def test_torch_copies_what_is_shared_before_its_producer_goes_on(
    log: list[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The producer is made to wait after the copy has been queued, not before."""
    shared = torch.arange(3.0)

    def share(value: object, *, stream: object) -> Any:
        log.append(f"share on {stream}")
        return shared

    noted = "cast" if way == "copy" else "write"
    function = getattr(cuda, noted)
    monkeypatch.setattr(cuda, noted, lambda *a, **k: (log.append("copy"), function(*a, **k))[1])
    monkeypatch.setattr(cuda, "let_wait", lambda value, device: log.append(f"{value} waits"))
    monkeypatch.setattr(cuda, "working", lambda device, stream: nullcontext())
    if way == "copy":
        result = cuda.copy_shared(share, "it", dtype="int32", stream=5)
    else:
        result = torch.zeros(3, dtype=torch.int32)
        cuda.fill_from_shared(share, result, "it", stream=5)
    assert log == ["share on 5", "copy", "it waits"]
    assert result.tolist() == [0, 1, 2]
    assert result.dtype == torch.int32
    assert result.data_ptr() != shared.data_ptr()


@pytest.mark.parametrize(
    ("there", "expected"), [(True, ["the host waits for torch's"]), (False, [])]
)
@pytest.mark.usefixtures("torch_streams")
def test_a_move_of_torchs_between_devices_is_complete(
    monkeypatch: pytest.MonkeyPatch,
    log: list[str],
    there: bool,
    expected: list[str],
) -> None:
    """torch does not wait for a copy from device to device, so the step does; for others torch has."""
    monkeypatch.setattr(dense, "check_present", lambda module, device: None)
    result = SimpleNamespace(is_cuda=True, device=1)
    value = SimpleNamespace(
        is_cuda=there, layout=torch.strided, nbytes=48, to=lambda *a, **k: result
    )
    assert dense.move(value, device="cuda:1") is result
    assert log == expected


# ---------------------------------------------------------------------- the interface, to torch


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the devices on which torch has taken memory by its interface; it lies on cuda:1."""
    devices: list[Any] = []

    def as_tensor(memory: Any, *, device: Any) -> Any:
        assert memory.__cuda_array_interface__["data"][0] == ADDRESS
        devices.append(device)
        return torch.zeros(2, 3)

    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    monkeypatch.setattr(cuda, "device_of", lambda address: 1)
    return devices


@together(
    "shown, named, waits",
    [
        (None, None, []),
        (1, None, ["7 waits for 1"]),
        (99, None, ["7 waits for 99"]),
        (1, 55, ["55 waits for 1"]),
    ],
)
def test_torch_takes_memory_where_it_lies(
    *,
    torch_streams: None,
    taken: list[Any],
    log: list[str],
    shown: int | None,
    named: int | None,
    waits: list[str],
) -> None:
    """The pointer decides about the device; the named stream waits for that of the interface."""
    log.clear()
    cuda.from_cuda_array_interface(interface(shown), stream=named)
    assert taken.pop() == torch.device("cuda", 1)
    assert [entry for entry in log if "waits" in entry] == waits


def test_the_device_of_memory_is_asked_of_the_driver(cuda_driver: CudaDriver) -> None:
    """Memory that the driver finds on no device is refused with its address."""
    cuda_driver.owners[ADDRESS] = 3
    assert cuda._device_at(ADDRESS) == 3
    cuda_driver.owners.clear()
    with pytest.raises(HandOffError, match=r"0x7f0000000000, which the driver finds on no CUDA"):
        cuda._device_at(ADDRESS)


def test_without_a_driver_the_step_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no driver is installed, the step leaves the value to other routes."""
    monkeypatch.setattr(calls, "_LIBRARY", "libnowhere.so")
    monkeypatch.setattr(calls, "_library", calls._library.__wrapped__)
    monkeypatch.setattr(calls, "_function", calls._function.__wrapped__)
    for ask in (lambda: cuda._device_at(ADDRESS), lambda: calls.queue_behind(1, 2, 0)):
        with pytest.raises(Declined, match="there is no CUDA driver"):
            ask()


def test_the_drivers_functions_get_numbers_of_the_right_width(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Addresses of 64 bits and sizes arrive as they are, and errors have their names."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed here")
    library = tmp_path / "libcuda.so.1"
    source = tmp_path / "driver.c"
    source.write_text(_DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(calls, "_LIBRARY", str(library))
    for name in ("_library", "_function", "_context", "own_stream"):
        monkeypatch.setattr(calls, name, cache(getattr(calls, name).__wrapped__))
    monkeypatch.setattr(calls, "_events", calls._Handles("cuEventCreate", calls._UNTIMED))
    monkeypatch.setattr(calls, "_streams", calls._Handles("cuStreamCreate", 1))
    out, there = (ctypes.create_string_buffer(16) for _ in range(2))
    there.raw = bytes(range(16))
    calls.fetch(ctypes.addressof(out), ctypes.addressof(there), 16, 1)
    assert out.raw == there.raw
    out.raw = b"x" * 16
    calls.send(ctypes.addressof(there), ctypes.addressof(out), 16, 1)
    assert there.raw == out.raw
    calls.queue_behind(0x7FFF_1234_5678_9ABC, 2, 1)
    calls.lock_pages(0x7FFF_0000_0000_1000, 2**40, 1)
    calls.unlock_pages(0x7FFF_0000_0000_1000, 1)
    assert calls.device_of(0x7FFF_0000_0000_2000) == 5
    assert calls.device_of(16) is None
    with pytest.raises(RuntimeError, match=r"cuMemHostUnregister failed: CUDA_ERROR_TEST \(713\)"):
        calls.unlock_pages(16, 1)


#: A driver that checks what it gets. The types are those of cuda.h.
_DRIVER = """
#include <stddef.h>
#include <string.h>
typedef unsigned long long CUdeviceptr;
static long depth;
int cuDeviceGet(int *device, int ordinal) { *device = ordinal + 40; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = (void *)0x7fff00000000aaaaULL; return device == 41 ? 0 : 101; }
int cuCtxPushCurrent_v2(void *context) {
    depth++; return context == (void *)0x7fff00000000aaaaULL ? 0 : 201; }
int cuCtxPopCurrent_v2(void **context) { *context = 0; depth--; return 0; }
int cuStreamCreate(void **stream, unsigned int flags) {
    *stream = (void *)0x7fff00000000bbbbULL; return flags == 1 && depth == 1 ? 0 : 1; }
int cuEventCreate(void **event, unsigned int flags) {
    *event = (void *)0x7fff00000000ccccULL; return flags == 2 && depth == 1 ? 0 : 1; }
int cuEventRecord(void *event, void *stream) {
    return event == (void *)0x7fff00000000ccccULL && stream == (void *)2 ? 0 : 400; }
int cuStreamWaitEvent(void *stream, void *event, unsigned int flags) {
    return stream == (void *)0x7fff123456789abcULL && event == (void *)0x7fff00000000ccccULL
        && !flags ? 0 : 400; }
int cuStreamSynchronize(void *stream) {
    return stream == (void *)0x7fff00000000bbbbULL && depth == 1 ? 0 : 400; }
int cuMemHostRegister_v2(void *address, size_t nbytes, unsigned int flags) {
    return address == (void *)0x7fff000000001000ULL && nbytes == 1ULL << 40 && flags == 1 ? 0 : 1; }
int cuMemHostUnregister(void *address) {
    return address == (void *)0x7fff000000001000ULL ? 0 : 713; }
int cuMemcpyDtoHAsync_v2(void *out, CUdeviceptr there, size_t nbytes, void *stream) {
    memcpy(out, (void *)there, nbytes); return stream == (void *)0x7fff00000000bbbbULL ? 0 : 400; }
int cuMemcpyHtoDAsync_v2(CUdeviceptr there, const void *source, size_t nbytes, void *stream) {
    memcpy((void *)there, source, nbytes);
    return stream == (void *)0x7fff00000000bbbbULL ? 0 : 400; }
int cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
    *(int *)data = 5; return attribute == 9 && address == 0x7fff000000002000ULL ? 0 : 1; }
int cuGetErrorName(int status, const char **name) {
    *name = status == 713 ? "CUDA_ERROR_TEST" : "CUDA_ERROR"; return 0; }
"""


@pytest.mark.parametrize("request_", [{}, {"copy": True}, {"dtype": "float32"}], ids=str)
def test_the_interface_reaches_cupy_by_cupy(request_: dict[str, Any]) -> None:
    """CuPy reads the interface itself, although torch is imported as well."""
    route = interop.plan(interface(1), to="cupy", **request_)
    assert {step.after.format for step in route.steps} == {"cupy"}


def test_a_protocol_of_an_instance_counts() -> None:
    """An interface set on an object, not on its class, is recognised, legacy stream and all."""
    assert interop.spec(interface(1)) == make_spec(
        "cuda_array_interface", "float64", device="cuda", shape=(2, 3)
    )


# ---------------------------------------------------------------------- loans to CuPy


@pytest.fixture
def tensor(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> Any:
    """Return a torch tensor, whose current stream has the handle 7."""
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("torch's", log))
    return torch.zeros(3, 4)


class Made(cupy.cuda.Stream):  # type: ignore[misc]
    """A stream that CuPy has made, as far as can be told without a device. It is never destroyed."""

    def __init__(self, handle: int = 99) -> None:
        super().__init__(null=True)
        self.ptr = handle

    def __del__(self) -> None: ...


class TorchStream:
    """A torch stream: of its own, or over a handle."""

    def __init__(self, cuda_stream: int, stream_id: int) -> None:
        self.cuda_stream, self.stream_id = cuda_stream, stream_id

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.cuda_stream)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> set[int]:
    """Note what CUDA is asked, by the handles of streams; return those that capture a graph."""
    capturing: set[int] = set()

    def synchronize() -> None:
        if capturing:
            raise cupy.cuda.runtime.CUDARuntimeError(900)
        log.append("the host waits for the device")

    runtime = cupy.cuda.runtime
    monkeypatch.setattr(runtime, "streamIsCapturing", lambda stream: stream in capturing)
    monkeypatch.setattr(runtime, "deviceSynchronize", synchronize)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: cupy.cuda.Stream.null)
    monkeypatch.setattr(torch.cuda, "Stream", TorchStream)
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda ptr, device: TorchStream(ptr, ptr))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: TorchStream(7, 3))
    monkeypatch.setattr(loans, "own_stream", lambda index: 55)
    monkeypatch.setattr(loans, "_put_off", [])
    return capturing


class Lendable:
    """A tensor that notes on which stream it is kept; `owner` is whose allocator has made it."""

    def __init__(self, log: list[str], owner: str) -> None:
        self._log, self._owner = log, owner

    def untyped_storage(self) -> Any:
        return SimpleNamespace(resizable=lambda: self._owner != "another")

    def record_stream(self, stream: TorchStream) -> None:
        assert self._owner != "another", "torch skips such memory, or raises"
        if self._owner == "a pool":
            raise RuntimeError("ptr not found in ptr_info")
        self._log.append(f"kept for {stream.cuda_stream}")


def lent(log: list[str], stream: Any, owner: str = "torch") -> loans._Loan:
    """Return the loan that a stream takes of a tensor."""
    device = SimpleNamespace(device=nullcontext(), device_id=0)
    kept = stream if cupy_streams.lasts(stream) else None
    return loans._Loan(loans._Lent(SimpleNamespace(data=device), Lendable(log, owner), kept))


def test_no_loan_on_torchs_own_stream(tensor: Any) -> None:
    """Where CuPy works on torch's stream, its array is handed out as it was made."""
    array = on_device()
    assert loans.lend(array, tensor, Stream("the same", [])) is array


def test_a_loan_changes_nothing_of_the_array(tensor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array with a loan has the memory, dtype, shape and strides of the one without."""
    monkeypatch.setattr(loans, "_give_back", lambda lent: None)
    plain = on_device((6, 8), "int16")
    for array in (plain, plain.T, plain[::-1, 1::2], plain[2:, 0]):
        lent = loans.lend(array, tensor, Stream("CuPy's", [], 99))
        assert lent is not array
        assert type(lent) is cupy.ndarray
        assert lent.data.ptr == array.data.ptr
        assert (lent.dtype, lent.shape, lent.strides) == (array.dtype, array.shape, array.strides)
        assert lent.data.device_id == array.data.device_id
    empty = plain[:0]
    assert loans.lend(empty, tensor, Stream("CuPy's", [], 99)) is empty


def test_a_loan_keeps_the_stream_and_the_memory(
    tensor: Any, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    """The stream lives as long as the last view of the array, and the memory goes back before it."""
    monkeypatch.setattr(loans, "_give_back", lambda lent: log.append("given back"))
    stream = Made()
    weakref.finalize(stream, log.append, "stream gone")
    lent = loans.lend(on_device(), tensor, stream)
    del stream, tensor
    part = lent[1:]
    del lent
    gc.collect()
    assert log == []
    del part
    assert log == ["given back", "stream gone"]


def test_memory_goes_back_on_a_stream_of_torchs(driver: set[int], log: list[str]) -> None:
    """torch's allocator is shown a stream that never dies, which waits for CuPy's; never CuPy's."""
    loan = lent(log, Made(99))
    assert log == []
    del loan
    assert log == ["55 waits for 99", "kept for 55"]


@pytest.mark.parametrize("owner", ["another", "a pool"])
def test_memory_of_others_is_waited_for(
    driver: set[int], log: list[str], monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    """torch's allocator cannot keep what it has not made, so that the host waits for its reader."""
    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    monkeypatch.setattr(Made, "synchronize", lambda stream: log.append(f"waits for {stream.ptr}"))
    loan = lent(log, Made(99), owner)
    del loan
    assert log[-1] == "waits for 99"
    assert "kept for 55" not in log
    assert (errors, loans._put_off) == ([], [])


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_a_loan_that_fails_takes_no_other_with_it(
    driver: set[int], log: list[str], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """What cannot be given back, such as after a capture that was invalidated, waits for its turn."""
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: errors.append(args.exc_type))
    driver.update({97, 98, 99})
    for handle in (97, 98, 99):
        loan = lent(log, Made(handle))
        del loan
    assert len(loans._put_off) == 3
    driver.clear()

    def asked(handle: int) -> bool:
        if handle == 98:
            raise error(901)
        return False

    monkeypatch.setattr(cupy.cuda.runtime, "streamIsCapturing", asked)
    loan = lent(log, Made(96))
    del loan
    assert errors == ([] if error is RuntimeError else [MemoryError])
    monkeypatch.setattr(cupy.cuda.runtime, "streamIsCapturing", lambda handle: False)
    loan = lent(log, Made(95))
    del loan
    assert {line for line in log if "waits" in line} == {
        f"55 waits for {handle}" for handle in (95, 96, 97, 98, 99)
    }
    assert loans._put_off == []


def external(stream: Any) -> Any:
    """Return CuPy's object over the handle of another stream, which it refers to."""
    return cupy.cuda.Stream.from_external(stream)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (Made, True),
        (lambda: cupy.cuda.Stream.null, True),
        (lambda: external(Made()), True),
        (lambda: external(TorchStream(99, 3)), True),
        (lambda: TorchStream(99, 3), True),
        (lambda: TorchStream(0, 0), True),
        (lambda: TorchStream(99, 99), False),
        (lambda: external(TorchStream(99, 99)), False),
        (lambda: external(cupy_streams._Handle(99)), False),
        (lambda: external(SimpleNamespace(__cuda_stream__=lambda: (0, 99))), False),
        (lambda: Stream("another's", [], 99), False),
        (lambda: 99, False),
        (lambda: cupy.cuda.Stream.ptds, False),
    ],
    ids=[
        *("CuPy's", "legacy", "over CuPy's", "over torch's", "torch's", "torch's default"),
        *("torch's over a handle", "over torch's over a handle", "over a number", "over another's"),
        *("without an owner", "number", "per thread"),
    ],
)
def test_it_is_known_which_streams_last(driver: set[int], make: Any, expected: bool) -> None:
    """Only CuPy's and torch's own streams are there as long as their objects are."""
    assert cupy_streams.lasts(make()) is expected


def test_a_handle_is_not_touched_after_the_call(driver: set[int], log: list[str]) -> None:
    """Of a stream that may be gone, nothing is asked when memory goes back: the host waits."""
    given = cupy_streams._cupy_stream(99, cupy.cuda.Stream.null)
    array = loans.lend(on_device(), torch.zeros(3, 4), given)
    loan = array.data.mem._owner
    assert loan._lent.stream is None
    del array, loan
    loan = lent(log, given)
    del given
    log.clear()
    del loan
    assert log == ["the host waits for the device"]


@pytest.mark.parametrize("handle", [99, None], ids=["CuPy's", "number"])
def test_memory_is_kept_while_a_graph_is_captured(
    driver: set[int], log: list[str], handle: int | None
) -> None:
    """Nobody waits during a capture: the memory goes back with the next that does after it."""
    make = lambda: lent(log, 1234 if handle is None else Made(handle))  # noqa: E731
    driver.add(handle or 7)  # the stream of the loan, or torch's current one
    loan = make()
    del loan
    assert log == []
    driver.clear()
    loan = make()
    del loan
    once = ["55 waits for 99", "kept for 55"]
    assert log == (["the host waits for the device"] if handle is None else once) * 2
    assert loans._put_off == []


def test_memory_is_kept_if_the_device_cannot_be_waited_for(
    driver: set[int], log: list[str]
) -> None:
    """During a capture that another thread makes, CUDA refuses, and nothing is given back."""
    driver.add(88)
    loan = lent(log, 1234)
    del loan
    assert log == []
    assert len(loans._put_off) == 1


def test_a_forked_child_gives_nothing_back(driver: set[int], log: list[str]) -> None:
    """A loan that a child has inherited says nothing to CUDA, which works in the parent alone."""
    loan = lent(log, Made())
    loan._process += 1
    del loan
    assert log == []


def test_nothing_is_given_back_when_the_interpreter_ends(driver: set[int], log: list[str]) -> None:
    """A loan that ends with the interpreter asks nothing of modules that may be gone."""
    loan = lent(log, Made())
    loan.__del__(is_finalizing=lambda: True)
    assert log == []


@pytest.mark.parametrize("lender", ["torch", "another", None], ids=str)
def test_what_reads_lent_memory_lets_the_lender_wait(
    tensor: Any, monkeypatch: pytest.MonkeyPatch, log: list[str], lender: str | None
) -> None:
    """After a step of CuPy's, torch's stream waits for it; for other lenders the host does."""
    monkeypatch.setattr(loans, "_give_back", lambda lent: None)
    current = Stream("CuPy's", log, 99)
    monkeypatch.setattr(loans, "working", lambda device, stream: nullcontext(current))
    producer = tensor if lender == "torch" else object()
    array = on_device() if lender is None else loans.lend(on_device(), producer, current)
    for value in (array[1:], SimpleNamespace(data=array)):  # a view, and a sparse array's values
        log.clear()
        with loans.reading(value, None):
            log.append("work")
        waits = {"torch": ["7 waits for 99"], "another": ["the host waits for CuPy's"], None: []}
        assert log == ["work", *waits[lender]]


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
@pytest.mark.parametrize("fails", [False, True], ids=["copied", "out of memory"])
@pytest.mark.parametrize(
    ("producer", "waits"),
    [
        ("torch on 7", ["7 waits for 99"]),
        ("torch on 99", []),
        ("another", ["the host waits for CuPy's"]),
    ],
)
def test_a_copy_of_cupys_lends_nothing_beyond_the_call(
    *,
    driver: set[int],
    monkeypatch: pytest.MonkeyPatch,
    log: list[str],
    protocol: str,
    fails: bool,
    producer: str,
    waits: list[str],
) -> None:
    """The producer waits for the copy in the call: afterwards, nobody asks for the stream."""
    named = Stream("CuPy's", log, 99)

    def duplicate(order: str) -> str:
        log.append("copy")
        if fails:
            raise MemoryError
        return "the copy"

    array = SimpleNamespace(data=SimpleNamespace(device=None), copy=duplicate)
    value = torch.zeros(3) if producer.startswith("torch") else object()
    handle = 99 if producer == "torch on 99" else 7
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: TorchStream(handle, 3))
    monkeypatch.setattr(hand_offs, f"_shared_by_{protocol}", lambda value, stream: (array, named))
    monkeypatch.setattr(hand_offs, "working", lambda device, stream: nullcontext(named))
    function = hand_offs.copy_from_dlpack if protocol == "dlpack" else hand_offs.copy_from_interface
    if fails:
        with pytest.raises(MemoryError):
            function(value, stream=99)
    else:
        assert function(value, stream=99) == "the copy"
    assert log == ["copy", *waits]


def test_a_move_waits_for_both_ends(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    """The copy starts after what both devices have queued, and the host waits for its end."""
    source, target = Stream("the source", log), Stream("the target", log)
    pointer = SimpleNamespace(
        device=nullcontext(), copy_from_device_async=lambda *a: log.append(f"copy on {a[2].name}")
    )
    value = SimpleNamespace(
        data=pointer, flags=SimpleNamespace(c_contiguous=True), shape=(2,), size=2, nbytes=8
    )
    value.dtype = "float32"
    monkeypatch.setattr(cupy_dense, "device_named", lambda name: None)
    monkeypatch.setattr(cupy_dense, "working", lambda device, stream: nullcontext(target))
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: source)
    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: value)
    cupy_dense.move(value, device="cuda:1")
    assert log == [
        "record on the target",
        "the source waits for the target",
        "record on the source",
        "the target waits for the source",
        "copy on the target",
        "the host waits for the target",
    ]


# ---------------------------------------------------------------------- writes into out=


def test_numpy_is_not_written_into_what_is_no_block() -> None:
    """Gaps, and another dtype, are left to a step that can: nothing has been written by then."""
    for out in (on_device()[:, ::2], on_device((3, 2), "float64")):
        with pytest.raises(Declined):
            hand_offs.fill_from_numpy(out, np.ones((3, 2), "float32"))


# ---------------------------------------------------------------------- CuPy streams


def test_cupy_works_on_its_own_stream_objects() -> None:
    """CuPy's object is used as it is, so that whoever holds it keeps the caller's stream alive."""
    current, stream = Made(5), Made(99)
    assert cupy_streams._cupy_stream(stream, current) is stream
    assert cupy_streams._cupy_stream(1, current) is cupy.cuda.Stream.null
    assert cupy_streams._cupy_stream(5, current) is current


def test_cupy_takes_streams_of_others() -> None:
    """An object over another's handle is held; no deprecated class of CuPy's is asked for."""
    with pytest.warns(DeprecationWarning, match="ExternalStream"):
        deprecated = cupy.cuda.ExternalStream(99)
    for given in (deprecated, TorchStream(99, 3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stream = cupy_streams._cupy_stream(given, cupy.cuda.Stream.null)
        assert type(stream) is cupy.cuda.Stream
        assert stream.ptr == 99
        assert stream._foreign_stream_ref is given


def test_the_current_stream_waits_for_what_is_shared_on_another(
    monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    """One wait is enough where nothing is done on the named stream, and none on the current one."""
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: Made(5))
    assert cupy_streams.joined(Place(), Made(99)).ptr == 99
    assert log == ["5 waits for 99"]
    assert cupy_streams.joined(Place(), 5).ptr == 5
    assert log == ["5 waits for 99"]


def test_nobody_waits_for_the_stream_that_is_current(
    driver: set[int], monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    """If the caller names CuPy's current stream, by its number or its object, nothing is ordered."""
    current = Made(99)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: current)
    for given in (99, Made(99), TorchStream(99, 3)):
        with cupy_streams.working(nullcontext(), given) as stream:
            assert stream.ptr == 99
    assert log == []


@pytest.mark.parametrize(
    ("stream", "named", "expected"),
    [(2, -1, ["2 waits for 7"]), (1, 1, []), (99, 99, [])],
)
def test_a_tensor_goes_to_the_default_stream_of_a_thread(
    *,
    driver: set[int],
    monkeypatch: pytest.MonkeyPatch,
    log: list[str],
    stream: int,
    named: int,
    expected: list[str],
) -> None:
    """torch does not export to stream 2, so that stream waits for torch's by an event."""

    class Exported(torch.Tensor):  # type: ignore[misc]
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, *, stream: int | None = None, **keywords: Any) -> Any:
            log.append(f"exported to {stream}")
            return self.as_subclass(torch.Tensor).__dlpack__(stream=None, **keywords)

    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: TorchStream(7, 3))
    tensor = torch.arange(3.0).as_subclass(Exported)
    producer = hand_offs._TensorForAnyStream(tensor, negative_strides=True)
    assert "dltensor" in repr(producer.__dlpack__(stream=stream, max_version=(1, 0)))
    assert log == [*expected, f"exported to {named}"]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),  # RuntimeError
        cupy.cuda.memory.OutOfMemoryError(2**31, 0),  # a MemoryError
        MemoryError("2.00 GiB"),
    ],
)
def test_out_of_memory_is_a_memory_error(error: Exception) -> None:
    """What frameworks raise arrives as a MemoryError that names the step and says what to do."""

    def full(box: Box) -> Box:
        raise error

    instance = interop.Interop()
    instance.register(toy("a"), toy("b"), interop.Conversion("a", "b", full))
    text = r"full, .*(2\.00 GiB|2,147,483,648 bytes).*in parts"
    with pytest.raises(interop.errors.DoesNotFitError, match=text) as caught:
        instance.convert(Box("a", [1.0]), to="b")
    assert isinstance(caught.value, MemoryError)
    assert caught.value.__cause__ is error


class Managed:
    """An array in managed memory, of which DLPack knows a device type of its own."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (13, 0)

    def __dlpack__(self, **_: object) -> object:
        raise AssertionError("it was asked for, although nobody takes it")


def test_consumers_decline_memory_of_types_that_they_do_not_take() -> None:
    """torch and JAX take no managed memory by DLPack, and say so before they ask for it."""
    from interop_plugins.jax import dense as jax_dense

    for consumer in (dense.from_dlpack, jax_dense.from_dlpack):
        with pytest.raises(Declined, match=r"device type 13 \(managed memory\); copy it"):
            consumer(Managed())


def test_managed_memory_reaches_jax_by_torch(loaded: interop.Interop) -> None:
    """After JAX and torch have declined CuPy's capsule, torch shares its interface with JAX."""
    spec = make_spec("cupy", "float32", device="cuda:0", shape=(3,))
    ways = [[step.label for step in loaded.plan(spec, "jax").steps]]
    declined: set[object] = {loaded.plan(spec, "jax").steps[0].origin}
    planner = loaded._planner
    for _ in range(2):
        route = planner.route(spec, Request(("jax",)), frozenset(declined))
        assert route is not None
        ways.append([step.label for step in route[1]])
        declined.add(route[1][0].origin)
    assert ways == [
        ["jax_from_dlpack"],
        ["torch_from_dlpack", "jax_from_dlpack"],
        ["from_cuda_array_interface", "jax_from_dlpack"],
    ]


# ---------------------------------------------------------------------- integers of 64 bits


class OnDevice(np.ndarray[Any, Any]):
    """A NumPy array that has CuPy's `get`."""

    def get(self) -> np.ndarray[Any, Any]:
        return self.view(np.ndarray)


@pytest.mark.parametrize(
    ("name", "numbers", "wrong"),
    [
        ("int", [-(2**31), 0, 2**31 - 1], None),
        ("int", [0, 2**31], 2**31),
        ("int", [5, -(2**31) - 1, 2**31 - 1], -(2**31) - 1),
        ("uint", [0, 2**32 - 1], None),
        ("uint", [7, 2**32], 2**32),
        ("uint", [7, 2**64 - 1, 8], 2**64 - 1),
        ("uint", [2**63 + 5, 2**63 + 6], 2**63 + 5),
        ("int", [], None),
        ("uint", [], None),
    ],
)
@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_integers_are_halved_where_they_lie_if_they_fit(
    monkeypatch: pytest.MonkeyPatch,
    framework: str,
    name: str,
    numbers: list[int],
    wrong: int | None,
) -> None:
    """Integers of 64 bits become those of 32 if all fit; else the step declines and names one."""
    value = np.array([numbers, numbers], f"{name}64").T
    if framework == "torch":
        given, cast = torch.from_numpy(value), dense.cast_if_exact
    else:
        monkeypatch.setattr(cupy_dense, "reading", lambda value, stream: nullcontext())
        monkeypatch.setattr(cupy, "stack", lambda ends: np.stack(ends).view(OnDevice))
        given, cast = value, cupy_dense.cast_if_exact
    if wrong is not None:
        with pytest.raises(Declined, match=f"^{wrong} does not fit in {name}32"):
            cast(given, dtype=f"{name}32")
        return
    result = np.asarray(cast(given, dtype=f"{name}32"))
    assert result.dtype == f"{name}32"
    assert result.flags.c_contiguous
    assert (result == value).all()
    assert result.shape == value.shape


# ---------------------------------------------------------------------- one number


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        *(("float32", 2.5), ("bfloat16", 2.5), ("float8_e5m2", 2.5), ("bool", True)),
        *(("int64", -(2**63)), ("uint64", 2**64 - 1), ("complex64", 1.5 - 2j)),
    ],
)
def test_a_number_of_a_device_comes_without_an_array(dtype: str, number: complex) -> None:
    """A tensor without axes is asked for its number, which is the one that an array would give."""
    tensor = torch.tensor(number, dtype=getattr(torch, dtype))
    item = dense.item(tensor, device="cpu")
    assert item == number == interop.convert(tensor, to="python")
    assert type(item) is type(number)
    spec = make_spec("torch", dtype, device="cuda:0", shape=())
    assert [step.label for step in interop.plan(spec, to="python").steps] == ["item"]
    row = spec._replace(shape=(1,))
    assert next(step.label for step in interop.plan(row, to="python").steps) == "download"


# ---------------------------------------------------------------------- components on two devices


class QuantizedThere:
    """A quantized tensor on a device, which torch's plugin reads: its scale is a Python number."""

    dtype, is_cpu, device = torch.qint8, False, torch.device("meta")

    def __init__(self, axis: int | None) -> None:
        codes = torch.empty((2, 3), dtype=torch.int8, device="meta")
        self.shape, self.size, self.stride = codes.shape, codes.size, codes.stride
        self.untyped_storage, self.storage_offset = codes.untyped_storage, codes.storage_offset
        scheme = torch.per_tensor_affine if axis is None else torch.per_channel_affine
        self.qscheme, self.q_per_channel_axis = lambda: scheme, lambda: axis
        self.q_scale, self.q_zero_point = lambda: 0.5, lambda: 3
        self.q_per_channel_scales = lambda: torch.ones(2, dtype=torch.float64)
        self.q_per_channel_zero_points = lambda: torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize("axis", [None, 0])
def test_all_components_of_a_quantized_tensor_are_on_its_device(axis: int | None) -> None:
    """Scales and zero points are beside the codes, whether torch has numbers or arrays of them."""
    arrays = quantized.unpack(QuantizedThere(axis)).arrays
    assert {str(array.device) for array in arrays.values()} == {"meta"}
    assert arrays["scale"].dtype == torch.float64
    assert arrays["zero_point"].dtype == torch.int64


def _apart() -> interop.QuantizedArray:
    """Return an array with codes on a device and a scale on the host."""
    codes = torch.empty((2, 3), dtype=torch.int8, device="meta")
    return interop.QuantizedArray(codes, torch.tensor(0.5), None)


def test_components_on_two_devices_are_brought_together() -> None:
    """The codes stay where they are, and the scale comes to them."""
    value = _apart()
    assert interop.spec(value).traits == {"apart"}
    joined = components.join(value)
    assert joined.codes is value.codes
    assert {str(part.device) for part in (joined.codes, joined.scale)} == {"meta"}
    assert interop.spec(joined).traits == frozenset()


@pytest.mark.parametrize("target", ["quantized.cupy", "torch.quantized", "cupy", "numpy"])
def test_a_plan_tells_that_components_on_two_devices_move(target: str) -> None:
    """What is apart is joined first, by a transfer that callers may forbid."""
    spec = make_spec("quantized.torch", "float32", device="cuda:0", shape=(4, 4), traits={"apart"})
    spec = spec._replace(code_dtype="int8")
    route = interop.plan(spec, target)
    assert route.steps[0].label == "join"
    assert route.steps[0].effects == {"transfer"}
    for words in ({"copy": False}, {"forbid": "transfer"}):
        with pytest.raises(RefusedError) as refusal:
            interop.plan(spec, target, **words)
        assert "transfer" in refusal.value.effects


# ---------------------------------------------------------------------- what CuPy does not have


@pytest.mark.parametrize("kind", ["cuda", "rocm"])
def test_cupy_has_devices_of_the_type_that_it_was_built_for(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """CuPy takes no other name for its devices, so that no result is where nobody asked for it."""
    runtime = SimpleNamespace(
        is_hip=kind == "rocm",
        getDeviceCount=lambda: 2,
        getDevice=lambda: 0,
        CUDARuntimeError=cupy.cuda.runtime.CUDARuntimeError,
    )
    monkeypatch.setattr(cupy.cuda, "runtime", runtime)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: index)
    other = "cuda" if kind == "rocm" else "rocm"
    for suffix in ("", ":0"):
        assert cupy_streams.device_named(kind + suffix) == 0
        with pytest.raises(DeviceError, match=f"installed for {kind} here, .* name {kind}"):
            cupy_streams.device_named(other + suffix)
    assert cupy_streams.device_named(f"{kind}:1") == 1
    with pytest.raises(BadRequestError, match=rf"finds 2 device\(s\), and {kind}:2 is not"):
        cupy_streams.device_named(f"{kind}:2")
