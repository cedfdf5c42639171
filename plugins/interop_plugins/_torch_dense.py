"""Steps on dense torch tensors, and between them and NumPy arrays.

Large results on the host are written into memory that NumPy allocates: NumPy asks the system for
huge pages, torch does not, and taking a page fault every 4 KiB costs more than the copy itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError, HandOffError, NotInstalledError
from interop.plugin import CheckedProducer, Declined, limit_threads

from ._torch_describe import BIT_DTYPES, dtype_name

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array = np.ndarray[Any, Any]

__all__ = [
    "bits_to_numpy",
    "bits_to_torch",
    "cast",
    "cast_as_numpy",
    "cast_in_order",
    "clone",
    "copy_into_torch",
    "detach",
    "download",
    "fill",
    "fresh",
    "from_cuda_array_interface",
    "from_dlpack",
    "from_numpy",
    "move",
    "numpy_fast_path",
    "numpy_to_torch",
    "quietly",
    "refill",
    "resolve",
    "resolve_in_order",
    "tensor_to_numpy",
    "torch_fast_path",
    "upload",
    "view_as",
    "without_subclass",
]

#: Elements from which on page faults cost more than a call of NumPy's.
_LARGE = 2**16

_HALF = "ComplexHalf support is experimental"
_DLPACK_CPU, _DLPACK_CUDA = 1, 2

#: By torch's dtype and by NumPy's: the integer to view as, and the other side's dtype. Filled when
#: one of them is first met, so that ml_dtypes is not imported for nothing.
_to_numpy: dict[Any, tuple[Any, Any]] = {}
_to_torch: dict[Any, tuple[Any, Any]] = {}
#: NumPy's dtypes that torch was seen to share as they are.
_shared: set[Any] = set()
#: torch.from_numpy, once it was needed: an import statement is slow where it runs for every call.
_from_numpy: list[Callable[[Any], Any]] = []
_numpy_from_dlpack: list[Callable[[Any], Any]] = []

#: What NumPy or a producer raises when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AssertionError, AttributeError)

#: How many plain tensors in a row the fast_path has met, or below zero how many in graphs; and from
#: where on it expects the next to be like them. What detaches serves plain ones too, but slower.
_run = 0
_LONG_RUN = 64
_LOOK_AGAIN = -4096
#: For how many tensors more the fast_path asks first whether torch would refuse them.
_wary = 0
#: torch.strided, once it was needed.
_strided: list[torch.layout] = []

_lock = Lock()
_said: set[str] = set()


def _most_threads() -> int | None:
    """Return how many threads the user lets torch have, if it is in use."""
    asked = getattr(sys.modules.get("torch"), "get_num_threads", None)
    return asked and int(asked())


limit_threads(_most_threads)


def quietly(message: str, make: Callable[[], object]) -> None:
    """Call `make` once per process without the warning that torch gives once per process.

    Parameters
    ----------
    message : str
        How the warning begins.
    make : callable
        What provokes it.
    """
    if message in _said:
        return
    with _lock:
        # `warnings.catch_warnings` would put back the filters of all threads as they were.
        warnings.filterwarnings("ignore", f"(?:{message})", UserWarning)
        filters, added = warnings.filters, warnings.filters[0]
        try:
            make()
        finally:
            if added in filters:
                filters.remove(added)  # type: ignore[attr-defined]
        _said.add(message)


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's or ml_dtypes' dtype of a name."""
    import numpy as np

    if name not in BIT_DTYPES:
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's dtype of a name."""
    import torch

    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _learn_bits(name: str) -> None:
    """Take notice of a dtype that crosses between torch and NumPy as integers."""
    there, here = torch_dtype(name), numpy_dtype(name)
    carrier = f"uint{8 * here.itemsize}"
    _to_numpy[there] = (torch_dtype(carrier), here)
    _to_torch[here] = (numpy_dtype(carrier), there)


def detach(value: torch.Tensor) -> torch.Tensor:
    """Return the tensor outside its autograd graph."""
    return value.detach()


