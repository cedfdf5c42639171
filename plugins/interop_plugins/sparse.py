"""PyData's sparse: COO, GCXS and DOK arrays of any number of axes.

A GCXS array of two axes is CSR or CSC by another name, so that it shares its arrays with every
other library's; one of another number of axes, or whose compressed axes are several, is this
library's alone. The coordinates of a COO array are the rows of one array: it hands them out as
views, but to take in coordinates that lie apart it has to copy them.

The library takes it on trust that coordinates are sorted and distinct, and reads wrong elements
where they are not; so they are looked through once for each value, and what was found is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from math import prod
from typing import Any
from weakref import ref

from interop.errors import HandOffError
from interop.plugin import (
    MEMORY_TRAITS,
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
)

from . import _sparse_samples as samples

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_COPY = frozenset({"copy"})
_UNCOALESCED, _SWAPPED = frozenset({"uncoalesced"}), frozenset({"byteswapped"})
#: A trait of this library's own: what is not stored is not zero. No other library has it.
_FILL = frozenset({"fill_value"})

_VIEWABLE = frozenset(
    {"readonly", "immutable", "noncontiguous", "negative_strides", "broadcast", "unaligned"}
)
_PLAIN = frozenset(
    {"bool", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
#: Numba, which checks every GCXS array, knows none of these.
_DTYPES = _PLAIN | {"float16", "longdouble", "clongdouble"}
_INDEX_DTYPES = frozenset({"int32", "int64"})
_PLANE = frozenset({2})
_NOT_PLANE = frozenset(range(65)) - _PLANE
_AXES = {"csr": 0, "csc": 1}

# The bits of `flags.num`: contiguous, aligned, writable.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY = _CONTIGUOUS | _ALIGNED | _WRITEABLE

#: Of each value looked through: itself, the ids of its index arrays, and whether it is canonical.
_looked_through: dict[int, tuple[ref[Any], tuple[int, ...], bool]] = {}


def describe_coo(value: Any) -> Spec:
    """Return the spec of a COO array.

    Raises
    ------
    HandOffError
        It has coordinates outside its shape.
    """
    data, coords = value.data, value.coords
    return Spec(
        "sparse.coo",
        _name(data.dtype),
        "cpu",
        value.shape,
        _traits(value, (data, coords), canonical=_once(value, (coords,), _canonical_coo)),
        data.nbytes + coords.nbytes,
        len(data),
        str(coords.dtype),
    )


def describe_gcxs(value: Any) -> Spec:
    """Return the spec of a GCXS array."""
    data, indices, pointers = value.data, value.indices, value.indptr
    layout = _layout(value)
    check = {"nd": _canonical_anyway}.get(layout, _canonical_rows)
    canonical = _once(value, (indices, pointers), check)
    return Spec(
        f"sparse.gcxs.{layout}",
        _name(data.dtype),
        "cpu",
        tuple(value.shape),
        _traits(value, (data, indices, pointers), canonical=canonical),
        data.nbytes + indices.nbytes + pointers.nbytes,
        len(data),
        str(indices.dtype),
    )


def describe_dok(value: Any) -> Spec:
    """Return the spec of a DOK array, whose elements are Python objects."""
    stored = len(value.data)
    nbytes = stored * (value.dtype.itemsize + 8 * len(value.shape))
    traits = _NONE if _is_zero(value.fill_value) else _FILL
    return Spec(
        "sparse.dok", _name(value.dtype), "cpu", value.shape, traits, nbytes, stored, "int64"
    )


@cache
def _name(dtype: Any) -> str:
    return {13: "longdouble", 16: "clongdouble"}.get(dtype.num) or str(dtype.name)


def _layout(value: Any) -> str:
    """Return ``"csr"`` or ``"csc"``, or ``"nd"`` if the array is neither."""
    if len(value.shape) != 2:
        return "nd"
    return "csr" if tuple(value.compressed_axes) == (0,) else "csc"


def _traits(value: Any, arrays: tuple[Any, ...], *, canonical: bool) -> frozenset[str]:
    flags = _ORDINARY
    for array in arrays:
        flags &= array.flags.num
    traits = _NONE if flags == _ORDINARY else _memory_traits(flags, arrays)
    if not canonical:
        traits |= _UNCOALESCED
    if not _is_zero(value.fill_value):
        traits |= _FILL
    return traits if all(array.dtype.isnative for array in arrays) else traits | _SWAPPED


def _memory_traits(flags: int, arrays: tuple[Any, ...]) -> frozenset[str]:
    """Return the traits of memory that any of the component arrays has."""
    steps = [s for a in arrays for n, s in zip(a.shape, a.strides, strict=True) if n > 1]
    present = {
        "readonly": not flags & _WRITEABLE,
        "unaligned": not flags & _ALIGNED,
        "noncontiguous": not flags & _CONTIGUOUS,
        "negative_strides": min(steps, default=0) < 0,
        "broadcast": 0 in steps,
    }
    return frozenset(trait for trait, holds in present.items() if holds)


def _is_zero(fill: Any) -> bool:
    """Tell whether a fill value is zero; of either sign, as the fill of ``-array`` is -0.0."""
    return bool(fill == 0)


def _once(value: Any, arrays: tuple[Any, ...], canonical: Callable[[Any], bool]) -> bool:
    """Return whether a value is canonical, found out once for the arrays it has now."""
    key, ids = id(value), tuple(map(id, arrays))
    known = _looked_through.get(key)
    if known is not None and known[0]() is value and known[1] == ids:
        return known[2]
    found = canonical(value)
    _looked_through[key] = (ref(value, lambda _: _looked_through.pop(key, None)), ids, found)
    return found


def _canonical_coo(value: Any) -> bool:
    """Tell whether coordinates are sorted and distinct; refuse any outside of the shape."""
    _check_bounds(value.coords, value.shape)
    if not value.shape:
        return len(value.data) <= 1
    return bool(_rising(value.coords).all())


def _rising(rows: Any) -> Any:
    """Return for each place but the first whether it comes after the one before."""
    rising = rows[-1][1:] > rows[-1][:-1]
    for row in rows[-2::-1]:
        rising &= row[1:] == row[:-1]
        rising |= row[1:] > row[:-1]
    return rising


def _check_bounds(coords: Any, shape: tuple[int, ...]) -> None:
    for axis, (row, length) in enumerate(zip(coords, shape, strict=True)):
        if len(row) and not 0 <= row.min() <= row.max() < length:
            msg = (
                f"a sparse array of shape {shape} has coordinates outside of axis {axis}; build "
                "it without sorted=True, which takes coordinates on trust."
            )
            raise HandOffError(msg)


def _canonical_rows(value: Any) -> bool:
    """Tell whether the indices of every compressed row are sorted and distinct."""
    indices, pointers = value.indices, value.indptr
    rising = indices[1:] > indices[:-1]
    starts = pointers[1:-1]
    # Where a row starts, an index may be anything.
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rising.all())


def _canonical_anyway(value: Any) -> bool:
    """Tell that order does not matter: these arrays are sorted when they are turned into COO."""
    return True


# ---------------------------------------------------------------------- components


def unpack_coo(value: Any) -> Parts:
    """Return the arrays of a COO array; the coordinates along each axis are a view."""
    if not value.shape:
        msg = "a sparse array of no axes has no coordinates to hand over; go through numpy"
        raise Declined(msg)
    rows = {f"indices_{axis}": row for axis, row in enumerate(value.coords)}
    return Parts(value.shape, {"values": value.data, **rows}, _facts(value))


def unpack_rows(value: Any) -> Parts:
    """Return the arrays of a GCXS array of two axes, which share its memory."""
    pointers = value.indptr
    if pointers[0]:
        msg = f"its pointers start at {pointers[0]} and not at 0, which no library reads alike"
        raise Declined(msg)
    stored = int(pointers[-1])
    arrays = {
        "values": value.data[:stored],
        "indices": value.indices[:stored],
        "pointers": pointers,
    }
    return Parts(tuple(value.shape), arrays, _facts(value))


def _facts(value: Any) -> dict[str, Any]:
    known = _looked_through.get(id(value))
    canonical = known is not None and known[0]() is value and known[2]
    return {"canonical": canonical, "fill_value": value.fill_value}


def pack_coo(parts: Parts) -> Any:
    """Return a COO array over given values; the coordinates are copied into one array."""
    import numpy as np

    rows = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    return _coo(np.stack(rows), parts.arrays["values"], parts.shape, parts.facts)


def _coo(coords: Any, data: Any, shape: tuple[int, ...], facts: Any = None) -> Any:
    """Return a COO array over given memory, of coordinates that are known to be sorted."""
    import sparse

    _check_native(data, coords)
    fill = _fill((facts or {}).get("fill_value"), data.dtype)
    # Two promises: without them, the library would look for itself and sort in place of sharing.
    return sparse.COO(coords, data, shape, has_duplicates=False, sorted=True, fill_value=fill)


def pack_rows(layout: str, parts: Parts) -> Any:
    """Return a GCXS array of two axes over given arrays."""
    arrays = parts.arrays
    given = (arrays["values"], arrays["indices"], arrays["pointers"])
    return _gcxs(layout, given, parts.shape, parts.facts.get("fill_value"))


def _gcxs(layout: str, given: tuple[Any, Any, Any], shape: tuple[int, ...], fill: Any) -> Any:
    import sparse

    _check_native(*given)
    return sparse.GCXS(
        given,
        shape=shape,
        compressed_axes=(_AXES[layout],),
        fill_value=_fill(fill, given[0].dtype),
    )


def _check_native(*arrays: Any) -> None:
    if not all(array.dtype.isnative for array in arrays):
        msg = "sparse does not take arrays that are not in the machine's byte order"
        raise Declined(msg)


def _fill(fill: Any, dtype: Any) -> Any:
    """Return a fill value in a dtype, as the stored values were cast to it; None is zero."""
    if fill is None or fill.dtype == dtype:
        return fill
    import numpy as np

    with np.errstate(all="ignore"):
        number = fill.real if fill.dtype.kind == "c" and dtype.kind not in "cb" else fill
        return number.astype(dtype)


# ---------------------------------------------------------------------- steps


def to_native(value: Any) -> Any:
    """Return a copy whose elements are in the machine's byte order."""
    coords, data = (a.astype(a.dtype.newbyteorder("=")) for a in (value.coords, value.data))
    return _coo(coords, data, value.shape, _facts(value))


