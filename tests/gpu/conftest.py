"""Tests that need a device: without one they are skipped, and say what was looked for.

Those of `device` run with pretended devices as well, and are not skipped then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import interop
from benchmarks.machine import cupy_finds, torch_finds
from interop.kit import staging

_HERE = Path(__file__).parent


@cache
def missing() -> str:
    """Return why there is no CUDA device to test with, "" if there is one."""
    with warnings.catch_warnings():
        # What the frameworks warn of when they look for a device is not what is tested here.
        warnings.simplefilter("ignore")
        reasons = [torch_finds(), cupy_finds()]
    return "" if "" in reasons else "no CUDA device: " + "; ".join(reasons)


def dpnp_finds() -> str:
    """Return "" if dpnp sees a SYCL device, else why it does not."""
    try:
        import dpctl
    except ImportError as error:
        return f"dpctl cannot be imported ({error})"
    return "" if dpctl.get_devices() else f"dpctl {dpctl.__version__} sees no SYCL device"


_NO_CASE = SimpleNamespace(params={})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and skip those of CUDA where there is no such device."""
    for item in items:
        if _HERE not in item.path.parents:
            continue
        if "pretended" in getattr(item, "callspec", _NO_CASE).params.get("device", ""):
            continue  # whose warnings are errors, as elsewhere
        item.add_marker(pytest.mark.gpu)
        # The frameworks' own warnings differ by version; interop's are tested where it runs.
        item.add_marker(pytest.mark.filterwarnings("default"))
        if not {"kit", "dpnp"} & set(getattr(item, "fixturenames", ())) and missing():
            item.add_marker(pytest.mark.skip(reason=missing()))


class Kit(ABC):
    """A framework with arrays on devices of one type, used without interop.

    Attributes
    ----------
    name : str
        Its format.
    device_type : str
        The type of its devices.
    dtypes : tuple of str
        All that its arrays hold.
    """

    name: str
    device_type: str
    dtypes: tuple[str, ...] = (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )

    @abstractmethod
    def missing(self) -> str:
        """Return why there is no device, "" if there is one."""

    @abstractmethod
    def count(self) -> int:
        """Return how many devices there are."""

    @abstractmethod
    def make(self, values: NDArray[Any], index: int = 0) -> Any:
        """Return an array with some values on a device."""

    @abstractmethod
    def fetch(self, array: Any) -> NDArray[Any]:
        """Return the values of an array."""

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return where the first element of an array lies."""

    @property
    @abstractmethod
    def module(self) -> Any:
        """Return the framework."""

    def index(self, array: Any) -> int:
        """Return the number of the device that an array lies on."""
        return int(array.__dlpack_device__()[1])


class Cupy(Kit):
    """CuPy on CUDA."""

    name = "cupy"
    device_type = "cuda"
    dtypes = (*Kit.dtypes, "bfloat16")

    def missing(self) -> str:
        return cupy_finds()

    @property
    def module(self) -> Any:
        import cupy

        return cupy

    def count(self) -> int:
        return int(self.module.cuda.runtime.getDeviceCount())

    def make(self, values: NDArray[Any], index: int = 0) -> Any:
        with self.module.cuda.Device(index):
            result = self.module.empty(values.shape, values.dtype)
            result.set(np.ascontiguousarray(values))
        return result

    def fetch(self, array: Any) -> NDArray[Any]:
        values: NDArray[Any] = array.get()
        return values

    def address(self, array: Any) -> int:
        return int(array.data.ptr)


class Dpnp(Kit):
    """dpnp's arrays on SYCL devices."""

    name = "dpnp"
    device_type = "oneapi"

    def missing(self) -> str:
        return dpnp_finds()

    @property
    def module(self) -> Any:
        import dpnp

        return dpnp

    def count(self) -> int:
        import dpctl

        return len(dpctl.get_devices())

    def make(self, values: NDArray[Any], index: int = 0) -> Any:
        return self.module.asarray(values, device=str(index))

    def fetch(self, array: Any) -> NDArray[Any]:
        values: NDArray[Any] = self.module.asnumpy(array)
        return values

    def address(self, array: Any) -> int:
        interface = array.__sycl_usm_array_interface__
        return int(interface["data"][0]) + int(interface["offset"]) * int(array.itemsize)


class DpnpTensor(Dpnp):
    """The tensors that dpnp's arrays hold."""

    name = "dpnp.tensor"

    @property
    def module(self) -> Any:
        import dpnp.tensor

        return dpnp.tensor


