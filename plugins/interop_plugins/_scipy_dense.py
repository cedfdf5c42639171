"""SciPy's sparse arrays made dense: into fresh memory, or into memory that is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from interop.plugin import Declined, parallel_for

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["dok_to_coo", "to_dense", "to_dense_into"]


#: The layouts of which a row, or a diagonal, can be added by itself.
_DIVISIBLE = frozenset({"csr", "csc", "lil", "dia"})

#: Zeros for each stored element from which on it is the zeros that take the time.
_FEW = 8


def to_dense(value: Any) -> Array:
    """Return the dense array; duplicates are summed, in the order in which they are stored."""
    import numpy as np

    if value.format not in _DIVISIBLE or value.ndim != 2:
        dense: Array = _as_coo(value).toarray(order="C")
        return dense
    out = np.zeros(value.shape, value.dtype)
    _add(out, value, fresh=True)
    return out


def to_dense_into(out: Array, value: Any) -> None:
    """Write the dense array into `out`.

    Raises
    ------
    Declined
        SciPy cannot write into such an array.
    """
    if out.dtype != value.dtype or not out.flags.c_contiguous or not out.flags.aligned:
        msg = "SciPy writes only into arrays that are one aligned block, of the same dtype"
        raise Declined(msg)
    if value.format not in _DIVISIBLE or value.ndim != 2:
        _as_coo(value).toarray(out=out)
        return

    def clear(start: int, stop: int) -> None:
        out[start:stop] = 0

    parallel_for(clear, len(out), out.nbytes)
    _add(out, value)


def _as_coo(value: Any) -> Any:
    return dok_to_coo(value) if value.format == "dok" else value.tocoo(copy=False)


def _add(out: Array, value: Any, *, fresh: bool = False) -> None:
    """Add a matrix to zeros, by diagonals or by rows, of which each thread takes some."""
    if value.format == "dia":
        _add_diagonals(out, value)
        return
    value = value.tocsr()
    pointers, columns = value.indptr, value.shape[1]
    kernel = _row_kernel()

    def work(start: int, stop: int) -> None:
        rows = pointers[start : stop + 1]
        kernel(stop - start, columns, rows, value.indices, value.data, out[start:stop])

    parallel_for(work, len(out), out.nbytes, touching=fresh and value.nnz * _FEW < out.size)


@cache
def _row_kernel() -> Callable[..., None]:
    """Return what adds rows to an array: what SciPy's own `toarray` calls, if that is still so."""
    from scipy.sparse import _sparsetools

    kernel: Callable[..., None] = getattr(_sparsetools, "csr_todense", _slower_row_kernel)
    return kernel


def _slower_row_kernel(  # noqa: PLR0917 - the arguments are SciPy's
    rows: int, columns: int, pointers: Array, indices: Array, values: Array, out: Array
) -> None:
    import numpy as np

    places = np.repeat(np.arange(rows), np.diff(pointers))
    inside = slice(pointers[0], pointers[-1])
    np.add.at(out, (places, indices[inside]), values[inside])


def _add_diagonals(out: Array, value: Any) -> None:
    """Add a dia array, diagonal by diagonal: each is a stride through the memory of `out`."""
    rows, columns = out.shape
    flat = out.reshape(-1)
    for offset, diagonal in zip(value.offsets.tolist(), value.data, strict=True):
        start, stop = max(0, offset), min(columns, rows + offset, len(diagonal))
        if stop > start:
            first = (start - offset) * columns + start
            place = flat[first : first + (stop - start - 1) * (columns + 1) + 1 : columns + 1]
            place += diagonal[start:stop]


def dok_to_coo(value: Any) -> Any:
    """Return a dok array as coo, in the order of its dictionary."""
    import numpy as np
    from scipy.sparse import coo_array

    count, axes = len(value.keys()), value.ndim
    keys = chain.from_iterable(value.keys()) if axes > 1 else iter(value.keys())
    index = np.int32 if max(value.shape) < 2**31 else np.int64
    coords = np.fromiter(keys, index, axes * count).reshape(count, axes)
    numbers = np.fromiter(value.values(), value.dtype, count)
    result = coo_array((numbers, tuple(coords.T.copy())), shape=value.shape)
    # SciPy flags it as canonical although nobody has sorted it.
    result.has_canonical_format = False
    return result
