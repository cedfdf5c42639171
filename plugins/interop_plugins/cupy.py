"""CuPy: dense arrays and ``cupyx.scipy.sparse`` arrays on CUDA and ROCm devices.

Three rules hold in every step. Work is done on the device where the data is, which need not be the
current one. If the caller names a stream, work is done on it, after what CuPy's current stream was
doing, and the current stream then waits for it: the result is safe on both. Whatever crosses to
the host or to another device is complete when the step returns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from interop.errors import BadRequestError, NotInstalledError
from interop.plugin import (
    MEMORY_TRAITS,
    CheckedProducer,
    Components,
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Parts,
    Problem,
    Problems,
    Result,
    Spec,
    hookimpl,
)

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_COPY = frozenset({"copy"})
_TRANSFER = frozenset({"transfer"})
_DEVICES = ("cuda", "rocm")
_ON_DEVICE = frozenset(_DEVICES)

#: What NumPy can spell, and so ``__cuda_array_interface__`` too.
_PLAIN_DTYPES = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_DTYPES = _PLAIN_DTYPES | {"bfloat16"}
#: What cuSPARSE computes with, and therefore all that cupyx stores.
_SPARSE_DTYPES = frozenset({"bool", "float32", "float64", "complex64", "complex128"})
_INDEX_DTYPES = frozenset({"int32", "int64"})

_LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast"})
_FOREIGN = _LAYOUT | {"readonly", "immutable"}
_UNCOALESCED = frozenset({"uncoalesced"})
#: cupyx's ``csr_array`` may have one axis, which no other compressed format can.
_VECTOR = frozenset({"vector"})

_TWO = frozenset({2})

_INSTALL = "pip install 'array-interop[cupy]'"

# Handles that are no addresses: the legacy default stream goes by two names.
_LEGACY_STREAMS = frozenset({0, 1})

#: Filled on first use: cupy.ndarray, the name of each dtype met, and of each device.
_plain_types: set[type] = set()
_dtype_names: dict[Any, str] = {}
_device_names: dict[int, str] = {}


def describe(value: Any) -> Spec:
    """Return the spec of an array, from its flags, shape and strides.

    Parameters
    ----------
    value : cupy.ndarray

    Returns
    -------
    Spec
        A dtype that is not one of numbers is named as NumPy names it, so that nothing takes it.
    """
    dtype = value.dtype
    traits = _NONE if value.flags.c_contiguous else _layout_traits(value)
    if type(value) not in _plain_types and _is_subclass(value):
        traits = traits | {"subclass"}
    return Spec(
        "cupy",
        _dtype_names.get(dtype) or _name(dtype),
        _device_name(value),
        value.shape,
        traits,
        value.nbytes,
    )


def _is_subclass(value: Any) -> bool:
    import cupy

    _plain_types.add(cupy.ndarray)
    return type(value) is not cupy.ndarray


def _name(dtype: Any) -> str:
    name = _dtype_names[dtype] = str(dtype) if dtype.names else str(dtype.name)
    return name


def _device_name(array: Any) -> str:
    index = array.data.device_id
    return _device_names.get(index) or _name_device(index)


def _name_device(index: int) -> str:
    import cupy

    kind = "rocm" if cupy.cuda.runtime.is_hip else "cuda"
    name = _device_names[index] = f"{kind}:{index}"
    return name


def _layout_traits(value: Any) -> frozenset[str]:
    # An axis of length 1 is never stepped along, whatever its stride.
    steps = [s for n, s in zip(value.shape, value.strides, strict=True) if n > 1]
    traits = {"noncontiguous"}
    if min(steps) < 0:
        traits.add("negative_strides")
    if 0 in steps:
        traits.add("broadcast")
    return frozenset(traits)


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in."""
    if not value.size:
        return ()
    reach = [(n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)]
    low = sum(step for step in reach if step < 0)
    high = sum(step for step in reach if step > 0) + value.itemsize
    return ((value.data.ptr + low, high - low),)


def fill(out: Any, value: Any) -> None:
    """Write the numbers of `value` into `out`, which is on the same device."""
    with out.data.device:
        out[...] = _castable(value, out.dtype)


# ---------------------------------------------------------------------- devices and streams


