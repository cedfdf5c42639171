"""The steps within each of SciPy's layouts, and between them."""

from __future__ import annotations

from copy import copy
from itertools import chain
from typing import TYPE_CHECKING

from interop.errors import HandOffError
from interop.kit import check_coordinates, rising
from interop.plugin import Parts

from .checks import checked
from .components import array_type, flagged, pack_compressed
from .describe import are_alike, index_arrays, is_canonical

if TYPE_CHECKING:
    from typing import Any

    from .describe import Sparse

#: To write the pointers of so many lines takes as long as to sort an element.
_LINES_PER_ELEMENT = 16


def as_it_is(value: Sparse) -> Sparse:
    """Return an array as it is, unless its indices are of two dtypes, or not of one of SciPy's."""
    return value if are_alike(index_arrays(value)) else NotImplemented


def matrix_to_array(value: Sparse) -> Sparse:
    """Return a sparse array over the components of a sparse matrix."""
    return _reclassed(array_type(value.format), value)


def array_to_matrix(value: Sparse, *, like: Sparse) -> Sparse:
    """Return a sparse matrix, as `like` is one, over the components of a sparse array."""
    return _reclassed(type(like), value)


def _reclassed(kind: type[Sparse], value: Sparse) -> Sparse:
    canonical = hasattr(type(value), "has_canonical_format")
    return flagged(kind(value), canonical and is_canonical(value))


def copy_matrix(value: Sparse) -> Sparse:
    """Return a copy of a sparse matrix, which is one, too."""
    return value.copy()


def cast_matrix(value: Sparse, *, dtype: str) -> Sparse:
    """Return a copy of a sparse matrix in another dtype, which is a matrix, too."""
    return _cast(value, dtype).asformat(value.format)


def cast_elements(value: Sparse, *, dtype: str) -> Sparse:
    """Return a sparse matrix in another dtype that shares the indices of one."""
    result = copy(value)
    result.data = _cast(value.data, dtype)
    return result


def _cast(value: Any, dtype: str) -> Any:
    """Return a matrix, or its elements, cast as NumPy casts: the caller asked for what they are."""
    import numpy as np

    target = np.dtype(dtype)
    if value.dtype.kind == "c" != target.kind:
        value = value.real
    with np.errstate(invalid="ignore", over="ignore"):
        return value.astype(target)


def unify_indices(value: Sparse) -> Sparse:
    """Return an array whose index arrays have one dtype, the wider: int32 or int64."""
    coo = value.format == "coo"
    components = (value.data, value.coords) if coo else (value.data, value.indices, value.indptr)
    result = array_type(value.format)(components, shape=value.shape)
    return flagged(result, is_canonical(value))


def to_native(value: Sparse) -> Sparse:
    """Return a copy whose elements are in the machine's byte order."""
    return flagged(
        value.astype(value.dtype.newbyteorder("="), copy=True), value.has_canonical_format
    )


def canonicalize(value: Sparse) -> Sparse:
    """Return a copy that is sorted and holds every coordinate once; duplicates are summed.

    They are summed in the order in which they are stored, as in a dense array. SciPy's own sort
    would mix them up; going through the other order and back is stable, and faster.
    """
    checked(value)
    if value.format == "coo":
        if value.ndim != 2 or _is_thin(value):
            return _in_order_of_places(value)
        return csr_to_coo(coo_to_compressed("csr", value))
    if value.ndim == 2 and value.format in ("csr", "csc"):
        result = array_type(value.format)(_across(value))
    else:
        result = value.copy()
    result.sum_duplicates()
    return result


def _is_thin(value: Sparse) -> bool:
    """Tell whether a coo array stores so little that to sort it is cheaper than to compress it."""
    return bool(max(value.shape) > _LINES_PER_ELEMENT * len(value.data))


def _in_order_of_places(value: Sparse) -> Sparse:
    """Return a sorted copy of a coo array; duplicates are summed, in the order they are stored in.

    SciPy's `sum_duplicates` would sum them in pairs.
    """
    import numpy as np

    order = np.lexsort(value.coords[::-1])
    coords, data = [indices[order] for indices in value.coords], value.data[order]
    is_first = np.ones(len(data), bool)
    is_first[1:] = rising(coords)
    sums, place = data[is_first], np.cumsum(is_first) - 1
    np.add.at(sums, place[~is_first], data[~is_first])
    places = tuple(indices[is_first] for indices in coords)
    return flagged(array_type("coo")((sums, places), shape=value.shape), canonical=True)


def _across(value: Sparse) -> Sparse:
    """Return a csr or csc array through the other order, which sorts its indices, and back."""
    return value.tocsc().tocsr() if value.format == "csr" else value.tocsr().tocsc()


def transpose_order(value: Sparse) -> Sparse:
    """Return a csr array as csc, or the other way round; explicit zeros and duplicates are kept."""
    result = checked(value).tocsc() if value.format == "csr" else checked(value).tocsr()
    return flagged(result, value.has_canonical_format)


def csr_to_coo(value: Sparse) -> Sparse:
    """Return a coo array that shares the values and the columns of a csr array."""
    return flagged(_pruned(checked(value)).tocoo(copy=False), value.has_canonical_format)