def canonicalize(value: Any) -> Any:
    """Return a copy that is sorted and holds every coordinate once; duplicates are summed."""
    facts = {"fill_value": value.fill_value}
    return _canonical(value.coords, value.data, value.shape, facts, shared=True)


def from_scipy_coo(value: Any) -> Any:
    """Return a sorted copy of SciPy's coo array, with duplicates summed."""
    import numpy as np

    return _canonical(np.stack(value.coords), value.data, value.shape, {})


def _canonical(
    coords: Any,
    data: Any,
    shape: tuple[int, ...],
    facts: dict[str, Any],
    *,
    shared: bool = False,
) -> Any:
    import numpy as np

    _check_bounds(coords, shape)
    if not shape:
        return _coo(coords[:, :1], data.sum(keepdims=True, dtype=data.dtype), (), facts)
    if _rising(coords).all():  # as most are, whatever was known of them
        return _coo(coords.copy() if shared else coords, data.copy(), shape, facts)
    order = _order(coords, shape)
    coords, data = np.take(coords, order, axis=1), data[order]
    first = np.ones(len(data), bool)
    first[1:] = (coords[:, 1:] != coords[:, :-1]).any(axis=0)
    if first.all():
        return _coo(coords, data, shape, facts)
    # One after the other, in the order in which they are stored; `reduceat` takes them in pairs.
    sums, place = data[first], np.cumsum(first) - 1
    np.add.at(sums, place[~first], data[~first])
    return _coo(np.compress(first, coords, axis=1), sums, shape, facts)


