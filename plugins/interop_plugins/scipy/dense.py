"""SciPy's sparse arrays made dense, and dense arrays made sparse."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

from interop.kit import parallel_for
from interop.plugin import Declined

from .checks import checked
from .components import array_type, coo_array, flagged
from .describe import INDEX_CODES
from .layouts import dok_to_coo, transpose_order

if TYPE_CHECKING:
    from typing import Any

    from .describe import Array, Sparse

#: Elements that are filled faster than they are planned for, and the characters of dtypes that
#: SciPy knows.
_QUICK, _ORDINARY = 2**14, "?bBhHiIlLqQfdFD"
#: The layouts of which a row, or a diagonal, can be added separately.
_DIVISIBLE = frozenset({"csr", "csc", "lil", "dia"})

#: From this many zeros for each stored element on, most of the time goes into the zeros.
_FEW = 8

#: Elements that are searched for nonzero ones at a time, so that the outcome stays in a cache.
_PIECE = 2**20

#: Elements of a dense array that a cache holds, whatever the order in which it is written.
_SMALL = 2**22


def to_dense(value: Sparse, *, order: Literal["C", "F"] = "C") -> Array:
    """Return the dense array; duplicates are summed, in the order in which they are stored."""
    import numpy as np

    checked(value)
    if value.format not in _DIVISIBLE or value.ndim != 2:
        dense: Array = _as_coo(value).toarray(order=order)
        return dense
    if order == "F":  # the transpose shares its memory
        return to_dense((value.tocsr() if value.format == "lil" else value).T).T
    out = np.zeros(value.shape, value.dtype)
    _add(out, value, fresh=True)
    return out


def numpy_fast_path(value: Sparse) -> Any:
    """Return the dense array of a small CSR matrix of ordinary numbers, or `NotImplemented`."""
    data, indices, pointers = value.data, value.indices, value.indptr
    if (
        value.ndim != 2
        or value.shape[0] * value.shape[1] > _QUICK
        or data.dtype.char not in _ORDINARY
        or indices.dtype.char not in INDEX_CODES
        or not (data.dtype.isnative and indices.dtype is pointers.dtype)
        or not (data.flags.carray and indices.flags.carray and pointers.flags.carray)
    ):
        return NotImplemented
    return to_dense(value)


def to_dense_into(out: Array, value: Sparse) -> None:
    """Write the dense array into `out`.

    Raises
    ------
    Declined
        SciPy cannot write into such an array.
    """
    if out.dtype != value.dtype or not out.flags.c_contiguous or not out.flags.aligned:
        msg = "SciPy writes only into arrays of the same dtype that are one aligned block"
        raise Declined(msg)
    checked(value)
    if value.format not in _DIVISIBLE or value.ndim != 2:
        _as_coo(value).toarray(out=out)
        return

    def clear(start: int, stop: int) -> None:
        out[start:stop] = 0

    parallel_for(clear, len(out), out.nbytes)
    _add(out, value)


def _as_coo(value: Sparse) -> Sparse:
    return dok_to_coo(value) if value.format == "dok" else value.tocoo(copy=False)


def _add(out: Array, value: Sparse, *, fresh: bool = False) -> None:
    """Add a matrix to zeros, by diagonals or by rows, of which each thread takes some."""
    if value.format == "dia":
        _add_diagonals(out, value)
        return
    of_elements = _kernel("coo_todense")
    if of_elements and value.format == "csc" and out.size < _SMALL:
        _add_columns(out, value, of_elements)
        return
    value = checked(value.tocsr()) if value.format == "lil" else value.tocsr()
    pointers, columns = value.indptr, value.shape[1]
    kernel = _kernel("csr_todense")
    if kernel is None:
        value.toarray(out=out)
        return

    def work(start: int, stop: int) -> None:
        rows = pointers[start : stop + 1]
        kernel(stop - start, columns, rows, value.indices, value.data, out[start:stop])

    parallel_for(work, len(out), out.nbytes, touching=fresh and value.nnz * _FEW < out.size)


def _add_columns(out: Array, value: Sparse, kernel: Callable[..., None]) -> None:
    """Add a csc array element by element, which is quicker than to sort them by rows."""
    import numpy as np

    (rows, width), stored = value.shape, int(value.indptr[-1])
    columns = np.repeat(np.arange(width, dtype=value.indices.dtype), np.diff(value.indptr))
    kernel(rows, width, stored, value.indices, columns, value.data, out.reshape(-1), 0)


@cache
def _kernel(name: str) -> Callable[..., None] | None:
    """Return a function of SciPy's own that adds to an array, or None if it has it no longer."""
    from scipy.sparse import _sparsetools

    return getattr(_sparsetools, name, None)


def _add_diagonals(out: Array, value: Sparse) -> None:
    """Add a dia array diagonal by diagonal: each is a stride through the memory of `out`."""
    import numpy as np

    rows, columns = out.shape
    flat = out.reshape(-1)
    for offset, diagonal in zip(value.offsets.tolist(), value.data, strict=True):
        start, stop = max(0, offset), min(columns, rows + offset, len(diagonal))
        if stop > start:
            first = (start - offset) * columns + start
            place = flat[first : first + (stop - start - 1) * (columns + 1) + 1 : columns + 1]
            with np.errstate(invalid="ignore"):  # a signalling NaN, of which SciPy says nothing
                place += diagonal[start:stop]


def dense_to_csr(value: Array) -> Sparse:
    """Return the nonzero elements of a matrix as csr."""
    import numpy as np

    places = _places(value)
    index = np.int32 if value.size < 2**31 else np.int64
    rows, columns = value.shape
    pointers = np.searchsorted(places, np.arange(rows + 1) * columns).astype(index)
    indices = (places % max(columns, 1)).astype(index)
    components = (_pick(value, places), indices, pointers)
    return flagged(array_type("csr")(components, shape=value.shape), canonical=True)


def dense_to_csc(value: Array) -> Sparse:
    """Return the nonzero elements of a matrix as csc."""
    return transpose_order(dense_to_csr(value))


def dense_to_coo(value: Array) -> Sparse:
    """Return the nonzero elements of an array as coo."""
    import numpy as np

    places = _places(value)
    index = np.int32 if max(value.shape) < 2**31 else np.int64
    coords = np.unravel_index(places, value.shape)
    indices = tuple(axis.astype(index) for axis in coords)
    return coo_array(_pick(value, places), indices, value.shape, canonical=True)


def _places(value: Array) -> Array:
    """Return the flat indices, in C order, of the nonzero elements of an array."""
    import numpy as np

    if value.size <= _PIECE:
        return np.flatnonzero(value != 0)
    width = value.size // len(value)
    rows = max(1, _PIECE // width)
    count = -(-len(value) // rows)
    places: list[Array] = [np.empty(0, np.intp)] * count

    def work(start: int, stop: int) -> None:
        for part in range(start, stop):
            first = part * rows
            places[part] = np.flatnonzero(value[first : first + rows] != 0) + first * width

    parallel_for(work, count, value.nbytes)
    return np.concatenate(places)


def _pick(value: Array, places: Array) -> Array:
    """Return the elements at flat indices."""
    import numpy as np

    if value.flags.c_contiguous:  # finding a place by coordinates takes longer
        return value.reshape(-1)[places]
    return value[np.unravel_index(places, value.shape)]
