"""Sparse arrays of JAX's own making, to try conversions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import Declined

if TYPE_CHECKING:
    from jax import Array
    from jax.experimental.sparse import BCOO, BCSR


def bcoo(value: Array) -> BCOO:
    """Return the elements that are not zero by their coordinates, as JAX finds them."""
    from jax.experimental.sparse import BCOO

    _check_dtype(value)
    return BCOO.fromdense(value)


def bcsr(value: Array) -> BCSR:
    """Return the elements that are not zero by rows, as JAX finds them."""
    from jax.experimental.sparse import BCSR

    _check_dtype(value)
    if value.ndim > 2:
        msg = "JAX compresses the rows of matrices alone, unless it is told of batches"
        raise Declined(msg)
    made: Any = BCSR  # its functions have no types
    rows: BCSR = made.fromdense(value)
    return rows


def _check_dtype(value: Array) -> None:
    if value.dtype == bool:
        msg = "JAX makes sparse integers of truth values"
        raise Declined(msg)