def csc_to_coo(value: Sparse) -> Sparse:
    """Return a coo array, in order of columns, that shares the values and rows of a csc array."""
    return _pruned(checked(value)).tocoo(copy=False)


def _pruned(value: Sparse) -> Sparse:
    """Return an array without the spare room behind its elements, which `tocoo` would read."""
    stored = int(value.indptr[-1])
    if len(value.indices) == stored:
        return value
    components = (value.data[:stored], value.indices[:stored], value.indptr)
    return array_type(value.format)(components, shape=value.shape)


def coo_to_compressed(layout: str, value: Sparse) -> Sparse:
    """Return a coo array as csr or csc; duplicates are summed, in the order they are stored in."""
    checked(value)
    if value.ndim == 2 and not len(value.data):
        return _empty(layout, value)
    if not value.has_canonical_format and _is_thin(value):
        value = _in_order_of_places(value)
    if value.ndim == 1 or value.has_canonical_format:
        # SciPy would share the arrays of a vector, and then sort them in place.
        result = value.tocsr(copy=True) if layout == "csr" else value.tocsc()
        return flagged(result, canonical=True)
    # SciPy's sort would mix duplicates up; an array that is flagged as canonical it does not sort.
    coo = flagged(array_type("coo")((value.data, value.coords), shape=value.shape), canonical=True)
    result = coo.tocsc().tocsr() if layout == "csr" else coo.tocsr().tocsc()
    result.has_canonical_format = False
    result.has_sorted_indices = True
    result.sum_duplicates()
    return result


def _empty(layout: str, value: Sparse) -> Sparse:
    """Return a coo array of no elements as csr or csc, whose indices SciPy would make int32."""
    import numpy as np

    dtype, lines = value.coords[0].dtype, value.shape[layout == "csc"]
    arrays = {
        "values": value.data.copy(),
        "indices": np.zeros(0, dtype),
        "pointers": np.zeros(lines + 1, dtype),
    }
    return pack_compressed(layout, Parts(value.shape, arrays, {"canonical": True}))


def bsr_to_csr(value: Sparse) -> Sparse:
    """Return a bsr array as csr; the zeros in its blocks become explicit zeros."""
    return flagged(checked(value).tocsr(), value.has_canonical_format)


def csr_to_bsr(value: Sparse) -> Sparse:
    """Return a csr array as bsr, in blocks of the size that SciPy estimates to be best."""
    result = checked(value).tobsr()
    result.sum_duplicates()  # SciPy leaves the blocks in the order in which it met them
    return result


def coo_to_dia(value: Sparse) -> Sparse:
    """Return a canonical coo array as dia, which cannot tell explicit zeros from others."""
    import numpy as np

    value = _in_order(value)
    rows, columns = value.coords
    offsets, place = np.unique(columns - rows, return_inverse=True)
    data = np.zeros((len(offsets), value.shape[1]), value.dtype)
    data[place, columns] = value.data
    return array_type("dia")((data, offsets), shape=value.shape)


def dia_to_csr(value: Sparse) -> Sparse:
    """Return a dia array as csr, without the zeros that fill its diagonals."""
    return flagged(value.tocsr(), canonical=True)


def csr_to_lil(value: Sparse) -> Sparse:
    """Return a canonical csr array as lil, also if SciPy's note that it is one is out of date."""
    checked(value)
    components = (value.data, value.indices, value.indptr)
    anew = array_type("csr")(components, shape=value.shape)  # about which nothing is noted yet
    return (value if anew.has_canonical_format else canonicalize(anew)).tolil()


def lil_to_csr(value: Sparse) -> Sparse:
    """Return a lil array as csr."""
    return checked(flagged(checked(value).tocsr(), canonical=True))


def coo_to_dok(value: Sparse) -> Sparse:
    """Return a canonical coo array as dok."""
    return _in_order(value).todok()


def _in_order(value: Sparse) -> Sparse:
    """Return a coo array that holds each place once, even if SciPy's note of that is out of date.

    SciPy keeps what it once found out, and does not notice indices that are written to afterwards.
    """
    if rising(checked(value).coords).all():
        return value
    return canonicalize(array_type("coo")((value.data, value.coords), shape=value.shape))


def dok_to_coo(value: Sparse) -> Sparse:
    """Return a dok array as coo, in the order of its dictionary."""
    import numpy as np
    from scipy.sparse import coo_array

    count, axes = len(value.keys()), value.ndim
    keys = chain.from_iterable(value.keys()) if axes > 1 else iter(value.keys())
    index = np.int32 if max(value.shape) < 2**31 else np.int64
    try:
        coords = np.fromiter(keys, index).reshape(count, axes).T.copy()
        numbers = np.fromiter(value.values(), value.dtype, count)
    except (TypeError, ValueError, OverflowError) as error:
        msg = "a dok array has keys that are no places, or values that are no numbers; fix them."
        raise HandOffError(msg) from error
    check_coordinates("a dok array", coords, value.shape)
    result = coo_array((numbers, tuple(coords)), shape=value.shape)
    # SciPy flags it as canonical although nobody has sorted it.
    result.has_canonical_format = bool(rising(coords).all())
    return result
