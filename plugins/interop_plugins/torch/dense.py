"""Steps on dense torch tensors, and between them and NumPy arrays.

Large results on the host are written into memory that NumPy allocates: NumPy asks the system for
huge pages, torch does not, and taking a page fault every 4 KiB costs more than the copy itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import accumulate
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import interop
from interop.errors import DeviceError, HandOffError, InteropError
from interop.kit import (
    COMPLEX,
    INTEGERS,
    CastErrors,
    CheckedProducer,
    limit_threads,
    misfit,
    numpy_dtype,
    plain_array,
    quietly,
    real_part,
    unlocked,
)
from interop.plugin import Declined

from .describe import BIT_DTYPES, DTYPE_NAMES, are_plain, dtype_name, has_tangent
from .streams import sharing
from .team import assign, copied, copy_into, is_few
from .transfers import can_cross, cross_at_once, fetch_all, fetch_small, send_all, stage

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    Array = np.ndarray[Any, Any]
    Order = Literal["C", "F", "K"]
    NumpyDtype = np.dtype[Any]

#: Bytes from which on NumPy asks for huge pages. Page faults of small ones cost more than the copy.
_LARGE = 2**22
#: Bytes from which on the planner asks first how much memory is left.
_SMALL = 2**24

#: Whole numbers, and the dtypes to which torch casts other real numbers as NumPy does. Those left
#: out have no agreed place for infinities, NaN or zero, or for numbers that are too large.
WHOLE = INTEGERS | {"bool"}
CLIPPED = frozenset({"float8_e4m3fn", "float8_e8m0fnu"})
CAST_REALS = DTYPE_NAMES - CLIPPED - WHOLE

_DTYPE = attrgetter("dtype")
_HALF = "ComplexHalf support is experimental"
_DLPACK_CPU, _DLPACK_CUDA = 1, 2

# For the fast paths: what is found for a dtype when memory of it is first shared.
#: The integers that carry the bits of a torch dtype to NumPy, and NumPy's dtype.
_bits_for_numpy: dict[torch.dtype, tuple[torch.dtype, NumpyDtype]] = {}
#: The function that shares aligned arrays of a NumPy dtype with torch.
_sharers: dict[NumpyDtype, Callable[[Array], Any]] = {}
#: By the type of others' arrays, and what they call their device, whether that is the host.
_on_host: dict[tuple[type, str], bool] = {}

#: For how many tensors after a refusal the fast path to NumPy first looks at their dtype and graph,
#: and for how many it first checks for the reasons of refusals that are rarer.
_CHECKS = 64
_looks_left = 0
_checks_left = 0


def _most_threads() -> int | None:
    """Return how many threads the user lets torch have, if it is in use."""
    get_num_threads = getattr(sys.modules.get("torch"), "get_num_threads", None)
    return None if get_num_threads is None else int(get_num_threads())


limit_threads(_most_threads)


@cache
def torch_dtype(name: str) -> torch.dtype:
    """Return torch's dtype of a name."""
    import torch

    dtype: torch.dtype = getattr(torch, name)
    return dtype


@cache
def _strided() -> torch.layout:
    import torch

    return torch.strided


def detach(value: Tensor) -> Tensor:
    """Return the tensor outside its autograd graph."""
    return value.detach()


