"""TensorFlow's tensors and variables described, and where and how new ones are made."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import DeviceError
from interop.kit import COMPLEX, EMPTY, INTEGERS, REALS
from interop.plugin import DTYPES as STANDARD_DTYPES
from interop.plugin import Declined, Spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorflow import DType, Tensor, TensorShape, Variable

#: The dtypes that the buffer protocol can name. TensorFlow's DLPack also knows bfloat16.
BUFFERED = INTEGERS | REALS | COMPLEX | {"bool"}
DLPACK_DTYPES = BUFFERED | {"bfloat16"}
#: The dtypes that NumPy knows only through ml_dtypes. Each element fills one byte or two.
NARROW = frozenset(
    {
        "bfloat16",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float4_e2m1fn",
        "int2",
        "int4",
        "uint2",
        "uint4",
    }
)
DTYPES = BUFFERED | NARROW

IMMUTABLE = frozenset({"immutable"})
_ELSEWHERE = frozenset({"elsewhere"})
_STRINGS, _CODES, _HANDLES = (
    frozenset({trait, "not_numbers"}) for trait in ("strings", "codes", "handles")
)
_UNKNOWN_SHAPE = frozenset({"unknown_shape"})

_DEVICE = re.compile(r"/job:localhost/replica:0/task:0/device:(CPU|GPU|TPU):([0-9]{1,9})")

# Filled on first use: the type of tensors that have a value, and for each dtype met its name, the
# bytes of an element, and its traits.
_eager_types: set[type] = set()
_dtypes: dict[DType, tuple[str, int, frozenset[str]]] = {}

# Likewise, for the fast paths: the ids of the dtypes met that are in the sets above, and the names
# of the host. TensorFlow has one object for each dtype and never frees it.
buffered_ids: set[int] = set()
narrow_ids: set[int] = set()
dlpack_ids: set[int] = set()
host_names: set[str] = set()


def describe(value: Tensor | Variable) -> Spec:
    """Return the spec of a tensor, a variable, or what stands for a tensor.

    Parameters
    ----------
    value : tf.Tensor, tf.Variable, keras.Variable or keras.KerasTensor

    Returns
    -------
    Spec
        Lengths that a trace does not know are zero, and the trait ``unknown_shape`` says so.
    """
    if type(value) not in _eager_types and not _is_eager(value):
        return _describe_other(value)
    name, width, dtype_traits = _dtypes.get(value.dtype) or _learn(value.dtype)
    device, traits = place(value.backing_device)
    shape = tuple(value.shape)
    if dtype_traits:
        traits = traits | dtype_traits
    return Spec("tensorflow", name, device, shape, traits, prod(shape) * width)


def _is_eager(value: object) -> bool:
    """Tell tensors that have a value from those of traces, and from everything else."""
    import tensorflow as tf

    if not isinstance(value, tf.Tensor) or tf.is_symbolic_tensor(value):
        return False
    _eager_types.add(type(value))
    return True


def _learn(dtype: DType) -> tuple[str, int, frozenset[str]]:
    """Return and keep the name, the bytes and the traits of a dtype that was not met before."""
    name = dtype_name(dtype)
    dtype_traits = EMPTY
    if name == "string":
        dtype_traits = _STRINGS
    elif name in ("resource", "variant"):
        dtype_traits = _HANDLES
    elif name not in STANDARD_DTYPES:
        dtype_traits = _CODES  # qint8, quint8 …
    for names, ids in (
        (BUFFERED, buffered_ids),
        (NARROW, narrow_ids),
        (DLPACK_DTYPES, dlpack_ids),
    ):
        if name in names:
            ids.add(id(dtype))
    _dtypes[dtype] = name, dtype.size if name in DTYPES else 0, dtype_traits
    return _dtypes[dtype]


def unsupported_now(device: str = "") -> frozenset[str]:
    """Return the dtypes that the imported release of TensorFlow lacks."""
    as_dtype = getattr(sys.modules.get("tensorflow"), "as_dtype", None)
    return EMPTY if as_dtype is None else _unknown_to(as_dtype)


@cache
def _unknown_to(as_dtype: Callable[[str], DType]) -> frozenset[str]:
    """Return the dtypes whose names TensorFlow does not take."""
    unknown = set()
    for name in NARROW:
        try:
            as_dtype(name)
        except TypeError:
            unknown.add(name)
    return frozenset(unknown)


def dtype_name(dtype: DType) -> str:
    """Return the name of one of TensorFlow's dtypes."""
    return str(dtype.base_dtype.name)


