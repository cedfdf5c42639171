"""MLX: dense arrays, which are computed when they are first looked at.

MLX never writes to memory that somebody else can see: ``x[0] = 1`` and ``x += 1`` give the name `x`
new memory. So what leaves MLX is shared and read-only. It leaves through DLPack, whose capsule owns
the memory; a memoryview owns the Python object only, and changes under whoever holds it.

An array says neither whether it has been computed, nor before that how it lies in memory, nor that
it is part of a trace. So it is computed when it is described, as it is when it is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from interop.errors import HandOffError
from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Declined,
    DtypeNames,
    Export,
    Format,
    Limits,
    Result,
    Samples,
    Spec,
    checked_export,
    export,
    hookimpl,
    itself,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["interop_declarations"]

#: What MLX can hold on any device.
_EVERYWHERE = frozenset(
    {"bool", "float16", "bfloat16", "float32", "complex64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
#: What it has on the CPU only; its GPUs refuse to compute with it.
_DOUBLE = frozenset({"float64"})
_DTYPES = _EVERYWHERE | _DOUBLE
_COMPLEX, _BYTES = frozenset({"complex64"}), frozenset({"bool", "int8", "uint8"})
_COPY = frozenset({"copy"})
_IMMUTABLE, _SUBCLASS = frozenset({"immutable"}), frozenset({"subclass"})
_LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast"})
_FLAGS = frozenset({"readonly", "immutable", "unaligned"})
_STUCK = frozenset({"traced", "uncomputed"})

#: DLPack's number of the host, and of Apple's devices, whose memory is the host's.
_CPU, _METAL = 1, 8
_HOST = frozenset({_CPU, _METAL})

#: What numpy.from_dlpack does not take.
_UNKNOWN_TO_NUMPY = frozenset({None, "bfloat16"})

#: NumPy's codes of bool, the integers, float16, float32 and complex64.
_PLAIN_CODES = "?bBhHiIlLqQefF"

#: MLX counts along an axis in 32 bits.
_LONGEST = 2**31 - 1
#: Elements that NumPy casts, and MLX copies, sooner than MLX has memory to cast them into.
_FEW = 2**18

_OBSTACLES = {
    "uncomputed": "MLX could not compute it here: a lazy array is computed by the thread that made "
    "it only, and one whose computation fails is never. Call mlx.core.eval on it in that thread, "
    "or correct what it is computed from.",
    "float64": "MLX computes with float64 on the CPU only, and its default device is a GPU; "
    "make the CPU the default (mlx.core.set_default_device(mlx.core.cpu)) or ask for a narrower "
    "dtype=.",
}

#: What NumPy or MLX raise when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AttributeError)

#: Filled on first use: the type of arrays, and the names of the dtypes met.
_plain_types: set[type] = set()
_names: dict[Any, str] = {}


def unsupported_now() -> frozenset[str]:
    """Return the dtypes that the default device cannot compute with."""
    core = sys.modules.get("mlx.core")
    # It would start on the GPU where there is one it can be sure of.
    on_gpu = sys.platform == "darwin" if core is None else core.default_device() != core.cpu
    return _DOUBLE if on_gpu else frozenset()


def dtype_name(dtype: Any) -> str:
    """Return the name of one of MLX's dtypes."""
    name = str(dtype).rpartition(".")[2]
    _names[dtype] = name
    return name


def describe(value: Any) -> Spec:
    """Return the spec of an array, which is computed for that.

    Parameters
    ----------
    value : mlx.core.array

    Returns
    -------
    Spec
        What cannot be computed now has the trait ``traced`` or ``uncomputed``.
    """
    dtype = value.dtype
    name = _names.get(dtype) or dtype_name(dtype)
    device, traits = "cpu", _IMMUTABLE
    try:
        view = memoryview(value)
    except RuntimeError as error:
        traits = frozenset({_reason(error)})
    else:
        if value.size and not view.c_contiguous:
            traits |= _layout(view)
        device = _device(value)
    if type(value) not in _plain_types and not _is_plain(value):
        traits |= _SUBCLASS
    return Spec("mlx", name, device, value.shape, traits, value.nbytes)


def _reason(error: RuntimeError) -> str:
    """Return the trait that keeps an array from being computed."""
    return "traced" if "during function transformations" in str(error) else "uncomputed"


def _layout(view: memoryview) -> set[str]:
    # An axis of length 1 is never stepped along, whatever its stride.
    steps = [s for n, s in zip(view.shape or (), view.strides or (), strict=True) if n > 1]
    found = {"noncontiguous"}
    if min(steps) < 0:
        found.add("negative_strides")
    if 0 in steps:
        found.add("broadcast")
    return found


