"""PyData's sparse: COO, GCXS and DOK arrays of any number of axes.

A GCXS array of two axes is CSR or CSC by another name, so it can share its arrays with every other
library. GCXS arrays of other numbers of axes, or with several compressed axes, exist in this
library alone. The coordinates of a COO array are the rows of one array: they are handed out as
views, but coordinates that lie apart have to be copied on the way in.

The library trusts that coordinates are sorted and distinct, and reads wrong elements if they are
not. So they are checked once for each value, and the answer is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import COMPLEX, COPY, INTEGERS, NATIVE
from interop.plugin import (
    MEMORY_TRAITS,
    Components,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    Format,
    Result,
    Samples,
    Spec,
    hookimpl,
)

from . import samples
from .components import pack_coo, pack_rows, unpack_coo, unpack_rows
from .dense import dense_to_coo, dok_to_dense, nd_to_dense, rows_to_dense, to_dense
from .describe import (
    FILL,
    SWAPPED,
    UNCOALESCED,
    describe_coo,
    describe_dok,
    describe_gcxs,
    memory,
)
from .hand_offs import from_scipy_coo, from_torch_coo, to_torch_coo
from .layouts import (
    canonicalize,
    coo_to_csc,
    coo_to_csr,
    coo_to_dok,
    coo_to_nd,
    copy_dok,
    copy_nd,
    dok_to_coo,
    nd_to_coo,
    rows_to_coo,
    to_native,
)

if TYPE_CHECKING:
    from typing import Any

    from .canonical import Sparse

#: The traits of values that the library can compute with.
_READABLE = MEMORY_TRAITS - SWAPPED | FILL
_PLAIN = INTEGERS | COMPLEX | {"bool", "float32", "float64"}
#: A GCXS array cannot have the dtypes added here: Numba checks every such array, and lacks them.
_DTYPES = _PLAIN | {"float16", "longdouble", "clongdouble"}
_PLANE = frozenset({2})
#: GCXS arrays may have one axis fewer than NumPy's arrays, since NumPy merges their axes.
_NOT_PLANE = frozenset(range(64)) - _PLANE


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, and the conversions between them, to dense arrays, and to torch."""
    # Other libraries are reached by components.
    return [*_formats(), *_layout_changes(), *_densifying(), *_sharing()]


def _formats() -> Iterable[Format]:
    """Yield the formats of COO and DOK, and those of GCXS arrays.

    ``to="sparse.gcxs"`` means any format of GCXS arrays.
    """
    components = partial(
        Components, format="numpy", unpack_keeps=UNCOALESCED | FILL, pack_refuses=SWAPPED
    )
    roles = {"values": "dtype", "indices": "index_dtype"}
    yield _format(
        "coo",
        "COO",
        describe_coo,
        components=components(
            layout="coo",
            roles=roles,
            unpack=unpack_coo,
            pack=pack_coo,
            pack_copies=frozenset({"indices"}),
            pack_seconds=1.5e-5,
        ),
        unary=tuple(_coo_steps()),
        samples=Samples(make=samples.coordinates, variants=samples.COO),
    )
    for layout in ("csr", "csc"):
        yield _format(
            f"gcxs.{layout}",
            "GCXS",
            describe_gcxs,
            dtypes=_PLAIN,
            components=components(
                layout=layout,
                roles={**roles, "pointers": "index_dtype"},
                unpack=unpack_rows,
                pack=partial(pack_rows, layout),
                pack_seconds=1e-4,
            ),
            ndims=_PLANE,
            samples=Samples(make=partial(samples.rows, layout), variants=samples.ROWS),
        )
    filled = Samples(variants=samples.FILLED)
    yield _format(
        "gcxs.nd",
        "GCXS",
        describe_gcxs,
        dtypes=_PLAIN,
        ndims=_NOT_PLANE,
        unary=(Copy(copy_nd, takes=_READABLE, cost=Cost(3e-5, 2e10)),),
        samples=filled,
    )
    copy = Copy(copy_dok, takes=FILL, cost=Cost(5e-6, 2.4e9))
    yield _format("dok", "DOK", describe_dok, unary=(copy,), samples=filled)


