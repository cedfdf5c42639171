"""SciPy: sparse arrays in all seven layouts, and the older sparse matrices as values.

Results are always arrays (``csr_array`` …): SciPy keeps the index dtype of an array as it is given,
where it would copy the indices of a matrix. SciPy sorts and sums in place when it feels like it, so
a step takes values that are not in canonical form only where SciPy is known to leave them alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Parts,
    Result,
    Samples,
    Spec,
    hookimpl,
    parallel_for,
)

from ._scipy_dense import dok_to_coo, to_dense, to_dense_into
from ._scipy_samples import VARIANTS

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_COPY = frozenset({"copy"})
_UNCOALESCED = frozenset({"uncoalesced"})
_MATRIX = frozenset({"matrix"})
#: A trait of SciPy's own: index arrays of two dtypes, which no other library takes.
_MIXED = frozenset({"mixed_indices"})
_SWAPPED = frozenset({"byteswapped"})

_VIEWABLE = frozenset(
    {"readonly", "immutable", "noncontiguous", "negative_strides", "broadcast", "unaligned"}
)
_CARRIES = _VIEWABLE | _SWAPPED | _UNCOALESCED

_DTYPES = frozenset(
    {"bool", "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_INDEX_DTYPES = frozenset({"int32", "int64"})
_PLANE, _ROW_OR_PLANE = frozenset({2}), frozenset({1, 2})
_COMPRESSED = ("csr", "csc", "bsr")
_LAYOUTS = ("coo", *_COMPRESSED, "dia", "lil", "dok")

# The bits of `flags.num`: contiguous, aligned, writable. One attribute in place of three.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY = _CONTIGUOUS | _ALIGNED | _WRITEABLE

#: NumPy's codes of bool, the integers from int8 to int64, uint8, and the reals and complexes.
_PLAIN_CODES = "?bhilqBfdFD"

#: Those of the index dtypes, and the lengths below which indices may be of the shorter one.
_INDEX_CODES = "ilq"
_SHORT = 2**31
#: Elements that are searched for nonzero ones at a time: what is noted of them stays in a cache.
_PIECE = 2**20

_CANONICAL = {"canonical": True}

#: What a compressed array keeps beside its arrays and its shape, in the versions that are known.
_FLAGS = frozenset({"maxprint", "_has_canonical_format", "_has_sorted_indices"})

#: Filled on first use: the name of each dtype met.
_names: dict[Any, str] = {}


def describe_compressed(value: Any) -> Spec:
    """Return the spec of a csr, csc or bsr array or matrix.

    Whether it is canonical is SciPy's own finding, which reads the indices once and is kept.
    """
    data, indices, pointers = value.data, value.indices, value.indptr
    traits = _traits(value, (data, indices, pointers), value.has_canonical_format)
    layout = value.format
    stored = int(pointers[-1])
    if layout == "bsr":
        stored *= data.shape[1] * data.shape[2]
    return Spec(
        f"scipy.{layout}",
        _name(data.dtype),
        "cpu",
        value.shape,
        traits,
        data.nbytes + indices.nbytes + pointers.nbytes,
        stored,
        _name(indices.dtype),
    )


def describe_coo(value: Any) -> Spec:
    """Return the spec of a coo array or matrix, of any number of axes."""
    data, coords = value.data, value.coords
    return Spec(
        "scipy.coo",
        _name(data.dtype),
        "cpu",
        value.shape,
        _traits(value, (data, *coords), value.has_canonical_format),
        data.nbytes + sum(each.nbytes for each in coords),
        len(data),
        _name(coords[0].dtype),
    )


def describe_dia(value: Any) -> Spec:
    """Return the spec of a dia array or matrix."""
    data, offsets = value.data, value.offsets
    return Spec(
        "scipy.dia",
        _name(data.dtype),
        "cpu",
        value.shape,
        _traits(value, (data, offsets), canonical=True),
        data.nbytes + offsets.nbytes,
        value.nnz,
        _name(offsets.dtype),
    )


def describe_lists(value: Any) -> Spec:
    """Return the spec of a lil or dok array or matrix, whose elements are Python objects."""
    dtype, stored = value.dtype, value.nnz
    return Spec(
        f"scipy.{value.format}",
        _name(dtype),
        "cpu",
        value.shape,
        _MATRIX if _is_matrix(value) else _NONE,
        stored * (dtype.itemsize + 8),
        stored,
        "int32",
    )


def _name(dtype: Any) -> str:
    name = _names.get(dtype)
    if name is None:
        long = {13: "longdouble", 16: "clongdouble"}
        name = _names[dtype] = long.get(dtype.num) or str(dtype.name)
    return name


def _is_matrix(value: Any) -> bool:
    return isinstance(value, sys.modules["scipy.sparse"].spmatrix)


def _traits(value: Any, arrays: tuple[Any, ...], canonical: bool) -> frozenset[str]:
    flags = _ORDINARY
    for array in arrays:
        flags &= array.flags.num
    traits = _NONE if flags == _ORDINARY else _memory_traits(flags, arrays)
    if not canonical:
        traits |= _UNCOALESCED
    if _is_matrix(value):
        traits |= _MATRIX
    if not arrays[0].dtype.isnative:
        traits |= _SWAPPED
    if len(arrays) > 2 and any(a.dtype != arrays[1].dtype for a in arrays[2:]):
        traits |= _MIXED
    return traits


def _memory_traits(flags: int, arrays: tuple[Any, ...]) -> frozenset[str]:
    """Return the traits of memory that any of the component arrays has."""
    traits = set()
    if not flags & _WRITEABLE:
        traits.add("readonly")
    if not flags & _ALIGNED:
        traits.add("unaligned")
    if not flags & _CONTIGUOUS:
        traits.add("noncontiguous")
        steps = [s for a in arrays for n, s in zip(a.shape, a.strides, strict=True) if n > 1]
        if min(steps, default=0) < 0:
            traits.add("negative_strides")
        if 0 in steps:
            traits.add("broadcast")
    return frozenset(traits)


def unpack_compressed(value: Any) -> Parts:
    """Return the arrays of a csr, csc or bsr array, which share its memory."""
    if value.ndim != 2:
        msg = f"a {value.format} array of {value.ndim} axis is SciPy's alone; go through scipy.coo"
        raise Declined(msg)
    stored = int(value.indptr[-1])
    arrays = {
        "values": value.data[:stored],  # SciPy allows more room than there are elements
        "indices": value.indices[:stored],
        "pointers": value.indptr,
    }
    return Parts(value.shape, arrays, {"canonical": bool(value.has_canonical_format)})


def fast_unpack_compressed(value: Any) -> Any:
    """Return the arrays of a plain csr, csc or bsr array, or `NotImplemented`."""
    data, indices, pointers = value.data, value.indices, value.indptr
    if (
        not (data.flags.carray and indices.flags.carray and pointers.flags.carray)
        or data.dtype.char not in _PLAIN_CODES
        or indices.dtype is not pointers.dtype  # equal ones that differ take the long way
        or not len(data) == len(indices) == pointers.item(-1)
        or len(shape := value.shape) != 2
        or not value.has_canonical_format
    ):
        return NotImplemented
    return Parts(shape, {"values": data, "indices": indices, "pointers": pointers}, _CANONICAL)


def unpack_coo(value: Any) -> Parts:
    """Return the arrays of a coo array, which share its memory."""
    indices = {f"indices_{axis}": each for axis, each in enumerate(value.coords)}
    return Parts(
        value.shape,
        {"values": value.data, **indices},
        {"canonical": bool(value.has_canonical_format)},
    )


def pack_compressed(layout: str, parts: Parts) -> Any:
    """Return a csr, csc or bsr array over given arrays."""
    arrays = parts.arrays
    values, canonical = arrays["values"], bool(parts.facts.get("canonical"))
    given = (values, arrays["indices"], arrays["pointers"])
    if layout == "bsr":
        value = _type("bsr")(given, shape=parts.shape, blocksize=values.shape[1:])
    elif (made := _blank(layout, canonical)) and _is_sound(layout, parts.shape, *given):
        value = made[0].__new__(made[0])
        value.__dict__ = dict(zip(made[1], (*given, parts.shape, *made[2]), strict=True))
        return value
    else:
        value = _type(layout)(given, shape=parts.shape)
    return _flagged(value, canonical)


def _is_sound(
    layout: str, shape: tuple[int, ...], values: Any, indices: Any, pointers: Any
) -> bool:
    """Tell whether SciPy's constructor would take csr or csc arrays as they are."""
    rows, columns = shape if layout == "csr" else shape[::-1]
    dtype = indices.dtype
    return bool(
        values.ndim == indices.ndim == pointers.ndim == 1
        and dtype is pointers.dtype
        and dtype.char in _INDEX_CODES
        and values.dtype.char in _PLAIN_CODES
        and dtype.isnative
        and values.dtype.isnative
        and len(pointers) == rows + 1
        and len(values) == len(indices) == pointers.item(-1)
        and pointers.item(0) == 0
        and max(rows, columns) < _SHORT
    )


