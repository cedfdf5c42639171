"""TensorFlow's tensors and variables converted: to NumPy and torch, from NumPy, and within."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError
from interop.kit import (
    CastErrors,
    address,
    checked_export,
    extents,
    numpy_dtype,
    parallel_for,
    real_part,
)
from interop.plugin import Declined

from .describe import (
    BUFFERED,
    DLPACK_DTYPES,
    IMMUTABLE,
    NARROW,
    buffered_ids,
    describe,
    dlpack_ids,
    eagerly,
    host_names,
    logical_device,
    narrow_ids,
    value_of,
)

if TYPE_CHECKING:
    import numpy as np
    import torch
    from tensorflow import Tensor, Variable

    NumpyArray = np.ndarray[Any, Any]
    NumpyDtype = np.dtype[Any]

#: The errors of NumPy and torch when there is nothing to hand over.
_HAND_OFF_ERRORS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: TensorFlow works on host memory that is aligned to this many bytes, and aborts on any other.
_ALIGNMENT = 64
#: From this many bytes on it may pay to copy with several threads.
_LARGE = 2**22
#: Bytes, and at least so many rows, that are copied at a time where the order of axes differs.
_BLOCK, _ROWS = 2**18, 16

#: NumPy has no more axes, and torch little use for them; TensorFlow has up to 254.
_MOST_AXES = 64
#: NumPy's numbers of the dtypes of `BUFFERED`; ml_dtypes use some of its characters again.
_PLAIN_NUMBERS = frozenset({*range(13), 14, 15, 23})


@cache
def _torch_from_dlpack() -> Callable[[object], torch.Tensor]:
    """Return torch's consumer of capsules: to import it takes a fast path a tenth of its time."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


@cache
def _asarray() -> Callable[[object], NumpyArray]:
    """Return NumPy's function, for the same reason."""
    import numpy as np

    return np.asarray


def memory(value: Tensor | Variable) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of a tensor.

    A variable tells nothing: every assignment may put it somewhere else.
    """
    spec = describe(value)
    if not spec.nbytes or spec.traits - IMMUTABLE:
        return ()
    if spec.device == "cpu":
        return extents([view(value)])
    if spec.dtype in DLPACK_DTYPES:
        return ((checked_export(value).data, spec.nbytes),)
    return ()


# ---------------------------------------------------------------------- out of TensorFlow


def view(value: Tensor) -> NumpyArray:
    """Return a read-only array over the memory of a tensor on the host."""
    return to_numpy(value) if value.dtype.name in BUFFERED else narrow_to_numpy(value)


def to_numpy(value: Tensor) -> NumpyArray:
    """Return a read-only NumPy array over the memory of a tensor on the host."""
    import numpy as np

    return np.asarray(memoryview(value))


def narrow_to_numpy(value: Tensor) -> NumpyArray:
    """Return a read-only ml_dtypes array over the memory of a tensor on the host."""
    shape = tuple(value.shape)
    if not shape:  # TensorFlow would give a number; in another shape it shares
        import tensorflow as tf

        with eagerly("/CPU:0"):
            value = tf.reshape(value, [1])
    array: NumpyArray = value.__array__()
    if array.base is None and array.size:
        msg = f"TensorFlow did not share its {value.dtype.name} tensor with NumPy but copied it"
        raise Declined(msg)
    array.flags.writeable = False
    return array.reshape(shape)


def numpy_fast_path(value: Tensor) -> object:
    """Share a plain tensor on the host with NumPy, or answer `NotImplemented`."""
    try:
        dtype = id(value.dtype)
        if value.backing_device in host_names:
            if dtype in buffered_ids:
                array = _asarray()(value)  # sooner than of a memoryview, which it makes itself
                return NotImplemented if array.flags.writeable else array
            if dtype in narrow_ids:
                return narrow_to_numpy(value)
    except (*_HAND_OFF_ERRORS, _operation_error(), Declined):
        pass
    return NotImplemented


def _operation_error() -> type[Exception]:
    """Return TensorFlow's own error, of more axes than NumPy has, say; it is no `RuntimeError`."""
    import tensorflow as tf

    error: type[Exception] = tf.errors.OpError
    return error


