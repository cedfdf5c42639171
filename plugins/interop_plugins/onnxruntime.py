"""ONNX Runtime: the tensors of its OrtValue.

ONNX Runtime keeps little of what it is given in view. `OrtValue.numpy` does not hold the array that
the value was made of, so that its result outlives the memory; `ortvalue_from_numpy` takes no notice
of byte order, masks and flags; DLPack says uint8 for bool, and nothing of streams. So memory leaves
here with the value as its owner, and comes in by a capsule that ONNX Runtime itself owns, where it
takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import HandOffError
from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Limits,
    Result,
    Spec,
    hookimpl,
    itemsize,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["interop_declarations"]

#: dtypes by ONNX's numbers of element types. It has complex numbers, which ONNX Runtime has not.
_ELEMENT_TYPES = {
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
_NUMBERS = {name: number for number, name in _ELEMENT_TYPES.items()}
_DTYPES = frozenset(_NUMBERS)
#: Elements narrower than a byte, by their bits: the first of a byte lies in its lowest bits.
_PACKED_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}
_PACKED = frozenset(_PACKED_BITS)
#: What NumPy knows by ml_dtypes only, and DLPack does not take to ONNX Runtime from there.
_NARROW = frozenset(name for name in _DTYPES - _PACKED if name.startswith(("bfloat", "float8")))
_PLAIN = _DTYPES - _PACKED - _NARROW
#: NumPy's codes of these.
_PLAIN_CODES = "?bBhHiIlLqQefd"
_ON_CUDA = _PLAIN | {"bfloat16"}
#: What CuPy holds of that without knowing ml_dtypes.
_CUPY = _PLAIN

_NONE: frozenset[str] = frozenset()
_COPY, _TRANSFER = frozenset({"copy"}), frozenset({"transfer"})
_CPU, _CUDA, _DEVICE = frozenset({"cpu"}), frozenset({"cuda"}), frozenset({"device"})
_LOCKED, _IMMUTABLE = frozenset({"locked"}), frozenset({"immutable"})
_BARE = frozenset({"bare"})
#: What may be shared where the policy permits it.
_FLAGS = frozenset({"readonly", "immutable", "pinned"})

#: Between the host and a device.
_WIRE = Cost(1e-5, 1.2e10)

_OBSTACLES = {
    "sequence": "it is a sequence of tensors; convert its elements one by one, as a session "
    "returns them (InferenceSession.run).",
    "map": "it is a map and no tensor; take its values from what a session returns "
    "(InferenceSession.run).",
    "sparse": "it is a sparse tensor of ONNX Runtime's; build a scipy.sparse array from its values "
    "and indices (as_sparse_tensor), or ask the model for a dense output.",
    "no_value": "it is an optional without a value; ask has_value() first.",
    "complex64": "ONNX Runtime has no complex tensors; convert the real and the imaginary part.",
    "complex128": "ONNX Runtime has no complex tensors; convert the real and the imaginary part.",
}
_ODD = frozenset({"sequence", "map", "sparse", "no_value"})

_MODULE = "onnxruntime.capi.onnxruntime_inference_collection"
_NATIVE = "onnxruntime.capi.onnxruntime_pybind11_state"

#: DLPack's numbers of the devices that have a name of ours.
_DEVICE_TYPES = {2: "cuda", 10: "rocm"}


def describe(value: Any) -> Spec:
    """Return the spec of an OrtValue.

    Parameters
    ----------
    value : onnxruntime.OrtValue or onnxruntime.SparseTensor

    Returns
    -------
    Spec
        What is no tensor has the trait ``sequence``, ``map``, ``sparse`` or ``no_value``. One that
        lies in memory which NumPy holds read-only is ``locked``, and one that Python's own class is
        not around ``bare``. A dtype that is none of numbers is named as ONNX Runtime names it.
    """
    if not _is_tensor(value):
        return _describe_other(value)
    number, shape = value.element_type(), tuple(value.shape())
    device = value.device_name().lower()
    name = _ELEMENT_TYPES.get(number) or value.data_type()
    traits = _holding(value)
    if device != "cpu":
        device = _device(value, device)
    nbytes = value.tensor_size_in_bytes() if name in _PACKED else prod(shape) * itemsize(name)
    return Spec("onnxruntime", name, device, shape, traits, nbytes)


def _is_tensor(value: Any) -> bool:
    kind = getattr(value, "is_tensor", None)
    return kind is not None and bool(kind()) and bool(value.has_value())


def _describe_other(value: Any) -> Spec:
    kind = value.data_type()
    has_value = getattr(value, "has_value", None)
    if has_value is not None and not has_value():
        trait = "no_value"
    elif kind.startswith("sparse"):
        trait = "sparse"
    else:
        trait = "map" if kind.startswith("map") else "sequence"
    return Spec("onnxruntime", kind, "cpu", (), frozenset({trait}))


def _holding(value: Any) -> frozenset[str]:
    """Return the traits that follow from the array a value was made over, if that is known."""
    owner = getattr(value, "_numpy_obj", value)
    if owner is None:
        return _NONE
    if owner is value:
        return _BARE
    return _NONE if owner.flags.writeable else _LOCKED


def _device(value: Any, name: str) -> str:
    """Return the name of a device that is not the host."""
    try:
        kind, index = value.__dlpack_device__()
    except RuntimeError:  # WebGPU's are none of DLPack's
        return f"{name}:0"
    return f"{_DEVICE_TYPES.get(kind, name)}:{index}"


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of a tensor's memory."""
    if not _is_tensor(value) or not value.tensor_size_in_bytes():
        return ()
    return ((value.data_ptr(), value.tensor_size_in_bytes()),)