@cache
def _blank(layout: str, canonical: bool) -> tuple[Any, tuple[str, ...], tuple[Any, ...]] | None:
    """Return a type with the names and the further values of what a pickle of it holds.

    SciPy's constructor takes ten times as long as all else in a hand-over, to find out what is
    known. An array can be brought back from its state instead, as from a pickle; None if the state
    is not what it is in the versions that are known.
    """
    import numpy as np

    indices = np.zeros(1, "int32"), np.array([0, 1], "int32")
    template = _flagged(_type(layout)((np.ones(1), *indices), shape=(1, 1)), canonical)
    state = dict(vars(template))
    arrays = [state.pop(name, None) for name in ("data", "indices", "indptr", "_shape")]
    if any(one is None for one in arrays) or not _FLAGS.issuperset(state):
        return None
    return type(template), ("data", "indices", "indptr", "_shape", *state), tuple(state.values())


def pack_coo(parts: Parts) -> Any:
    """Return a coo array over given arrays."""
    coords = tuple(parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape)))
    value = _type("coo")((parts.arrays["values"], coords), shape=parts.shape)
    return _flagged(value, bool(parts.facts.get("canonical")))


@cache
def _type(layout: str) -> Any:
    import scipy.sparse

    return getattr(scipy.sparse, f"{layout}_array")


