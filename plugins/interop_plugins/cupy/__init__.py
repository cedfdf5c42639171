"""CuPy: dense arrays and ``cupyx.scipy.sparse`` arrays on CUDA and ROCm devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from interop.kit import COMPLEX, COPY, CPU, DTYPE, INTEGERS, NATIVE, REALS, STRIDED, transfer
from interop.plugin import (
    Cast,
    Components,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    Format,
    Limits,
    Move,
    Result,
    hookimpl,
)
from interop.plugin.advanced import Advanced, Problems

from .dense import (
    as_array,
    cast,
    cast_if_exact,
    copy,
    fill,
    move,
    stack,
)
from .describe import describe, fast_key, memory
from .hand_offs import (
    all_from_numpy,
    all_to_numpy,
    copy_from_dlpack,
    copy_from_interface,
    fetch_into,
    fill_from_numpy,
    from_dlpack,
    from_interface,
    from_numpy,
    to_numpy,
    to_page_locked,
)
from .offers import adopt, adopt_interface, copy_adopted, copy_adopted_interface, offer
from .problems import find_problems
from .sparse import (
    UNCOALESCED,
    VECTOR,
    canonical,
    compressed_memory,
    coo_memory,
    describe_compressed,
    describe_coo,
    describe_dia,
    from_dense,
    pack_compressed,
    pack_coo,
    to_coo,
    to_csc,
    to_csr,
    to_dense,
    unpack_compressed,
    unpack_coo,
)

if TYPE_CHECKING:
    from typing import Any

    from .describe import CupyArray, Sparse

_DEVICES = ("cuda", "rocm")
_ON_DEVICE = frozenset(_DEVICES)

#: The dtypes that NumPy has names for, and so ``__cuda_array_interface__``.
_PLAIN_DTYPES = INTEGERS | REALS | COMPLEX | {"bool"}
_DTYPES = _PLAIN_DTYPES | {"bfloat16"}
_FLOAT8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_NO_FLOAT8 = (
    "CuPy has no float8 dtype; carry the bits as uint8: hand over a view of them, which the "
    "value's own framework gives, or let them be cast to a wider dtype."
)
_HINTS = {f"float8_{name}": _NO_FLOAT8 for name in _FLOAT8}
#: cuSPARSE computes with these, and cupyx stores no others.
_SPARSE_DTYPES = COMPLEX | {"bool", "float32", "float64"}
_INDEX_DTYPES = frozenset({"int32", "int64"})

_FOREIGN = STRIDED | {"readonly", "immutable"}

#: The cost of a transfer into page-locked memory, measured on an H200.
_LOCKED = Cost(1.8e-5, 1.1e11)

_TWO = frozenset({2})
_ONE_OR_TWO = frozenset({1, 2})

_INSTALL = "pip install cupy-cuda13x"


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions, and how to find out what is wrong with CuPy."""
    return [
        *_formats(),
        *_hand_offs(),
        *_transfers(),
        *_layout_changes(),
        *_densifying(),
        *_sparsifying(),
        Problems(find_problems),
    ]


def _formats() -> Iterable[Format]:
    return [
        Format(
            "cupy",
            types=("cupy:ndarray",),
            aliases=("cp",),
            describe=describe,
            dtypes=_DTYPES,
            devices=_DEVICES,
            carries=STRIDED,
            exports={"dlpack": _DTYPES, "cuda_array_interface": _PLAIN_DTYPES},
            unary=(
                Move(move, cost=Cost(3e-5, 4e10), stream=True),
                Drop("subclass", as_array),
                Copy(
                    copy,
                    frozenset("CF"),
                    cost=Cost(1e-5, 1e12),
                    across=Cost(1.2e-5, 5e11),
                    stream=True,
                ),
                Cast(cast, cost=Cost(1e-5, 1e12), stream=True),
                *_checked_casts(),
            ),
            requires="cupy",
            install=_INSTALL,
            memory=memory,
            limits=Limits(refusal_hints=_HINTS),
            fill=fill,
            advanced=Advanced(
                hub=True,
                fast_key=fast_key,
                address=attrgetter("data.ptr"),
                offers={"dlpack": offer},
            ),
        ),
        *_component_formats(),
        _sparse("dia", describe=describe_dia, ndims=_TWO),
    ]


def _checked_casts() -> Iterable[Conversion]:
    """Yield the casts of integers for targets without 64 bits."""
    for name in ("int", "uint"):
        yield Cast(
            cast_if_exact,
            {f"{name}32"},
            dtypes={f"{name}64"},
            checked=True,
            cost=Cost(5e-5, 5e11),
            stream=True,
            name=f"cast_{name}_if_exact",
        )


def _component_formats() -> Iterable[Format]:
    """Yield the sparse formats whose layouts other libraries have, too."""
    coordinates = {"values": "dtype", "indices": "index_dtype"}
    pointers = {**coordinates, "pointers": "index_dtype"}
    compressed = (describe_compressed, unpack_compressed, compressed_memory, pointers)
    coo = (describe_coo, unpack_coo, coo_memory, coordinates)
    for layout, (describe_sparse, unpack, memory_of, roles), pack, ndims in (
        ("csr", compressed, partial(pack_compressed, "csr_array"), _TWO),
        ("csc", compressed, partial(pack_compressed, "csc_array"), _TWO),
        ("coo", coo, pack_coo, _ONE_OR_TWO),
    ):
        yield _sparse(
            layout,
            describe=describe_sparse,
            carries=UNCOALESCED | VECTOR if layout == "csr" else UNCOALESCED,
            components=Components(
                layout=layout,
                format="cupy",
                roles=roles,
                unpack_keeps=UNCOALESCED,
                unpack=unpack,
                pack=pack,
            ),
            unary=(
                Drop(
                    "uncoalesced",
                    canonical,
                    "copy",
                    takes=UNCOALESCED,
                    cost=Cost(1e-4, 1e11),
                    stream=True,
                ),
            ),
            memory=memory_of,
            ndims=ndims,
            advanced=Advanced(hub=True),
        )