def as_it_is(value: Any) -> Any:
    """Return a value as it is, unless it is no tensor."""
    return value if _is_tensor(value) else NotImplemented


# ---------------------------------------------------------------------- out of ONNX Runtime


class _Memory:
    """Memory at an address, kept alive by its owner; NumPy makes it the base of the array."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


class _DeviceMemory:
    """The same on a CUDA device, for torch and CuPy."""

    __slots__ = ("__cuda_array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__cuda_array_interface__ = interface
        self._owner = owner


@cache
def _numpy_dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def _interface(value: Any, shape: tuple[int, ...], typestr: str) -> dict[str, Any]:
    """Return how the memory of a tensor is shown to others; sessions are done when they return."""
    pointer = value.data_ptr()
    if not pointer and 0 not in shape:
        msg = (
            "onnxruntime: an OrtValue has elements and no address. Let the session that made it "
            "return it again."
        )
        raise HandOffError(msg)
    return {"version": 3, "shape": shape, "typestr": typestr, "data": (pointer, False)}


def to_numpy(value: Any) -> Array:
    """Return an array over the memory of a tensor, which keeps the value."""
    import numpy as np

    dtype = _numpy_dtype(_ELEMENT_TYPES[value.element_type()])
    bits = dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")
    shape = tuple(value.shape())
    if 0 in shape:  # of which the address may be 0
        return np.empty(shape, dtype)
    memory = _Memory(_interface(value, shape or (1,), bits.str), value)
    # NumPy 2.1 takes an object without axes for a number.
    array: Array = np.asarray(memory).reshape(shape).view(dtype)
    return array


def numpy_fast_path(value: Any) -> Any:
    """Share a plain tensor on the host with NumPy, or answer `NotImplemented`."""
    plain = _is_tensor(value) and _ELEMENT_TYPES.get(value.element_type()) in _PLAIN
    if not plain or value.device_name() != "cpu" or _holding(value):
        return NotImplemented
    return to_numpy(value)


def to_locked_numpy(value: Any) -> Array:
    """Return a read-only array over the memory of a tensor that was made over one."""
    array = to_numpy(value)
    array.flags.writeable = False
    return array


def unpack(value: Any) -> Array:
    """Return a new array with each of a tensor's packed elements in a byte of its own."""
    import numpy as np

    name, shape = _ELEMENT_TYPES[value.element_type()], tuple(value.shape())
    width, count = _PACKED_BITS[name], prod(shape)
    if not count:  # of which the address may be 0
        return np.empty(shape, _numpy_dtype(name))
    per_byte = 8 // width
    packed = np.asarray(_Memory(_interface(value, (-(-count // per_byte),), "|u1"), value))
    codes = np.empty(len(packed) * per_byte, np.uint8)
    for place in range(per_byte):
        np.bitwise_and(packed >> (place * width), 2**width - 1, out=codes[place::per_byte])
    if name.startswith("int"):  # the highest bit is the sign
        sign = np.uint8(2 ** (width - 1))
        np.subtract(codes ^ sign, sign, out=codes)
    array: Array = codes[:count].reshape(shape).view(_numpy_dtype(name))
    return array


def download(value: Any, *, device: str) -> Array:
    """Return an array of a tensor on another device, copied by ONNX Runtime."""
    array: Array = value.numpy()
    return array


def to_torch(value: Any) -> Any:
    """Return a tensor over the memory of one on a CUDA device, which keeps the value."""
    import torch

    name = _ELEMENT_TYPES[value.element_type()]
    shared = torch.as_tensor(_on_device(value, name), device=f"cuda:{value.__dlpack_device__()[1]}")
    return shared.view(getattr(torch, name))


def to_cupy(value: Any) -> Any:
    """Return an array over the memory of a tensor on a CUDA device, which keeps the value."""
    import cupy

    with cupy.cuda.Device(value.__dlpack_device__()[1]):
        return cupy.asarray(_on_device(value, _ELEMENT_TYPES[value.element_type()]))


def _on_device(value: Any, name: str) -> _DeviceMemory:
    bits = "<i2" if name == "bfloat16" else _numpy_dtype(name).str
    return _DeviceMemory(_interface(value, tuple(value.shape()), bits), value)


# ---------------------------------------------------------------------- into ONNX Runtime


class _Producer:
    """What `OrtValue.from_dlpack` is given: it asks for a capsule and looks at the dtype's name."""

    __slots__ = ("_source", "dtype")

    def __init__(self, source: Any, dtype: Any) -> None:
        self._source = source
        self.dtype = dtype

    def __dlpack__(self) -> Any:
        return self._source.__dlpack__()


def from_numpy(value: Array) -> Any:
    """Return a tensor over the memory of a C-ordered array, which ONNX Runtime itself keeps.

    `OrtValue.ortvalue_from_numpy` would keep it in the Python object, which what it is bound to and
    what it is viewed by outlive.
    """
    from onnxruntime import OrtValue

    source = _writable(value)
    if value.dtype.kind == "b":
        source = source.view("u1")
    return OrtValue.from_dlpack(_Producer(source, value.dtype))


def ort_fast_path(value: Array) -> Any:
    """Share a plain array with ONNX Runtime, or answer `NotImplemented`."""
    dtype = value.dtype
    plain = dtype.char in _PLAIN_CODES and dtype.isnative and value.flags.carray
    return from_numpy(value) if plain else NotImplemented


def _writable(value: Array) -> Array:
    """Return an array over the same memory without its flag, which a capsule cannot carry.

    Whether the memory may be shared all the same was the policy's to say.
    """
    import numpy as np

    if value.flags.writeable:
        return value
    interface = dict(np.atleast_1d(value).__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, value)).reshape(value.shape)


def from_narrow_numpy(value: Array) -> Any:
    """Return a tensor over the memory of a C-ordered array of a dtype of ml_dtypes.

    DLPack has no way for these, so that the memory is kept by the OrtValue of Python's.
    """
    from onnxruntime import OrtValue

    bits = value.view(f"u{value.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(_writable(bits), _NUMBERS[value.dtype.name])


def pack(value: Array) -> Any:
    """Return a tensor with the elements of an array packed several to a byte."""
    import numpy as np

    name = value.dtype.name
    width, out = _PACKED_BITS[name], _empty(value.shape, _NUMBERS[name])
    per_byte = 8 // width
    count = out.tensor_size_in_bytes()
    if not count:
        return out
    codes = np.zeros(count * per_byte, np.uint8)
    np.bitwise_and(value.view(np.uint8).ravel(), 2**width - 1, out=codes[: value.size])
    packed = np.asarray(_Memory(_interface(out, (count,), "|u1"), out))
    packed[...] = codes[::per_byte]
    for place in range(1, per_byte):
        packed |= codes[place::per_byte] << (place * width)
    return out


def _empty(shape: tuple[int, ...], number: int) -> Any:
    """Return a new tensor on the host, in memory of ONNX Runtime's."""
    from onnxruntime import OrtValue

    return OrtValue.ortvalue_from_shape_and_type(list(shape), number)


def upload(value: Array, *, device: str) -> Any:
    """Return a tensor on a CUDA device with the elements of an array, copied on return."""
    from onnxruntime import OrtValue

    kind, _, index = device.partition(":")
    return OrtValue.ortvalue_from_numpy(value, kind, int(index or 0))


def from_torch(value: Any) -> Any:
    """Return an OrtValue over the memory of a tensor, once that is written.

    ONNX Runtime asks for no stream, and its own waits for nobody else's.
    """
    import torch
    from onnxruntime import OrtValue

    if value.is_cuda:
        torch.cuda.current_stream(value.device).synchronize()
    source = value.view(torch.uint8) if value.dtype == torch.bool else value
    return OrtValue.from_dlpack(_Producer(source, value.dtype))


def from_cupy(value: Any) -> Any:
    """Return an OrtValue over the memory of an array on a CUDA device, once that is written."""
    from onnxruntime import OrtValue

    with value.device:
        from cupy.cuda import get_current_stream

        get_current_stream().synchronize()
    source = value.view("u1") if value.dtype.kind == "b" else value
    return OrtValue.from_dlpack(_Producer(source, value.dtype))


# ---------------------------------------------------------------------- within ONNX Runtime


def wrap(value: Any) -> Any:
    """Return a value of the C layer's as one of Python's class."""
    from onnxruntime import OrtValue

    return OrtValue(value)


def copy(value: Any) -> Any:
    """Return a copy of a tensor on the host, in memory of ONNX Runtime's."""
    from ctypes import memmove

    out = _empty(tuple(value.shape()), value.element_type())
    count = value.tensor_size_in_bytes()
    if out.tensor_size_in_bytes() != count:
        msg = f"ONNX Runtime made {out.tensor_size_in_bytes()} bytes where the tensor has {count}"
        raise Declined(msg)
    if count:
        memmove(out.data_ptr(), value.data_ptr(), count)
    return out


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the format of tensors; what else an OrtValue may be is refused with the reason."""
    return [
        Format(
            "onnxruntime",
            types=(f"{_MODULE}:OrtValue", f"{_NATIVE}:OrtValue", f"{_MODULE}:SparseTensor"),
            target_types=(f"{_MODULE}:OrtValue",),
            describe=describe,
            dtypes=_DTYPES,
            devices=("cpu", "cuda"),
            limits=Limits(unsupported={"cuda": _DTYPES - _ON_CUDA}, refusal_hints=_OBSTACLES),
            carries=_LOCKED,
            requires="onnxruntime",
            install="pip install onnxruntime",
            memory=memory,
            fast_path=as_it_is,
            transit=False,  # whoever it shares with, NumPy shares with as well
        )
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from NumPy, and to torch and CuPy on CUDA devices."""
    return [*_out(), *_into(), *_on_cuda(), *_within()]


def _out() -> Iterable[Conversion]:
    shared: dict[str, Any] = {"dtypes": _PLAIN | _NARROW, "cost": Cost(2e-6)}
    yield Conversion("onnxruntime", "numpy", to_numpy, fast_path=numpy_fast_path, **shared)
    yield Conversion(
        "onnxruntime",
        "numpy",
        to_locked_numpy,
        requires=_LOCKED,
        drops=_LOCKED,
        adds=frozenset({"readonly"}),
        **shared,
    )
    yield Conversion(
        "onnxruntime",
        "numpy",
        unpack,
        dtypes=_PACKED,
        takes=_LOCKED,
        drops=_LOCKED,
        effects=_COPY,
        cost=Cost(8e-6, 2e9),
    )


def _into() -> Iterable[Conversion]:
    shared: dict[str, Any] = {"takes": _FLAGS}
    yield Conversion(
        "numpy",
        "onnxruntime",
        from_numpy,
        dtypes=_PLAIN,
        cost=Cost(4e-6),
        fast_path=ort_fast_path,
        name="ort_from_numpy",
        **shared,
    )
    yield Conversion(
        "numpy", "onnxruntime", from_narrow_numpy, dtypes=_NARROW, cost=Cost(5e-6), **shared
    )
    yield Conversion(
        "numpy",
        "onnxruntime",
        pack,
        dtypes=_PACKED,
        takes=_FLAGS,
        effects=_COPY,
        cost=Cost(8e-6, 2e9),
    )


def _on_cuda() -> Iterable[Conversion]:
    """Return the hand-offs on CUDA devices, and the moves to and from them."""
    there: dict[str, Any] = {"devices": _CUDA, "cost": Cost(5e-6)}
    yield Conversion("onnxruntime", "torch", to_torch, dtypes=_ON_CUDA, **there)
    yield Conversion("onnxruntime", "cupy", to_cupy, dtypes=_CUPY, **there)
    # Waiting for the stream takes longer than all the rest.
    waited: dict[str, Any] = {**there, "cost": Cost(2e-5)}
    from_torch_ = partial(Conversion, "torch", "onnxruntime", from_torch, dtypes=_ON_CUDA)
    yield from_torch_(name="ort_from_torch_there", **waited)
    yield from_torch_(name="ort_from_torch", cost=Cost(4e-6))
    yield Conversion("cupy", "onnxruntime", from_cupy, dtypes=_CUPY, takes=_IMMUTABLE, **waited)
    moved: dict[str, Any] = {"dtypes": _PLAIN, "changes": _DEVICE, "effects": _TRANSFER}
    yield Conversion(
        "onnxruntime",
        "numpy",
        download,
        devices=_CUDA,
        result=Result(devices=_CPU),
        cost=_WIRE,
        name="ort_download",
        **moved,
    )
    yield Conversion(
        "numpy",
        "onnxruntime",
        upload,
        takes=_FLAGS,
        result=Result(devices=_CUDA),
        cost=_WIRE,
        name="ort_upload",
        **moved,
    )


def _within() -> Iterable[Conversion]:
    yield Conversion(
        "onnxruntime",
        "onnxruntime",
        wrap,
        devices=None,
        requires=_BARE,
        drops=_BARE,
        cost=Cost(5e-7),
    )
    yield Conversion(
        "onnxruntime",
        "onnxruntime",
        copy,
        takes=_LOCKED,
        drops=_LOCKED,
        effects=_COPY,
        cost=Cost(5e-6, 1e10),
        name="ort_copy",
    )