def _device(name: str) -> Any:
    """Return the device of a name, the current one if it has no index."""
    import cupy

    index = name.partition(":")[2]
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        wanted = int(index) if index else cupy.cuda.runtime.getDevice()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        msg = (
            f"CuPy finds no device that it can use on this machine ({error}); install the "
            "device's driver, or ask for a format of the host, such as 'numpy'."
        )
        raise NotInstalledError(msg) from error
    if wanted >= count:
        msg = f"CuPy finds {count} device(s), and {name} is not one of them; name one that is."
        raise BadRequestError(msg)
    return cupy.cuda.Device(wanted)


class _Handle:
    """A stream given as a number, under the protocol by which CuPy takes others' streams."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._pointer)


def _pointer(stream: Any) -> int:
    """Return the handle of a stream given as a number or as a framework's stream object."""
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for name in ("cuda_stream", "ptr"):  # torch's and older CuPy's own
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    msg = f"stream={stream!r} is no stream; pass its handle, a number, or its framework's object."
    raise BadRequestError(msg)


def _stream(stream: Any) -> Any:
    """Return CuPy's stream object for a stream of the current device."""
    import cupy

    pointer = _pointer(stream)
    if pointer in _LEGACY_STREAMS:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):
        owner = stream if hasattr(stream, "__cuda_stream__") else _Handle(pointer)
        return cupy.cuda.Stream.from_external(owner)
    return cupy.cuda.ExternalStream(pointer)


@contextmanager
def _working(device: Any, stream: Any) -> Iterator[Any]:
    """Make a device current and yield the stream to work on, which is current too.

    A stream of the caller's starts after CuPy's current one, whose memory is read, and the current
    one goes on after it, so that it cannot reuse that memory too early.
    """
    import cupy

    with device:
        current = cupy.cuda.get_current_stream()
        if stream is None:
            yield current
            return
        wanted = _stream(stream)
        wanted.wait_event(current.record())
        with wanted:
            yield wanted
        current.wait_event(wanted.record())


# ---------------------------------------------------------------------- hand-offs


def from_dlpack(value: Any, *, stream: Any = None) -> Any:
    """Return an array over a DLPack producer's memory, ordered after the producer's work.

    CuPy passes its current stream, the caller's if one is given, and the producer makes that
    stream wait for its own: the host does not.
    """
    import cupy

    producer = CheckedProducer(value, negative_strides=True)
    index = int(producer.__dlpack_device__()[1])
    with _exporting(value, index):
        if stream is None:
            result = cupy.from_dlpack(producer)
            pointer = cupy.cuda.get_current_stream(index).ptr
        else:
            with _working(cupy.cuda.Device(index), stream) as current:
                result = cupy.from_dlpack(producer)
                pointer = current.ptr
        _outlive(value, pointer)
    return result


def _torch(value: Any) -> Any:
    """Return torch if `value` is one of its tensors, else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(value, torch.Tensor) else None


def _exporting(value: Any, index: int) -> AbstractContextManager[Any]:
    """Return the context in which a producer on the device `index` will export.

    torch exports only from what it takes for the current device. That is the driver's, which CuPy
    sets, except after torch has put off initialising a device: then it is torch's own note of it.
    """
    torch = _torch(value)
    if torch is None or torch.cuda.current_device() == index:
        return nullcontext()
    guard: AbstractContextManager[Any] = torch.cuda.device(index)
    return guard


def _outlive(value: Any, pointer: int) -> None:
    """Tell the producer's allocator on which stream its memory is going to be used.

    DLPack cannot say when a consumer's work has ended, so without this the memory may be given
    out again while that work is still queued. torch alone lets itself be told.
    """
    torch = _torch(value)
    if torch is None or torch.cuda.current_stream(value.device).cuda_stream == pointer:
        return
    if pointer in _LEGACY_STREAMS:
        value.record_stream(torch.cuda.default_stream(value.device))
    else:
        value.record_stream(torch.cuda.ExternalStream(pointer, device=value.device))


def from_interface(value: Any, *, stream: Any = None) -> Any:
    """Return an array over the memory of a ``__cuda_array_interface__``.

    CuPy holds the producer, and lets the host wait for the stream that the interface names.
    """
    import cupy

    address = value.__cuda_array_interface__["data"][0]
    # Without memory there is nothing to ask; on another device than its own it would be copied.
    runtime = cupy.cuda.runtime
    index = runtime.pointerGetAttributes(address).device if address else runtime.getDevice()
    with _working(cupy.cuda.Device(index), stream):
        return cupy.asarray(value)


def copy_from_dlpack(value: Any, *, stream: Any = None) -> Any:
    """Return a copy of a DLPack producer's memory, on the same device."""
    return copy(from_dlpack(value, stream=stream), stream=stream)


