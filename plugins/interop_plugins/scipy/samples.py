"""Odd SciPy sparse arrays with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from interop.plugin import Declined

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy import ndarray

    from .describe import Sparse

    Array: TypeAlias = ndarray[Any, Any]


def stored(layout: str, value: Array) -> Sparse:
    """Return the elements that are not zero in a layout, as SciPy finds them."""
    import scipy.sparse

    return getattr(scipy.sparse, f"{layout}_array")(value)


def uncoalesced(value: Sparse) -> Sparse:
    """Return an array that holds its first coordinate twice, the second time with a zero."""
    import numpy as np
    import scipy.sparse

    if not value.nnz or value.format not in ("coo", "csr", "csc"):
        msg = f"this {value.format} array cannot hold a coordinate twice"
        raise Declined(msg)
    data = np.append(value.data, np.zeros(1, value.dtype))
    if value.format == "coo":
        coords = tuple(np.append(indices, indices[:1]) for indices in value.coords)
        return scipy.sparse.coo_array((data, coords), shape=value.shape)
    row = int(np.flatnonzero(np.diff(value.indptr))[0])
    data = np.insert(value.data, 0, 0)
    indices = np.insert(value.indices, 0, value.indices[0])
    pointers = value.indptr.copy()
    pointers[row + 1 :] += 1
    return type(value)((data, indices, pointers), shape=value.shape)


def matrix(value: Sparse) -> Sparse:
    """Return the array as a matrix."""
    import scipy.sparse

    return getattr(scipy.sparse, f"{value.format}_matrix")(value)


def mixed_indices(value: Sparse) -> Sparse:
    """Return an array one of whose index arrays is wider than the others."""
    if value.format == "coo":
        wide = value.coords[0].astype("int64"), *(c.astype("int32") for c in value.coords[1:])
        value.coords = wide
    elif value.format in ("csr", "csc", "bsr"):
        value.indices = value.indices.astype("int32")
        value.indptr = value.indptr.astype("int64")
    else:
        msg = f"a {value.format} array has at most one index array"
        raise Declined(msg)
    return value


#: Those that make new components come first.
VARIANTS: Mapping[str, Callable[[Sparse], Sparse]] = {
    "uncoalesced": uncoalesced,
    "matrix": matrix,
    "mixed_indices": mixed_indices,
}