def to_torch(value: Tensor) -> torch.Tensor:
    """Return a torch tensor over the memory of a tensor.

    TensorFlow hands it out when the work on it is done, so no stream has to wait.
    """
    return _torch_from_dlpack()(value.__dlpack__())


def torch_fast_path(value: Tensor) -> object:
    """Share a plain tensor on the host with torch, or answer `NotImplemented`."""
    try:
        # Asked for a capsule of strings, TensorFlow ends the process.
        if id(value.dtype) in dlpack_ids and value.backing_device in host_names:
            result = _torch_from_dlpack()(value.__dlpack__())
            return result if result.ndim <= _MOST_AXES else NotImplemented
    except _HAND_OFF_ERRORS:
        pass
    return NotImplemented


class _AnyStream:
    """A tensor as a producer that may be asked for any stream.

    TensorFlow does not take one, and waits until the work on its tensor is done.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Tensor) -> None:
        self._value = value

    def __dlpack__(self, **_: object) -> object:
        return self._value.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._value.__dlpack_device__()
        return device


def to_consumer(consumer: str, value: Tensor) -> object:
    """Return what a consumer's ``from_dlpack`` makes of a tensor on an accelerator."""
    from importlib import import_module

    return import_module(consumer).from_dlpack(_AnyStream(value))


def download(value: Tensor, *, device: str) -> NumpyArray:
    """Return a NumPy array of its own of a tensor on another device.

    TensorFlow keeps the copy that it makes on the host, and may hand it out again.
    """
    import numpy as np

    return np.array(value.__array__())


def snapshot(value: Variable, *, device: str = "cpu") -> NumpyArray:
    """Return a NumPy array with what a variable holds at present."""
    import numpy as np

    tensor = value_of(value)
    if describe(tensor).device != "cpu":
        return download(tensor, device=device)
    array = view(tensor)
    out = np.empty(array.shape, array.dtype)
    _write(out, array)
    return out


# ---------------------------------------------------------------------- into TensorFlow


def from_numpy(value: NumpyArray, *, dtype: str | None = None) -> Tensor:
    """Return a tensor on the host with a copy of a NumPy array's elements, cast on the way.

    TensorFlow would share memory that happens to be aligned to 64 bytes, and aborts on any other.
    Whether the result shares memory must not depend on that, so it never does.
    """
    target = value.dtype if dtype is None else numpy_dtype(dtype)
    if not target.isnative:
        target = target.newbyteorder("=")
    value = real_part(value, target)
    if value.dtype == target and target.name in NARROW - DLPACK_DTYPES:
        import numpy as np

        return put(np.asarray(value, order="C"))
    out = aligned(value.shape, target)
    _write(out, value)
    return put(out)


