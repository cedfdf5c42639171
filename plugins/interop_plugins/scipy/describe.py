"""The specs of SciPy's sparse arrays and matrices, and where their memory lies."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import TYPE_CHECKING

from interop.kit import EMPTY, dtype_name, extents, memory_traits
from interop.plugin import Spec

from .checks import check_diagonals, check_ends_of, check_indices, check_lengths

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    DType: TypeAlias = np.dtype[Any]
    #: A ``csr_array``, a ``csr_matrix`` …: SciPy ships no types.
    Sparse: TypeAlias = Any

COMPRESSED = ("csr", "csc", "bsr")

MATRIX, UNCOALESCED = frozenset({"matrix"}), frozenset({"uncoalesced"})
SWAPPED = frozenset({"byteswapped"})
#: A trait of SciPy's own: index arrays of two dtypes, or of one that SciPy's constructors would
#: change, which no other library takes.
MIXED = frozenset({"mixed_indices"})

#: NumPy's codes of the dtypes of index arrays, which SciPy's constructors leave or make.
INDEX_CODES = "ilq"

_nbytes = attrgetter("nbytes")


def describe_compressed(value: Sparse) -> Spec:
    """Return the spec of a csr, csc or bsr array or matrix.

    SciPy itself finds out whether it is canonical: it reads the indices once, and keeps the answer.

    Raises
    ------
    HandOffError
        Its pointers or, before SciPy reads them for the first time, its indices lead outside.
    """
    data, indices, pointers = value.data, value.indices, value.indptr
    if "_has_canonical_format" in vars(value):
        check_ends_of(value)
    else:
        check_indices(value)
    stored = int(pointers[-1])
    if value.format == "bsr":
        stored *= data.shape[1] * data.shape[2]
    traits = _index_traits(value, (indices, pointers))
    return _spec(value, (data, indices, pointers), traits, stored)


def describe_coo(value: Sparse) -> Spec:
    """Return the spec of a coo array or matrix, of any number of axes.

    Raises
    ------
    HandOffError
        Its arrays are of several lengths.
    """
    data, coords = value.data, value.coords
    check_lengths(value, (data, *coords))
    return _spec(value, (data, *coords), _index_traits(value, coords), len(data))


def describe_dia(value: Sparse) -> Spec:
    """Return the spec of a dia array or matrix.

    Raises
    ------
    HandOffError
        It does not have one offset for each diagonal.
    """
    check_diagonals(value)
    return _spec(value, (value.data, value.offsets), EMPTY, value.nnz)


def _spec(value: Sparse, arrays: tuple[Array, ...], traits: frozenset[str], stored: int) -> Spec:
    """Return the spec of a value that is made of arrays: of its elements, then of indices."""
    return Spec(
        f"scipy.{value.format}",
        dtype_name(arrays[0].dtype),
        "cpu",
        value.shape,
        traits | _traits(value, arrays),
        sum(map(_nbytes, arrays)),
        stored,
        dtype_name(arrays[1].dtype),
    )


def describe_lists(value: Sparse) -> Spec:
    """Return the spec of a lil or dok array or matrix, whose elements are Python objects."""
    dtype, stored = value.dtype, value.nnz
    return Spec(
        f"scipy.{value.format}",
        dtype_name(dtype),
        "cpu",
        value.shape,
        MATRIX if _is_matrix(value) else EMPTY,
        stored * (dtype.itemsize + 8),
        stored,
        "int32",
    )


def index_arrays(value: Sparse) -> tuple[Array, ...]:
    """Return the index arrays of a value whose layout has several that must be alike."""
    if value.format in COMPRESSED:
        return value.indices, value.indptr
    return tuple(value.coords) if value.format == "coo" else ()


def are_alike(indices: tuple[Array, ...]) -> bool:
    """Tell whether index arrays have one dtype, which is one that SciPy would give them."""
    if not indices:
        return True
    dtype = indices[0].dtype
    return _is_usual(dtype) and all(array.dtype == dtype for array in indices[1:])


def _is_usual(dtype: DType) -> bool:
    return dtype.char in INDEX_CODES and dtype.isnative


def is_canonical(value: Sparse) -> bool:
    """Tell whether an array is in order and holds no place twice, as far as SciPy can tell."""
    # SciPy's own code raises if there are indices of a dtype that it does not know.
    known = all(_is_usual(array.dtype) for array in index_arrays(value))
    return known and bool(value.has_canonical_format)


def _is_matrix(value: Sparse) -> bool:
    return isinstance(value, sys.modules["scipy.sparse"].spmatrix)


def _traits(value: Sparse, arrays: tuple[Array, ...]) -> frozenset[str]:
    traits = memory_traits(*arrays)
    if _is_matrix(value):
        traits |= MATRIX
    if not arrays[0].dtype.isnative:
        traits |= SWAPPED
    return traits


def _index_traits(value: Sparse, indices: tuple[Array, ...]) -> frozenset[str]:
    """Return the traits of index arrays that must be alike."""
    if are_alike(indices):
        return EMPTY if value.has_canonical_format else UNCOALESCED
    return MIXED if is_canonical(value) else MIXED | UNCOALESCED


def memory(value: Sparse) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the component arrays."""
    arrays = [value.data] if value.format in (*COMPRESSED, "coo", "dia") else []
    if value.format in COMPRESSED:
        arrays += [value.indices, value.indptr]
    elif value.format == "coo":
        arrays += value.coords
    elif value.format == "dia":
        arrays.append(value.offsets)
    return extents(arrays)