def without_subclass(value: torch.Tensor) -> torch.Tensor:
    """Return the memory of a tensor of a subclass as a plain tensor."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def resolve(value: torch.Tensor) -> torch.Tensor:
    """Return the tensor with its lazy conjugation and negation carried out."""
    return refill(value) if _large(value) else value.resolve_conj().resolve_neg()


def resolve_in_order(value: torch.Tensor) -> torch.Tensor:
    """Return the same of a strided tensor, its elements in the order in which they lie there."""
    return refill_in_order(value) if _large(value) else value.resolve_conj().resolve_neg()


def clone(value: torch.Tensor) -> torch.Tensor:
    """Return a C-ordered copy, part of the same graph."""
    import torch

    return refill(value) if _large(value) else value.clone(memory_format=torch.contiguous_format)


def cast(value: torch.Tensor, *, dtype: str) -> torch.Tensor:
    """Return a C-ordered copy of another dtype, part of the same graph."""
    return _cast(value, dtype, refill, "contiguous_format")


def cast_in_order(value: torch.Tensor, *, dtype: str) -> torch.Tensor:
    """Return what `cast` does, its elements in the order in which they lie in memory."""
    return _cast(value, dtype, refill_in_order, "preserve_format")


def _cast(
    value: torch.Tensor, dtype: str, refilled: Callable[..., torch.Tensor], order: str
) -> torch.Tensor:
    import torch

    wanted = torch_dtype(dtype)
    if torch.complex32 in (wanted, value.dtype):
        quietly(
            _HALF, lambda: torch.zeros(1, dtype=torch.complex32, device="cpu").to(torch.complex64)
        )
    elif _large(value):
        return refilled(value, dtype=dtype)
    return value.to(wanted, copy=True, memory_format=getattr(torch, order))


def cast_as_numpy(value: torch.Tensor, *, dtype: str) -> torch.Tensor:
    """Return what `cast` does, but with the numbers that NumPy makes of the tensor's.

    The two disagree where a cast rounds twice or has to find something for what does not fit. So
    that it does not matter who casts, it is always NumPy; torch keeps the graph.
    """
    import numpy as np

    result = cast(value, dtype=dtype)
    out, given = (
        (bits_to_numpy if each.dtype in _bits() else tensor_to_numpy)(each.detach())
        for each in (result, value)
    )
    with np.errstate(all="ignore"):
        np.copyto(out, given, casting="unsafe")
    return result


@cache
def _bits() -> frozenset[torch.dtype]:
    """Return torch's dtypes that cross to NumPy as integers."""
    return frozenset(map(torch_dtype, BIT_DTYPES))


def _large(value: torch.Tensor) -> bool:
    """Tell whether a copy is better put into memory of NumPy's."""
    # torch has no half complex numbers in memory of NumPy's.
    return value.is_cpu and value.numel() >= _LARGE and str(value.dtype) != "torch.complex32"


def move(value: torch.Tensor, *, device: str) -> torch.Tensor:
    """Return a C-ordered copy on another device, part of the same graph, complete on return."""
    import torch

    _check_present(torch, device)
    if value.layout is not torch.strided:
        return value.to(device)
    return value.to(device, memory_format=torch.contiguous_format)


def _check_present(torch: Any, device: str) -> None:
    """Say so if there is no such device; torch would name an assertion of its own."""
    kind = device.partition(":")[0]
    present = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }
    if kind in present and not present[kind]():
        msg = (
            f"torch finds no {kind} device that it can use on this machine; install the device's "
            "driver and a build of torch for it, or ask for device='cpu'."
        )
        raise NotInstalledError(msg, name="torch")


def fresh(shape: Sequence[int], dtype: str, *, zero: bool = False) -> tuple[Array, torch.Tensor]:
    """Return a new array in huge pages where it is large, and a tensor over the same memory."""
    import numpy as np

    array = (np.zeros if zero else np.empty)(tuple(shape), numpy_dtype(dtype))
    return array, _over(array, dtype)


def _over(array: Array, dtype: str) -> torch.Tensor:
    """Return a tensor over the memory of a new array."""
    import torch

    if dtype not in BIT_DTYPES:
        return torch.from_numpy(array)
    bits = array.view(f"u{array.itemsize}")
    return torch.from_numpy(bits).view(torch_dtype(dtype))


def refill(value: torch.Tensor, *, dtype: str | None = None) -> torch.Tensor:
    """Return a C-ordered copy, cast on the way, part of the same graph, in memory of NumPy's."""
    return fresh(value.shape, dtype or dtype_name(value.dtype))[1].copy_(value)


def refill_in_order(value: torch.Tensor, *, dtype: str | None = None) -> torch.Tensor:
    """Return what `refill` does, its elements in the order in which they lie in memory."""
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    name = dtype or dtype_name(value.dtype)
    # One element stands for all: NumPy looks at shape and strides alone.
    like = as_strided(np.empty(1, numpy_dtype(name)), tuple(value.shape), value.stride())
    return _over(np.empty_like(like, subok=False), name).copy_(value)