def copy_from_interface(value: Any, *, stream: Any = None) -> Any:
    """Return a copy of the memory of a ``__cuda_array_interface__``, on the same device."""
    return copy(from_interface(value, stream=stream), stream=stream)


def from_numpy(value: Any, *, device: str, stream: Any = None) -> Any:
    """Return a copy of a NumPy array on a device, complete on return.

    The memory goes straight to the driver: ``cupy.array`` would first copy all of it into
    page-locked memory, and read what is already page-locked after it has returned.
    """
    import cupy

    with _working(_device(device), stream) as current:
        result = cupy.empty(value.shape, value.dtype)
        if value.size:
            result.set(value, stream=current)
            current.synchronize()
    return result


def to_numpy(value: Any, *, device: str, stream: Any = None) -> Any:
    """Return a copy of an array on the host, complete on return."""
    with _working(value.data.device, stream) as current:
        return value.get(stream=current, order="C", blocking=True)


# ---------------------------------------------------------------------- within CuPy


def as_array(value: Any) -> Any:
    """Return the memory of an array of a subclass as a plain array."""
    import cupy

    return value.view(cupy.ndarray)


def copy(value: Any, *, stream: Any = None) -> Any:
    """Return a C-ordered copy on the same device."""
    with _working(value.data.device, stream):
        return value.copy(order="C")


def cast(value: Any, *, dtype: str, stream: Any = None) -> Any:
    """Return a C-ordered copy of another dtype, which of complex numbers keeps the real part."""
    wanted = _dtype(dtype)
    with _working(value.data.device, stream):
        return _castable(value, wanted).astype(wanted, order="C")


def _dtype(name: str) -> Any:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _castable(value: Any, wanted: Any) -> Any:
    """Return an array with the numbers of `value` that a kernel casts to `wanted` in silence."""
    if value.dtype.kind == "c" and wanted.kind not in "cb":
        value = value.real
    names = {value.dtype.name, wanted.name}
    # Not every kernel knows bfloat16; float32 holds it, and all else that is as narrow.
    if len(names) > 1 and "bfloat16" in names and value.dtype.itemsize <= 2:
        return value.astype("float32")
    return value


def move(value: Any, *, device: str, stream: Any = None) -> Any:
    """Return a C-ordered copy on another device of the same kind, complete on return."""
    import cupy

    target = _device(device)
    with _working(target, stream) as there:
        before = there.record()
        with value.data.device:
            here = cupy.cuda.get_current_stream()
            here.wait_event(before)
            source = value if value.flags.c_contiguous else value.copy(order="C")
            ready = here.record()
        there.wait_event(ready)
        result = cupy.empty(value.shape, value.dtype)
        if value.size:
            result.data.copy_from_device_async(source.data, source.nbytes, there)
        there.synchronize()
    return result


# ---------------------------------------------------------------------- sparse arrays


def describe_compressed(value: Any) -> Spec:
    """Return the spec of a CSR or CSC array or matrix.

    Whether it is sorted and without duplicates is asked of cupyx, which looks once and remembers.
    """
    data, indices = value.data, value.indices
    traits = _NONE if _canonical(value) else _UNCOALESCED
    if len(value.shape) == 1:
        traits = traits | _VECTOR
    nbytes = data.nbytes + indices.nbytes + value.indptr.nbytes
    return _sparse_spec(value, traits, nbytes, indices.dtype)


def _canonical(value: Any) -> bool:
    """Tell whether a CSR or CSC array is sorted and without duplicates."""
    if "_has_canonical_format" in vars(value):  # remembered: nothing runs on the device
        return bool(value.has_canonical_format)
    with value.data.device:
        return bool(value.has_canonical_format)


def describe_coo(value: Any) -> Spec:
    """Return the spec of a COO array or matrix, canonical if cupyx has it noted as such."""
    traits = _NONE if value.has_canonical_format else _UNCOALESCED
    # A vector's rows are zeros that cupyx keeps for itself.
    indices = value.col.nbytes * len(value.shape)
    return _sparse_spec(value, traits, value.data.nbytes + indices, value.col.dtype)