def _order(coords: Any, shape: tuple[int, ...]) -> Any:
    """Return the order that sorts coordinates, by one number for each place if that is possible."""
    import numpy as np

    if prod(shape) < 2**63:
        return np.argsort(np.ravel_multi_index(tuple(coords), shape), kind="stable")
    return np.lexsort(coords[::-1])


def copy_nd(value: Any) -> Any:
    """Return a copy of a GCXS array that shares nothing."""
    return value.copy()


def copy_dok(value: Any) -> Any:
    """Return a DOK array with a dictionary of its own; the numbers in it never change."""
    result = _empty_dok(value)
    result.data.update(value.data)
    return result


def _empty_dok(value: Any) -> Any:
    import sparse

    return sparse.DOK(value.shape, dtype=value.dtype, fill_value=value.fill_value)


def coo_to_csr(value: Any) -> Any:
    """Return a COO array of two axes as GCXS, which shares its values and its columns."""
    rows, columns = value.coords
    index, pointers = _pointers(rows, value.shape[0])
    given = (value.data, columns.astype(index, copy=False), pointers)
    return _gcxs("csr", given, value.shape, value.fill_value)


def coo_to_csc(value: Any) -> Any:
    """Return a COO array of two axes as GCXS, compressed by columns."""
    import numpy as np

    rows, columns = value.coords
    order = np.argsort(columns, kind="stable")
    index, pointers = _pointers(columns, value.shape[1])
    given = (value.data[order], rows[order].astype(index, copy=False), pointers)
    return _gcxs("csc", given, value.shape, value.fill_value)


