"""dask: arrays in chunks that are computed when they are needed, where they are needed.

A format is named by what the chunks are: ``dask`` has NumPy's, ``dask.torch`` torch's. To convert
one to another is a step of dask's own graph: nothing is computed, and the data may be larger than
memory. Every other conversion computes the array.

Whether a chunk can be shared is found out in the worker that has it: one that was received is
read-only there. So chunk-wise steps between dense formats have the effect ``copy``, although most
chunks are shared. And every one is said to share memory, because what lies in memory is read only
when the chunks are computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Limits,
    Result,
    hookimpl,
)

from ._dask_chunks import DENSE, INDEX_DTYPES, describe, map_chunks, wrap
from ._dask_results import compute, compute_tensor

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_COPY, _TRANSFER = frozenset({"copy"}), frozenset({"transfer"})
_DENSIFY, _MATERIALIZE = frozenset({"densify"}), frozenset({"materialize"})
_UNKNOWN, _FILL, _MATRIX = (frozenset({t}) for t in ("unknown_shape", "fill_value", "matrix"))
_UNCOALESCED = frozenset({"uncoalesced"})

_LONG = frozenset({"longdouble", "clongdouble"})
_WHOLE = frozenset({"bool"} | {f"{s}int{bits}" for s in ("", "u") for bits in (8, 16, 32, 64)})
_SPARSE = _WHOLE | _LONG | {"float32", "float64", "complex64", "complex128"}
_CUPY = _SPARSE - _LONG | {"float16", "bfloat16"}
_FLOAT8 = {f"float8_{name}" for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")}

#: The formats that chunks may have, and their dtypes, which are those of the formats themselves.
_KINDS: dict[str, frozenset[str]] = {
    # NumPy has no complex32, and every chunk was NumPy's once.
    "numpy": frozenset(DTYPES) - {"complex32"},
    "torch": _CUPY | _FLOAT8,
    "cupy": _CUPY,
    "scipy.csr": _SPARSE,
    "scipy.csc": _SPARSE,
    "scipy.coo": _SPARSE,
    "sparse.coo": _SPARSE | {"float16"},
}
#: Numbers of axes, where not every meta can be cut to nothing and stay of its type.
_NDIMS = {
    **dict.fromkeys(("scipy.csr", "scipy.csc", "scipy.coo"), frozenset({2})),
    "sparse.coo": frozenset(range(1, 65)),
}

_OBSTACLES = {
    "masked": "dask's masked arrays are converted by no step; fill them first "
    "(dask.array.ma.filled), or compute it and convert what comes out.",
    "foreign_chunks": "its chunks are of a type that interop does not know inside of dask; make "
    "them NumPy's first (map_blocks), or compute it and convert what comes out.",
    "grad": "its chunks are part of an autograd graph, which ends at the border of a task; detach "
    "them in the task that makes them.",
    "complex32": "NumPy, where chunks come from, has no complex32; ask for dtype='complex64'.",
}


def _name(kind: str) -> str:
    return "dask" if kind == "numpy" else f"dask.{kind}"


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return a format for each that chunks may have."""
    for kind, dtypes in _KINDS.items():
        yield Format(
            _name(kind),
            types=("dask.array.core:Array", "dask.array:Array"),
            describe=describe,
            dtypes=dtypes,
            devices=("cuda",) if kind == "cupy" else ("cpu",),
            # The flags of memory are those of the chunks, which keep them.
            carries=_UNKNOWN | MEMORY_TRAITS | (_FILL if kind == "sparse.coo" else _NONE),
            requires="dask",
            install='pip install "dask[array]"',
            ndims=_NDIMS.get(kind),
            index_dtypes=frozenset({INDEX_DTYPES[kind]}) if kind in INDEX_DTYPES else _NONE,
            limits=Limits(refusal_hints=_OBSTACLES),
            lazy=True,
            transit=False,  # it is where a route starts or ends
        )


def _conversions() -> Iterable[Conversion]:
    """Return the ways into dask, the steps from chunk to chunk, and the computing of them."""
    for kind in _KINDS:
        yield from _ends(kind)
        yield from _writing(kind)
    for source in _KINDS:
        for target in _KINDS:
            if source != target:
                yield _chunkwise(source, target)


def _ends(kind: str) -> Iterable[Conversion]:
    """Return how an array is wrapped, and how one is computed."""
    devices = frozenset({"cuda" if kind == "cupy" else "cpu"})
    taken = MEMORY_TRAITS if kind in DENSE else MEMORY_TRAITS - {"byteswapped"}
    fill = _FILL if kind == "sparse.coo" else _NONE
    # torch's tensors are wrapped as NumPy's arrays: a slice of one takes all its memory along
    # when it is sent to a worker.
    if kind != "torch":
        yield Conversion(
            kind,
            _name(kind),
            wrap,
            dtypes=_KINDS[kind],
            devices=devices,
            takes=taken | _UNCOALESCED | fill,
            drops=taken | _UNCOALESCED,
            cost=Cost(1e-4),
        )
    yield Conversion(
        _name(kind),
        kind,
        compute_tensor if kind == "torch" else compute,
        dtypes=_KINDS[kind],
        devices=devices,
        takes=_UNKNOWN | _MATRIX | fill,
        drops=_UNKNOWN | _MATRIX,
        result=Result(index_dtype=INDEX_DTYPES.get(kind)),
        effects=_MATERIALIZE,
        cost=Cost(2e-3, 8e9),
    )


def _writing(kind: str) -> Iterable[Conversion]:
    """Return the copies and the casts of each chunk."""
    taken = _UNKNOWN | _MATRIX | (_FILL if kind == "sparse.coo" else _NONE)
    usual: dict[str, Any] = {
        "devices": None,
        "drops": _MATRIX,
        "effects": _COPY,
        "cost": Cost(4e-4, 1e10),
    }
    copy, cast = partial(map_chunks, to=kind, copy=True), partial(map_chunks, to=kind)
    name = _name(kind)
    yield Conversion(name, name, copy, takes=taken, name="copy_chunks", **usual)
    yield Conversion(
        name,
        name,
        cast,
        takes=taken,
        changes=frozenset({"dtype"}),
        shares=True,
        name="cast_chunks",
        **usual,
    )


def _chunkwise(source: str, target: str) -> Conversion:
    """Return the step that converts each chunk, where and when it is computed."""
    dropped, effects = _MATRIX, _COPY
    if source not in DENSE and target in DENSE:
        dropped, effects = _MATRIX | _FILL, _DENSIFY
    result, fields = Result(index_dtype=INDEX_DTYPES.get(target)), dict[str, Any]()
    if "cupy" in (source, target):
        here, there = (frozenset({"cuda" if k == "cupy" else "cpu"}) for k in (source, target))
        fields = {"devices": here, "changes": frozenset({"device"})}
        result = result._replace(devices=there)
        effects = effects - _COPY | _TRANSFER
    return Conversion(
        _name(source),
        _name(target),
        partial(map_chunks, to=target),
        dtypes=_KINDS[source] & _KINDS[target],
        takes=_UNKNOWN | dropped,
        drops=dropped,
        effects=effects,
        shares=True,
        result=result,
        cost=Cost(4e-4, 1e10),
        name=f"chunks_to_{target}".replace(".", "_"),
        **fields,
    )