def describe_dia(value: Any) -> Spec:
    """Return the spec of a DIA array or matrix."""
    nbytes = value.data.nbytes + value.offsets.nbytes
    return _sparse_spec(value, _NONE, nbytes, value.offsets.dtype)


def _sparse_spec(value: Any, traits: frozenset[str], nbytes: int, index_dtype: Any) -> Spec:
    data = value.data
    return Spec(
        f"cupy.{value.format}",
        _dtype_names.get(data.dtype) or _name(data.dtype),
        _device_name(data),
        value.shape,
        traits,
        nbytes,
        data.size,
        _dtype_names.get(index_dtype) or _name(index_dtype),
    )


def unpack_compressed(value: Any) -> Parts:
    """Return the component arrays of a CSR or CSC array, which stay its own."""
    arrays = {"values": value.data, "indices": value.indices, "pointers": value.indptr}
    return Parts(tuple(value.shape), arrays, {"canonical": _canonical(value)})


def unpack_coo(value: Any) -> Parts:
    """Return the component arrays of a COO array, which stay its own."""
    coordinates = (value.col,) if len(value.shape) == 1 else (value.row, value.col)
    arrays = {f"indices_{axis}": array for axis, array in enumerate(coordinates)}
    facts = {"canonical": bool(value.has_canonical_format)}
    return Parts(tuple(value.shape), {"values": value.data, **arrays}, facts)


def pack_csr(parts: Parts) -> Any:
    """Return a CSR array over component arrays."""
    return _compressed("csr_array", parts)


def pack_csc(parts: Parts) -> Any:
    """Return a CSC array over component arrays."""
    return _compressed("csc_array", parts)


def _compressed(kind: str, parts: Parts) -> Any:
    if len(parts.shape) != 2:
        msg = f"cupyx's {kind} is not made from {len(parts.shape)} axes here"
        raise Declined(msg)
    values = parts.arrays["values"]
    with values.device:
        components = (values, parts.arrays["indices"], parts.arrays["pointers"])
        return _flagged(_class(kind)(components, shape=parts.shape, copy=False), parts)


def pack_coo(parts: Parts) -> Any:
    """Return a COO array over component arrays."""
    axes = len(parts.shape)
    if axes not in (1, 2):
        msg = f"cupyx holds sparse arrays of one or two axes, not of {axes}"
        raise Declined(msg)
    values = parts.arrays["values"]
    coordinates = tuple(parts.arrays[f"indices_{axis}"] for axis in range(axes))
    with values.device:
        result = _class("coo_array")((values, coordinates), shape=parts.shape, copy=False)
        return _flagged(result, parts)


def _class(name: str) -> Any:
    """Return one of cupyx's sparse array classes: its matrix classes would narrow the indices."""
    import cupyx.scipy.sparse

    return getattr(cupyx.scipy.sparse, name)


def _flagged(value: Any, parts: Parts) -> Any:
    """Note what is known of the order of the components, which cupyx would have to look up."""
    if "canonical" in parts.facts:
        value.has_canonical_format = parts.facts["canonical"]
    return value


def compressed_memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays of a CSR or CSC array lie."""
    return memory(value.data) + memory(value.indices) + memory(value.indptr)


def coo_memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays of a COO array lie."""
    return memory(value.data) + memory(value.row) + memory(value.col)


def canonical(value: Any, *, stream: Any = None) -> Any:
    """Return a copy whose elements are sorted and in distinct places."""
    with _working(value.data.device, stream):
        result = value.copy()
        result.sum_duplicates()
    return result


def to_dense(value: Any, *, stream: Any = None) -> Any:
    """Return the dense array of a sparse one; what shares a place is added up."""
    with _working(value.data.device, stream):
        return value.toarray(order="C")


def to_coo(value: Any, *, stream: Any = None) -> Any:
    """Return a compressed array as COO: one index array is spelt out, the others are shared."""
    with _working(value.data.device, stream):
        return value.tocoo(copy=False)


def to_csr(value: Any, *, stream: Any = None) -> Any:
    """Return a sparse array as CSR."""
    with _working(value.data.device, stream):
        return value.tocsr()