def _format(name: str, type_: str, describe: Callable[[Sparse], Spec], **fields: Any) -> Format:
    return Format(
        f"sparse.{name}",
        types=(f"sparse:{type_}",),
        describe=describe,
        carries=NATIVE | FILL,
        requires="sparse",
        install="pip install sparse",
        index_dtypes={"int32", "int64"},
        memory=memory,
        **{"dtypes": _DTYPES, **fields},
    )


def _coo_steps() -> Iterable[Conversion]:
    """Yield the steps that turn a COO array into an ordinary one."""
    cost = Cost(2e-5, 5e9)
    yield Drop("byteswapped", to_native, "copy", takes=_READABLE | UNCOALESCED, cost=cost)
    yield Drop("uncoalesced", canonicalize, "copy", takes=_READABLE, cost=Cost(4e-5, 6e8))


def _layout_changes() -> Iterable[Conversion]:
    takes, loose = NATIVE | FILL, NATIVE | FILL | UNCOALESCED
    plane: dict[str, Any] = {"takes": takes, "ndims": _PLANE, "dtypes": _PLAIN}
    not_plane: dict[str, Any] = {"takes": takes, "ndims": _NOT_PLANE, "dtypes": _PLAIN}
    return [
        _copying("coo", "gcxs.csr", coo_to_csr, Cost(1.9e-4, 1.5e10), shares=True, **plane),
        _copying("coo", "gcxs.csc", coo_to_csc, Cost(1.9e-4, 7e8), **plane),
        _copying("gcxs.csr", "coo", rows_to_coo, Cost(1.5e-5, 6e9), takes=loose, shares=True),
        _copying("gcxs.csc", "coo", rows_to_coo, Cost(4e-5, 5.5e8), takes=loose),
        _copying("coo", "gcxs.nd", coo_to_nd, Cost(3.6e-4, 8e8), **not_plane),
        _copying("gcxs.nd", "coo", nd_to_coo, Cost(4.7e-4, 6e8), takes=takes),
        _copying(
            "coo",
            "dok",
            coo_to_dok,
            Cost(1e-5, 1.6e8),
            takes=takes,
            result=Result(index_dtype="int64"),
        ),
        _copying("dok", "coo", dok_to_coo, Cost(3.5e-5, 1.1e8), takes=FILL),
    ]


def _densifying() -> Iterable[Conversion]:
    for layout, function, cost in (
        ("coo", to_dense, Cost(5e-6, 7.5e9)),
        ("gcxs.csr", rows_to_dense, Cost(1.2e-5, 1.3e10)),
        ("gcxs.csc", rows_to_dense, Cost(1.2e-5, 1.3e10)),
        ("gcxs.nd", nd_to_dense, Cost(2e-4, 1.5e9)),
        ("dok", dok_to_dense, Cost(5e-5, 1e9)),
    ):
        yield Conversion(
            f"sparse.{layout}",
            "numpy",
            function,
            takes=NATIVE | FILL,
            drops=FILL,
            cost=cost,
        )
    yield Conversion(
        "numpy",
        "sparse.coo",
        dense_to_coo,
        dtypes=_DTYPES,
        takes=NATIVE,
        result=Result(index_dtype="int64"),
        effects=COPY,
        cost=Cost(2.5e-5, 5.5e9),
    )


def _sharing() -> Iterable[Conversion]:
    """Return the hand-offs that keep coordinates in one array, and the one that sorts them."""
    fields: dict[str, Any] = {"dtypes": _PLAIN, "cost": Cost(1.5e-5)}
    gaps = frozenset({"noncontiguous", "broadcast"})
    # torch assumes that the coordinates are one C-ordered block, and misreads others.
    wide = frozenset({"int64"})
    return [
        Conversion(
            "scipy.coo",
            "sparse.coo",
            from_scipy_coo,
            dtypes=_PLAIN,
            takes=NATIVE,
            requires=UNCOALESCED,
            drops=UNCOALESCED,
            effects=COPY,
            cost=Cost(5e-5, 6e8),
        ),
        Conversion("torch.sparse_coo", "sparse.coo", from_torch_coo, takes=gaps, **fields),
        Conversion("sparse.coo", "torch.sparse_coo", to_torch_coo, index_dtypes=wide, **fields),
    ]


def _copying(
    source: str, target: str, function: Callable[[Sparse], Sparse], cost: Cost, **fields: Any
) -> Conversion:
    return Conversion(
        f"sparse.{source}", f"sparse.{target}", function, effects=COPY, cost=cost, **fields
    )
