"""Odd arrays of the library with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from interop.plugin import Declined

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy import ndarray

    from .canonical import Sparse

    Array: TypeAlias = ndarray[Any, Any]

    Variants: TypeAlias = Mapping[str, Callable[[Sparse], Sparse]]


def coordinates(value: Array) -> Sparse:
    """Return the elements that are not zero as a COO array, as the library finds them."""
    import sparse

    return sparse.COO.from_numpy(value)


def rows(layout: str, value: Array) -> Sparse:
    """Return the elements that are not zero by rows or by columns, as the library finds them."""
    import sparse

    return sparse.GCXS.from_numpy(value, compressed_axes=[0 if layout == "csr" else 1])


def uncoalesced(value: Sparse) -> Sparse:
    """Return a COO array that holds its first coordinate twice, the second time with a zero."""
    import numpy as np
    import sparse

    _check_stores_elements(value)
    data = np.append(value.data, np.zeros(1, value.dtype))
    coords = np.append(value.coords, value.coords[:, :1], axis=1)
    return sparse.COO(coords, data, value.shape, has_duplicates=False, sorted=True)


def uncoalesced_rows(value: Sparse) -> Sparse:
    """Return a GCXS array that holds its first coordinate twice, the second time with a zero."""
    import numpy as np
    import sparse

    _check_stores_elements(value)
    row = int(np.flatnonzero(np.diff(value.indptr))[0])
    pointers = value.indptr.copy()
    pointers[row + 1 :] += 1
    data, indices = np.insert(value.data, 0, 0), np.insert(value.indices, 0, value.indices[0])
    return sparse.GCXS((data, indices, pointers), value.shape, value.compressed_axes)


def _check_stores_elements(value: Sparse) -> None:
    if not value.nnz:
        msg = "an array that stores nothing cannot hold a coordinate twice"
        raise Declined(msg)


def filled(value: Sparse) -> Sparse:
    """Return an array that stores the same elements, and whose other elements are all one."""
    value = value.copy()
    value.fill_value = value.dtype.type(1)
    return value


FILLED: Variants = {"fill_value": filled}
COO: Variants = {"uncoalesced": uncoalesced, **FILLED}
ROWS: Variants = {"uncoalesced": uncoalesced_rows, **FILLED}