@pytest.fixture(params=[Cupy, Dpnp, DpnpTensor], ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    """Return each framework that has a device here."""
    kit: Kit = request.param()
    if kit.missing():
        pytest.skip(kit.missing())
    return kit


@pytest.fixture
def another_device(kit: Kit) -> str:
    """Return the name of a device of a kit that is not its first."""
    if kit.count() < 2:
        pytest.skip(f"there is one {kit.device_type} device, and this needs two")
    return f"{kit.device_type}:1"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be four idle cores, so that large transfers are made in stages."""
    monkeypatch.setattr(staging, "idle_cores", lambda: 4)
    monkeypatch.setattr(staging, "cores", lambda: 4)


#: Which way each copy of a call crosses the link, or stays on the device, and its bytes.
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

    probe = torch.ones(1 << 20)
    if listed(probe.cuda) != [("HtoD", probe.nbytes)]:
        pytest.skip("the profiler cannot see the copies that are made here")
    return listed


class Cuda:
    """torch or CuPy on a CUDA device: what `tests.pretended` pretends."""

    def __init__(self, name: str, request: pytest.FixtureRequest) -> None:
        self.name, self._request = name, request
        self.convert, self.convert_tree = interop.convert, interop.convert_tree

    def copies(self, call: Callable[[], Any]) -> list[tuple[str, int]]:
        """Return which way each copy of a call crosses; skip where the profiler sees none."""
        copies: Copies = self._request.getfixturevalue("copies")
        return copies(call)

    def page_locked(self, count: int) -> Any:
        """Return a tensor of page-locked memory of the host."""
        return import_module("torch").zeros(count, pin_memory=True)

    def address(self, array: Any) -> int:
        """Return where an array lies."""
        return int(array.data_ptr() if self.name == "torch" else array.data.ptr)

    def held(self, array: Any) -> int | None:
        """Return how many bytes an array keeps; CuPy's pool rounds them."""
        return int(array.untyped_storage().nbytes()) if self.name == "torch" else None


@pytest.fixture(params=["torch", "cupy", "pretended torch", "pretended cupy"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A framework on a device, real or pretended, with idle cores for what is staged.

    Its arrays are those of ``device.convert(…, to=device.name, device="cuda")``. What both kinds
    show is a claim once. Two proofs are not one: the order of streams is a log of calls where the
    device is pretended, and a race on one that is real.
    """
    kind, _, name = request.param.rpartition(" ")
    if not kind:
        for needed in ("torch", "cupy", "idle"):
            request.getfixturevalue(needed)
        return Cuda(name, request)
    pretended = pytest.importorskip("tests.pretended")
    return pretended.FRAMEWORKS[name](request.getfixturevalue("cuda_driver"), monkeypatch)


def _seen(name: str, finds: Callable[[], str]) -> Any:
    """Return the fixture of a framework that has to see a device."""

    @pytest.fixture(name=name)
    def framework() -> Any:
        """The framework, if it sees a device."""
        if finds():
            pytest.skip(finds())
        return import_module(name)

    return framework


torch, cupy, dpnp = (
    _seen("torch", torch_finds),
    _seen("cupy", cupy_finds),
    _seen("dpnp", dpnp_finds),
)


@pytest.fixture
def second_device(cupy: Any) -> str:
    """Return the name of a device that is not the current one."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one CUDA device, and this needs two")
    return "cuda:1"


@pytest.fixture
def in_process(torch: Any, cupy: Any) -> Callable[..., str]:
    """Return a function that runs a program in a process of its own, and returns what it prints.

    The program may end its process, or need an environment of its own. One that prints "no device"
    skips the test.
    """

    def run(program: str, *arguments: str, **environment: str) -> str:
        process = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", program, *arguments],
            env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert process.returncode == 0, f"{process.returncode}: {process.stderr}"
        if process.stdout.strip() == "no device":
            pytest.skip("this JAX has no CUDA device")
        return process.stdout.strip()

    return run


@pytest.fixture
def keep_busy(torch: Any, cupy: Any) -> Callable[[Any], None]:
    """Queue about half a second of work on a torch stream, without waiting for it.

    The kernels that the tests queue behind it are compiled here, which could take longer.
    """
    for dtype in ("float32", "int32"):
        array = cupy.zeros(1 << 22, "float32").astype(dtype)
        array.fill(1)
        int(array.sum()), float(array.min())

    def busy(stream: Any) -> None:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000_000)

    return busy
