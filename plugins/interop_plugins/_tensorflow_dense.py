"""TensorFlow's tensors and variables: how they come and go."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError
from interop.plugin import Declined, checked_export, parallel_for

from ._tensorflow_describe import (
    BUFFERED,
    DLPACK_DTYPES,
    IMMUTABLE,
    buffered,
    describe,
    eagerly,
    exported,
    hosts,
    logical,
    narrow,
    value_of,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "aligned",
    "cast",
    "copy",
    "deep_copy",
    "download",
    "fill",
    "from_numpy",
    "memory",
    "move",
    "narrow_to_numpy",
    "numpy_fast_path",
    "put",
    "read",
    "snapshot",
    "tensorflow_fast_path",
    "to_consumer",
    "to_numpy",
    "to_torch",
    "torch_fast_path",
    "upload",
    "variable",
    "view",
]

#: What NumPy, torch or TensorFlow raise when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: TensorFlow works on host memory that is aligned to this many bytes, and aborts on any other.
_ALIGNMENT = 64
#: Bytes from which on it may pay to copy with several threads.
_LARGE = 2**22
#: Bytes, and at least so many rows, that are copied at a time where the order of axes differs.
_BLOCK, _ROWS = 2**18, 16

#: NumPy has no more axes, and torch little use for them; TensorFlow has up to 254.
_MOST_AXES = 64
#: NumPy's numbers of the dtypes of `BUFFERED`; ml_dtypes use some of its characters again.
_PLAIN_NUMBERS = frozenset({*range(13), 14, 15, 23})

_torch_from_dlpack: list[Callable[[Any], Any]] = []  # torch's consumer, once it was met


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of a tensor.

    A variable tells nothing: every assignment may put it somewhere else.
    """
    spec = describe(value)
    if not spec.nbytes or spec.traits - IMMUTABLE:
        return ()
    if spec.device == "cpu":
        return ((view(value).__array_interface__["data"][0], spec.nbytes),)
    if spec.dtype in DLPACK_DTYPES:
        return ((checked_export(value).data, spec.nbytes),)
    return ()


# ---------------------------------------------------------------------- out of TensorFlow


def view(value: Any) -> Array:
    """Return a read-only array over the memory of a tensor on the host."""
    return to_numpy(value) if value.dtype.name in BUFFERED else narrow_to_numpy(value)


def to_numpy(value: Any) -> Array:
    """Return a read-only NumPy array over the memory of a tensor on the host."""
    import numpy as np

    return np.asarray(memoryview(value))


def narrow_to_numpy(value: Any) -> Array:
    """Return a read-only ml_dtypes array over the memory of a tensor on the host."""
    shape = tuple(value.shape)
    if not shape:  # TensorFlow would give a number; in another shape it shares
        import tensorflow as tf

        with eagerly("/CPU:0"):
            value = tf.reshape(value, [1])
    array: Array = value.__array__()
    if array.base is None and array.size:
        msg = f"TensorFlow did not share its {value.dtype.name} tensor with NumPy but copied it"
        raise Declined(msg)
    array.flags.writeable = False
    return array.reshape(shape)


def numpy_fast_path(value: Any) -> Any:
    """Share a plain tensor on the host with NumPy, or answer `NotImplemented`."""
    import numpy as np

    try:
        dtype = id(value.dtype)
        if value.backing_device in hosts:
            if dtype in buffered:
                return np.asarray(memoryview(value))
            if dtype in narrow:
                return narrow_to_numpy(value)
    except (*_REFUSALS, Declined):
        pass
    return NotImplemented


def to_torch(value: Any) -> Any:
    """Return a torch tensor over the memory of a tensor.

    TensorFlow hands it out when the work on it is done, so that no stream has to wait.
    """
    from torch.utils.dlpack import from_dlpack as share

    if not _torch_from_dlpack:
        _torch_from_dlpack.append(share)
    return share(value.__dlpack__())


def torch_fast_path(value: Any) -> Any:
    """Share a plain tensor on the host with torch, or answer `NotImplemented`."""
    try:
        # Asked for a capsule of strings, TensorFlow ends the process.
        if id(value.dtype) in exported and value.backing_device in hosts:
            result = _torch_from_dlpack[0](value.__dlpack__())
            return result if result.ndim <= _MOST_AXES else NotImplemented
    except (*_REFUSALS, IndexError):
        pass
    return NotImplemented


class _Ready:
    """A tensor as a producer that may be asked for any stream.

    TensorFlow refuses to be told of one, and waits until the work on its tensor is done.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __dlpack__(self, **_: Any) -> Any:
        return self._value.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()


def to_consumer(consumer: str, value: Any) -> Any:
    """Return what a consumer's ``from_dlpack`` makes of a tensor on an accelerator."""
    from importlib import import_module

    return import_module(consumer).from_dlpack(_Ready(value))


def download(value: Any, *, device: str) -> Array:
    """Return a NumPy array of its own of a tensor on another device.

    TensorFlow keeps the copy that it makes on the host, and may hand it out again.
    """
    import numpy as np

    return np.array(value.__array__())


def snapshot(value: Any, *, device: str = "cpu") -> Array:
    """Return a NumPy array with what a variable holds at present."""
    import numpy as np

    tensor = value_of(value)
    if describe(tensor).device != "cpu":
        return download(tensor, device=device)
    seen = view(tensor)
    out = np.empty(seen.shape, seen.dtype)
    _write(out, seen)
    return out


# ---------------------------------------------------------------------- into TensorFlow