def without_subclass(value: Tensor) -> Tensor:
    """Return the memory of a tensor of a subclass as a plain tensor."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def resolve(value: Tensor, *, order: Order = "C") -> Tensor:
    """Return a tensor in an order with its lazy conjugation and negation carried out."""
    if order == "F":
        return _reversed(resolve(_reversed(value), order="C"))
    if is_large(value):
        return refill(value, order=order)
    if order == "C" and not value.is_contiguous():
        return _write(_like(value, value.dtype, order), value)
    return _resolved(value)


def _resolved(value: Tensor) -> Tensor:
    import torch

    if value.is_neg() and value.is_complex():
        return _write(torch.empty_like(value), value)
    return value.resolve_conj().resolve_neg()


def _write(out: Tensor, value: Tensor) -> Tensor:
    """Write numbers into a tensor, which joins their graph, and return it.

    torch negates complex numbers by subtracting them from zero, which makes no negative zeros. Real
    numbers it negates one sign at a time. It loads complex numbers whole, as `align` says.
    """
    if stage(out, value):
        return out
    pair = out, value
    if not out.is_complex() or not any(t.is_neg() or _is_unaligned(t) for t in pair):
        return copy_into(out, value)
    is_complex = value.is_complex()
    assign(out.real, value.real if is_complex else value)
    assign(out.imag, value.imag if is_complex else value.new_zeros(()))
    return out


def _is_unaligned(value: Tensor) -> bool:
    """Tell whether a tensor is of complex numbers that do not lie at a multiple of their size."""
    return value.is_complex() and value.data_ptr() % value.itemsize != 0


def clone(value: Tensor, *, order: Order = "C") -> Tensor:
    """Return a copy in an order, part of the same graph."""
    if order == "F":
        return _reversed(clone(_reversed(value)))
    if is_few(value):
        return value.to(value.dtype, copy=True, memory_format=memory_format(order))
    if is_large(value):
        return refill(value, order=order)
    return copied(value, value.dtype, memory_format(order))


def _reversed(value: Tensor) -> Tensor:
    """Return a view with the axes in reverse, which is in C order where the tensor is in F."""
    return value.permute(tuple(reversed(range(value.ndim))))


def _like(value: Tensor, dtype: torch.dtype, order: Order) -> Tensor:
    """Return an empty tensor of the shape of another, in C order or in its own."""
    import torch

    return torch.empty_like(value, dtype=dtype, memory_format=memory_format(order))


@cache
def memory_format(order: Order) -> torch.memory_format:
    """Return torch's name of C order, or of that in which elements lie."""
    import torch

    return torch.preserve_format if order == "K" else torch.contiguous_format


def align(value: Tensor) -> Tensor:
    """Return a C-ordered copy of what may lie at any address, part of the same graph.

    Complex numbers are read by their parts: torch's kernels load both at once, and end the process
    where these do not lie at a multiple of their size.
    """
    import torch

    if not value.is_complex():
        return clone(_resolved(value))
    parts = torch.view_as_real(value.conj() if value.is_conj() else value)
    aligned = torch.view_as_complex(clone(_resolved(parts)))
    return _resolved(aligned.conj()) if value.is_conj() else aligned


def stack(value: Sequence[Any], *, dtype: str) -> Tensor:
    """Return a tensor of the elements of a sequence, part of their graphs, on their device."""
    import numpy as np
    import torch

    target = getattr(torch, dtype)
    if {*map(type, value)} == {np.ndarray} and len({row.dtype for row in value}) == 1:
        tensor: Tensor = interop.convert(np.array(value), "torch", dtype=target)
        return tensor
    # A list is of plain numbers, also where a row is a tensor of a class of its own.
    rows = [
        x if type(x) is torch.Tensor else without_subclass(interop.convert(x, "torch"))
        for x in value
    ]
    if len({row.dtype for row in rows}) == 1 and rows[0].nbytes * len(rows) < _SMALL:
        stacked: Tensor = torch.stack(rows)
        if stacked.dtype is not target:
            stacked = interop.convert(stacked, "torch", dtype=target)
        return stacked
    return torch.stack(
        [
            row if row.dtype is target else interop.convert(row, "torch", dtype=target)
            for row in rows
        ]
    )


def stack_fast_path(value: Any) -> Any:
    """Return the stack of plain tensors, or arrays of the host, of one dtype and shape; else pass.

    Together they have to be small.
    """
    import numpy as np
    import torch

    try:
        if value and type(value[0]) is np.ndarray:
            is_plain = {*map(type, value)} == {np.ndarray} and len({*map(_DTYPE, value)}) == 1
            if is_plain and value[0].nbytes * len(value) < _SMALL:
                return _shared(np.array(value))
        elif value and isinstance(value[0], torch.Tensor):
            if are_plain(value) and value[0].nbytes * len(value) < _SMALL:
                return torch.stack(value)
        elif value and _are_on_host(value):
            array = interop.convert(value, "numpy")
            return _shared(array) if array.nbytes < _SMALL else NotImplemented
    except (InteropError, RuntimeError, ValueError):  # they differ in shape, or cannot be stacked
        pass
    return NotImplemented