def _pointers(major: Any, length: int) -> tuple[Any, Any]:
    """Return the index dtype of a compressed array, and where each of its rows starts."""
    import numpy as np

    wide = len(major) > np.iinfo(major.dtype).max
    index = np.dtype("int64") if wide else major.dtype
    pointers = np.zeros(length + 1, index)
    counts = np.bincount(major.astype(np.intp, copy=False), minlength=length)
    np.cumsum(counts, out=pointers[1:])
    return index, pointers


def rows_to_coo(value: Any) -> Any:
    """Return a GCXS array of two axes as COO; compressed by rows, it shares its values."""
    import numpy as np

    (rows, columns), data = _places(value)
    facts = {"fill_value": value.fill_value}
    if _layout(value) == "csr":
        return _coo(np.stack([rows, columns]), data, value.shape, facts)
    order = np.argsort(rows, kind="stable")
    return _coo(np.stack([rows[order], columns[order]]), data[order], value.shape, facts)


def _places(value: Any) -> tuple[tuple[Any, Any], Any]:
    """Return the rows, the columns and the values of a GCXS array of two axes."""
    import numpy as np

    arrays = unpack_rows(value).arrays
    minor, pointers = arrays["indices"], arrays["pointers"]
    major = np.repeat(np.arange(len(pointers) - 1, dtype=minor.dtype), np.diff(pointers))
    coords = (major, minor) if _layout(value) == "csr" else (minor, major)
    return coords, arrays["values"]


def coo_to_nd(value: Any) -> Any:
    """Return a COO array of other than two axes as GCXS, along the axes that compress best."""
    import sparse

    return sparse.GCXS.from_coo(value).copy()


def nd_to_coo(value: Any) -> Any:
    """Return a GCXS array of other than two axes as COO; duplicates are summed."""
    return value.tocoo().copy()


def coo_to_dok(value: Any) -> Any:
    """Return a COO array as DOK."""
    result = _empty_dok(value)
    places = zip(*value.coords.tolist(), strict=True) if value.shape else ((),) * len(value.data)
    result.data.update(zip(places, value.data, strict=True))
    return result


def dok_to_coo(value: Any) -> Any:
    """Return a DOK array as COO, in order of the coordinates.

    Raises
    ------
    HandOffError
        Its dictionary has keys outside of its shape.
    """
    import numpy as np

    stored, axes = len(value.data), len(value.shape)
    numbers = (number for place in value.data for number in place)
    coords = np.fromiter(numbers, np.int64, stored * axes).reshape(stored, axes).T.copy()
    data = np.fromiter(value.data.values(), value.dtype, stored)
    _check_bounds(coords, value.shape)
    order = _order(coords, value.shape) if axes else np.arange(stored)
    facts = {"fill_value": value.fill_value}
    return _coo(np.take(coords, order, axis=1), data[order], value.shape, facts)