@cache
def place(name: str) -> tuple[str, frozenset[str]]:
    """Return the device that TensorFlow calls by a name, and the traits of a tensor there."""
    match = _DEVICE.fullmatch(name)
    if match is None:
        return "cpu", IMMUTABLE | _ELSEWHERE
    kind, index = match.groups()
    if kind == "CPU":
        host_names.add(name)
        return "cpu", IMMUTABLE
    if kind == "TPU":
        return f"tpu:{index}", IMMUTABLE
    for platform in ("cuda", "rocm"):
        if _is_built_with(platform):
            return f"{platform}:{index}", IMMUTABLE
    return "cpu", IMMUTABLE | _ELSEWHERE  # a plugin's device, which may also be called a GPU


def _is_built_with(platform: str) -> bool:
    import tensorflow as tf

    test = tf.test.is_built_with_rocm if platform == "rocm" else tf.test.is_built_with_cuda
    return bool(test())


def _describe_other(value: Any) -> Spec:
    """Return the spec of what is not a tensor with a value."""
    import tensorflow as tf

    if isinstance(value, tf.Variable):
        return _describe_variable(value)
    if isinstance(value, tf.Tensor):
        name, _, dtype_traits = _dtypes.get(value.dtype) or _learn(value.dtype)
        return _without_value(name, value.shape, dtype_traits | {"traced"})
    if hasattr(value, "assign"):
        return _describe_variable(value.value)
    if type(value).__name__ == "KerasTensor":
        return _without_value(str(value.dtype), tf.TensorShape(value.shape), {"symbolic"})
    return Spec("tensorflow", None, "cpu", (), frozenset({"foreign"}))


def _without_value(name: str, shape: TensorShape, traits: AbstractSet[str]) -> Spec:
    """Return the spec of what has no value, and perhaps no known shape."""
    lengths = () if shape.rank is None else tuple(length or 0 for length in shape)
    unknown = EMPTY if shape.is_fully_defined() else _UNKNOWN_SHAPE
    return Spec("tensorflow", name, "cpu", lengths, unknown | traits)


def _describe_variable(value: Variable | Tensor) -> Spec:
    """Return the spec of a variable, or of the tensor that Keras gives for one of its own."""
    import tensorflow as tf

    name, width, dtype_traits = _dtypes.get(value.dtype) or _learn(value.dtype)
    traits = dtype_traits | {"variable"}
    if not tf.executing_eagerly():
        return _without_value(name, value.shape, traits | {"traced"})
    shape = value.shape if value.shape.is_fully_defined() else value_of(value).shape
    device, tensor_traits = place(value.device)
    traits |= tensor_traits - IMMUTABLE
    return Spec("tensorflow", name, device, tuple(shape), traits, prod(shape) * width)


def value_of(value: Variable | Tensor) -> Tensor:
    """Return the tensor with what a variable holds at present."""
    if not hasattr(value, "read_value"):
        value = value.value  # of Keras's, which is one of TensorFlow's or a tensor
    return value.value() if hasattr(value, "read_value") else value


@contextmanager
def eagerly(device: str | None = None) -> Iterator[None]:
    """Make what is made here at once, on a device, also inside a ``tf.function``."""
    import tensorflow as tf

    with tf.init_scope():
        if not tf.executing_eagerly():
            msg = "eager execution is disabled, and without it TensorFlow's tensors have no values"
            raise Declined(msg)
        if device is None:
            yield
            return
        with tf.device(device):
            yield


def logical_device(device: str) -> str:
    """Return TensorFlow's name of a device."""
    import tensorflow as tf

    platform, _, index = device.partition(":")
    if platform == "cpu":
        return "/CPU:0"
    kind = "TPU" if platform == "tpu" else "GPU"
    count = len(tf.config.list_logical_devices(kind))
    if (kind == "GPU" and not _is_built_with(platform)) or int(index or 0) >= count:
        msg = (
            f"TensorFlow finds no device {device}; install its support for {platform}, or name "
            "another device."
        )
        raise DeviceError(msg)
    return f"/{kind}:{index or 0}"


def keep_autograph_out(function: Callable[..., object]) -> None:
    """Keep AutoGraph from rewriting a function that is called inside a ``tf.function``.

    It would rewrite everything called from there as well, although nothing in it is to be traced.
    """
    marked: Any = function
    marked.autograph_info__ = {}