def _shared(array: Array) -> Any:
    """Share a new array with torch, which meets its dtype here if it is the first of it."""
    tensor = torch_fast_path(array)
    return interop.convert(array, "torch") if tensor is NotImplemented else tensor


def _are_on_host(value: Sequence[Any]) -> bool:
    """Tell whether values are arrays of one type on the host; NumPy takes those of one device."""
    first, kind = value[0], type(value[0])
    if len({*map(type, value)}) != 1:
        return False
    if hasattr(kind, "__array_interface__"):  # of memory of the host; images copy theirs to tell
        return True
    if not hasattr(first, "dtype"):  # numbers, and lists of them, which get torch's default
        return False
    place = getattr(first, "device", None)
    if type(place) is not str:
        return interop.spec(first).device == "cpu"
    if (kind, place) not in _on_host:
        _on_host[kind, place] = interop.spec(first).device == "cpu"
    return _on_host[kind, place]


def cast(value: Tensor, *, dtype: str, order: Order = "C") -> Tensor:
    """Return a copy of another dtype in an order, part of the same graph."""
    import torch

    if order == "F":
        return _reversed(cast(_reversed(value), dtype=dtype))
    target, format_ = torch_dtype(dtype), memory_format(order)
    if not target.is_complex and is_few(value):
        return value.to(target, copy=True, memory_format=format_)
    if torch.complex32 in (target, value.dtype):
        quietly(
            _HALF, lambda: torch.zeros(1, dtype=torch.complex32, device="cpu").to(torch.complex64)
        )
    elif is_large(value, target.itemsize):
        return refill(value, dtype=dtype, order=order)
    if value.is_neg() and target.is_complex:
        return _write(_like(value, target, order), value)
    return copied(value, target, format_)


def cast_if_exact(value: Tensor, *, dtype: str) -> Tensor:
    """Return integers of 64 bits in 32 if all of them fit.

    The least and the largest are found where the tensor lies, and come to the host together.
    """
    import torch

    # torch knows unsigned integers of 64 bits, but hardly computes with them.
    bits = value.view(torch.int64)
    if bits.numel():
        ends = torch.stack(torch.aminmax(bits)).cpu().numpy().view(dtype_name(value.dtype))
        if reason := misfit(ends, dtype):
            raise Declined(reason)
    narrow = bits.to(torch.int32, memory_format=torch.contiguous_format)
    return narrow.view(torch_dtype(dtype))


def cast_as_numpy(value: Tensor, *, dtype: str) -> Tensor:
    """Return what `cast` does, but with the numbers that NumPy makes of the tensor's.

    The two disagree where a cast rounds twice, or has to find something for what does not fit. So
    that it does not matter which library casts, it is always NumPy; torch keeps the graph.
    """
    result = cast(value, dtype=dtype)
    write_as_numpy(result, value.resolve_neg())
    return result


def write_as_numpy(out: Tensor, value: Tensor) -> None:
    """Write the numbers that NumPy makes of a tensor's into another tensor on the host."""
    import numpy as np

    array, numbers = (_as_numpy(tensor.detach()) for tensor in (out, value))
    errors = CastErrors()
    if not np.can_cast(numbers.dtype, array.dtype, "unsafe"):  # from 8 bits to other 8 bits
        numbers = numbers.astype("float32")
    errors.run(np.copyto, array, real_part(numbers, array.dtype), "unsafe")
    errors.tell()


def _as_numpy(value: Tensor) -> Array:
    """Return an array of NumPy's or ml_dtypes' over the memory of a tensor."""
    return (bits_to_numpy if value.dtype in _bit_dtypes() else tensor_to_numpy)(value)


