"""COO arrays, and GCXS arrays of two axes, by their component arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import check_coordinates, check_lines, checked_cast, real_part, rising
from interop.plugin import Declined, Parts

from .canonical import check_row_ends, is_canonical, shape_of, sorting_order

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .canonical import Array, DType, Scalar, Sparse

_AXES = {"csr": 0, "csc": 1}


def unpack_coo(value: Sparse) -> Parts:
    """Return the arrays of a COO array; the coordinates along each axis are a view."""
    if not value.shape:
        msg = "a sparse array of no axes has no coordinates to hand over; go through numpy"
        raise Declined(msg)
    rows = {f"indices_{axis}": row for axis, row in enumerate(value.coords)}
    return Parts(shape_of(value), {"values": value.data, **rows}, _facts(value))


def unpack_rows(value: Sparse) -> Parts:
    """Return the arrays of a GCXS array of two axes, which share its memory."""
    pointers = value.indptr
    check_row_ends(value)
    stored = int(pointers[-1])
    arrays = {
        "values": value.data[:stored],
        "indices": value.indices[:stored],
        "pointers": pointers,
    }
    return Parts(shape_of(value), arrays, _facts(value))


def _facts(value: Sparse) -> dict[str, Any]:
    """Return what belongs to the components of an array beside its shape.

    A step may have made it, so that nobody has described it before.
    """
    return {"canonical": is_canonical(value), "fill_value": value.fill_value}


def pack_coo(parts: Parts) -> Sparse:
    """Return a COO array over given values; the coordinates are copied into one array."""
    import numpy as np

    values = parts.arrays["values"]
    rows = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    # A 0-d array has no rows, so its values tell how many elements are stored.
    coords = np.stack(rows) if rows else np.zeros((0, len(values)), np.int64)
    if rows and not rising(coords).all():  # what the other library has noted is out of date
        return canonical_coo(coords, values, parts.shape, parts.facts)
    return coo_array(coords, values, parts.shape, parts.facts)


def pack_rows(layout: str, parts: Parts) -> Sparse:
    """Return a GCXS array of two axes over given arrays."""
    arrays = parts.arrays
    components = (arrays["values"], arrays["indices"], arrays["pointers"])
    rows, columns = parts.shape
    sides = (rows, columns) if layout == "csr" else (columns, rows)
    # The library checks the same, and raises a ValueError.
    check_lines("the value", *components[1:], sides, len(components[0]))
    stored = arrays["pointers"].item(-1)  # the library leaves no room behind its elements
    components = (components[0][:stored], components[1][:stored], components[2])
    return gcxs_array(layout, components, parts.shape, parts.facts.get("fill_value"))


def coo_array(
    coords: Array, data: Array, shape: tuple[int, ...], facts: Mapping[str, Any] | None = None
) -> Sparse:
    """Return a COO array over given memory, with coordinates that are known to be sorted."""
    import sparse

    _check_native(data, coords)
    fill = _fill((facts or {}).get("fill_value"), data.dtype)
    # Without these two promises, the library would check for itself and sort in place of sharing.
    return sparse.COO(coords, data, shape, has_duplicates=False, sorted=True, fill_value=fill)


def canonical_coo(
    coords: Array,
    data: Array,
    shape: tuple[int, ...],
    facts: Mapping[str, Any],
    *,
    shared: bool = False,
) -> Sparse:
    """Return a sorted COO array with duplicates summed.

    Parameters
    ----------
    shared : bool
        Whether the coordinates belong to another array, so that they have to be copied.
    """
    import numpy as np

    check_coordinates("a coordinate list", coords, shape)
    if not shape:
        return coo_array(coords[:, :1], data.sum(keepdims=True, dtype=data.dtype), (), facts)
    if rising(coords).all():  # as most are
        return coo_array(coords.copy() if shared else coords, data.copy(), shape, facts)
    order = sorting_order(coords, shape)
    coords, data = np.take(coords, order, axis=1), data[order]
    first = np.ones(len(data), bool)
    first[1:] = (coords[:, 1:] != coords[:, :-1]).any(axis=0)
    if first.all():
        return coo_array(coords, data, shape, facts)
    # Summed one by one, in the order in which they are stored; `reduceat` sums in pairs.
    sums, place = data[first], np.cumsum(first) - 1
    np.add.at(sums, place[~first], data[~first])
    return coo_array(np.compress(first, coords, axis=1), sums, shape, facts)


def gcxs_array(
    layout: str,
    components: tuple[Array, Array, Array],
    shape: tuple[int, ...],
    fill: Scalar | None,
) -> Sparse:
    """Return a GCXS array of two axes over given values, indices and pointers."""
    import sparse

    _check_native(*components)
    return sparse.GCXS(
        components,
        shape=shape,
        compressed_axes=(_AXES[layout],),
        fill_value=_fill(fill, components[0].dtype),
    )


def _check_native(*arrays: Array) -> None:
    if not all(array.dtype.isnative for array in arrays):
        msg = "sparse takes only arrays in the machine's byte order"
        raise Declined(msg)


def _fill(fill: Scalar | None, dtype: DType) -> Scalar | None:
    """Return a fill value cast to the dtype of the stored values; None stands for zero."""
    if fill is None or fill.dtype == dtype:
        return fill

    cast: Scalar = checked_cast(real_part(fill, dtype), dtype)
    return cast
