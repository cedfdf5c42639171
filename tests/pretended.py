"""Arrays of torch and CuPy on a CUDA device that is memory of the host: see `tests.cuda_driver`.

They have a format in an instance of its own, with the transfers that the plugins declare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
from interop import Conversion
from interop.kit import STAGED_FROM, transfer
from interop.plugin import make_spec
from tests.cuda_driver import CudaDriver, Stream

torch = pytest.importorskip("torch", reason="torch is not installed here")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")

import interop_plugins.cupy  # noqa: E402
import interop_plugins.torch  # noqa: E402
from interop_plugins.cupy import hand_offs  # noqa: E402
from interop_plugins.torch import dense, transfers  # noqa: E402

#: The format of the arrays.
THERE = "there"
#: What is noted when the host waits for the stream of the caller.
SETTLED = "the host waits for the stream"


class Pretended:
    """A framework whose arrays lie on a device that is none.

    Attributes
    ----------
    driver : CudaDriver
        Its `log` has what the framework does on the device, too.
    crossed : list of tuple
        The direction and the bytes of each copy that the framework has asked the driver for.
    locked : set of int
        The addresses of page-locked memory.
    """

    name = THERE
    framework: str
    type: type
    plugin: Any

    def __init__(self, driver: CudaDriver) -> None:
        self.driver = driver
        self.crossed: list[tuple[str, int]] = []
        self.locked: set[int] = set()
        instance = interop.Interop()
        instance.register(
            interop.Format(
                THERE,
                types=(f"{__name__}:{self.type.__name__}",),
                describe=self.describe,
                dtypes={"bool", "int32", "float32", "complex64", "bfloat16", "float8_e4m3fn"},
                devices=("cuda",),
                carries={"noncontiguous"},
                fill=self.plugin.dense.fill,
                memory=lambda value: ((value.data_ptr(), value.nbytes),),
            ),
            *self.links(),
        )
        self.convert, self.convert_tree = instance.convert, instance.convert_tree

    def links(self) -> list[Conversion]:
        """Return the plugin's transfers between NumPy and CUDA devices, from and to these arrays."""
        names = {self.framework: THERE, "numpy": "numpy"}
        return [
            declared._replace(source=names[declared.source], target=names[declared.target])
            for declared in self.plugin.interop_declarations()
            if isinstance(declared, Conversion)
            and {declared.source, declared.target} == names.keys()
            and declared.batch
            and "cuda" in (declared.devices or set()) | (declared.result.devices or set())
        ]

    def describe(self, value: Any) -> interop.Spec:
        traits = set() if value.is_contiguous() else {"noncontiguous"}
        dtype = str(value.dtype).removeprefix("torch.")
        return make_spec(THERE, dtype, device="cuda:0", shape=tuple(value.shape), traits=traits)

    def note(self, way: str, nbytes: int, host: int) -> None:
        """Note a copy that the driver makes by itself, which is slow where much is not page-locked."""
        assert nbytes < STAGED_FROM or host in self.locked, "it is not staged"
        self.crossed.append((way, nbytes))

    def address(self, array: Any) -> int:
        return int(array.data_ptr())

    def page_locked(self, count: int) -> Any:
        """Return a tensor of page-locked memory of the host."""
        tensor = torch.zeros(count)
        self.locked.add(tensor.data_ptr())
        return tensor

    def copies(self, call: Callable[[], Any]) -> list[tuple[str, int]]:
        """Return which way each copy of a call crosses, and its bytes.

        What is staged waits for the caller's stream first, and other threads copy it.
        """
        for seen in (self.crossed, self.driver.log, self.driver.copies):
            seen.clear()
        call()
        if self.driver.copies:
            assert next(entry for entry in self.driver.log if entry != "gather") == SETTLED
            assert threading.get_ident() not in {thread for *_, thread in self.driver.copies}
        ways = {"down": "DtoH", "up": "HtoD"}
        return self.crossed + [(ways[way], size) for way, _, size, _ in self.driver.copies]


# ---------------------------------------------------------------------- CuPy


class Array:
    """A CuPy array in memory of the host. What is done on the stream is done a while later."""

    def __init__(self, there: PretendedCupy, memory: Any) -> None:
        self.there, self.memory = there, memory
        self.shape, self.dtype, self.flags = memory.shape, memory.dtype, memory.flags
        self.size, self.nbytes = memory.size, memory.nbytes
        self.data = SimpleNamespace(ptr=memory.ctypes.data, device=nullcontext(), device_id=0)

    def __getitem__(self, part: Any) -> Array:
        return Array(self.there, self.memory[part])

    def __setitem__(self, part: Any, value: Any) -> None:
        self.memory[part] = value

    @property
    def T(self) -> Array:  # noqa: N802 - as CuPy has it
        return Array(self.there, self.memory.T)

    def is_contiguous(self) -> bool:
        return bool(self.flags.c_contiguous)

    def data_ptr(self) -> int:
        return int(self.data.ptr)

    def ravel(self) -> Array:
        return Array(self.there, self.memory.ravel())

    def reshape(self, shape: tuple[int, ...]) -> Array:
        return Array(self.there, self.memory.reshape(shape))

    def copy(self, *, order: str = "C") -> Array:
        self.there.driver.log.append("gather")
        result = np.zeros(self.shape, self.dtype, order)
        self.there.stream.put(lambda: np.copyto(result, self.memory))
        return Array(self.there, result)

    def get(self, *, stream: Any = None, out: Any = None, blocking: bool = True) -> Any:
        assert blocking
        result = np.empty(self.shape, self.dtype) if out is None else out
        self.there.note("DtoH", self.nbytes, result.ctypes.data)
        self.there.stream.synchronize()
        result[...] = self.memory
        return result

    def set(self, value: Any, *, stream: Any) -> None:
        self.there.note("HtoD", self.nbytes, value.ctypes.data)
        self.there.stream.put(lambda: np.copyto(self.memory, value))