def to_csc(value: Any, *, stream: Any = None) -> Any:
    """Return a sparse array as CSC."""
    with _working(value.data.device, stream):
        return value.tocsc()


def dense_to_csr(value: Any, *, stream: Any = None) -> Any:
    """Return the elements of a matrix that are not zero, as CSR."""
    with _working(value.data.device, stream):
        return _class("csr_array")(value)


def dense_to_csc(value: Any, *, stream: Any = None) -> Any:
    """Return the elements of a matrix that are not zero, as CSC."""
    with _working(value.data.device, stream):
        return _class("csc_array")(value)


def dense_to_coo(value: Any, *, stream: Any = None) -> Any:
    """Return the elements of a matrix that are not zero, as COO."""
    with _working(value.data.device, stream):
        return _class("coo_array")(value)


# ---------------------------------------------------------------------- declarations


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions and what may be wrong with an installation."""
    return [*_formats(), *_conversions(), Problems(_troubles)]


def _troubles() -> Iterable[Problem]:
    """Return what keeps CuPy from the device, without which it has no arrays at all."""
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        problem = f"CuPy {cupy.__version__} cannot reach a device: {error}"
    else:
        problem = "" if count else f"CuPy {cupy.__version__} finds no device."
    fix = "install or update the driver of the device; nvidia-smi says which one is in use"
    return [Problem(problem, fix, ("cupy",))] if problem else []


def _formats() -> Iterable[Format]:
    """Return CuPy's dense format, and cupyx's sparse ones."""
    return [
        Format(
            "cupy",
            types=("cupy:ndarray",),
            describe=describe,
            dtypes=_DTYPES,
            devices=_DEVICES,
            carries=_LAYOUT,
            exports={"dlpack": _DTYPES, "cuda_array_interface": _PLAIN_DTYPES},
            requires="cupy",
            install=_INSTALL,
            memory=memory,
            fill=fill,
        ),
        *_composites(),
        _sparse("dia", describe=describe_dia),
    ]


def _composites() -> Iterable[Format]:
    """Return the sparse formats that share a layout with other libraries'."""
    coordinates = {"values": "dtype", "indices": "index_dtype"}
    pointers = {**coordinates, "pointers": "index_dtype"}
    compressed = (describe_compressed, unpack_compressed, compressed_memory, pointers)
    coo = (describe_coo, unpack_coo, coo_memory, coordinates)
    for layout, (describe_one, unpack, memory_of, roles), pack in (
        ("csr", compressed, pack_csr),
        ("csc", compressed, pack_csc),
        ("coo", coo, pack_coo),
    ):
        yield _sparse(
            layout,
            describe=describe_one,
            carries=_UNCOALESCED | _VECTOR if layout == "csr" else _UNCOALESCED,
            components=Components(
                layout=layout,
                format="cupy",
                roles=roles,
                unpack_keeps=_UNCOALESCED,
                unpack=unpack,
                pack=pack,
            ),
            memory=memory_of,
        )


