"""The specs of the library's arrays, and where their memory lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import EMPTY, dtype_name, extents, memory_traits
from interop.plugin import Spec

from .canonical import (
    check_lengths,
    check_once,
    has_canonical_rows,
    is_always_canonical,
    is_canonical,
    shape_of,
)

if TYPE_CHECKING:
    from .canonical import Array, Scalar, Sparse

UNCOALESCED, SWAPPED = frozenset({"uncoalesced"}), frozenset({"byteswapped"})
#: A trait of this library's own: what is not stored is not zero. No other library has it.
FILL = frozenset({"fill_value"})


def describe_coo(value: Sparse) -> Spec:
    """Return the spec of a COO array.

    Raises
    ------
    HandOffError
        It has coordinates outside its shape.
    """
    arrays = (value.data, value.coords)
    check_lengths(value)
    return _spec("sparse.coo", value, arrays, canonical=is_canonical(value))


def describe_gcxs(value: Sparse) -> Spec:
    """Return the spec of a GCXS array."""
    indices, pointers, layout = value.indices, value.indptr, layout_of(value)
    check = {"nd": is_always_canonical}.get(layout, has_canonical_rows)
    canonical = check_once(value, (indices, pointers), check)
    arrays = (value.data, indices, pointers)
    return _spec(f"sparse.gcxs.{layout}", value, arrays, canonical=canonical)


def _spec(name: str, value: Sparse, arrays: tuple[Array, ...], *, canonical: bool) -> Spec:
    """Return the spec of a value that is made of arrays: of its elements, then of indices."""
    return Spec(
        name,
        dtype_name(arrays[0].dtype),
        "cpu",
        shape_of(value),
        _traits(value, arrays, canonical=canonical),
        sum(array.nbytes for array in arrays),
        len(arrays[0]),
        str(arrays[1].dtype),
    )


def describe_dok(value: Sparse) -> Spec:
    """Return the spec of a DOK array, whose elements are Python objects."""
    stored = len(value.data)
    nbytes = stored * (value.dtype.itemsize + 8 * len(value.shape))
    traits = EMPTY if is_zero(value.fill_value) else FILL
    return Spec(
        "sparse.dok",
        dtype_name(value.dtype),
        "cpu",
        shape_of(value),
        traits,
        nbytes,
        stored,
        "int64",
    )


def layout_of(value: Sparse) -> str:
    """Return ``"csr"`` or ``"csc"``, or ``"nd"`` if the array is neither."""
    if len(value.shape) != 2:
        return "nd"
    return "csr" if tuple(value.compressed_axes) == (0,) else "csc"


def _traits(value: Sparse, arrays: tuple[Array, ...], *, canonical: bool) -> frozenset[str]:
    traits = memory_traits(*arrays)
    if not canonical:
        traits |= UNCOALESCED
    if not is_zero(value.fill_value):
        traits |= FILL
    return traits if all(array.dtype.isnative for array in arrays) else traits | SWAPPED


def is_zero(fill: Scalar) -> bool:
    """Tell whether a fill value is zero, of either sign: the fill of ``-array`` is -0.0."""
    return bool(fill == 0)


def memory(value: Sparse) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the component arrays."""
    names = ("data", "coords", "indices", "indptr")
    arrays = [getattr(value, name) for name in names if hasattr(value, name)]
    return extents(array for array in arrays if hasattr(array, "size"))  # DOK's data is a dict