def casts_as_numpy(source: str, target: str) -> bool:
    """Tell whether torch makes the numbers of a dtype of another's that NumPy makes."""
    if source == target or source in COMPLEX or source == "complex32":
        return True
    if source in WHOLE:
        return target not in CLIPPED
    return target in CAST_REALS and (source, target) != ("float64", "float16")


@cache
def _bit_dtypes() -> frozenset[torch.dtype]:
    """Return torch's dtypes that cross to NumPy as integers."""
    return frozenset(map(torch_dtype, BIT_DTYPES))


def is_large(value: Tensor, itemsize: int | None = None) -> bool:
    """Tell whether a copy is better put into NumPy memory, which holds no complex32."""
    nbytes = value.numel() * (value.itemsize if itemsize is None else itemsize)
    return nbytes >= _LARGE and value.is_cpu and str(value.dtype) != "torch.complex32"


def move(value: Tensor, *, device: str) -> Tensor:
    """Return a C-ordered copy on another device, part of the same graph, complete on return."""
    import torch

    check_present(torch, device)
    if value.layout is not torch.strided:
        result = value.to(device)
    elif can_cross(value, device):
        return _write(_empty(value, device), value)
    else:
        result = value.to(device, memory_format=torch.contiguous_format)
    if value.is_cuda and result.is_cuda:  # the one move for which torch makes nobody wait
        torch.cuda.current_stream(result.device).synchronize()
    return result


def _empty(value: Tensor, device: str) -> Tensor:
    """Return a new tensor on a device, of the dtype and the shape of another."""
    import torch

    if device == "cpu":
        return fresh(value.shape, dtype_name(value.dtype))[1]
    return torch.empty(value.shape, dtype=value.dtype, device=device)


def move_all(values: list[Tensor], *, device: str) -> list[Tensor] | Any:
    """Return what `move` does for plain tensors between the host and a CUDA device, at once."""
    import torch

    if any(map(has_tangent, values)):
        return NotImplemented
    if values[0].is_cpu:
        return _send_all(values, device)
    if device != "cpu" or not values[0].is_cuda or not cross_at_once(values):
        return NotImplemented
    small = fetch_small(values)
    if small is not None:
        parts = torch.ops.aten.split_with_sizes_copy(small, [value.numel() for value in values])
        return [part.view(value.shape) for part, value in zip(parts, values, strict=True)]
    outs = [_empty(value, device) for value in values]
    return outs if fetch_all(outs, values) else NotImplemented


def _send_all(values: list[Tensor], device: str) -> list[Tensor] | Any:
    return (device.startswith("cuda") and send_all(values, device)) or NotImplemented


def move_into(out: Tensor, value: Tensor) -> None:
    """Write the numbers of a tensor into one on another device, complete on return."""
    import torch

    write(out, value)
    if value.is_cuda and out.is_cuda:  # see `move`
        torch.cuda.current_stream(out.device).synchronize()


def lock_pages(value: Tensor, *, device: str) -> Tensor:
    """Return a C-ordered copy in page-locked memory, part of the same graph, complete on return."""
    import torch

    check_present(torch, "cuda")
    start: Callable[[], None] = torch.cuda.init
    start()  # before that, no tensor is asked whether its memory is page-locked
    out = torch.empty(value.shape, dtype=value.dtype, device="cpu", pin_memory=True)
    return _write(out, value)


def check_present(torch: ModuleType, device: str) -> None:
    """Refuse a device that is missing; torch's own error would name an internal assertion."""
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
        raise DeviceError(msg)


def fresh(shape: Sequence[int], dtype: str, *, zero: bool = False) -> tuple[Array, Tensor]:
    """Return a new array, in huge pages if it is large, and a tensor over the same memory."""
    import numpy as np

    array = (np.zeros if zero else np.empty)(tuple(shape), numpy_dtype(dtype))
    return array, _over(array, dtype)