def download(value: torch.Tensor, *, device: str) -> Array:
    """Return a device's tensor as a NumPy array on `device`, the host, complete on return."""
    array, tensor = fresh(value.shape, dtype_name(value.dtype))
    tensor.copy_(value)
    return array


def upload(value: Array, *, device: str) -> torch.Tensor:
    """Return a C-ordered tensor on a device of a NumPy array's elements, complete on return."""
    bits = value.dtype.isbuiltin == 2
    return move(bits_to_torch(value) if bits else numpy_to_torch(value), device=device)


def copy_into_torch(value: Array) -> torch.Tensor:
    """Return a C-ordered tensor of a NumPy array's elements, in memory of its own."""
    bits = value.dtype.isbuiltin == 2
    return clone(bits_to_torch(value) if bits else numpy_to_torch(value))


def view_as(value: torch.Tensor, *, dtype: str) -> torch.Tensor:
    """Return a view of the same elements under another dtype of the same width."""
    return value.view(torch_dtype(dtype))


def tensor_to_numpy(value: torch.Tensor) -> Array:
    """Return a NumPy array that shares the tensor's memory."""
    array: Array = value.numpy()
    return array


def bits_to_numpy(value: torch.Tensor) -> Array:
    """Return an ml_dtypes array that shares the tensor's memory."""
    if value.dtype not in _to_numpy:
        _learn_bits(str(value.dtype).removeprefix("torch."))
    carrier, dtype = _to_numpy[value.dtype]
    array: Array = value.view(carrier).numpy().view(dtype)
    return array


class _Memory:
    """An array interface on memory that its owner keeps alive."""

    def __init__(self, name: str, interface: dict[str, Any], owner: Any) -> None:
        self._owner = owner
        setattr(self, name, interface)


def from_numpy(array: Array) -> torch.Tensor:
    """Return a tensor over an array's memory, which may be flagged read-only.

    torch would warn of the flag, which it cannot carry. Whether to share it all the same was the
    policy's to say before this was called.
    """
    import numpy as np
    import torch

    if not array.flags.writeable:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        array = np.asarray(_Memory("__array_interface__", interface, array))
    if not _from_numpy:
        _from_numpy.append(torch.from_numpy)
    if min(array.strides, default=0) < 0:
        array = _forwards(array)
    try:
        tensor = torch.from_numpy(array)
    except ValueError as reason:  # strides that are no whole number of elements
        raise Declined(str(reason)) from reason
    _shared.add(array.dtype)
    return tensor


def _forwards(array: Array) -> Array:
    """Return an array whose axes of at most one element have no negative strides.

    Such strides lead nowhere, but torch refuses them, and NumPy's `ascontiguousarray` keeps them
    (numpy/numpy#23349).
    """
    from numpy.lib.stride_tricks import as_strided

    steps = [
        array.itemsize if length <= 1 else step
        for length, step in zip(array.shape, array.strides, strict=True)
    ]
    return as_strided(array, strides=steps)


def numpy_to_torch(value: Array) -> torch.Tensor:
    """Return a tensor that shares a NumPy array's memory."""
    return from_numpy(value)


def bits_to_torch(value: Array) -> torch.Tensor:
    """Return a tensor that shares an ml_dtypes array's memory."""
    if value.dtype not in _to_torch:
        _learn_bits(value.dtype.name)
    carrier, dtype = _to_torch[value.dtype]
    return from_numpy(value.view(carrier)).view(dtype)


def numpy_fast_path(value: torch.Tensor) -> Any:
    """Share a plain tensor with NumPy, or answer `NotImplemented`.

    torch's own check refuses what is not plain, but takes ten times as long to refuse as to share.
    So it serves as the guard only after a long run of plain tensors, or of tensors in graphs; else
    what is common is told apart before, and after a refusal for a while also what is rare. Of a
    tensor without memory torch makes an array that owns garbage.
    """
    global _run, _wary  # noqa: PLW0603 - guesses about the next; a lost update does no harm
    if _wary:
        _wary -= 1
        if value.is_conj() or value.is_neg() or not value.is_cpu or value.layout is not _strided[0]:
            _wary = _LONG_RUN
            return NotImplemented
    try:
        if _run >= _LONG_RUN:
            array = value.numpy()
        elif _run <= -_LONG_RUN:
            _run = _run - 1 if _run > _LOOK_AGAIN else 0
            array = value.numpy(force=True)
        elif (bits := _to_numpy.get(value.dtype)) is not None:
            _run = 0  # the bits have no graph to be detached from
            array = value.view(bits[0]).numpy()
            return NotImplemented if array.flags.owndata else array.view(bits[1])
        elif value.requires_grad:
            _run = _run - 1 if _run <= 0 else -1
            array = value.numpy(force=value.is_cpu)  # detach().numpy(), in one call
        else:
            _run = _run + 1 if _run >= 0 else 1
            array = value.numpy()
    except (TypeError, RuntimeError):
        if not _strided:
            _strided.append(sys.modules["torch"].strided)
        _wary = _LONG_RUN
        if -_LONG_RUN < _run < _LONG_RUN:
            return NotImplemented
        _run = 0
        return numpy_fast_path(value)
    return NotImplemented if array.flags.owndata else array


