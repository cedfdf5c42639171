"""SciPy: sparse arrays in all seven layouts, and the older sparse matrices as values.

Results are arrays (``csr_array`` …): SciPy keeps the index dtype that an array is given, but may
copy the indices of a matrix. A matrix stays one within its layout, and ``like=`` one makes one.
SciPy sorts and sums in place at times, so a step takes values that are not in canonical form only
if SciPy is known not to change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import COMPLEX, COPY, INTEGERS, NATIVE
from interop.plugin import (
    Cast,
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
from interop.plugin.advanced import Advanced

from .components import (
    fast_unpack_compressed,
    pack_compressed,
    pack_coo,
    unpack_compressed,
    unpack_coo,
)
from .dense import (
    dense_to_coo,
    dense_to_csc,
    dense_to_csr,
    numpy_fast_path,
    to_dense,
    to_dense_into,
)
from .describe import (
    COMPRESSED,
    MATRIX,
    MIXED,
    SWAPPED,
    UNCOALESCED,
    describe_compressed,
    describe_coo,
    describe_dia,
    describe_lists,
    memory,
)
from .layouts import (
    array_to_matrix,
    as_it_is,
    bsr_to_csr,
    canonicalize,
    cast_elements,
    cast_matrix,
    coo_to_compressed,
    coo_to_dia,
    coo_to_dok,
    copy_matrix,
    csc_to_coo,
    csr_to_bsr,
    csr_to_coo,
    csr_to_lil,
    dia_to_csr,
    dok_to_coo,
    lil_to_csr,
    matrix_to_array,
    to_native,
    transpose_order,
    unify_indices,
)
from .samples import VARIANTS, stored

if TYPE_CHECKING:
    from typing import Any

    from .describe import Sparse

_CARRIES = NATIVE | SWAPPED | UNCOALESCED

_DTYPES = INTEGERS | COMPLEX | {"bool", "float32", "float64", "longdouble", "clongdouble"}
_PLANE, _ROW_OR_PLANE = frozenset({2}), frozenset({1, 2})
_TIDY = ("coo", *COMPRESSED)
_LAYOUTS = (*_TIDY, "dia", "lil", "dok")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a format for each layout, and the conversions."""
    return [
        *_formats(),
        *_unifying(),
        *_matrices(),
        *_layout_changes(),
        *_list_layouts(),
        *_densifying(),
        *_sparsifying(),
    ]


def _formats() -> Iterable[Format]:
    return [
        *(_compressed_format(layout) for layout in COMPRESSED),
        _format(
            "coo",
            describe_coo,
            components=Components(
                layout="coo",
                format="numpy",
                roles={"values": "dtype", "indices": "index_dtype"},
                unpack_keeps=UNCOALESCED,
                unpack=unpack_coo,
                pack=pack_coo,
                pack_refuses=SWAPPED,
                pack_seconds=2.5e-5,
            ),
            ndims=frozenset(range(1, 65)),
            advanced=Advanced(hub=True),
        ),
        # Stored zeros cannot be told from the zeros that fill up its diagonals.
        _format("dia", describe_dia, advanced=Advanced(not_recoverable={"nnz"}), ndims=_PLANE),
        _format("lil", describe_lists, ndims=_PLANE),
        _format("dok", describe_lists, ndims=_ROW_OR_PLANE),
    ]


def _compressed_format(layout: str) -> Format:
    return _format(
        layout,
        describe_compressed,
        components=Components(
            layout=layout,
            format="numpy",
            roles={"values": "dtype", "indices": "index_dtype", "pointers": "index_dtype"},
            unpack_keeps=UNCOALESCED,
            unpack=unpack_compressed,
            fast_unpack=fast_unpack_compressed,
            pack=partial(pack_compressed, layout),
            pack_refuses=SWAPPED,
            pack_seconds=2.5e-5,
        ),
        ndims=_ROW_OR_PLANE if layout == "csr" else _PLANE,
        advanced=Advanced(hub=True),
    )


def _format(name: str, describe: Callable[[Sparse], Spec], **fields: Any) -> Format:
    make = None if fields.get("components") is None else partial(stored, name)
    return Format(
        f"scipy.{name}",
        types=(f"scipy.sparse:{name}_array", f"scipy.sparse:{name}_matrix"),
        target_types=(f"scipy.sparse:{name}_array",),
        describe=describe,
        dtypes=_DTYPES,
        carries=_CARRIES | MATRIX,
        requires="scipy",
        install="pip install scipy",
        index_dtypes={"int32", "int64"},
        unary=tuple(_tidying(name)),
        memory=memory,
        fast_path=as_it_is,
        samples=Samples(make=make, variants=VARIANTS),
        **fields,
    )


def _tidying(layout: str) -> Iterable[Conversion]:
    """Yield the steps that turn a value into an ordinary array of its layout."""
    taken: dict[str, Any] = {"takes": _CARRIES - SWAPPED, "requires": MATRIX, "ndims": _PLANE}
    taken["cost"] = Cost(1e-5, {"dok": 1e8, "lil": 1e9}.get(layout, 5e9))
    yield Copy(copy_matrix, **taken)
    yield Cast(cast_matrix, **taken)
    if layout in _TIDY:
        yield Cast(cast_elements, shares=True, **taken)
    # For dia it takes longer, because SciPy checks the offset of every diagonal.
    yield Drop("matrix", matrix_to_array, cost=Cost(3e-5 if layout == "dia" else 1e-5))
    if layout in _TIDY:
        yield Drop("byteswapped", to_native, "copy", cost=Cost(1e-5, 8e9))
        cost = Cost(1.5e-5, 4e9) if layout == "coo" else Cost(4e-5, 1e9)
        yield Drop("uncoalesced", canonicalize, "copy", takes=_CARRIES - SWAPPED, cost=cost)