def _over(array: Array, dtype: str) -> Tensor:
    """Return a tensor over the memory of a new array."""
    import torch

    if dtype not in BIT_DTYPES:
        return torch.from_numpy(array)
    bits = array.view(f"u{array.itemsize}")
    return torch.from_numpy(bits).view(torch_dtype(dtype))


def refill(value: Tensor, *, dtype: str | None = None, order: Order) -> Tensor:
    """Return a copy, cast on the way, part of the same graph, in NumPy memory.

    It is in C order, or in that in which the elements of the tensor lie.
    """
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    name = dtype or dtype_name(value.dtype)
    if order == "C":
        return _write(fresh(value.shape, name)[1], value)
    # One byte stands for all elements: NumPy looks at shape and strides alone.
    like = as_strided(np.empty(1, "uint8"), tuple(value.shape), value.stride())
    return _write(_over(np.empty_like(like, numpy_dtype(name), subok=False), name), value)


def download(value: Tensor, *, device: str) -> Array:
    """Return a device's tensor as a NumPy array on `device`, the host, complete on return."""
    array, tensor = fresh(value.shape, dtype_name(value.dtype))
    if not stage(tensor, value):
        tensor.copy_(value)
    return array


def item(value: Tensor, *, device: str) -> bool | float | complex:
    """Return the number of a device's tensor without axes."""
    number: bool | float | complex = value.item()
    return number


def download_all(values: list[Tensor], *, device: str) -> list[Array] | Any:
    """Return what `download` does for plain tensors of a CUDA device, at once."""
    if not values[0].is_cuda or not cross_at_once(values):
        return NotImplemented
    small = fetch_small(values)
    if small is not None:
        flat, ends = _as_numpy(small), accumulate(value.numel() for value in values)
        return [
            flat[end - value.numel() : end].reshape(value.shape).copy()
            for end, value in zip(ends, values, strict=True)
        ]
    arrays, outs = zip(*(fresh(x.shape, dtype_name(x.dtype)) for x in values), strict=True)
    return [*arrays] if fetch_all(outs, values) else NotImplemented


def download_into(out: Array, value: Tensor) -> None:
    """Write the numbers of a device's tensor into one NumPy block, complete on return."""
    if not out.flags.carray or not out.dtype.isnative:
        msg = f"the driver copies bytes, and out is {out.dtype} of strides {out.strides}"
        raise Declined(msg)
    tensor = _over_numpy(out)
    if not stage(tensor, value):
        tensor.copy_(value)


def upload(value: Array, *, device: str) -> Tensor:
    """Return a C-ordered tensor on a device of a NumPy array's elements, complete on return."""
    return move(_over_numpy(value), device=device)


def upload_all(values: list[Array], *, device: str) -> list[Tensor] | Any:
    """Return what `upload` does for arrays that lie in one block each, at once."""
    return _send_all([*map(_over_numpy, values)], device)


def upload_into(out: Tensor, value: Array) -> None:
    """Write a NumPy array's numbers into a tensor on a device, without another one beside it."""
    fill(out, _over_numpy(value))


def copy_into_torch(value: Array) -> Tensor:
    """Return a C-ordered tensor of a NumPy array's elements, in memory of its own."""
    return clone(_over_numpy(value))


def _over_numpy(value: Array) -> Tensor:
    """Return a tensor that shares the memory of an array of NumPy's or ml_dtypes'."""
    is_user_defined = value.dtype.isbuiltin == 2  # as the dtypes of ml_dtypes are
    return bits_to_torch(value) if is_user_defined else numpy_to_torch(value)


def view_as(value: Tensor, *, dtype: str) -> Tensor:
    """Return a view of the same elements under another dtype of the same width."""
    return value.view(torch_dtype(dtype))


def tensor_to_numpy(value: Tensor) -> Array:
    """Return a NumPy array that shares the tensor's memory."""
    array: Array = value.numpy()
    return array


def bits_to_numpy(value: Tensor) -> Array:
    """Return an ml_dtypes array that shares the tensor's memory."""
    if value.dtype not in _bits_for_numpy:
        carrier = torch_dtype(f"uint{8 * value.itemsize}")
        _bits_for_numpy[value.dtype] = carrier, numpy_dtype(dtype_name(value.dtype))
    carrier, dtype = _bits_for_numpy[value.dtype]
    array: Array = value.view(carrier).numpy().view(dtype)
    return array


