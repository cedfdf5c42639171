"""The steps within each of the library's layouts, and between them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from interop.kit import check_coordinates
from interop.plugin import Declined

from .canonical import check_rows, shape_of, sorting_order
from .components import canonical_coo, coo_array, gcxs_array, unpack_rows
from .describe import layout_of

if TYPE_CHECKING:
    from .canonical import Array, DType, Sparse


def to_native(value: Sparse) -> Sparse:
    """Return a copy whose elements are in the machine's byte order."""
    coords, data = (a.astype(a.dtype.newbyteorder("=")) for a in (value.coords, value.data))
    return coo_array(coords, data, value.shape, {"fill_value": value.fill_value})


def canonicalize(value: Sparse) -> Sparse:
    """Return a copy that is sorted and holds every coordinate once; duplicates are summed."""
    facts = {"fill_value": value.fill_value}
    return canonical_coo(value.coords, value.data, value.shape, facts, shared=True)


def copy_nd(value: Sparse) -> Sparse:
    """Return a copy of a GCXS array that shares nothing."""
    return value.copy()


def copy_dok(value: Sparse) -> Sparse:
    """Return a DOK array with a dictionary of its own; the numbers in it never change."""
    result = _empty_dok(value)
    result.data.update(value.data)
    return result


def _empty_dok(value: Sparse) -> Sparse:
    import sparse

    return sparse.DOK(value.shape, dtype=value.dtype, fill_value=value.fill_value)


def coo_to_csr(value: Sparse) -> Sparse:
    """Return a COO array of two axes as GCXS, which shares its values and its columns."""
    rows, columns = value.coords
    index, pointers = _pointers(rows, value.shape[0])
    components = (value.data, columns.astype(index, copy=False), pointers)
    return gcxs_array("csr", components, value.shape, value.fill_value)


def coo_to_csc(value: Sparse) -> Sparse:
    """Return a COO array of two axes as GCXS, compressed by columns."""
    import numpy as np

    rows, columns = value.coords
    order = np.argsort(columns, kind="stable")
    index, pointers = _pointers(columns, value.shape[1])
    components = (value.data[order], rows[order].astype(index, copy=False), pointers)
    return gcxs_array("csc", components, value.shape, value.fill_value)


def _pointers(major: Array, length: int) -> tuple[DType, Array]:
    """Return the index dtype of a compressed array, and where each of its rows starts."""
    import numpy as np

    wide = len(major) > np.iinfo(major.dtype).max
    index = np.dtype("int64") if wide else major.dtype
    pointers = np.zeros(length + 1, index)
    counts = np.bincount(major.astype(np.intp, copy=False), minlength=length)
    np.cumsum(counts, out=pointers[1:])
    return index, pointers


def rows_to_coo(value: Sparse) -> Sparse:
    """Return a GCXS array of two axes as COO; compressed by rows, it shares its values."""
    import numpy as np

    (rows, columns), data = places_of(value)
    facts = {"fill_value": value.fill_value}
    if layout_of(value) == "csr":
        return coo_array(np.stack([rows, columns]), data, value.shape, facts)
    order = np.argsort(rows, kind="stable")
    return coo_array(np.stack([rows[order], columns[order]]), data[order], value.shape, facts)


def places_of(value: Sparse) -> tuple[tuple[Array, Array], Array]:
    """Return the rows, the columns and the values of a GCXS array of two axes."""
    import numpy as np

    check_rows(value)
    arrays = unpack_rows(value).arrays
    minor, pointers = arrays["indices"], arrays["pointers"]
    major = np.repeat(np.arange(len(pointers) - 1, dtype=minor.dtype), np.diff(pointers))
    coords = (major, minor) if layout_of(value) == "csr" else (minor, major)
    return coords, arrays["values"]


def coo_to_nd(value: Sparse) -> Sparse:
    """Return a COO array of other than two axes as GCXS, along the axes that compress best."""
    import sparse

    if prod(shape_of(value)) >= 2**63:
        msg = f"a sparse.GCXS numbers the places of the shape {shape_of(value)} in 64 bits"
        raise Declined(msg)
    return sparse.GCXS.from_coo(value).copy()


def nd_to_coo(value: Sparse) -> Sparse:
    """Return a GCXS array of other than two axes as COO; duplicates are summed."""
    check_rows(value)
    return value.tocoo().copy()


def coo_to_dok(value: Sparse) -> Sparse:
    """Return a COO array as DOK."""
    result = _empty_dok(value)
    places = zip(*value.coords.tolist(), strict=True) if value.shape else ((),) * len(value.data)
    result.data.update(zip(places, value.data, strict=True))
    return result


def dok_to_coo(value: Sparse) -> Sparse:
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
    check_coordinates("a sparse.DOK", coords, shape_of(value))
    order = sorting_order(coords, value.shape) if axes else np.arange(stored)
    facts = {"fill_value": value.fill_value}
    return coo_array(np.take(coords, order, axis=1), data[order], value.shape, facts)