def _device(value: Any) -> str:
    kind, index = value.__dlpack_device__()
    return "cpu" if kind in _HOST else f"cuda:{index}"


def _is_plain(value: Any) -> bool:
    import mlx.core as mx

    _plain_types.add(mx.array)
    return type(value) is mx.array


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in."""
    if describe(value).traits & _STUCK or not value.size:
        return ()
    found = _look(export(value, dl_device=(_CPU, 0)))
    itemsize = found.bits // 8
    strides = found.strides or ()
    reach = [(n - 1) * s for n, s in zip(found.shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return ((found.data + low * itemsize, (high - low + 1) * itemsize),)


# ---------------------------------------------------------------------- out of MLX


class _Held:
    """A capsule that was asked for already, as a producer."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule


class _Memory:
    """Memory at an address, kept alive by its owner; NumPy makes it the base of the array."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def _look(capsule: Any) -> Export:
    """Return what a capsule offers."""
    return checked_export(_Held(capsule))


def _over(value: Any, *, readonly: bool) -> Array:
    """Return an array over the memory of one of MLX's that has been computed.

    Nobody consumes the capsule: it is freed with the array, and frees the memory then.
    """
    import numpy as np

    capsule = export(value, dl_device=(_CPU, 0))
    found = _look(capsule)
    dtype = _numpy_dtype(found.dtype)
    steps = found.strides and tuple(step * dtype.itemsize for step in found.strides)
    bits = dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")
    interface = {
        "version": 3,
        "shape": found.shape,
        "strides": None if 0 in found.shape else steps,
        "typestr": bits.str,
        "data": (found.data, readonly),
    }
    array: Array = np.asarray(_Memory(interface, capsule)).view(dtype)
    return array


@cache
def _numpy_dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def to_numpy(value: Any) -> Array:
    """Return a read-only array over the memory of one of MLX's, as it lies there."""
    import numpy as np

    if _names.get(value.dtype) in _UNKNOWN_TO_NUMPY:
        return _over(value, readonly=True)
    array: Array = np.from_dlpack(value, device="cpu")
    # Of a capsule without flags, which is MLX's, NumPy assumes that anyway.
    array.flags.writeable = False
    return array


def numpy_fast_path(value: Any) -> Any:
    """Share an array with NumPy, which locks it, or answer `NotImplemented`.

    Raises
    ------
    HandOffError
        Computing the array has failed. MLX says so once, and then takes it for computed.
    """
    import numpy as np

    if _names.get(value.dtype) in _UNKNOWN_TO_NUMPY:
        return NotImplemented
    try:
        array = np.from_dlpack(value, device="cpu")
    except _REFUSALS as error:
        if describe(value).traits & _STUCK:
            return NotImplemented
        msg = f"MLX could not compute an array: {error}. Correct what it is computed from."
        raise HandOffError(msg) from error
    return NotImplemented if array.flags.owndata or array.flags.writeable else array


# ---------------------------------------------------------------------- into MLX


def from_numpy(value: Array, *, dtype: str | None = None) -> Any:
    """Return an array with a copy of a C-ordered array's elements, cast on the way.

    MLX has no way to share memory of the host that is not its own.
    """
    import mlx.core as mx
    import numpy as np

    wanted = value.dtype if dtype is None else _numpy_dtype(dtype)
    kind = _mlx_dtype(wanted)
    _check(value, kind)
    # An axis of one element may be said to go backwards, which MLX takes at its word.
    if value.dtype == wanted and min(value.strides, default=0) >= 0:
        return mx.array(value, dtype=kind)
    with np.errstate(all="ignore"):
        if value.size <= _FEW:
            return mx.array(value.astype(wanted, order="C"), dtype=kind)
        # Nobody has seen the new array, so that its memory may still be written.
        out = mx.empty(value.shape, dtype=kind)
        mx.eval(out)
        np.copyto(_over(out, readonly=False), value, casting="unsafe")
    return out


def mlx_fast_path(value: Array) -> Any:
    """Copy a plain array of a dtype that MLX always has, or answer `NotImplemented`."""
    dtype = value.dtype
    plain = dtype.char in _PLAIN_CODES and dtype.isnative and value.flags.c_contiguous
    return (
        from_numpy(value) if plain and max(value.shape, default=0) <= _LONGEST else NotImplemented
    )


