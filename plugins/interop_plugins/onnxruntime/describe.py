"""OrtValues: their element types, their specs, and their memory."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import HandOffError
from interop.kit import COMPLEX, EMPTY, INTEGERS, REALS
from interop.plugin import Spec, itemsize

if TYPE_CHECKING:
    from onnxruntime import OrtValue, SparseTensor

    Interface: TypeAlias = dict[str, object]

#: dtypes by ONNX's numbers of element types. Its complex ones ONNX Runtime does not have.
ELEMENT_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}
TYPE_NUMBERS = {name: number for number, name in ELEMENT_TYPES.items()}
DTYPES = frozenset(TYPE_NUMBERS)
#: The bits of the elements narrower than a byte. The first of a byte lies in its lowest bits.
PACKED_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}
PACKED = frozenset(PACKED_BITS)
#: The dtypes that NumPy has only by ml_dtypes, and that DLPack does not take from there.
NARROW = frozenset(name for name in DTYPES - PACKED if name.startswith(("bfloat", "float8")))
PLAIN = INTEGERS | REALS | {"bool"}
ON_CUDA = PLAIN | {"bfloat16"}

#: The trait of a value over memory that NumPy holds read-only.
LOCKED = frozenset({"locked"})
#: The trait of a value of the C layer, without an object of Python's class around it.
BARE = frozenset({"bare"})

REFUSAL_HINTS = {
    "sequence": "it is a sequence of tensors; convert its elements one by one, as a session "
    "returns them (InferenceSession.run).",
    "map": "it is a map, not a tensor; take its values from what a session returns "
    "(InferenceSession.run).",
    "sparse": "it is a sparse tensor of ONNX Runtime's; build a scipy.sparse array from its values "
    "and indices (as_sparse_tensor), or ask the model for a dense output.",
    "no_value": "it is an optional without a value; ask has_value() first.",
    **dict.fromkeys(
        sorted(COMPLEX),
        "ONNX Runtime has no complex tensors; convert the real and the imaginary part.",
    ),
}

#: DLPack's numbers of the devices that interop has names for.
_DEVICE_TYPES = {2: "cuda", 10: "rocm"}


def describe(value: OrtValue | SparseTensor) -> Spec:
    """Return the spec of an OrtValue.

    Parameters
    ----------
    value : onnxruntime.OrtValue or onnxruntime.SparseTensor

    Returns
    -------
    Spec
        A value that is not a tensor has the trait ``sequence``, ``map``, ``sparse`` or
        ``no_value``. A tensor over memory that NumPy holds read-only is ``locked``; one of the C
        layer, without an object of Python's class around it, is ``bare``. A dtype that interop
        does not have is named as ONNX Runtime names it.
    """
    if not is_tensor(value):
        return _describe_other(value)
    number, shape = value.element_type(), tuple(value.shape())
    device = value.device_name().lower()
    name = ELEMENT_TYPES.get(number) or value.data_type()
    traits = ownership(value)
    if device != "cpu":
        device = device_name(value, device)
    nbytes = value.tensor_size_in_bytes() if name in PACKED else prod(shape) * itemsize(name)
    return Spec("onnxruntime", name, device, shape, traits, nbytes)


def is_tensor(value: OrtValue | SparseTensor) -> bool:
    """Tell whether a value holds a tensor."""
    method = getattr(value, "is_tensor", None)
    return method is not None and bool(method()) and bool(value.has_value())


def _describe_other(value: OrtValue | SparseTensor) -> Spec:
    type_ = value.data_type()
    has_value = getattr(value, "has_value", None)
    if has_value is not None and not has_value():
        trait = "no_value"
    elif type_.startswith("sparse"):
        trait = "sparse"
    else:
        trait = "map" if type_.startswith("map") else "sequence"
    return Spec("onnxruntime", type_, "cpu", (), frozenset({trait}))


def ownership(value: OrtValue) -> frozenset[str]:
    """Return the traits that follow from the array that a value was made over, if it is known."""
    owner = getattr(value, "_numpy_obj", value)
    if owner is None:
        return EMPTY
    if owner is value:
        return BARE
    return EMPTY if owner.flags.writeable else LOCKED


def device_name(value: OrtValue, name: str) -> str:
    """Return the name of a device that is not the host."""
    try:
        number, index = value.__dlpack_device__()
    except RuntimeError:  # DLPack has no number for WebGPU's devices
        return f"{name}:0"
    return f"{_DEVICE_TYPES.get(number, name)}:{index}"


def itself_if_tensor(value: OrtValue) -> Any:
    """Return a value as it is if it is a tensor."""
    return value if is_tensor(value) else NotImplemented


def memory(value: OrtValue) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of a tensor's memory."""
    if not is_tensor(value) or not value.tensor_size_in_bytes():
        return ()
    return ((value.data_ptr(), value.tensor_size_in_bytes()),)


def array_interface(value: OrtValue, shape: tuple[int, ...], typestr: str) -> Interface:
    """Return the array interface of a tensor. A session has written it before it returns it."""
    pointer = value.data_ptr()
    if not pointer and 0 not in shape:
        msg = (
            "onnxruntime: an OrtValue has elements and no address. Let the session that made it "
            "return it again."
        )
        raise HandOffError(msg)
    return {"version": 3, "shape": shape, "typestr": typestr, "data": (pointer, False)}