def torch_fast_path(value: Array) -> Any:
    """Share a plain, writable and aligned array with torch, or answer `NotImplemented`.

    What torch would refuse it must not be asked for: that takes twenty times as long as to share.
    """
    if not value.flags.carray and (not value.flags.behaved or min(value.strides) < 0):
        return NotImplemented
    try:
        if value.dtype in _shared:
            return _from_numpy[0](value)
        bits = _to_torch.get(value.dtype)
        return NotImplemented if bits is None else _from_numpy[0](value.view(bits[0])).view(bits[1])
    except (IndexError, ValueError):
        return NotImplemented


def dlpack_fast_path(value: Any) -> Any:
    """Share the memory of a producer on the host by way of NumPy, or answer `NotImplemented`.

    NumPy takes the capsule in a third of the time that torch does, and, unlike torch, checks it: it
    refuses other devices and dtypes, locks what is or may be read-only, and of a NULL pointer makes
    an array of its own memory. ``torch.from_numpy`` then refuses negative strides.
    """
    try:
        array = _numpy_from_dlpack[0](value)
    except (*_REFUSALS, IndexError):
        return NotImplemented
    return NotImplemented if array.flags.owndata else torch_fast_path(array)


def from_dlpack(value: Any, *, stream: int | None = None) -> torch.Tensor:
    """Return a tensor over a DLPack producer's memory, ordered on `stream` if it is a device's."""
    import torch
    from torch.utils.dlpack import from_dlpack as share

    if not _numpy_from_dlpack:
        import numpy as np

        _numpy_from_dlpack.append(np.from_dlpack)
        _from_numpy.append(torch.from_numpy)
    producer = CheckedProducer(value, negative_strides=False)
    kind, index = producer.__dlpack_device__()
    if kind not in (_DLPACK_CPU, _DLPACK_CUDA):
        msg = f"torch does not import memory of DLPack's device type {kind}"
        raise Declined(msg)
    on_stream = stream is not None and kind == _DLPACK_CUDA
    try:
        with torch.cuda.stream(_stream(stream, index)) if on_stream else nullcontext():
            return share(producer)
    except HandOffError as reason:  # NumPy exports no odd strides, but there are other ways
        raise Declined(str(reason)) from reason


def _stream(pointer: int | None, device: Any) -> Any:
    """Return torch's object for a CUDA stream of somebody else's."""
    import torch

    make: Any = torch.cuda.ExternalStream
    return make(pointer, device=device)


def from_cuda_array_interface(value: Any) -> torch.Tensor:
    """Return a tensor over the memory of a producer of the CUDA Array Interface.

    The consumer waits for the interface's stream, which torch does not do by itself.
    """
    import torch

    interface = value.__cuda_array_interface__
    address, stream = interface["data"][0], interface.get("stream")
    current = torch.cuda.current_device()
    # The interface does not name the device, and torch copies to any but the right one.
    for index in sorted(range(torch.cuda.device_count()), key=lambda index: index != current):
        memory = _Memory("__cuda_array_interface__", interface, value)
        tensor = torch.as_tensor(memory, device=torch.device("cuda", index))
        if tensor.data_ptr() == address or not tensor.numel():
            break
    if stream is not None:
        torch.cuda.current_stream(tensor.device).wait_stream(_stream(stream, tensor.device))
    return tensor


def fill(out: torch.Tensor, value: torch.Tensor) -> None:
    """Write the numbers of `value` into `out`.

    Raises
    ------
    BadRequestError
        `out` takes part in an autograd graph, which would not know of the write.
    """
    import torch

    if out.requires_grad:
        msg = f"out= is a tensor of shape {tuple(out.shape)} that requires grad; give out.detach()."
        raise BadRequestError(msg)
    if value.is_complex() and not out.is_complex():
        value = value.real
    with torch.no_grad():
        out.copy_(value)