def _check(value: Array, kind: Any) -> None:
    """Refuse what MLX would refuse or narrow; a plan may be older than the default device is."""
    if _names[kind] in unsupported_now():
        msg = "MLX's default device is a GPU, which cannot compute with float64"
        raise Declined(msg)
    if max(value.shape, default=0) > _LONGEST:
        msg = f"MLX holds at most {_LONGEST} elements along an axis, and its shape is {value.shape}"
        raise Declined(msg)


@cache
def _mlx_dtype(dtype: Any) -> Any:
    """Return MLX's dtype for one of NumPy's, whose name takes a while to be put together."""
    import mlx.core as mx

    kind = mx.bool_ if dtype.kind == "b" else getattr(mx, dtype.name)
    _names[kind] = dtype_name(kind)
    return kind


# ---------------------------------------------------------------------- within MLX


def copy(value: Any) -> Any:
    """Return a copy in memory of its own, in C order."""
    import numpy as np

    return from_numpy(np.ascontiguousarray(to_numpy(value)).reshape(value.shape))


def as_plain_array(value: Any) -> Any:
    """Return an array of a subclass as one of MLX's own, over the same memory."""
    import mlx.core as mx

    return mx.stop_gradient(value)


# ---------------------------------------------------------------------- samples


def _transposed(value: Any) -> Any:
    if value.ndim < 2:
        msg = f"an array of {value.ndim} axes has one order only"
        raise Declined(msg)
    return _relaid(value, lambda array: array.T)


def _relaid(value: Any, view: Callable[[Any], Any]) -> Any:
    """Return the same numbers laid out so that a view of the memory is what is described."""
    import mlx.core as mx

    found = view(mx.contiguous(view(value)))
    mx.eval(found)
    return found


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions and the names of dtypes."""
    return [*_formats(), *_conversions(), *_dtypes()]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how MLX names its dtypes."""
    return [DtypeNames("mlx.core:Dtype", dtype_name)]


def _formats() -> Iterable[Format]:
    """Return the one format of MLX."""
    return [
        Format(
            "mlx",
            types=("mlx.core:array",),
            describe=describe,
            dtypes=_DTYPES,
            limits=Limits(unsupported_now=unsupported_now, refusal_hints=_OBSTACLES),
            carries=_IMMUTABLE | _LAYOUT | _STUCK,
            requires="mlx",
            install="pip install 'mlx[cpu]'",
            memory=memory,
            fast_path=itself,
            transit=False,  # it copies what comes in
            samples=Samples(
                variants={
                    "noncontiguous": _transposed,
                    "negative_strides": lambda value: _relaid(value, lambda array: array[::-1]),
                }
            ),
        )
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from NumPy, and the steps within MLX."""
    taken = _IMMUTABLE | _LAYOUT
    return [
        Conversion(
            "mlx", "numpy", to_numpy, takes=taken, cost=Cost(2e-6), fast_path=numpy_fast_path
        ),
        *_into(),
        Conversion(
            "mlx",
            "mlx",
            copy,
            takes=taken,
            adds=_IMMUTABLE,
            effects=_COPY,
            cost=Cost(5e-6, 7e9),
        ),
        Conversion(
            "mlx",
            "mlx",
            as_plain_array,
            takes=taken,
            requires=_SUBCLASS,
            drops=_SUBCLASS,
            cost=Cost(1e-6),
        ),
    ]


def _into() -> Iterable[Conversion]:
    """Return the copy of a C-ordered array as it is, and those that cast it on the way.

    What lies otherwise NumPy puts in order first, which it does faster than it writes into MLX's
    memory. Where float16 is on either side it casts faster by itself, too.
    """
    whole = _DTYPES - _COMPLEX - {"float16"}
    make = partial(Conversion, "numpy", "mlx", from_numpy, takes=_FLAGS, adds=_IMMUTABLE)
    yield make(
        name="mlx_from_numpy",
        dtypes=_DTYPES,
        effects=_COPY,
        cost=Cost(5e-6, 7.5e9),
        fast_path=mlx_fast_path,
    )
    # What is written costs the most, and into bytes little is.
    for name, source, target, speed in (
        ("mlx_from_numpy_cast", whole, whole - _BYTES, 7.2e9),
        ("mlx_from_numpy_cast_to_bytes", whole - _BYTES, _BYTES, 2.5e10),
    ):
        yield make(
            name=name,
            dtypes=source,
            result=Result(dtypes=target),
            changes=frozenset({"dtype"}),
            effects=_COPY,
            cost=Cost(5e-6, speed),
        )