def _flagged(value: Any, canonical: bool) -> Any:
    """Tell SciPy what is known, which it would otherwise find out by reading the indices."""
    if canonical:
        value.has_canonical_format = True
    return value


def as_it_is(value: Any) -> Any:
    """Return an array as it is, unless its indices are of two dtypes."""
    if value.format in _COMPRESSED and value.indices.dtype != value.indptr.dtype:
        return NotImplemented
    if value.format == "coo" and any(c.dtype != value.coords[0].dtype for c in value.coords):
        return NotImplemented
    return value


def matrix_to_array(value: Any) -> Any:
    """Return a sparse array over the components of a sparse matrix."""
    result = _type(value.format)(value)
    return _flagged(result, getattr(value, "has_canonical_format", False))


def unify_indices(value: Any) -> Any:
    """Return an array whose index arrays have one dtype, the wider."""
    coo = value.format == "coo"
    given = (value.data, value.coords) if coo else (value.data, value.indices, value.indptr)
    result = _type(value.format)(given, shape=value.shape)
    return _flagged(result, value.has_canonical_format)


def to_native(value: Any) -> Any:
    """Return a copy whose elements are in the machine's byte order."""
    return _flagged(
        value.astype(value.dtype.newbyteorder("="), copy=True), value.has_canonical_format
    )


def canonicalize(value: Any) -> Any:
    """Return a copy that is sorted and holds every coordinate once; duplicates are summed.

    They are summed in the order in which they are stored, as in a dense array. SciPy's own sort
    would mix them up; to go through the other order and back is stable, and faster.
    """
    if value.ndim == 2 and value.format == "coo":
        return csr_to_coo(coo_to_compressed("csr", value))
    if value.ndim == 2 and value.format in ("csr", "csc"):
        result = _type(value.format)(_across(value))
    else:
        result = value.copy()
    result.sum_duplicates()
    return result


