"""Dense arrays made sparse, and the library's arrays made dense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canonical import check_rows
from .components import coo_array
from .layouts import dok_to_coo, places_of

if TYPE_CHECKING:
    from .canonical import Array, Sparse


def to_dense(value: Sparse) -> Array:
    """Return the dense array of a canonical COO array; what is not stored is its fill value."""
    return _scatter(value, tuple(value.coords), value.data)


def _scatter(value: Sparse, coords: tuple[Array, ...], data: Array) -> Array:
    import numpy as np

    fill = np.asarray(value.fill_value, value.dtype)
    if any(fill.tobytes()):  # -0.0, too
        dense = np.full(value.shape, fill)
    else:
        dense = np.zeros(value.shape, value.dtype)  # memory that is not touched until it is read
    place = np.ravel_multi_index(coords, value.shape) if coords else slice(len(data))
    dense.reshape(-1)[place] = data
    return dense


def rows_to_dense(value: Sparse) -> Array:
    """Return the dense array of a canonical GCXS array of two axes."""
    return _scatter(value, *places_of(value))


def nd_to_dense(value: Sparse) -> Array:
    """Return the dense array of a GCXS array of other than two axes."""
    check_rows(value)
    return to_dense(value.tocoo())


def dok_to_dense(value: Sparse) -> Array:
    """Return the dense array of a DOK array."""
    return to_dense(dok_to_coo(value))


def dense_to_coo(value: Array) -> Sparse:
    """Return the elements of an array that are not zero as COO."""
    import numpy as np

    stored = value != 0
    if not value.ndim:
        data = np.full(int(stored), value)
        return coo_array(np.zeros((0, len(data)), np.int64), data, ())
    places = np.flatnonzero(stored)
    coords = np.empty((value.ndim, len(places)), np.int64)
    for row, indices in zip(coords, np.unravel_index(places, value.shape), strict=True):
        row[...] = indices
    data = value.reshape(-1)[places] if value.flags.c_contiguous else value[stored]
    return coo_array(coords, data, value.shape)