def to_dense(value: Any) -> Any:
    """Return the dense array of a canonical COO array; what is not stored is its fill value."""
    return _scattered(value, tuple(value.coords), value.data)


def _scattered(value: Any, coords: tuple[Any, ...], data: Any) -> Any:
    import numpy as np

    if _is_zero(value.fill_value):
        dense = np.zeros(value.shape, value.dtype)  # memory that is not touched until it is read
    else:
        dense = np.full(value.shape, value.fill_value, value.dtype)
    place = np.ravel_multi_index(coords, value.shape) if coords else slice(len(data))
    dense.reshape(-1)[place] = data
    return dense


def rows_to_dense(value: Any) -> Any:
    """Return the dense array of a canonical GCXS array of two axes."""
    return _scattered(value, *_places(value))


def nd_to_dense(value: Any) -> Any:
    """Return the dense array of a GCXS array of other than two axes."""
    return to_dense(value.tocoo())


def dok_to_dense(value: Any) -> Any:
    """Return the dense array of a DOK array."""
    return to_dense(dok_to_coo(value))


def dense_to_coo(value: Any) -> Any:
    """Return the elements of an array that are not zero as COO."""
    import numpy as np

    stored = value != 0
    if not value.ndim:
        return _coo(np.zeros((0, int(stored)), np.int64), value.reshape(1)[: int(stored)], ())
    places = np.flatnonzero(stored)
    coords = np.empty((value.ndim, len(places)), np.int64)
    for row, along in zip(coords, np.unravel_index(places, value.shape), strict=True):
        row[...] = along
    data = value.reshape(-1)[places] if value.flags.c_contiguous else value[stored]
    return _coo(coords, data, value.shape)


def from_torch_coo(value: Any) -> Any:
    """Return a COO array over the memory of a coalesced torch tensor."""
    return _coo(value._indices().numpy(), value._values().numpy(), tuple(value.shape))


def to_torch_coo(value: Any) -> Any:
    """Return a torch tensor over the memory of a COO array of 64-bit coordinates."""
    import torch

    coords, data = torch.from_numpy(value.coords), torch.from_numpy(value.data)
    return torch.sparse_coo_tensor(
        coords, data, value.shape, is_coalesced=True, check_invariants=False
    )


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the component arrays."""
    import numpy as np

    names = ("data", "coords", "indices", "indptr")
    arrays = [getattr(value, name) for name in names if hasattr(value, name)]
    bounds = [np.lib.array_utils.byte_bounds(a) for a in arrays if getattr(a, "size", 0)]
    return tuple((low, high - low) for low, high in bounds)


# ---------------------------------------------------------------------- declarations


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the formats of COO and DOK, and those that a GCXS array may be.

    ``to="sparse.gcxs"`` means any of the latter.
    """
    components = partial(Components, format="numpy", unpack_keeps=_UNCOALESCED | _FILL)
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
        samples=Samples(variants=samples.COO),
    )
    for layout in _AXES:
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
            samples=Samples(variants=samples.ROWS),
        )
    filled = Samples(variants=samples.FILLED)
    yield _format("gcxs.nd", "GCXS", describe_gcxs, dtypes=_PLAIN, ndims=_NOT_PLANE, samples=filled)
    yield _format("dok", "DOK", describe_dok, samples=filled)


def _format(name: str, type_: str, describe: Callable[[Any], Spec], **fields: Any) -> Format:
    return Format(
        f"sparse.{name}",
        types=(f"sparse:{type_}",),
        describe=describe,
        carries=_VIEWABLE | _FILL,
        requires="sparse",
        install="pip install sparse",
        index_dtypes=_INDEX_DTYPES,
        memory=memory,
        transit=False,  # nothing that it makes is made faster than by SciPy
        **{"dtypes": _DTYPES, **fields},
    )


