"""TensorFlow's tensors and variables: what they are, and where they are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

from interop.errors import NotInstalledError
from interop.plugin import DTYPES as KNOWN
from interop.plugin import Declined, Spec

__all__ = [
    "BUFFERED",
    "DLPACK_DTYPES",
    "DTYPES",
    "IMMUTABLE",
    "NARROW",
    "buffered",
    "describe",
    "dtype_name",
    "eagerly",
    "exported",
    "hosts",
    "logical",
    "narrow",
    "shield",
    "value_of",
]

#: What the buffer protocol can name. TensorFlow's DLPack knows the same, and bfloat16.
BUFFERED = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
DLPACK_DTYPES = BUFFERED | {"bfloat16"}
#: What NumPy knows by ml_dtypes only; each element has a byte of its own, or two.
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

_NONE: frozenset[str] = frozenset()
IMMUTABLE = frozenset({"immutable"})
_ELSEWHERE, _STRINGS = frozenset({"elsewhere"}), frozenset({"strings"})
_CODES, _HANDLES = frozenset({"codes"}), frozenset({"handles"})
_UNKNOWN = frozenset({"unknown_shape"})

_DEVICE = re.compile(r"/job:localhost/replica:0/task:0/device:(CPU|GPU|TPU):(\d+)")

# Filled on first use. TensorFlow has one object for each dtype, which is never freed.
_eager_types: set[type] = set()
_dtypes: dict[Any, tuple[str, int, frozenset[str]]] = {}
buffered: set[int] = set()
narrow: set[int] = set()
exported: set[int] = set()
hosts: set[str] = set()


def describe(value: Any) -> Spec:
    """Return the spec of a tensor, a variable, or what stands for a tensor.

    Parameters
    ----------
    value : tf.Tensor, tf.Variable, tf.RaggedTensor, keras.Variable or keras.KerasTensor

    Returns
    -------
    Spec
        Lengths that a trace does not know are zero, and the trait ``unknown_shape`` says so.
    """
    if type(value) not in _eager_types and not _is_eager(value):
        return _describe_other(value)
    name, width, odd = _dtypes.get(value.dtype) or _learn(value.dtype)
    device, traits = _place(value.backing_device)
    shape = tuple(value.shape)
    if odd:
        traits = traits | odd
    return Spec("tensorflow", name, device, shape, traits, prod(shape) * width)


def _is_eager(value: Any) -> bool:
    """Tell tensors that have a value from those of traces, and from everything else."""
    import tensorflow as tf

    if not isinstance(value, tf.Tensor) or tf.is_symbolic_tensor(value):
        return False
    _eager_types.add(type(value))
    return True


def _learn(dtype: Any) -> tuple[str, int, frozenset[str]]:
    """Return and keep name, bytes and traits of a dtype that was not met before."""
    name = dtype_name(dtype)
    odd = _NONE
    if name == "string":
        odd = _STRINGS
    elif name in ("resource", "variant"):
        odd = _HANDLES
    elif name not in KNOWN:
        odd = _CODES  # qint8, quint8 …
    for names, numbers in ((BUFFERED, buffered), (NARROW, narrow), (DLPACK_DTYPES, exported)):
        if name in names:
            numbers.add(id(dtype))
    known = _dtypes[dtype] = (name, dtype.size if name in DTYPES else 0, odd)
    return known


def dtype_name(dtype: Any) -> str:
    """Return the name of one of TensorFlow's dtypes."""
    return str(dtype.base_dtype.name)


@cache
def _place(name: str) -> tuple[str, frozenset[str]]:
    """Return the device that TensorFlow calls by a name, and the traits of a tensor there."""
    found = _DEVICE.fullmatch(name)
    if found is None:
        return "cpu", IMMUTABLE | _ELSEWHERE
    kind, index = found.groups()
    if kind == "CPU":
        hosts.add(name)
        return "cpu", IMMUTABLE
    if kind == "TPU":
        return f"tpu:{index}", IMMUTABLE
    for mine in ("cuda", "rocm"):
        if _is_built_with(mine):
            return f"{mine}:{index}", IMMUTABLE
    return "cpu", IMMUTABLE | _ELSEWHERE  # a device of a plugin's, which also may be a "GPU"


def _is_built_with(kind: str) -> bool:
    import tensorflow as tf

    return bool(tf.test.is_built_with_rocm() if kind == "rocm" else tf.test.is_built_with_cuda())


def _describe_other(value: Any) -> Spec:
    import tensorflow as tf

    if isinstance(value, tf.Variable):
        return _describe_variable(value)
    if isinstance(value, (tf.Tensor, tf.RaggedTensor)):
        trait = "nested" if isinstance(value, tf.RaggedTensor) else "traced"
        name, _, odd = _dtypes.get(value.dtype) or _learn(value.dtype)
        return _without_value(name, value.shape, odd | {trait})
    if hasattr(value, "assign"):
        return _describe_variable(value.value)
    if type(value).__name__ == "KerasTensor":
        return _without_value(str(value.dtype), tf.TensorShape(value.shape), {"symbolic"})
    return Spec("tensorflow", None, "cpu", (), frozenset({"foreign"}))


def _without_value(name: str, shape: Any, traits: AbstractSet[str]) -> Spec:
    """Return the spec of what has no value, and perhaps no known shape."""
    lengths = () if shape.rank is None else tuple(length or 0 for length in shape)
    unknown = _NONE if shape.is_fully_defined() else _UNKNOWN
    return Spec("tensorflow", name, "cpu", lengths, unknown | traits)


def _describe_variable(value: Any) -> Spec:
    """Return the spec of a variable, or of the tensor that Keras gives for one of its own."""
    import tensorflow as tf

    name, width, odd = _dtypes.get(value.dtype) or _learn(value.dtype)
    traits = odd | {"variable"}
    if not tf.executing_eagerly():
        return _without_value(name, value.shape, traits | {"traced"})
    shape = value.shape if value.shape.is_fully_defined() else value_of(value).shape
    device, there = _place(value.device)
    traits |= there - IMMUTABLE
    return Spec("tensorflow", name, device, tuple(shape), traits, prod(shape) * width)


def value_of(value: Any) -> Any:
    """Return the tensor with what a variable holds at present."""
    if not hasattr(value, "read_value"):
        value = value.value  # Keras's, which holds one of TensorFlow's, or gives a tensor
    return value.value() if hasattr(value, "read_value") else value


@contextmanager
def eagerly(device: str | None = None) -> Iterator[None]:
    """Let what is made be made at once and on a device, also inside of a ``tf.function``."""
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


def logical(device: str) -> str:
    """Return TensorFlow's name of a device."""
    import tensorflow as tf

    kind, _, index = device.partition(":")
    if kind == "cpu":
        return "/CPU:0"
    theirs = "TPU" if kind == "tpu" else "GPU"
    there = len(tf.config.list_logical_devices(theirs))
    if (theirs == "GPU" and not _is_built_with(kind)) or int(index or 0) >= there:
        msg = (
            f"TensorFlow finds no device {device}; install its support for {kind}, or name "
            "another device."
        )
        raise NotInstalledError(msg, name="tensorflow")
    return f"/{theirs}:{index or 0}"


def shield(function: Any) -> None:
    """Keep AutoGraph from rewriting a function that is called inside of a ``tf.function``.

    It would rewrite all that is called from there, too, although nothing in it is to be traced.
    """
    function.autograph_info__ = {}
