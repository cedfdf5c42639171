"""dask: arrays in chunks that are computed when they are needed, where they are needed.

A format is named after its chunks: those of ``dask`` are NumPy arrays, those of ``dask.torch`` are
tensors. A conversion from one to another is a step of dask's own graph: nothing is computed, and
the data may be larger than memory. Every other conversion computes the array.

Only the worker that has a chunk can tell whether it can be shared: a chunk that it has received is
read-only. So chunk-wise steps between dense formats have the effect ``copy``, although most chunks
are shared. All chunk-wise steps are declared to share memory as well, because memory is not read
before the chunks are computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from interop.kit import COMPLEX, COPY, CPU, DEVICE, EMPTY, INTEGERS, NATIVE, TEXTS
from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    Cast,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Format,
    Limits,
    Result,
    hookimpl,
)

from . import describe
from .chunks import map_chunks, wrap
from .describe import DENSE, INDEX_DTYPES
from .results import compute, compute_masked, compute_tensor

_CUDA = frozenset({"cuda"})
_UNKNOWN_SHAPE, _FILL_VALUE = frozenset({"unknown_shape"}), frozenset({"fill_value"})
_MATRIX, _UNCOALESCED = frozenset({"matrix"}), frozenset({"uncoalesced"})

_LONG = frozenset({"longdouble", "clongdouble"})
_SPARSE = INTEGERS | COMPLEX | _LONG | {"bool", "float32", "float64"}
_CUPY = _SPARSE - _LONG | {"float16", "bfloat16"}
_FLOAT8 = {f"float8_{name}" for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")}

#: The beginnings of the names of dtypes of text, dates and objects, which only NumPy's chunks have.
_ELEMENTS = TEXTS | {"datetime64[", "timedelta64[", "object$"}
#: The formats that chunks may have, and the dtypes of these formats.
_CHUNK_DTYPES: dict[str, frozenset[str]] = {
    # Every chunk starts as a NumPy array, and NumPy has no complex32.
    "numpy": frozenset(DTYPES) - {"complex32"},
    "torch": _CUPY | _FLOAT8,
    "cupy": _CUPY,
    "scipy.csr": _SPARSE,
    "scipy.csc": _SPARSE,
    "scipy.coo": _SPARSE,
    "sparse.coo": _SPARSE | {"float16"},
}
#: The numbers of axes of formats that do not take all: dask cuts an array to nothing to learn the
#: type of its chunks, and with other numbers of axes that fails or gives another type.
_NDIMS = {
    **dict.fromkeys(("scipy.csr", "scipy.csc", "scipy.coo"), frozenset({2})),
    "sparse.coo": frozenset(range(1, 65)),
}

_REFUSAL_HINTS = {
    "masked": "dask.array.ma.filled(x, ...) says what stands for what is masked, and to='numpy.ma' "
    "keeps the mask.",
    "foreign_chunks": "its chunks are of a type that interop does not recognise inside dask; make "
    "them NumPy's first (map_blocks), or compute the array and convert the result.",
    "grad": "its chunks are part of an autograd graph, which ends at the border of a task; detach "
    "them in the task that makes them.",
    "complex32": "chunks come from NumPy, which has no complex32; ask for dtype='complex64'.",
}


_CANNOT_BE_CUT = (
    "SciPy can cut coo arrays from 1.17 on, which dask needs them for; upgrade SciPy, or ask for "
    "dask.scipy.csr."
)


@cache
def _uncut(_device: str) -> frozenset[str]:
    """Return the dtypes that coo chunks cannot have with the installed SciPy: all, or none."""
    try:
        major, minor, *_ = version("scipy").split(".")
    except PackageNotFoundError:
        return EMPTY
    return EMPTY if (int(major), int(minor)) >= (1, 17) else _SPARSE


_COO_LIMITS = Limits(
    unsupported_now=_uncut,
    refusal_hints={**_REFUSAL_HINTS, **dict.fromkeys(_SPARSE, _CANNOT_BE_CUT)},
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _name(chunks: str) -> str:
    """Return the name of the format with such chunks."""
    return "dask" if chunks == "numpy" else f"dask.{chunks}"


def _fill_value(chunks: str) -> frozenset[str]:
    return _FILL_VALUE if chunks == "sparse.coo" else EMPTY


def _kept(chunks: str) -> frozenset[str]:
    """Return the traits that chunks keep within their format, as they do outside of dask."""
    return _MATRIX if chunks.startswith("scipy.") else _fill_value(chunks)


def _devices(chunks: str) -> frozenset[str]:
    return _CUDA if chunks == "cupy" else CPU


def _formats() -> Iterable[Format]:
    """Yield a format for each kind of chunks."""
    for chunks, dtypes in _CHUNK_DTYPES.items():
        yield Format(
            _name(chunks),
            types=("dask.array.core:Array", "dask.array:Array"),
            aliases=("da",),
            describe=describe.describe,
            dtypes=dtypes,
            devices=tuple(_devices(chunks)),
            # The chunks have traits of memory, and keep them.
            carries=_UNKNOWN_SHAPE | MEMORY_TRAITS | _kept(chunks),
            requires="dask",
            install="pip install 'dask[array]'",
            unary=tuple(_copy_and_cast(chunks)),
            ndims=_NDIMS.get(chunks),
            index_dtypes={INDEX_DTYPES[chunks]} if chunks in INDEX_DTYPES else EMPTY,
            limits=_COO_LIMITS if chunks == "scipy.coo" else Limits(refusal_hints=_REFUSAL_HINTS),
            lazy=True,
        )


def _conversions() -> Iterable[Conversion]:
    """Return the ways into dask, the steps from chunk to chunk, and the ways out."""
    for chunks in _CHUNK_DTYPES:
        yield from _wrap_and_compute(chunks)
    yield Conversion(
        "dask",
        "numpy.ma",
        compute_masked,
        dtypes=_CHUNK_DTYPES["numpy"],
        takes=_UNKNOWN_SHAPE,
        requires={"masked"},
        drops=_UNKNOWN_SHAPE,
        cost=Cost(2e-3, 4e9),
    )
    for source in _CHUNK_DTYPES:
        for target in _CHUNK_DTYPES:
            if source != target:
                yield _chunkwise(source, target)


def _wrap_and_compute(chunks: str) -> Iterable[Conversion]:
    """Yield the step that wraps an array, and the step that computes a dask array."""
    dtypes, devices = _CHUNK_DTYPES[chunks], _devices(chunks)
    memory = MEMORY_TRAITS if chunks in DENSE else NATIVE
    # Tensors come to dask as NumPy arrays: a slice of a tensor is sent to a worker together with
    # the memory of the whole tensor.
    if chunks != "torch":
        yield Conversion(
            chunks,
            _name(chunks),
            wrap,
            dtypes=dtypes,
            devices=devices,
            takes=memory | _UNCOALESCED | _fill_value(chunks),
            drops=memory | _UNCOALESCED,
            cost=Cost(1e-4),
        )
    yield Conversion(
        _name(chunks),
        chunks,
        compute_tensor if chunks == "torch" else compute,
        dtypes=dtypes,
        devices=devices,
        takes=_UNKNOWN_SHAPE | _MATRIX | _fill_value(chunks),
        drops=_UNKNOWN_SHAPE | _MATRIX,
        result=Result(index_dtype=INDEX_DTYPES.get(chunks)),
        cost=Cost(2e-3, 8e9),
    )


def _copy_and_cast(chunks: str) -> Iterable[Conversion]:
    """Yield the copy and the cast of each chunk."""
    fields: dict[str, Any] = {
        "takes": _UNKNOWN_SHAPE | _kept(chunks),
        "cost": Cost(4e-4, 1e10),
    }
    copy = partial(Copy, partial(map_chunks, to=chunks, copy=True), **fields)
    yield copy(name="copy_chunks")
    if chunks == "numpy":
        yield copy(dtypes=_ELEMENTS, name="copy_chunks_of_elements")
    yield Cast(partial(map_chunks, to=chunks), name="cast_chunks", shares=True, **fields)


def _chunkwise(source: str, target: str) -> Conversion:
    """Return the step that converts each chunk, where and when it is computed."""
    densifies = source not in DENSE and target in DENSE
    drops = _MATRIX | _FILL_VALUE if densifies else _MATRIX
    make = partial(
        Conversion,
        _name(source),
        _name(target),
        partial(map_chunks, to=target),
        dtypes=_CHUNK_DTYPES[source] & _CHUNK_DTYPES[target],
        takes=_UNKNOWN_SHAPE | drops,
        drops=drops,
        shares=True,
        cost=Cost(4e-4, 1e10),
        name=f"chunks_to_{target}".replace(".", "_"),
    )
    index_dtype = INDEX_DTYPES.get(target)
    if "cupy" not in (source, target):
        effects = EMPTY if densifies else COPY
        return make(effects=effects, result=Result(index_dtype=index_dtype))
    return make(
        effects={"transfer"},
        devices=_devices(source),
        changes=DEVICE,
        result=Result(devices=_devices(target), index_dtype=index_dtype),
    )