def _matrices() -> Iterable[Conversion]:
    """Yield what makes a matrix of an array where the value in ``like=`` is one."""
    for name in (f"scipy.{layout}" for layout in _LAYOUTS):
        fields: dict[str, Any] = {"takes": _CARRIES, "like": MATRIX, "ndims": _PLANE}
        make = partial(Conversion, name, name, array_to_matrix, **fields)
        yield make(adds=MATRIX, index_dtypes={"int32"}, cost=Cost(1e-5))
        # SciPy gives a matrix the narrowest indices that serve.
        yield make(
            adds=MATRIX,
            index_dtypes={"int64"},
            effects=COPY,
            shares=True,
            cost=Cost(3e-5, 5e9),
            name="array_to_matrix_of_narrow_indices",
        )


def _unifying() -> Iterable[Conversion]:
    for layout in _TIDY:
        yield _copying(
            layout,
            layout,
            unify_indices,
            1e10,
            takes=_CARRIES | MATRIX,
            requires=MIXED,
            drops=MIXED | MATRIX,
            shares=True,
            result=Result(index_dtype="int64"),
        )


def _layout_changes() -> Iterable[Conversion]:
    loose = NATIVE | UNCOALESCED

    yield _copying("csr", "csc", transpose_order, 5.8e9, takes=loose, ndims=_PLANE)
    yield _copying("csc", "csr", transpose_order, 5.8e9, takes=loose)
    # The values and one array of indices are shared, and the other one is written.
    yield _copying("csr", "coo", csr_to_coo, 2e10, takes=loose, shares=True)
    yield _copying("csc", "coo", csc_to_coo, 2e10, takes=loose, shares=True, adds=UNCOALESCED)
    for layout, ndims in (("csr", _ROW_OR_PLANE), ("csc", _PLANE)):
        yield _copying(
            "coo",
            layout,
            partial(coo_to_compressed, layout),
            4.9e9,
            takes=loose,
            drops=UNCOALESCED,
            ndims=ndims,
            name=f"coo_to_{layout}",
        )
    yield _copying("bsr", "csr", bsr_to_csr, 1.1e10, takes=loose)
    yield _copying("csr", "bsr", csr_to_bsr, 3e9, takes=NATIVE, ndims=_PLANE)


def _list_layouts() -> Iterable[Conversion]:
    """Return the steps to and from layouts of diagonals, lists and dictionaries."""
    narrow = {"result": Result(index_dtype="int32")}
    return [
        _copying("coo", "dia", coo_to_dia, 1e9, takes=NATIVE, ndims=_PLANE, **narrow),
        _copying("dia", "csr", dia_to_csr, 2e9, takes=NATIVE, **narrow),
        _copying("csr", "lil", csr_to_lil, 0.3e9, takes=NATIVE, ndims=_PLANE, **narrow),
        _copying("lil", "csr", lil_to_csr, 2e9, **narrow),
        _copying("coo", "dok", coo_to_dok, 0.09e9, takes=NATIVE, ndims=_ROW_OR_PLANE, **narrow),
        _copying("dok", "coo", dok_to_coo, 0.06e9, adds=UNCOALESCED, **narrow),
    ]


def _densifying() -> Iterable[Conversion]:
    costs = {
        "csc": Cost(1.2e-5, 1.3e10, 6e10),
        "bsr": Cost(1.2e-5, 1.3e10, 6e10),
        "dia": Cost(1e-5, 5e9),
        "dok": Cost(1e-5, 1e9),
        "lil": Cost(1e-5, 4e9),
    }
    for layout in _LAYOUTS:
        yield Conversion(
            f"scipy.{layout}",
            "numpy",
            to_dense,
            takes=NATIVE | UNCOALESCED,
            drops=UNCOALESCED,
            changes={"order"},
            result=Result(orders={"C", "F"}),
            cost=costs.get(layout, Cost(4e-6, 1.3e10, 6e10)),
            into=to_dense_into,
            fast_path=numpy_fast_path if layout == "csr" else None,
        )


def _sparsifying() -> Iterable[Conversion]:
    for layout, function, ndims, bandwidth in (
        ("csr", dense_to_csr, frozenset({2}), 7e9),
        ("csc", dense_to_csc, frozenset({2}), 6.5e9),
        ("coo", dense_to_coo, frozenset(range(1, 33)), 6e9),
    ):
        yield Conversion(
            "numpy",
            f"scipy.{layout}",
            function,
            dtypes=_DTYPES,
            takes=NATIVE,
            ndims=ndims,
            result=Result(index_dtype="int32"),
            effects=COPY,
            cost=Cost(2e-5, bandwidth),
        )


def _copying(
    source: str, target: str, function: Callable[[Sparse], Sparse], bandwidth: float, **fields: Any
) -> Conversion:
    names, cost = (f"scipy.{source}", f"scipy.{target}"), Cost(1e-5, bandwidth)
    return Conversion(*names, function, effects=COPY, cost=cost, **fields)