def _across(value: Any) -> Any:
    """Return a csr or csc array through the other order, which sorts its indices, and back."""
    return value.tocsc().tocsr() if value.format == "csr" else value.tocsr().tocsc()


def transpose_order(value: Any) -> Any:
    """Return a csr array as csc, or the other way round; explicit zeros and duplicates are kept."""
    result = value.tocsc() if value.format == "csr" else value.tocsr()
    return _flagged(result, value.has_canonical_format)


def csr_to_coo(value: Any) -> Any:
    """Return a coo array that shares the values and the columns of a csr array."""
    return _flagged(_pruned(value).tocoo(copy=False), value.has_canonical_format)


def csc_to_coo(value: Any) -> Any:
    """Return a coo array, in order of columns, that shares the values and rows of a csc array."""
    return _pruned(value).tocoo(copy=False)


def _pruned(value: Any) -> Any:
    """Return an array without the room behind its elements, which SciPy's tocoo would read."""
    stored = int(value.indptr[-1])
    if len(value.indices) == stored:
        return value
    given = (value.data[:stored], value.indices[:stored], value.indptr)
    return _type(value.format)(given, shape=value.shape)


def coo_to_compressed(layout: str, value: Any) -> Any:
    """Return a coo array as csr or csc; duplicates are summed, in the order they are stored in."""
    if value.ndim == 1 or value.has_canonical_format:
        # Of one axis, SciPy would share the arrays and then sort them in place.
        result = value.tocsr(copy=True) if layout == "csr" else value.tocsc()
        return _flagged(result, canonical=True)
    # Flagged as canonical it is not sorted by SciPy, which would mix duplicates up.
    given = _flagged(_type("coo")((value.data, value.coords), shape=value.shape), canonical=True)
    result = given.tocsc().tocsr() if layout == "csr" else given.tocsr().tocsc()
    result.has_canonical_format = False
    result.has_sorted_indices = True
    result.sum_duplicates()
    return result


def bsr_to_csr(value: Any) -> Any:
    """Return a bsr array as csr; the zeros in its blocks become explicit zeros."""
    return _flagged(value.tocsr(), value.has_canonical_format)


def csr_to_bsr(value: Any) -> Any:
    """Return a csr array as bsr, in blocks of the size that SciPy estimates to be best."""
    result = value.tobsr()
    result.sum_duplicates()  # its blocks come in the order in which they were met
    return result


def coo_to_dia(value: Any) -> Any:
    """Return a canonical coo array as dia, which cannot tell explicit zeros from others."""
    import numpy as np

    rows, columns = value.coords
    offsets, place = np.unique(columns - rows, return_inverse=True)
    data = np.zeros((len(offsets), value.shape[1]), value.dtype)
    data[place, columns] = value.data
    return _type("dia")((data, offsets), shape=value.shape)


def dia_to_csr(value: Any) -> Any:
    """Return a dia array as csr, without the zeros that fill its diagonals."""
    return _flagged(value.tocsr(), canonical=True)


def csr_to_lil(value: Any) -> Any:
    """Return a canonical csr array as lil."""
    return value.tolil()


def lil_to_csr(value: Any) -> Any:
    """Return a lil array as csr."""
    return _flagged(value.tocsr(), canonical=True)


def coo_to_dok(value: Any) -> Any:
    """Return a canonical coo array as dok."""
    return value.todok()


def dense_to_csr(value: Any) -> Any:
    """Return the nonzero elements of a matrix as csr."""
    import numpy as np

    places = _places(value)
    index = np.int32 if value.size < 2**31 else np.int64
    rows, columns = value.shape
    pointers = np.searchsorted(places, np.arange(rows + 1) * columns).astype(index)
    indices = (places % max(columns, 1)).astype(index)
    given = (_picked(value, places), indices, pointers)
    return _flagged(_type("csr")(given, shape=value.shape), canonical=True)


def dense_to_csc(value: Any) -> Any:
    """Return the nonzero elements of a matrix as csc."""
    return transpose_order(dense_to_csr(value))