def _sparse(name: str, **fields: Any) -> Format:
    return Format(
        f"cupy.{name}",
        types=tuple(f"cupyx.scipy.sparse:{name}_{kind}" for kind in ("array", "matrix")),
        dtypes=_SPARSE_DTYPES,
        devices=_DEVICES,
        requires="cupyx",
        install=_INSTALL,
        index_dtypes=_INDEX_DTYPES,
        **fields,
    )


def _hand_offs() -> Iterable[Conversion]:
    # Measured with one H200. The interface makes the host wait as well, and DLPack does not.
    sharing = (
        ("dlpack", from_dlpack, adopt, None, 9e-6),
        ("cuda_array_interface", from_interface, adopt_interface, _PLAIN_DTYPES, 1.2e-5),
    )
    copying = (
        (copy_from_dlpack, copy_adopted),
        (copy_from_interface, copy_adopted_interface),
    )
    for (protocol, share, quick, dtypes, latency), (duplicate, quick_copy) in zip(
        sharing, copying, strict=True
    ):
        fields: dict[str, Any] = {"source": protocol, "dtypes": dtypes, "takes": _FOREIGN}
        yield _step(share, adopt=quick, cost=Cost(latency), **fields)
        # Read-only memory of a foreign value must not be shared.
        cost = Cost(latency + 1e-5, 1e12)
        yield _step(duplicate, adopt=quick_copy, cost=cost, effects=COPY, **fields)


def _transfers() -> Iterable[Conversion]:
    """Yield the moves from the host and to it. Their costs were measured with one H200."""
    upload = partial(transfer, "numpy", "cupy", from_numpy, CPU, _ON_DEVICE, stream=True)
    yield upload(takes=NATIVE, into=fill_from_numpy, batch=all_from_numpy)
    download = partial(transfer, "cupy", "numpy", devices=_ON_DEVICE, takes=STRIDED, stream=True)
    yield download(to_numpy, to=CPU, into=fetch_into, batch=all_to_numpy)
    yield download(to_page_locked, to={"cuda_host"}, cost=_LOCKED)
    yield Conversion(
        "python.arrays",
        "cupy",
        stack,
        devices=_ON_DEVICE,
        changes=DTYPE,
        effects=COPY,
        cost=Cost(2e-5, 1.2e11),
    )


def _step(function: Callable[..., CupyArray], **fields: Any) -> Conversion:
    defaults = {"source": "cupy", "target": "cupy", "devices": _ON_DEVICE, "stream": True}
    return Conversion(function=function, **{**defaults, **fields})


def _layout_changes() -> Iterable[Conversion]:
    """Yield the steps between cupyx's layouts."""
    steps: list[tuple[str, str, Callable[..., Sparse], dict[str, Any]]] = [
        ("csr", "coo", to_coo, {"takes": UNCOALESCED | VECTOR, "drops": VECTOR, "shares": True}),
        # The result is sorted by columns, but a coalesced COO array is sorted by rows.
        ("csc", "coo", to_coo, {"takes": UNCOALESCED, "adds": UNCOALESCED, "shares": True}),
        ("csr", "csc", to_csc, {"takes": UNCOALESCED}),
        ("csc", "csr", to_csr, {"takes": UNCOALESCED}),
        # Both sort a copy and sum duplicates.
        ("coo", "csr", to_csr, {"takes": UNCOALESCED, "drops": UNCOALESCED, "ndims": _TWO}),
        ("coo", "csc", to_csc, {"takes": UNCOALESCED, "drops": UNCOALESCED, "ndims": _TWO}),
        ("dia", "csr", to_csr, {}),
        ("dia", "csc", to_csc, {}),
    ]
    for source, target, function, fields in steps:
        yield _step(
            function,
            source=f"cupy.{source}",
            target=f"cupy.{target}",
            effects=COPY,
            cost=Cost(1e-4, 1e11),
            **fields,
        )


def _densifying() -> Iterable[Conversion]:
    for layout in ("csr", "csc", "coo"):
        traits = UNCOALESCED | VECTOR if layout == "csr" else UNCOALESCED
        yield _step(
            to_dense,
            source=f"cupy.{layout}",
            takes=traits,
            drops=traits,
            cost=Cost(2e-4, 2e11),
        )


def _sparsifying() -> Iterable[Conversion]:
    for layout, index in (("csr", "int32"), ("csc", "int32"), ("coo", "int64")):
        yield _step(
            partial(from_dense, f"{layout}_array"),
            name=f"dense_to_{layout}",
            target=f"cupy.{layout}",
            dtypes=_SPARSE_DTYPES,
            ndims=_TWO,
            takes=STRIDED,
            result=Result(index_dtype=index),
            effects=COPY,
            cost=Cost(2e-4, 1e11),
        )