def _write(out: NumpyArray, value: NumpyArray) -> None:
    """Write `value` into `out`, which is in C order, and cast on the way."""
    errors = CastErrors()
    if out.nbytes < _LARGE:
        _copy_into(out, value, errors)
        errors.tell()
        return
    if value.flags.c_contiguous:
        out, value, rows = out.reshape(-1), value.reshape(-1), 2**16
    else:  # so few rows that the cache still holds the parts of other rows that came along
        rows = max(_ROWS, _BLOCK * len(out) // out.nbytes)

    def work(start: int, stop: int) -> None:
        for row in range(start * rows, min(stop * rows, len(out)), rows):
            _copy_into(out[row : row + rows], value[row : row + rows], errors)

    parallel_for(work, -(-len(out) // rows), out.nbytes)
    errors.tell()


def _copy_into(out: NumpyArray, value: NumpyArray, errors: CastErrors) -> None:
    import numpy as np

    if out.dtype == value.dtype:
        np.copyto(out, value)
        return
    errors.run(np.copyto, out, value, "unsafe")


def aligned(shape: tuple[int, ...], dtype: NumpyDtype) -> NumpyArray:
    """Return a new array at an address where TensorFlow can work on it."""
    import numpy as np

    raw = np.empty(prod(shape) * dtype.itemsize + _ALIGNMENT - 1, np.uint8)
    start = -address(raw) % _ALIGNMENT
    return np.ndarray(shape, dtype, raw, start)


def put(array: NumpyArray) -> Tensor:
    """Return a tensor over `aligned` memory that nobody else has.

    Of a dtype that TensorFlow's DLPack does not know it is a copy of any memory in C order.
    """
    import tensorflow as tf

    if not tf.executing_eagerly():
        with eagerly():  # which declines where there are no values at all
            pass
    share = _from_dlpack()
    if array.dtype.num in _PLAIN_NUMBERS:
        return share(array.__dlpack__())
    if array.dtype.name == "bfloat16":
        bits = share(array.view("u2").__dlpack__())
        with eagerly("/CPU:0"):
            return tf.bitcast(bits, tf.bfloat16)
    with eagerly("/CPU:0"):
        return tf.constant(array)  # which always copies; there is no other way in for the rest


@cache
def _from_dlpack() -> Callable[[object], Tensor]:
    """Return TensorFlow's consumer of capsules, whose module takes longer to look up."""
    import tensorflow as tf

    consumer: Callable[[object], Tensor] = tf.experimental.dlpack.from_dlpack
    return consumer


def tensorflow_fast_path(value: NumpyArray) -> object:
    """Copy a plain array to TensorFlow, or answer `NotImplemented`."""
    dtype = value.dtype
    if dtype.num in _PLAIN_NUMBERS and dtype.isnative:
        return from_numpy(value)
    return NotImplemented


def upload(value: NumpyArray, *, device: str) -> Tensor:
    """Return a tensor on another device with a NumPy array's elements."""
    # From a copy that nobody writes to, since TensorFlow reads it some time later.
    return move(from_numpy(value), device=device)


def fill(out: Variable, value: Tensor) -> None:
    """Assign the numbers of a tensor to a variable.

    Raises
    ------
    BadRequestError
        `out` is not a variable, or stands for one inside a trace.
    """
    spec = describe(out)
    if "variable" not in spec.traits or "traced" in spec.traits:
        msg = "out= is not a variable with a value; give a tf.Variable, outside of a tf.function."
        raise BadRequestError(msg)
    if describe(value).dtype != spec.dtype:
        value = from_numpy(view(value), dtype=spec.dtype)
    out.assign(value)


# ---------------------------------------------------------------------- within TensorFlow


def copy(value: Tensor) -> Tensor:
    """Return a copy of a tensor on the host."""
    return from_numpy(view(value))


def deep_copy(value: Tensor) -> Tensor:
    """Return a copy of a tensor on the same device."""
    import tensorflow as tf

    with eagerly(value.backing_device):
        return tf.raw_ops.DeepCopy(x=value)


def read(value: Variable) -> Tensor:
    """Return a tensor of its own with what a variable holds at present.

    What TensorFlow's own reading returns may share memory with the variable until that is next
    assigned to; whether it does depends on what was done to the variable before.
    """
    array = view(value_of(value))
    out = aligned(array.shape, array.dtype)
    _write(out, array)
    return put(out)


def cast(value: Tensor, *, dtype: str) -> Tensor:
    """Return a tensor of another dtype, on the same device."""
    import tensorflow as tf

    if value.dtype.name == dtype:
        msg = f"TensorFlow's cast to {dtype} would return the tensor itself, which is to be copied"
        raise Declined(msg)
    with eagerly(value.backing_device):
        return tf.cast(value, dtype)


def move(value: Tensor, *, device: str) -> Tensor:
    """Return a tensor on another device."""
    import tensorflow as tf

    with eagerly(logical_device(device)):
        return tf.identity(value)