def dense_to_coo(value: Any) -> Any:
    """Return the nonzero elements of an array as coo."""
    import numpy as np

    places = _places(value)
    index = np.int32 if max(value.shape) < 2**31 else np.int64
    coords = tuple(each.astype(index) for each in np.unravel_index(places, value.shape))
    given = (_picked(value, places), coords)
    return _flagged(_type("coo")(given, shape=value.shape), canonical=True)


def _places(value: Any) -> Any:
    """Return where the nonzero elements of an array are, counted through it in C order."""
    import numpy as np

    if value.size <= _PIECE:
        return np.flatnonzero(value != 0)
    width = value.size // len(value)
    rows = max(1, _PIECE // width)
    found: list[Any] = [None] * -(-len(value) // rows)

    def work(start: int, stop: int) -> None:
        for part in range(start, stop):
            first = part * rows
            found[part] = np.flatnonzero(value[first : first + rows] != 0) + first * width

    parallel_for(work, len(found), value.nbytes)
    return np.concatenate(found)


def _picked(value: Any, places: Any) -> Any:
    import numpy as np

    if value.flags.c_contiguous:  # to find a place by coordinates takes longer
        return value.reshape(-1)[places]
    return value[np.unravel_index(places, value.shape)]


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the component arrays."""
    import numpy as np

    arrays = [value.data] if value.format in (*_COMPRESSED, "coo", "dia") else []
    if value.format in _COMPRESSED:
        arrays += [value.indices, value.indptr]
    elif value.format == "coo":
        arrays += value.coords
    elif value.format == "dia":
        arrays.append(value.offsets)
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays if array.size]
    return tuple((low, high - low) for low, high in bounds)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return one format for each of SciPy's layouts."""
    return [
        *(_compressed_format(layout) for layout in _COMPRESSED),
        _format(
            "coo",
            describe_coo,
            components=Components(
                layout="coo",
                format="numpy",
                roles={"values": "dtype", "indices": "index_dtype"},
                unpack_keeps=_UNCOALESCED,
                unpack=unpack_coo,
                pack=pack_coo,
                pack_seconds=2.5e-5,
            ),
            ndims=frozenset(range(1, 65)),
        ),
        # Its explicit zeros cannot be told from those that fill its diagonals.
        _format("dia", describe_dia, not_recoverable=frozenset({"nnz"}), ndims=_PLANE),
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
            unpack_keeps=_UNCOALESCED,
            unpack=unpack_compressed,
            fast_unpack=fast_unpack_compressed,
            pack=partial(pack_compressed, layout),
            pack_seconds=2.5e-5,
        ),
        ndims=_ROW_OR_PLANE if layout == "csr" else _PLANE,
    )


def _format(name: str, describe: Callable[[Any], Spec], **fields: Any) -> Format:
    return Format(
        f"scipy.{name}",
        types=(f"scipy.sparse:{name}_array", f"scipy.sparse:{name}_matrix"),
        target_types=(f"scipy.sparse:{name}_array",),
        describe=describe,
        dtypes=_DTYPES,
        carries=_CARRIES,
        requires="scipy",
        install="pip install scipy",
        index_dtypes=_INDEX_DTYPES,
        memory=memory,
        fast_path=as_it_is,
        samples=Samples(variants=VARIANTS),
        **fields,
    )


def _conversions() -> Iterable[Conversion]:
    """Return the steps within each layout, between the layouts, and to and from dense arrays."""
    return [*_tidying(), *_layout_changes(), *_list_layouts(), *_densifying(), *_sparsifying()]


def _tidying() -> Iterable[Conversion]:
    """Yield what makes a value an ordinary one of its layout."""
    for layout in _LAYOUTS:
        yield _step(
            layout,
            layout,
            matrix_to_array,
            takes=_CARRIES | _MIXED,
            requires=_MATRIX,
            drops=_MATRIX,
            cost=Cost(3e-5 if layout == "dia" else 1e-5),  # looks at every diagonal's place
        )
    for layout in ("coo", *_COMPRESSED):
        yield _copying(layout, layout, to_native, 8e9, takes=_CARRIES, requires=_SWAPPED)
        yield _unifying(layout)
        yield _canonicalizing(layout)


def _unifying(layout: str) -> Conversion:
    return _copying(
        layout,
        layout,
        unify_indices,
        1e10,
        takes=_CARRIES,
        requires=_MIXED,
        drops=_MIXED,
        shares=True,
        result=Result(index_dtype="int64"),
    )


def _canonicalizing(layout: str) -> Conversion:
    return _step(
        layout,
        layout,
        canonicalize,
        effects=_COPY,
        cost=Cost(6e-5, 1.5e9) if layout == "coo" else Cost(1e-5, 1e9),
        takes=_VIEWABLE,
        requires=_UNCOALESCED,
        drops=_UNCOALESCED,
    )


def _layout_changes() -> Iterable[Conversion]:
    loose = _VIEWABLE | _UNCOALESCED

    yield _copying("csr", "csc", transpose_order, 5.8e9, takes=loose, ndims=_PLANE)
    yield _copying("csc", "csr", transpose_order, 5.8e9, takes=loose)
    # The values and one array of indices are shared, the other is written.
    yield _copying("csr", "coo", csr_to_coo, 2e10, takes=loose, shares=True)
    yield _copying("csc", "coo", csc_to_coo, 2e10, takes=loose, shares=True, adds=_UNCOALESCED)
    for layout, ndims in (("csr", _ROW_OR_PLANE), ("csc", _PLANE)):
        yield _copying(
            "coo",
            layout,
            partial(coo_to_compressed, layout),
            4.9e9,
            takes=loose,
            drops=_UNCOALESCED,
            ndims=ndims,
            name=f"coo_to_{layout}",
        )
    yield _copying("bsr", "csr", bsr_to_csr, 1.1e10, takes=loose)
    yield _copying("csr", "bsr", csr_to_bsr, 3e9, takes=_VIEWABLE, ndims=_PLANE)


def _list_layouts() -> Iterable[Conversion]:

    narrow = {"result": Result(index_dtype="int32")}
    return [
        _copying("coo", "dia", coo_to_dia, 1e9, takes=_VIEWABLE, ndims=_PLANE, **narrow),
        _copying("dia", "csr", dia_to_csr, 2e9, takes=_VIEWABLE, **narrow),
        _copying("csr", "lil", csr_to_lil, 0.3e9, takes=_VIEWABLE, ndims=_PLANE, **narrow),
        _copying("lil", "csr", lil_to_csr, 2e9, **narrow),
        _copying("coo", "dok", coo_to_dok, 0.09e9, takes=_VIEWABLE, ndims=_ROW_OR_PLANE, **narrow),
        _copying("dok", "coo", dok_to_coo, 0.06e9, adds=_UNCOALESCED, **narrow),
    ]


def _densifying() -> Iterable[Conversion]:
    costs = {
        "csc": Cost(1.2e-5, 1.3e10, 6e10),
        "dia": Cost(1e-5, 5e9),
        "dok": Cost(1e-5, 1e9),
        "lil": Cost(1e-5, 4e9),
    }
    for layout in _LAYOUTS:
        yield Conversion(
            f"scipy.{layout}",
            "numpy",
            to_dense,
            takes=_VIEWABLE | _UNCOALESCED,
            drops=_UNCOALESCED,
            effects=frozenset({"densify"}),
            cost=costs.get(layout, Cost(4e-6, 1.3e10, 6e10)),
            into=to_dense_into,
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
            takes=_VIEWABLE,
            ndims=ndims,
            result=Result(index_dtype="int32"),
            effects=_COPY,
            cost=Cost(2e-5, bandwidth),
        )


def _copying(
    source: str, target: str, function: Callable[[Any], Any], bandwidth: float, **fields: Any
) -> Conversion:
    cost = Cost(1e-5, bandwidth)
    return _step(source, target, function, effects=_COPY, cost=cost, **fields)


def _step(source: str, target: str, function: Callable[[Any], Any], **fields: Any) -> Conversion:
    return Conversion(f"scipy.{source}", f"scipy.{target}", function, **fields)
