"""MLX: dense arrays, which are computed when they are first read.

MLX never writes to memory that others can see: ``x[0] = 1`` and ``x += 1`` give the name `x`
new memory. So memory leaves MLX shared and read-only. It leaves through DLPack, whose capsule owns
the memory; a memoryview owns the Python object only, and changes under its holder.

An array does not say whether it has been computed. Before that it does not say how it lies in
memory, nor whether it is part of a trace. So describing an array computes it, as printing it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from interop.errors import HandOffError
from interop.kit import (
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    INTEGERS,
    REALS,
    STRIDED,
    CapsuleProducer,
    CastErrors,
    CheckedProducer,
    MemoryAt,
    checked_export,
    export,
    numpy_dtype,
    real_part,
    stride_traits,
)
from interop.plugin import (
    Conversion,
    Copy,
    Cost,
    Declaration,
    Declined,
    Drop,
    DtypeNames,
    Format,
    Limits,
    Result,
    Samples,
    Spec,
    hookimpl,
    itself,
)
from interop.plugin.advanced import Advanced

if TYPE_CHECKING:
    import mlx.core as mx
    import numpy as np
    from torch import Tensor

    NumpyArray = np.ndarray[Any, Any]
    NumpyDtype = np.dtype[Any]

#: The dtype that MLX holds on the CPU only; its GPUs refuse to compute with it.
_CPU_ONLY = frozenset({"float64"})
_COMPLEX, _BYTES = frozenset({"complex64"}), frozenset({"bool", "int8", "uint8"})
_DTYPES = INTEGERS | REALS | _COMPLEX | {"bool", "bfloat16"}

_IMMUTABLE, _SUBCLASS = frozenset({"immutable"}), frozenset({"subclass"})
_FLAGS = frozenset({"readonly", "immutable", "unaligned"})
#: The traits of arrays that cannot be computed here.
_STUCK = frozenset({"traced", "uncomputed"})

#: DLPack's numbers of the host and of Apple's devices, which share the host's memory.
_DLPACK_CPU, _DLPACK_METAL = 1, 8
_HOST = frozenset({_DLPACK_CPU, _DLPACK_METAL})
_METAL = frozenset({_DLPACK_METAL})

#: The dtypes that numpy.from_dlpack does not take; None stands for a dtype not yet seen.
_UNKNOWN_TO_NUMPY = frozenset({None, "bfloat16"})

#: The type numbers of NumPy's bool, integers, float16, float32 and complex64. The characters would
#: not tell them apart, because ml_dtypes use some of them again.
_PLAIN_NUMBERS = frozenset({*range(12), 14, 23})

#: MLX counts along an axis in 32 bits.
_LONGEST = 2**31 - 1
#: Up to this many elements it is faster that NumPy casts and MLX copies the result. Beyond, MLX
#: allocates memory, and NumPy casts into it.
_FEW = 2**18

_HINTS = {
    "uncomputed": "MLX could not compute it here: only the thread that made a lazy array can "
    "compute it, and one whose computation fails is never computed. Call mlx.core.eval on it in "
    "that thread, or correct what it is computed from.",
    "float64": "MLX computes with float64 on the CPU only, and its default device is a GPU; "
    "make the CPU the default (mlx.core.set_default_device(mlx.core.cpu)) or ask for a narrower "
    "dtype=.",
}

#: The exceptions that NumPy and MLX raise when an array cannot be handed over.
_HAND_OFF_ERRORS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: The dtypes of Python's numbers.
_DEFAULT_DTYPES = {"int64": "int32", "float64": "float32", "complex128": "complex64"}

#: Filled on first use: the type of arrays, and the names of dtypes that were seen.
_plain_types: set[type] = set()
_names: dict[mx.Dtype, str] = {}


# ---------------------------------------------------------------------- declared


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return MLX's format, its conversions and its dtype names."""
    return [_format(), *_conversions(), DtypeNames("mlx.core:Dtype", dtype_name)]


