"""JAX: dense arrays, and the sparse ones of `jax.experimental`, declared.

Arrays of JAX's never change: what shares their memory is read-only where that can be said. Into
JAX elements are copied on the host and shared on accelerators, because on the host XLA shares only
memory that happens to be aligned to 64 bytes, which no spec tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from interop.plugin import (
    MEMORY_TRAITS,
    Autodiff,
    Components,
    Container,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    Result,
    hookimpl,
)

from . import _jax_dense as dense
from . import _jax_sparse as sparse
from ._jax_autodiff import attach, vjp
from ._jax_pytrees import open_pytree

__all__ = ["interop_declarations"]

_COPY, _TRANSFER = frozenset({"copy"}), frozenset({"transfer"})
_IMMUTABLE, _SHARDED = frozenset({"immutable"}), frozenset({"sharded"})
_GAPS, _UNCOALESCED = frozenset({"noncontiguous"}), frozenset({"uncoalesced"})
_PADDED, _INVALID = frozenset({"padded"}), frozenset({"invalid_indices"})
_SHAPED = frozenset({"batched", "hybrid"})
_DTYPE, _DEVICE = frozenset({"dtype"}), frozenset({"device"})

_DEVICES = ("cpu", "cuda", "rocm", "tpu")
_CPU = frozenset({"cpu"})
_ACCELERATORS = frozenset(_DEVICES) - _CPU
#: Where DLPack hands memory over.
_SHARED = frozenset({"cuda", "rocm"})

_TORCH = dense.DLPACK_DTYPES - {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}
#: What NumPy casts by itself at the speed of memory, or near.
_CASTABLE = frozenset(
    {"bool", "float16", "float32", "float64", "bfloat16"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_COMPLEX = frozenset({"complex64", "complex128"})

#: Between the host and a device.
_WIRE = Cost(1.5e-5, 1.2e10)

#: What the texts of refusals say.
_OBSTACLES = {
    **{
        dtype: f"JAX holds {dtype} only while its option jax_enable_x64 is on; switch it on "
        "(jax.config.update('jax_enable_x64', True)) or ask for a narrower dtype=."
        for dtype in dense.WIDE
    },
    "deleted": "its memory was given up, by delete() or to a function that it was donated to; "
    "convert it before that, or what the function returned.",
    "remote": "parts of it are on devices of other processes; gather it there first "
    "(jax.experimental.multihost_utils.process_allgather).",
    "host_memory": "it is in host memory of an accelerator's; put it on the device first "
    "(jax.device_put).",
    "sharded": "it lies on several devices, and the target takes it from one; put it on one first "
    "(jax.device_put), or ask for a format on the host, where it is gathered.",
    "invalid_indices": "it has indices below zero, or pointers that do not rise from zero to the "
    "number of elements; other libraries take both for granted.",
}

_TYPES = ("jaxlib._jax:ArrayImpl", "jax:Array", "jax._src.core:Tracer")
_INSTALL = "pip install jax"


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions, the names of dtypes, the containers and the differentiation."""
    return [*_formats(), *_conversions(), *_dtypes(), *_containers(), *_autodiffs()]


def _autodiffs() -> Iterable[Autodiff]:
    """Return how it differentiates."""
    return [Autodiff("jax", vjp, attach)]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how JAX names its dtypes, where they are not NumPy's."""
    return [DtypeNames("jax._src.numpy.scalar_types:_ScalarMeta", dense.scalar_type_name)]


def _containers() -> Iterable[Container]:
    """Return how to open the classes that are registered with JAX as pytrees."""
    return [Container("jax", open_pytree)]