def _sparse(name: str, **declared: Any) -> Format:
    return Format(
        f"cupy.{name}",
        types=tuple(f"cupyx.scipy.sparse:{name}_{kind}" for kind in ("array", "matrix")),
        dtypes=_SPARSE_DTYPES,
        devices=_DEVICES,
        requires="cupyx",
        install=_INSTALL,
        index_dtypes=_INDEX_DTYPES,
        **declared,
    )


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from CuPy, and the steps within it."""
    return [
        *_hand_offs(),
        *_transfers(),
        *_unary(),
        *_layouts(),
        *_densifying(),
        *_sparsifying(),
    ]


def _hand_offs() -> Iterable[Conversion]:
    # The interface makes the host wait, so it comes after DLPack, which does not.
    protocols = (
        ("dlpack", from_dlpack, copy_from_dlpack, None, 6e-6),
        ("cuda_array_interface", from_interface, copy_from_interface, _PLAIN_DTYPES, 2e-5),
    )
    for protocol, share, duplicate, dtypes, latency in protocols:
        taken: dict[str, Any] = {"source": protocol, "dtypes": dtypes, "takes": _FOREIGN}
        yield _step(share, cost=Cost(latency), **taken)
        # For what must not be shared: a stranger's read-only memory.
        yield _step(duplicate, cost=Cost(latency + 1e-5, 1e12), effects=_COPY, **taken)


def _transfers() -> Iterable[Conversion]:
    """Return the moves. Not measured: pageable memory over a bus, and one device to another."""
    move_to: dict[str, Any] = {
        "changes": frozenset({"device"}),
        "effects": _TRANSFER,
        "stream": True,
        "cost": Cost(1.5e-5, 1.2e10),
    }
    taken = MEMORY_TRAITS - {"byteswapped"}
    host = frozenset({"cpu"})
    return [
        Conversion(
            "numpy", "cupy", from_numpy, takes=taken, result=Result(devices=_ON_DEVICE), **move_to
        ),
        Conversion(
            "cupy",
            "numpy",
            to_numpy,
            devices=_ON_DEVICE,
            takes=_LAYOUT,
            result=Result(devices=host),
            **move_to,
        ),
        _step(move, takes=_LAYOUT, **{**move_to, "cost": Cost(3e-5, 4e10)}),
    ]


def _unary() -> Iterable[Conversion]:
    subclass = frozenset({"subclass"})
    return [
        Conversion(
            "cupy",
            "cupy",
            as_array,
            devices=_ON_DEVICE,
            takes=_LAYOUT,
            requires=subclass,
            drops=subclass,
            cost=Cost(1e-6),
        ),
        _step(copy, takes=_LAYOUT, effects=_COPY, cost=Cost(1e-5, 1e12)),
        _step(
            cast,
            takes=_LAYOUT,
            changes=frozenset({"dtype"}),
            effects=_COPY,
            cost=Cost(1e-5, 1e12),
        ),
    ]


def _step(function: Callable[..., Any], **declared: Any) -> Conversion:
    usual = {"source": "cupy", "target": "cupy", "devices": _ON_DEVICE, "stream": True}
    return Conversion(function=function, **{**usual, **declared})


def _layouts() -> Iterable[Conversion]:
    """Return the steps between cupyx's layouts, and within each."""
    cost = Cost(1e-4, 1e11)
    plans: list[tuple[str, str, Callable[..., Any], dict[str, Any]]] = [
        ("csr", "coo", to_coo, {"takes": _UNCOALESCED | _VECTOR, "drops": _VECTOR, "shares": True}),
        # Columns come first in it, and COO is sorted by rows.
        ("csc", "coo", to_coo, {"takes": _UNCOALESCED, "adds": _UNCOALESCED, "shares": True}),
        ("csr", "csc", to_csc, {"takes": _UNCOALESCED}),
        ("csc", "csr", to_csr, {"takes": _UNCOALESCED}),
        # Both sort a copy and add up what shares a place.
        ("coo", "csr", to_csr, {"takes": _UNCOALESCED, "drops": _UNCOALESCED, "ndims": _TWO}),
        ("coo", "csc", to_csc, {"takes": _UNCOALESCED, "drops": _UNCOALESCED, "ndims": _TWO}),
        ("dia", "csr", to_csr, {}),
        ("dia", "csc", to_csc, {}),
        *(
            (one, one, canonical, {"requires": _UNCOALESCED, "drops": _UNCOALESCED})
            for one in ("csr", "csc", "coo")
        ),
    ]
    return [
        _step(f, source=f"cupy.{a}", target=f"cupy.{b}", effects=_COPY, cost=cost, **rest)
        for a, b, f, rest in plans
    ]


def _densifying() -> Iterable[Conversion]:
    for layout in ("csr", "csc", "coo"):
        taken = _UNCOALESCED | _VECTOR if layout == "csr" else _UNCOALESCED
        yield _step(
            to_dense,
            source=f"cupy.{layout}",
            takes=taken,
            drops=taken,
            effects=frozenset({"densify"}),
            cost=Cost(2e-4, 2e11),
        )


def _sparsifying() -> Iterable[Conversion]:
    for layout, maker, index in (
        ("csr", dense_to_csr, "int32"),
        ("csc", dense_to_csc, "int32"),
        ("coo", dense_to_coo, "int64"),
    ):
        yield _step(
            maker,
            target=f"cupy.{layout}",
            dtypes=_SPARSE_DTYPES,
            ndims=_TWO,
            takes=_LAYOUT,
            result=Result(index_dtype=index),
            effects=_COPY,
            cost=Cost(2e-4, 1e11),
        )