def _format() -> Format:
    return Format(
        "mlx",
        types=("mlx.core:array",),
        aliases=("mx",),
        describe=describe,
        dtypes=_DTYPES,
        limits=Limits(unsupported_now=unsupported_now, refusal_hints=_HINTS),
        carries=_IMMUTABLE | STRIDED | _STUCK,
        requires="mlx",
        install="pip install 'mlx[cpu]'",
        unary=(
            Copy(copy, takes=_IMMUTABLE | STRIDED, adds=_IMMUTABLE, cost=Cost(5e-6, 7e9)),
            Drop("subclass", as_plain_array, takes=_IMMUTABLE | STRIDED),
        ),
        memory=memory,
        fast_path=itself,
        # It copies what comes in.
        advanced=Advanced(default_dtype=_DEFAULT_DTYPES.__getitem__),
        samples=Samples(
            variants={
                "noncontiguous": _transposed,
                "negative_strides": lambda value: _laid_out(value, lambda array: array[::-1]),
            }
        ),
    )


def _conversions() -> Iterator[Conversion]:
    shared = _IMMUTABLE | STRIDED
    yield Conversion(
        "mlx", "numpy", to_numpy, takes=shared, cost=Cost(2e-6), fast_path=numpy_fast_path
    )
    yield from _from_numpy()
    yield from _metal()


def _metal() -> Iterator[Conversion]:
    """Yield the hand-offs from and to torch on Apple's GPU, which has the memory of the host.

    Nobody has run them on such a machine: the tests have stand-ins for it.
    """
    share = partial(Conversion, changes=DEVICE, shares=True, adds=_IMMUTABLE, cost=Cost(5e-5))
    share = partial(share, takes=_IMMUTABLE | {"noncontiguous", "broadcast"}, dtypes=_DTYPES)
    yield share("torch", "mlx", from_mps, devices={"mps"}, result=Result(devices=CPU))
    yield share("mlx", "torch", to_mps, adds=EMPTY, result=Result(devices={"mps"}))


def _from_numpy() -> Iterator[Conversion]:
    """Yield the copy of a C-ordered array, and the copies that cast it on the way.

    Arrays in another order are put in C order by NumPy first, which is faster than writing them
    into MLX's memory out of order. NumPy alone is also faster in casts from and to float16.
    """
    make = partial(
        Conversion, "numpy", "mlx", from_numpy, takes=_FLAGS, adds=_IMMUTABLE, effects=COPY
    )
    yield make(
        name="mlx_from_numpy",
        dtypes=_DTYPES,
        cost=Cost(5e-6, 7.5e9),
        fast_path=mlx_fast_path,
    )
    # Writing takes most of the time, and casts to bytes write little.
    castable = _DTYPES - _COMPLEX - {"float16"}
    for name, sources, targets, speed in (
        ("mlx_from_numpy_cast", castable, castable - _BYTES, 7.2e9),
        ("mlx_from_numpy_cast_to_bytes", castable - _BYTES, _BYTES, 2.5e10),
    ):
        yield make(
            name=name,
            dtypes=sources,
            result=Result(dtypes=targets),
            changes=DTYPE,
            cost=Cost(5e-6, speed),
        )


# ---------------------------------------------------------------------- described


def unsupported_now(device: str = "") -> frozenset[str]:
    """Return the dtypes that the default device cannot compute with."""
    core = sys.modules.get("mlx.core")
    # On Apple's machines MLX starts with the GPU as its default.
    on_gpu = sys.platform == "darwin" if core is None else core.default_device() != core.cpu
    return _CPU_ONLY if on_gpu else EMPTY


def dtype_name(dtype: mx.Dtype) -> str:
    """Return the name of one of MLX's dtypes."""
    name = str(dtype).rpartition(".")[2]
    _names[dtype] = name
    return name