def _formats() -> Iterable[Format]:
    """Return the format of dense arrays, and those of the sparse ones."""
    return [
        Format(
            "jax",
            types=_TYPES,
            target_types=("jax:Array",),
            describe=dense.describe,
            dtypes=dense.DTYPES,
            devices=_DEVICES,
            limits=Limits(unsupported_now=dense.unsupported_now, refusal_hints=_OBSTACLES),
            carries=_IMMUTABLE | _SHARDED | _GAPS | {"traced", "remote", "host_memory"},
            exports={"dlpack": dense.DLPACK_DTYPES},
            requires="jax",
            install=_INSTALL,
            memory=dense.memory,
            fast_path=dense.as_it_is,
            transit=False,  # it copies what comes in, and compiles for every new shape
        ),
        _sparse_format(
            "bcoo",
            "BCOO",
            describe=sparse.describe_bcoo,
            components=_components(
                layout="coo",
                roles={"values": "dtype", "indices": "index_dtype"},
                unpack=sparse.unpack_bcoo,
                pack=sparse.pack_bcoo,
                unpack_copies=frozenset({"indices"}),
                pack_copies=frozenset({"indices"}),
            ),
            ndims=frozenset(range(1, 65)),
        ),
        _sparse_format(
            "bcsr",
            "BCSR",
            describe=sparse.describe_bcsr,
            components=_components(
                layout="csr",
                roles={"values": "dtype", "indices": "index_dtype", "pointers": "index_dtype"},
                unpack=sparse.unpack_bcsr,
                pack=sparse.pack_bcsr,
            ),
            ndims=frozenset(range(2, 65)),
        ),
    ]


_components = partial(Components, format="jax", unpack_keeps=_UNCOALESCED, pack_seconds=1e-4)


def _sparse_format(name: str, type_: str, **fields: Any) -> Format:
    return Format(
        f"jax.{name}",
        types=(f"jax.experimental.sparse:{type_}",),
        dtypes=dense.DLPACK_DTYPES,
        devices=_DEVICES,
        limits=Limits(unsupported_now=dense.unsupported_now, refusal_hints=_OBSTACLES),
        carries=_UNCOALESCED | _PADDED | _SHAPED | _SHARDED | {"traced", "remote"},
        requires="jax",
        install=_INSTALL,
        index_dtypes=frozenset({"int32"}),
        memory=sparse.memory,
        transit=False,
        **fields,
    )


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from NumPy and torch, and the steps within JAX."""
    return [*_out(), *_into(), *_within(), *_sparse_steps()]


def _out() -> Iterable[Conversion]:
    """Return the ways out; on accelerators, DLPack's are those of the frameworks that consume."""
    shared: dict[str, Any] = {"takes": _IMMUTABLE, "cost": Cost(1e-6)}
    yield Conversion(
        "jax",
        "numpy",
        dense.to_numpy,
        dtypes=dense.DLPACK_DTYPES,
        fast_path=dense.numpy_fast_path,
        **shared,
    )
    yield Conversion(
        "jax", "torch", dense.to_torch, dtypes=_TORCH, fast_path=dense.torch_fast_path, **shared
    )
    copied: dict[str, Any] = {"takes": _IMMUTABLE | _GAPS, "effects": _COPY}
    yield Conversion(
        "jax", "numpy", dense.unpack, dtypes=dense.PACKED, cost=Cost(1e-5, 1e9), **copied
    )
    parts: dict[str, Any] = {"requires": _SHARDED, "drops": _SHARDED, "cost": Cost(1e-4, 8e9)}
    yield Conversion("jax", "numpy", dense.gather, **copied, **parts)
    moved: dict[str, Any] = {
        "changes": _DEVICE,
        "result": Result(devices=_CPU),
        "effects": _TRANSFER,
    }
    there: dict[str, Any] = {"devices": _ACCELERATORS, "takes": _IMMUTABLE | _GAPS}
    yield Conversion("jax", "numpy", dense.gather, **{**parts, "cost": _WIRE}, **moved, **there)
    yield Conversion("jax", "numpy", dense.download, cost=_WIRE, **moved, **there)


