"""The sparse arrays of ``cupyx.scipy.sparse``: specs, components and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import EMPTY, dtype_name
from interop.plugin import Declined, Parts, Spec

from .describe import device_name, memory
from .loans import reading

if TYPE_CHECKING:
    from typing import Any

    from .describe import CupyArray, DType, Sparse
    from .streams import Stream

UNCOALESCED = frozenset({"uncoalesced"})
#: cupyx's ``csr_array`` may have one axis, which no other compressed format can.
VECTOR = frozenset({"vector"})


def describe_compressed(value: Sparse) -> Spec:
    """Return the spec of a CSR or CSC array or matrix.

    cupyx itself finds out whether it is sorted and without duplicates, and remembers the answer.
    """
    data, indices = value.data, value.indices
    traits = EMPTY if _canonical(value) else UNCOALESCED
    if len(value.shape) == 1:
        traits = traits | VECTOR
    nbytes = data.nbytes + indices.nbytes + value.indptr.nbytes
    return _sparse_spec(value, traits, nbytes, indices.dtype)


def _canonical(value: Sparse) -> bool:
    """Tell whether a CSR or CSC array is sorted and without duplicates."""
    if "_has_canonical_format" in vars(value):  # remembered: nothing runs on the device
        return bool(value.has_canonical_format)
    with value.data.device:
        return bool(value.has_canonical_format)


def describe_coo(value: Sparse) -> Spec:
    """Return the spec of a COO array or matrix, canonical if cupyx has it noted as such."""
    traits = EMPTY if value.has_canonical_format else UNCOALESCED
    # The rows of a vector are zeros, which only cupyx keeps.
    indices = value.col.nbytes * len(value.shape)
    return _sparse_spec(value, traits, value.data.nbytes + indices, value.col.dtype)


def describe_dia(value: Sparse) -> Spec:
    """Return the spec of a DIA array or matrix."""
    nbytes = value.data.nbytes + value.offsets.nbytes
    return _sparse_spec(value, EMPTY, nbytes, value.offsets.dtype)


def _sparse_spec(value: Sparse, traits: frozenset[str], nbytes: int, index_dtype: DType) -> Spec:
    data = value.data
    return Spec(
        f"cupy.{value.format}",
        dtype_name(data.dtype),
        device_name(data),
        value.shape,
        traits,
        nbytes,
        data.size,
        dtype_name(index_dtype),
    )


def unpack_compressed(value: Sparse) -> Parts:
    """Return the component arrays of a CSR or CSC array, which stay its own."""
    arrays = {"values": value.data, "indices": value.indices, "pointers": value.indptr}
    return Parts(tuple(value.shape), arrays, {"canonical": _canonical(value)})


def unpack_coo(value: Sparse) -> Parts:
    """Return the component arrays of a COO array, which stay its own."""
    coordinates = (value.col,) if len(value.shape) == 1 else (value.row, value.col)
    arrays = {f"indices_{axis}": array for axis, array in enumerate(coordinates)}
    facts = {"canonical": bool(value.has_canonical_format)}
    return Parts(tuple(value.shape), {"values": value.data, **arrays}, facts)


def pack_compressed(kind: str, parts: Parts) -> Sparse:
    """Return a ``csr_array`` or ``csc_array`` over component arrays."""
    if len(parts.shape) != 2:
        msg = f"interop makes a {kind} of cupyx only of two axes, not of {len(parts.shape)}"
        raise Declined(msg)
    values = parts.arrays["values"]
    with values.device:
        components = (values, parts.arrays["indices"], parts.arrays["pointers"])
        return _flagged(_class(kind)(components, shape=parts.shape, copy=False), parts)


def pack_coo(parts: Parts) -> Sparse:
    """Return a COO array over component arrays."""
    axes = len(parts.shape)
    if axes not in (1, 2):
        msg = f"cupyx holds sparse arrays of one or two axes, not of {axes}"
        raise Declined(msg)
    values = parts.arrays["values"]
    coordinates = tuple(parts.arrays[f"indices_{axis}"] for axis in range(axes))
    with values.device:
        result = _class("coo_array")((values, coordinates), shape=parts.shape, copy=False)
        return _flagged(result, parts)


def _class(name: str) -> Any:
    """Return one of cupyx's sparse array classes; its matrix classes would narrow the indices."""
    import cupyx.scipy.sparse

    return getattr(cupyx.scipy.sparse, name)


def _flagged(value: Sparse, parts: Parts) -> Sparse:
    """Tell cupyx what is known of the order of the components, which it would have to look up."""
    if "canonical" in parts.facts:
        value.has_canonical_format = parts.facts["canonical"]
    return value


def compressed_memory(value: Sparse) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays of a CSR or CSC array lie."""
    return memory(value.data) + memory(value.indices) + memory(value.indptr)


def coo_memory(value: Sparse) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays of a COO array lie."""
    return memory(value.data) + memory(value.row) + memory(value.col)


def canonical(value: Sparse, *, stream: Stream = None) -> Sparse:
    """Return a copy whose elements are sorted and in distinct places."""
    with reading(value, stream):
        result = value.copy()
        result.sum_duplicates()
    return result


def to_dense(value: Sparse, *, stream: Stream = None) -> CupyArray:
    """Return the dense array of a sparse one; duplicates are summed."""
    with reading(value, stream):
        return value.toarray(order="C")


def to_coo(value: Sparse, *, stream: Stream = None) -> Sparse:
    """Return a compressed array as COO: the pointers are expanded, the other arrays are shared."""
    with reading(value, stream):
        return value.tocoo(copy=False)


def to_csr(value: Sparse, *, stream: Stream = None) -> Sparse:
    """Return a sparse array as CSR."""
    with reading(value, stream):
        return value.tocsr()


def to_csc(value: Sparse, *, stream: Stream = None) -> Sparse:
    """Return a sparse array as CSC."""
    with reading(value, stream):
        return value.tocsc()


def from_dense(kind: str, value: CupyArray, *, stream: Stream = None) -> Sparse:
    """Return the nonzero elements of a matrix as one of cupyx's sparse arrays."""
    with reading(value, stream):
        return _class(kind)(value)