def from_numpy(array: Array) -> Tensor:
    """Return a tensor over an array's memory, which may be flagged read-only.

    torch would warn of the flag, which it cannot carry. The policy has decided before that such
    memory may be shared all the same.
    """
    import numpy as np
    import torch

    array = unlocked(array)
    # Where two of C's types have one width, torch knows one of them, which NumPy prefers as well.
    dtype = np.dtype(array.dtype.str)
    if dtype.num != array.dtype.num:
        array = array.view(dtype)
    if min(array.strides, default=0) < 0:
        array = _forwards(array)
    try:
        tensor = torch.from_numpy(array)
    except ValueError as reason:  # strides that are not a whole number of elements
        raise Declined(str(reason)) from reason
    _sharers[array.dtype] = _share_complex if tensor.is_complex() else torch.from_numpy
    return tensor


def _share_complex(array: Array) -> Any:
    """Share complex numbers, unless torch's kernels would end the process on them.

    NumPy aligns them to half of their size.
    """
    import torch

    tensor = torch.from_numpy(array)
    return NotImplemented if tensor.data_ptr() % tensor.itemsize else tensor


def _forwards(array: Array) -> Array:
    """Return an array without the negative strides of axes of length 1 and of empty arrays.

    Such strides lead nowhere, but torch refuses them, and NumPy's `ascontiguousarray` keeps them
    (numpy/numpy#23349).
    """
    from numpy.lib.stride_tricks import as_strided

    steps = [
        array.itemsize if length <= 1 or not array.size else step
        for length, step in zip(array.shape, array.strides, strict=True)
    ]
    return as_strided(array, strides=steps)


def numpy_to_torch(value: Array) -> Tensor:
    """Return a tensor that shares a NumPy array's memory."""
    tensor = torch_fast_path(value)
    return from_numpy(value) if tensor is NotImplemented else tensor


def bits_to_torch(value: Array) -> Tensor:
    """Return a tensor that shares an ml_dtypes array's memory."""
    carrier, dtype = numpy_dtype(f"uint{8 * value.itemsize}"), torch_dtype(value.dtype.name)
    share = sys.modules["torch"].from_numpy
    _sharers[value.dtype] = lambda array: share(array.view(carrier)).view(dtype)
    return from_numpy(value.view(carrier)).view(dtype)


def numpy_fast_path(value: Tensor) -> Any:
    """Share a plain tensor with NumPy, or answer `NotImplemented`.

    A look at a tensor takes a third of the time that sharing takes, and torch's own refusal ten
    times that time. So torch is asked until it refuses. For a while after that, dtype and graph
    are looked at first. After a refusal in spite of that, the rare reasons are checked as well.

    In times of ``Tensor.numpy``, `interop.convert` takes 1.4 for a plain tensor and 12 for a
    conjugated one. It takes 1.6 and 29 if every tensor is looked at and none is checked.

    If a tensor has no memory, torch makes an array that owns garbage, and if it is longer than its
    storage, one that reaches beyond. So does a broadcast array, to which the planner attends.
    """
    global _looks_left  # noqa: PLW0603 - a lost update costs a refusal, or a look
    array: Any = NotImplemented
    if _looks_left <= 0:
        try:
            array = value.numpy()
        except (TypeError, RuntimeError, ValueError):
            _looks_left = _CHECKS
    if array is NotImplemented:
        array = _shared_after_a_look(value)
        if array is NotImplemented:
            return array
    if array.flags.owndata or len(value.untyped_storage()) < array.nbytes:
        return NotImplemented
    return array