def _into() -> Iterable[Conversion]:
    make = partial(Conversion, adds=_IMMUTABLE)
    copied: dict[str, Any] = {"takes": MEMORY_TRAITS, "effects": _COPY}
    yield make(
        "numpy",
        "jax",
        dense.from_numpy,
        fast_path=dense.jax_fast_path,
        cost=Cost(4e-5, 1.2e10),
        **copied,
    )
    for name, dtypes in (("real", _CASTABLE), ("complex", _COMPLEX)):
        yield make(
            "numpy",
            "jax",
            dense.from_numpy,
            dtypes=dtypes,
            result=Result(dtypes=dtypes),
            changes=_DTYPE,
            cost=Cost(8e-5, 8e9),
            name=f"from_numpy_cast_{name}",
            **copied,
        )
    yield make(
        "torch",
        "jax",
        dense.from_torch,
        dtypes=_TORCH,
        takes=frozenset({"noncontiguous", "broadcast", "unaligned"}),
        effects=_COPY,
        cost=Cost(4e-5, 1.3e10),
    )
    yield make(
        "numpy",
        "jax",
        dense.upload,
        takes=MEMORY_TRAITS - {"byteswapped"},
        changes=_DEVICE,
        result=Result(devices=_ACCELERATORS),
        effects=_TRANSFER,
        cost=_WIRE,
    )
    yield make(
        "dlpack",
        "jax",
        dense.from_dlpack,
        dtypes=dense.DLPACK_DTYPES,
        devices=_SHARED,
        # Not what is read-only: JAX's word that its arrays never change opens it to whoever asks.
        takes=_IMMUTABLE,
        cost=Cost(2e-5),
        name="jax_from_dlpack",
    )


def _within() -> Iterable[Conversion]:
    make = partial(Conversion, "jax", "jax", adds=_IMMUTABLE, effects=_COPY)
    taken = _IMMUTABLE | _GAPS
    for devices, speed in ((_CPU, 1.2e10), (_ACCELERATORS, 1e12)):
        whole: dict[str, Any] = {"devices": devices, "takes": taken, "cost": Cost(5e-5, speed)}
        yield make(dense.copy, **whole)
        yield make(dense.copy, requires=_SHARDED, **whole)
        # On the host it is compiled for every shape, and NumPy casts on the way in.
        for requires in (_SHARDED,) if devices is _CPU else (frozenset(), _SHARDED):
            yield make(dense.cast, requires=requires, changes=_DTYPE, **whole)
    yield Conversion(
        "jax",
        "jax",
        dense.move,
        devices=None,
        takes=taken,
        adds=_IMMUTABLE,
        changes=_DEVICE,
        effects=_TRANSFER,
        cost=_WIRE,
    )


def _sparse_steps() -> Iterable[Conversion]:
    """Return the steps among the sparse formats; where JAX computes, it compiles first."""
    make = partial(Conversion, devices=None, dtypes=dense.DLPACK_DTYPES)
    written: dict[str, Any] = {"effects": _COPY, "adds": _IMMUTABLE}
    compiled = Cost(5e-3, 1e9)
    loose = _IMMUTABLE | _UNCOALESCED
    for name in ("jax.bcoo", "jax.bcsr"):
        yield make(
            name,
            name,
            sparse.without_padding,
            takes=loose,
            requires=_PADDED,
            drops=_PADDED,
            cost=Cost(2e-4, 1e9),
            **written,
        )
        yield make(
            name,
            "jax",
            sparse.to_dense,
            # It adds to zeros, which these do not have, and makes NaN of everything.
            dtypes=dense.DLPACK_DTYPES - {"float8_e8m0fnu"},
            takes=loose | _PADDED | _SHAPED | (_INVALID if name == "jax.bcoo" else frozenset()),
            drops=_UNCOALESCED | _PADDED | _SHAPED | _INVALID,
            adds=_IMMUTABLE,
            effects=frozenset({"densify"}),
            cost=compiled,
        )
    yield make(
        "jax.bcoo",
        "jax.bcoo",
        sparse.canonicalize,
        takes=_IMMUTABLE,
        requires=_UNCOALESCED,
        drops=_UNCOALESCED,
        cost=compiled,
        **written,
    )
    plane: dict[str, Any] = {"ndims": frozenset({2}), "cost": Cost(2e-3, 1e9), **written}
    plane["shares"] = True  # the values stay
    yield make("jax.bcoo", "jax.bcsr", sparse.to_bcsr, takes=_IMMUTABLE, **plane)
    plane["cost"] = Cost(6e-5, 1e10)
    yield make("jax.bcsr", "jax.bcoo", sparse.to_bcoo, takes=loose, **plane)
    yield make(
        "jax",
        "jax.bcoo",
        sparse.from_dense,
        takes=_IMMUTABLE | _GAPS,
        result=Result(index_dtype="int32"),
        cost=Cost(7e-5, 2.5e9),
        **written,
    )