def from_numpy(value: Array, *, dtype: str | None = None) -> Any:
    """Return a tensor on the host with a copy of a NumPy array's elements, cast on the way.

    TensorFlow would share memory that happens to be aligned to 64 bytes, and aborts on any other.
    Whether the result shares memory must not depend on that, so it never does.
    """
    wanted = value.dtype if dtype is None else _dtype(dtype)
    if not wanted.isnative:
        wanted = wanted.newbyteorder("=")
    if value.dtype.kind == "c" and wanted.kind not in "cb":
        value = value.real
    out = aligned(value.shape, wanted)
    _write(out, value)
    return put(out)


def _write(out: Array, value: Array) -> None:
    """Write `value` into `out`, which is in C order, and cast on the way without a warning."""
    if out.nbytes < _LARGE:
        _copy(out, value)
        return
    if value.flags.c_contiguous:
        out, value, rows = out.reshape(-1), value.reshape(-1), 2**16
    else:  # few rows at a time, of which what is read of other rows by the way is still at hand
        rows = max(_ROWS, _BLOCK * len(out) // out.nbytes)

    def work(start: int, stop: int) -> None:
        for row in range(start * rows, min(stop * rows, len(out)), rows):
            _copy(out[row : row + rows], value[row : row + rows])

    parallel_for(work, -(-len(out) // rows), out.nbytes)


def _copy(out: Array, value: Array) -> None:
    import numpy as np

    if out.dtype == value.dtype:
        np.copyto(out, value)
        return
    with np.errstate(all="ignore"):  # which is each thread's own
        np.copyto(out, value, casting="unsafe")


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a new array at an address where TensorFlow can work on it."""
    import numpy as np

    raw = np.empty(prod(shape) * dtype.itemsize + _ALIGNMENT - 1, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNMENT
    return np.ndarray(shape, dtype, raw, start)


def put(array: Array) -> Any:
    """Return a tensor over `aligned` memory that nobody else has."""
    import tensorflow as tf

    if not tf.executing_eagerly():
        with eagerly():  # or say that there is no such thing
            pass
    share = _share()
    if array.dtype.num in _PLAIN_NUMBERS:
        return share(_capsule(array))
    if array.dtype.name == "bfloat16":
        bits = share(_capsule(array.view("u2")))
        with eagerly("/CPU:0"):
            return tf.bitcast(bits, tf.bfloat16)
    with eagerly("/CPU:0"):
        return tf.constant(array)  # which copies; there is no other way in for the rest


@cache
def _share() -> Callable[[Any], Any]:
    """Return TensorFlow's consumer of capsules, whose module takes longer to look up."""
    import tensorflow as tf

    share: Callable[[Any], Any] = tf.experimental.dlpack.from_dlpack
    return share


def _capsule(array: Array) -> Any:
    exported: Any = array.__dlpack__
    return exported()


def tensorflow_fast_path(value: Array) -> Any:
    """Copy a plain array to TensorFlow, or answer `NotImplemented`."""
    dtype = value.dtype
    if dtype.num in _PLAIN_NUMBERS and dtype.isnative:
        return from_numpy(value)
    return NotImplemented


@cache
def _dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def upload(value: Array, *, device: str) -> Any:
    """Return a tensor on another device with a NumPy array's elements."""
    # Of memory that nobody writes to, since TensorFlow reads it whenever it gets to it.
    return move(from_numpy(value), device=device)


def fill(out: Any, value: Any) -> None:
    """Assign the numbers of a tensor to a variable.

    Raises
    ------
    BadRequestError
        `out` is not a variable, or stands for one inside of a trace.
    """
    into = describe(out)
    if "variable" not in into.traits or "traced" in into.traits:
        msg = "out= is not a variable with a value; give a tf.Variable, outside of a tf.function."
        raise BadRequestError(msg)
    if describe(value).dtype != into.dtype:
        value = from_numpy(view(value), dtype=into.dtype)
    out.assign(value)


# ---------------------------------------------------------------------- within TensorFlow


def copy(value: Any) -> Any:
    """Return a copy of a tensor on the host."""
    return from_numpy(view(value))


def deep_copy(value: Any) -> Any:
    """Return a copy of a tensor on the same device."""
    import tensorflow as tf

    with eagerly(value.backing_device):
        return tf.raw_ops.DeepCopy(x=value)


def read(value: Any) -> Any:
    """Return a tensor of its own with what a variable holds at present.

    TensorFlow's own reading shares memory with the variable until that is next assigned to, or
    not, depending on what was done to it before.
    """
    return put(_into_place(value_of(value)))


def _into_place(tensor: Any) -> Array:
    seen = view(tensor)
    out = aligned(seen.shape, seen.dtype)
    _write(out, seen)
    return out


def cast(value: Any, *, dtype: str) -> Any:
    """Return a tensor of another dtype, on the same device."""
    import tensorflow as tf

    if value.dtype.name == dtype:
        msg = f"TensorFlow's cast to {dtype} would return the tensor itself, which is to be copied"
        raise Declined(msg)
    with eagerly(value.backing_device):
        return tf.cast(value, dtype)


def move(value: Any, *, device: str) -> Any:
    """Return a tensor on another device."""
    import tensorflow as tf

    with eagerly(logical(device)):
        return tf.identity(value)


def variable(value: Any) -> Any:
    """Return a variable of the numbers of a tensor: to try conversions out."""
    import tensorflow as tf

    with eagerly("/CPU:0"):
        return tf.Variable(value)
