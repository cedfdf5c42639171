"""Odd arrays of sparse's, of the same numbers as a plain one: to try conversions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interop.plugin import Declined

__all__ = ["COO", "FILLED", "ROWS"]


def uncoalesced(value: Any) -> Any:
    """Return a COO array that holds its first coordinate twice, the second time with a zero."""
    import numpy as np
    import sparse

    _some(value)
    data = np.append(value.data, np.zeros(1, value.dtype))
    coords = np.append(value.coords, value.coords[:, :1], axis=1)
    return sparse.COO(coords, data, value.shape, has_duplicates=False, sorted=True)


def uncoalesced_rows(value: Any) -> Any:
    """Return a GCXS array that holds its first coordinate twice, the second time with a zero."""
    import numpy as np
    import sparse

    _some(value)
    row = int(np.flatnonzero(np.diff(value.indptr))[0])
    pointers = value.indptr.copy()
    pointers[row + 1 :] += 1
    data, indices = np.insert(value.data, 0, 0), np.insert(value.indices, 0, value.indices[0])
    return sparse.GCXS((data, indices, pointers), value.shape, value.compressed_axes)


def _some(value: Any) -> None:
    if not value.nnz:
        msg = "an array that stores nothing cannot hold a coordinate twice"
        raise Declined(msg)


def filled(value: Any) -> Any:
    """Return an array that stores the same elements, and of which all others are one."""
    value = value.copy()
    value.fill_value = value.dtype.type(1)
    return value


FILLED: Mapping[str, Callable[[Any], Any]] = {"fill_value": filled}
COO: Mapping[str, Callable[[Any], Any]] = {"uncoalesced": uncoalesced, **FILLED}
ROWS: Mapping[str, Callable[[Any], Any]] = {"uncoalesced": uncoalesced_rows, **FILLED}