def _conversions() -> Iterable[Conversion]:
    """Return the steps within the library, to and from dense arrays, and those shared with torch.

    To and from every other library it is a matter of components.
    """
    return [*_tidying(), *_layout_changes(), *_densifying(), *_sharing()]


def _tidying() -> Iterable[Conversion]:
    taken = MEMORY_TRAITS - _SWAPPED | _FILL
    swapped: dict[str, Any] = {"takes": taken | _UNCOALESCED, "requires": _SWAPPED}
    loose: dict[str, Any] = {"requires": _UNCOALESCED, "drops": _UNCOALESCED}
    yield _copying("coo", "coo", to_native, Cost(2e-5, 5e9), **swapped)
    yield _copying("coo", "coo", canonicalize, Cost(4e-5, 6e8), takes=taken, **loose)
    yield Conversion(
        "scipy.coo",
        "sparse.coo",
        from_scipy_coo,
        dtypes=_PLAIN,
        takes=_VIEWABLE,
        effects=_COPY,
        cost=Cost(5e-5, 6e8),
        **loose,
    )
    yield _copying("gcxs.nd", "gcxs.nd", copy_nd, Cost(3e-5, 2e10), takes=taken)
    yield _copying("dok", "dok", copy_dok, Cost(5e-6, 2.4e9), takes=_FILL)


def _layout_changes() -> Iterable[Conversion]:
    taken, loose = _VIEWABLE | _FILL, _VIEWABLE | _FILL | _UNCOALESCED
    plane: dict[str, Any] = {"takes": taken, "ndims": _PLANE, "dtypes": _PLAIN}
    rest: dict[str, Any] = {"takes": taken, "ndims": _NOT_PLANE, "dtypes": _PLAIN}
    return [
        _copying("coo", "gcxs.csr", coo_to_csr, Cost(1.9e-4, 1.5e10), shares=True, **plane),
        _copying("coo", "gcxs.csc", coo_to_csc, Cost(1.9e-4, 7e8), **plane),
        _copying("gcxs.csr", "coo", rows_to_coo, Cost(1.5e-5, 6e9), takes=loose, shares=True),
        _copying("gcxs.csc", "coo", rows_to_coo, Cost(4e-5, 5.5e8), takes=loose),
        _copying("coo", "gcxs.nd", coo_to_nd, Cost(3.6e-4, 8e8), **rest),
        _copying("gcxs.nd", "coo", nd_to_coo, Cost(4.7e-4, 6e8), takes=taken),
        _copying(
            "coo",
            "dok",
            coo_to_dok,
            Cost(1e-5, 1.6e8),
            takes=taken,
            result=Result(index_dtype="int64"),
        ),
        _copying("dok", "coo", dok_to_coo, Cost(3.5e-5, 1.1e8), takes=_FILL),
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
            takes=_VIEWABLE | _FILL,
            drops=_FILL,
            effects=frozenset({"densify"}),
            cost=cost,
        )
    yield Conversion(
        "numpy",
        "sparse.coo",
        dense_to_coo,
        dtypes=_DTYPES,
        takes=_VIEWABLE,
        result=Result(index_dtype="int64"),
        effects=_COPY,
        cost=Cost(2.5e-5, 5.5e9),
    )


def _sharing() -> Iterable[Conversion]:
    """Return the hand-offs that leave the coordinates where they are, in one array."""
    there: dict[str, Any] = {"dtypes": _PLAIN, "cost": Cost(1.5e-5)}
    gaps = frozenset({"noncontiguous", "broadcast"})
    # torch believes its coordinates to be one C-ordered block, and reads others wrongly.
    wide = frozenset({"int64"})
    return [
        Conversion("torch.sparse_coo", "sparse.coo", from_torch_coo, takes=gaps, **there),
        Conversion("sparse.coo", "torch.sparse_coo", to_torch_coo, index_dtypes=wide, **there),
    ]


def _copying(
    source: str, target: str, function: Callable[[Any], Any], cost: Cost, **fields: Any
) -> Conversion:
    return Conversion(
        f"sparse.{source}", f"sparse.{target}", function, effects=_COPY, cost=cost, **fields
    )