def describe(value: mx.array) -> Spec:
    """Return the spec of an array, which computes the array.

    Parameters
    ----------
    value : mlx.core.array

    Returns
    -------
    Spec
        An array that cannot be computed now has the trait ``traced`` or ``uncomputed``.
    """
    dtype = value.dtype
    name = _names.get(dtype) or dtype_name(dtype)
    device, traits = "cpu", _IMMUTABLE
    buffer: Any = value  # MLX's types do not show the buffer protocol
    try:
        view = memoryview(buffer)
    except RuntimeError as error:
        traits = frozenset({_reason(error)})
    else:
        if value.size and not view.c_contiguous:
            traits |= stride_traits(view.shape or (), view.strides or (), view.itemsize)
        device = _device(value)
    if type(value) not in _plain_types and not _is_plain(value):
        traits |= _SUBCLASS
    return Spec("mlx", name, device, value.shape, traits, value.nbytes)


def _reason(error: RuntimeError) -> str:
    """Return the trait that says why an array cannot be computed."""
    return "traced" if "during function transformations" in str(error) else "uncomputed"


def _device(value: mx.array) -> str:
    kind, index = value.__dlpack_device__()
    return "cpu" if kind in _HOST else f"cuda:{index}"


def _is_plain(value: mx.array) -> bool:
    import mlx.core as mx

    _plain_types.add(mx.array)
    return type(value) is mx.array