class PretendedCupy(Pretended):
    """CuPy on a device that is none."""

    framework = "cupy"
    type = Array
    plugin = interop_plugins.cupy

    def __init__(self, driver: CudaDriver, patches: pytest.MonkeyPatch) -> None:
        super().__init__(driver)
        self.stream = driver.streams[0] = Stream(driver.seconds)
        runtime = cupy.cuda.runtime

        def attributes(address: int) -> Any:
            return SimpleNamespace(type=runtime.memoryTypeHost * (address in self.locked))

        def synchronize() -> None:
            driver.log.append(SETTLED)
            self.stream.synchronize()

        def concatenated(arrays: list[Array]) -> Array:
            return self.make(np.concatenate([array.memory for array in arrays])).copy()

        stream = SimpleNamespace(ptr=99, synchronize=synchronize)
        patches.setattr(runtime, "pointerGetAttributes", attributes)
        patches.setattr(hand_offs, "working", lambda place, stream_: nullcontext(stream))
        patches.setattr(hand_offs, "device_named", lambda name: None)
        patches.setattr(cupy, "empty", lambda shape, dtype: self.make(np.zeros(shape, dtype)))
        patches.setattr(cupy, "concatenate", concatenated)

    def make(self, values: Any) -> Array:
        return Array(self, values)

    def numbers(self, array: Array) -> Any:
        return array.memory

    def held(self, array: Array) -> int:
        owner = array.memory if array.memory.base is None else array.memory.base
        return int(owner.nbytes)


# ---------------------------------------------------------------------- torch


class Tensor(torch.Tensor):  # type: ignore[misc]
    """A tensor of the host that says that it is on a device."""

    is_cuda, is_cpu = True, False
    there: PretendedTorch

    def get_device(self) -> int:
        return 0

    def contiguous(self, **_: Any) -> Any:
        if not self.is_contiguous():
            self.there.driver.log.append("gather")
        return super().contiguous()

    def cpu(self) -> Any:
        self.there.note("DtoH", self.nbytes, 0)
        return _on_the_host(self).clone()


def _on_the_host(tensor: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


class PretendedTorch(Pretended):
    """torch on a device that is none."""

    framework = "torch"
    type = Tensor
    plugin = interop_plugins.torch

    def __init__(self, driver: CudaDriver, patches: pytest.MonkeyPatch) -> None:
        super().__init__(driver)
        empty, copy_, to = torch.empty, torch.Tensor.copy_, torch.Tensor.to

        def made(*shape: Any, device: str = "cpu", **facts: Any) -> Any:
            tensor = empty(*shape, **facts)
            return self.make(tensor) if device.startswith("cuda") else tensor

        def copied(out: Any, value: Any) -> Any:
            if out.is_cuda != value.is_cuda:
                host, way = (value, "HtoD") if out.is_cuda else (out, "DtoH")
                self.note(way, out.nbytes, host.data_ptr())
            copy_(_on_the_host(out), _on_the_host(value))
            return out

        def moved(value: Any, device: Any, **words: Any) -> Any:
            if not isinstance(device, str):  # a dtype
                return to(value, device, **words)
            out = made(value.shape, dtype=value.dtype, device=device)
            return copied(out, value)

        patches.setattr(Tensor, "there", self, raising=False)
        patches.setattr(torch.Tensor, "to", moved)
        patches.setattr(dense, "check_present", lambda module, device: None)
        patches.setattr(torch, "empty", made)
        patches.setattr(torch.Tensor, "copy_", copied)
        patches.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor.data_ptr() in self.locked)
        types = frozenset({torch.Tensor, torch.nn.Parameter, Tensor})
        patches.setattr(transfers, "_plain_types", lambda: types)
        stream = SimpleNamespace(synchronize=lambda: driver.log.append(SETTLED))
        patches.setattr(torch.cuda, "current_stream", lambda place: stream)
        patches.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    def links(self) -> list[Conversion]:
        down = transfer(THERE, "torch", dense.move, {"cuda"}, {"cpu"})
        up = transfer("torch", THERE, dense.move, {"cpu"}, {"cuda"})
        words = {"into": dense.move_into, "batch": dense.move_all}
        return [*super().links(), down._replace(**words), up._replace(**words)]

    def make(self, values: Any) -> Any:
        return interop.convert(values, to="torch").as_subclass(Tensor)

    def numbers(self, array: Any) -> Any:
        return interop.convert(_on_the_host(array), to="numpy")

    def held(self, array: Any) -> int:
        return int(array.untyped_storage().nbytes())


FRAMEWORKS = {"torch": PretendedTorch, "cupy": PretendedCupy}