def _shared_after_a_look(value: Tensor) -> Any:
    """Share a tensor with NumPy whose dtype and graph are looked at, or answer `NotImplemented`."""
    global _looks_left, _checks_left  # noqa: PLW0603 - as above
    if _checks_left:
        _checks_left -= 1
        if value.is_conj() or value.is_neg() or not value.is_cpu or value.layout is not _strided():
            _checks_left = _CHECKS
            return NotImplemented
    try:
        if (bits := _bits_for_numpy.get(value.dtype)) is not None:
            array = value.view(bits[0]).numpy()  # integers are in no graph
            return NotImplemented if array.flags.owndata else array.view(bits[1])
        if value.requires_grad:  # `force` would copy a conjugate instead of refusing it
            return value.detach().numpy()
        _looks_left -= 1
        return value.numpy()
    except (TypeError, RuntimeError, ValueError):
        _checks_left = _CHECKS
        return NotImplemented


def torch_fast_path(value: Array) -> Any:
    """Share a plain, writable and aligned array with torch, or answer `NotImplemented`.

    torch must not be asked for what it would refuse: that takes twenty times as long as to share.
    """
    if not value.flags.carray and (not value.flags.behaved or min(value.strides) < 0):
        return NotImplemented
    try:
        share = _sharers.get(value.dtype)
        return NotImplemented if share is None else share(value)
    except (ValueError, TypeError):  # numpy.ulonglong equals what torch knows
        return NotImplemented


def dlpack_fast_path(value: object) -> Any:
    """Share the memory of a producer on the host by way of NumPy, or answer `NotImplemented`.

    NumPy takes the capsule in a third of the time that torch does.
    """
    array = plain_array(value)
    return NotImplemented if array is None else torch_fast_path(array)


def from_dlpack(value: object, *, stream: object = None) -> Tensor:
    """Return a tensor over a DLPack producer's memory, ordered on `stream` if it is a device's."""
    from torch.utils.dlpack import from_dlpack as share

    producer = CheckedProducer(value, device_types=(_DLPACK_CPU, _DLPACK_CUDA))
    kind, index = producer.__dlpack_device__()
    try:
        with sharing(index, stream) if kind == _DLPACK_CUDA else nullcontext():
            return share(producer)
    except HandOffError as reason:  # NumPy exports no odd strides, but there are other ways
        raise Declined(str(reason)) from reason


def fill(out: Tensor, value: Tensor) -> None:
    """Write the numbers of `value` into `out`."""
    write(out, value)
    # Whoever else owns the memory of `value` may overwrite it once this has returned.
    if value.is_cuda and not value.untyped_storage().resizable():
        torch = sys.modules["torch"]
        torch.cuda.current_stream(value.device).synchronize()


def write(out: Tensor, value: Tensor) -> None:
    """Write the numbers of `value` into `out`.

    On the host they are those that NumPy makes where the dtypes differ.
    """
    import torch

    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        if value.is_complex() and not out.is_complex():
            value = _resolved(value) if out.dtype is torch.bool else value.real
        dtypes = dtype_name(value.dtype), dtype_name(out.dtype)
        if not out.is_cpu or casts_as_numpy(*dtypes):
            _write(out, value)
        elif out.is_neg():
            out.copy_(cast_as_numpy(value, dtype=dtypes[1]))
        else:
            write_as_numpy(out, value.resolve_neg())
    note_write(out)


def note_write(out: Tensor) -> None:
    """Tell autograd of a write that it may not have seen, into what it may need for a gradient."""
    import torch

    if not out.is_inference():
        torch.autograd.graph.increment_version(out)


def unwritable(out: Tensor) -> str | None:
    """Say why torch does not write into a tensor at present, if it does not."""
    import torch

    if out.requires_grad:
        return (
            f"a tensor of shape {tuple(out.shape)} that requires a gradient; give what its "
            "detach() returns."
        )
    if torch.is_inference(out) and not torch.is_inference_mode_enabled():
        return (
            f"a tensor of shape {tuple(out.shape)} that was made in inference mode; write into it "
            "in torch.inference_mode(), or give a clone."
        )
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return (
            f"a tensor of shape {tuple(out.shape)} from outside a transform of torch.func, which "
            "sees no writes into it; leave out out= in there."
        )
    return None