def memory(value: mx.array) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in."""
    if describe(value).traits & _STUCK or not value.size:
        return ()
    return checked_export(CapsuleProducer(export(value, dl_device=(_DLPACK_CPU, 0)))).extents


# ---------------------------------------------------------------------- out of MLX


def _over(value: mx.array, *, readonly: bool) -> NumpyArray:
    """Return a NumPy array over the memory of a computed MLX array.

    The result owns the capsule, which nobody consumes, and the capsule owns the memory.
    """
    import numpy as np

    capsule = export(value, dl_device=(_DLPACK_CPU, 0))
    offer = checked_export(CapsuleProducer(capsule))
    dtype = numpy_dtype(offer.dtype)
    strides = offer.strides and tuple(step * dtype.itemsize for step in offer.strides)
    bits = dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")
    interface = {
        "version": 3,
        "shape": offer.shape,
        "strides": None if 0 in offer.shape else strides,
        "typestr": bits.str,
        "data": (offer.data, readonly),
    }
    array: NumpyArray = np.asarray(MemoryAt(interface, capsule)).view(dtype)
    return array


def to_numpy(value: mx.array) -> NumpyArray:
    """Return a read-only NumPy array over the memory of an MLX array."""
    import numpy as np

    if _names.get(value.dtype) in _UNKNOWN_TO_NUMPY:
        return _over(value, readonly=True)
    producer: Any = value  # MLX's annotations are wrong about capsules
    array: NumpyArray = np.from_dlpack(producer, device="cpu")
    # MLX's capsules have no flags. NumPy then assumes read-only memory, but does not promise to.
    array.flags.writeable = False
    return array


def numpy_fast_path(value: Any) -> object:
    """Share an array with NumPy, which locks it, or answer `NotImplemented`.

    Raises
    ------
    HandOffError
        Computing the array has failed. MLX reports that once, and then treats it as computed.
    """
    import numpy as np

    try:
        array = np.from_dlpack(value, device="cpu")
    except _HAND_OFF_ERRORS as error:
        spec = describe(value)
        if spec.dtype in _UNKNOWN_TO_NUMPY or spec.traits & _STUCK:
            return NotImplemented
        msg = f"MLX could not compute an array: {error}. Fix the expression that computes it."
        raise HandOffError(msg) from error
    return NotImplemented if array.flags.owndata or array.flags.writeable else array


# ---------------------------------------------------------------------- into MLX


def from_numpy(value: NumpyArray, *, dtype: str | None = None) -> mx.array:
    """Return an array with a copy of a C-ordered array's elements, cast on the way.

    MLX cannot share memory of the host that it has not allocated.
    """
    import mlx.core as mx
    import numpy as np

    target = value.dtype if dtype is None else numpy_dtype(dtype)
    mlx_dtype = _mlx_dtype(target)
    _check(value, mlx_dtype)
    # An axis of one element may have a negative stride, which MLX refuses like any other.
    if value.dtype == target and min(value.strides, default=0) >= 0:
        return mx.array(value, dtype=mlx_dtype)
    value = real_part(value, target)
    errors = CastErrors()
    if value.size <= _FEW:
        out = mx.array(errors.run(value.astype, target, "C"), dtype=mlx_dtype)
    else:
        # Nobody has seen the new array, so its memory may still be written.
        out = mx.empty(value.shape, dtype=mlx_dtype)
        mx.eval(out)
        errors.run(np.copyto, _over(out, readonly=False), value, "unsafe")
    errors.tell()
    return out


def mlx_fast_path(value: NumpyArray) -> object:
    """Copy a plain array of a dtype that MLX always has, or answer `NotImplemented`."""
    dtype = value.dtype
    plain = dtype.num in _PLAIN_NUMBERS and dtype.isnative and value.flags.c_contiguous
    return (
        from_numpy(value) if plain and max(value.shape, default=0) <= _LONGEST else NotImplemented
    )


def _check(value: NumpyArray, dtype: mx.Dtype) -> None:
    """Decline arrays that MLX would refuse or narrow.

    MLX's default device may have changed since the route was planned.
    """
    if _names[dtype] in unsupported_now():
        msg = "MLX's default device is a GPU, which cannot compute with float64"
        raise Declined(msg)
    if max(value.shape, default=0) > _LONGEST:
        msg = f"MLX holds at most {_LONGEST} elements along an axis, and its shape is {value.shape}"
        raise Declined(msg)


@cache
def _mlx_dtype(dtype: NumpyDtype) -> mx.Dtype:
    """Return MLX's dtype for one of NumPy's; cached, because `dtype.name` is slow."""
    import mlx.core as mx

    mlx_dtype: mx.Dtype = mx.bool_ if dtype.kind == "b" else getattr(mx, dtype.name)
    dtype_name(mlx_dtype)
    return mlx_dtype


# ---------------------------------------------------------------------- on Apple's GPU


def from_mps(value: Tensor, *, device: str) -> mx.array:
    """Return an array over the memory of a tensor on MPS, once torch has written that."""
    import mlx.core as mx
    import torch

    torch.mps.synchronize()  # DLPack's streams are not Metal's
    try:
        return mx.from_dlpack(CheckedProducer(value, device_types=_METAL), copy=False)
    except _HAND_OFF_ERRORS as reason:
        msg = f"MLX does not share the memory of torch on MPS here: {reason}"
        raise Declined(msg) from reason


def to_mps(value: mx.array, *, device: str) -> Tensor:
    """Return a tensor on MPS over the memory of an array, once MLX has computed that."""
    import mlx.core as mx
    from torch.utils.dlpack import from_dlpack

    mx.eval(value)
    try:
        tensor: Tensor = from_dlpack(CheckedProducer(value, device_types=_METAL))
    except _HAND_OFF_ERRORS as reason:
        msg = f"torch does not share the memory of MLX on MPS here: {reason}"
        raise Declined(msg) from reason
    return tensor


# ---------------------------------------------------------------------- within MLX


def copy(value: mx.array) -> mx.array:
    """Return a copy in memory of its own, in C order."""
    import numpy as np

    return from_numpy(np.ascontiguousarray(to_numpy(value)).reshape(value.shape))


def as_plain_array(value: mx.array) -> mx.array:
    """Return an array of a subclass as one of MLX's own, over the same memory."""
    import mlx.core as mx

    return mx.stop_gradient(value)


# ---------------------------------------------------------------------- samples


def _transposed(value: mx.array) -> mx.array:
    if value.ndim < 2:
        msg = f"an array of {value.ndim} axes has one order only"
        raise Declined(msg)
    return _laid_out(value, lambda array: array.T)


def _laid_out(value: mx.array, view: Callable[[mx.array], mx.array]) -> mx.array:
    """Return an array of the same numbers in the layout of a view, which is its own inverse."""
    import mlx.core as mx

    array = view(mx.contiguous(view(value)))
    mx.eval(array)
    return array
