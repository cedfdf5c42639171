"""Sparse torch tensors: unpacked, packed, made dense, and changed in layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from interop.kit import quietly
from interop.plugin import Declined, Parts

from .checks import check_ends_of, check_size, checked
from .dense import align as align_dense
from .dense import fresh, is_large
from .describe import components, dtype_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_BETA = "Sparse CSR tensor support is in beta state"
_UNCHECKED = "Sparse invariant checks are implicitly disabled"

#: The real dtypes that every framework with sparse matrices can hold.
_PLAIN = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"})
#: Elements per row from which on searching for the end of a row is quicker than counting them all.
_LONG_ROW = 512
#: The layouts of which torch adds the values, multiplied by one, to a dense tensor.
_ADDED = frozenset({"torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc"})

#: Filled on first use: the name of each layout, and what makes a tensor of each compressed one.
_layout_names: dict[torch.layout, str] = {}
_makers: dict[str, Callable[..., Tensor]] = {}


def allow_compressed() -> None:
    """Provoke, unseen, the warning that torch gives once: its compressed layouts are in beta."""
    import torch

    quietly(_BETA, lambda: torch.zeros(1, 1, device="cpu").to_sparse_csr())


def allow_unchecked() -> None:
    """Provoke, unseen, the warning that torch gives once: it is not told to check components.

    torch 2.11 gives it even where it is told not to.
    """
    import torch

    def make() -> Tensor:
        nothing = torch.zeros(1, 0, dtype=torch.int64, device="cpu")
        return torch.sparse_coo_tensor(
            nothing, nothing[0], (1,), device="cpu", check_invariants=False
        )

    quietly(_UNCHECKED, make)


def unpack_coo(value: Tensor) -> Parts:
    """Return the components of a COO tensor; the index of each axis is a row of torch's own."""
    values, indices = components(checked(value))
    rows = {f"indices_{axis}": row for axis, row in enumerate(indices)}
    return Parts(
        tuple(value.shape), {"values": values, **rows}, {"canonical": value.is_coalesced()}
    )


def unpack_compressed(value: Tensor) -> Parts:
    """Return the components of a CSR, CSC, BSR or BSC tensor."""
    values, indices, pointers = components(value)
    check_ends_of(value, pointers, indices.shape[-1])
    return _compressed_parts(value, values, indices, pointers)


def _compressed_parts(value: Tensor, values: Tensor, indices: Tensor, pointers: Tensor) -> Parts:
    """Return components that belong together in the shape of a tensor."""
    arrays = {"values": values, "indices": indices, "pointers": pointers}
    return Parts(tuple(value.shape), arrays)


def fast_unpack_compressed(layout: str, value: Tensor) -> Any:
    """Return the components of a plain real CSR or CSC matrix on the host, or `NotImplemented`.

    Whether there is any memory is left for those who share the components to find out.
    """
    name = _layout_names.get(value.layout) or _learn_layout_name(value.layout)
    if name != layout or value.requires_grad or not value.is_cpu or value.dim() != 2:
        return NotImplemented
    if layout == "torch.sparse_csr":
        indices, pointers = value.col_indices(), value.crow_indices()
    else:
        indices, pointers = value.row_indices(), value.ccol_indices()
    values = value.values()
    if dtype_name(values.dtype) not in _PLAIN or not values.is_contiguous():
        return NotImplemented
    return _compressed_parts(value, values, indices, pointers)


def _learn_layout_name(layout: torch.layout) -> str:
    _layout_names[layout] = str(layout)
    return _layout_names[layout]


def pack_coo(parts: Parts) -> Tensor:
    """Return a COO tensor that shares the values; torch wants the indices in one block."""
    import torch

    values = parts.arrays["values"]
    shape = (len(parts.shape), len(values))
    if values.device.type == "cpu":
        indices = fresh(shape, "int64")[1]
    else:
        indices = torch.empty(shape, dtype=torch.int64, device=values.device)
    for axis, row in enumerate(indices):
        row.copy_(parts.arrays[f"indices_{axis}"])
    return _coo(indices, values, parts.shape, is_coalesced=bool(parts.facts.get("canonical")))


def _coo(indices: Tensor, values: Tensor, shape: tuple[int, ...], *, is_coalesced: bool) -> Tensor:
    """Return a COO tensor over given components, on their device and not on torch's default."""
    import torch

    check_size(shape)
    allow_unchecked()
    return torch.sparse_coo_tensor(
        indices,
        values,
        shape,
        device=values.device,
        is_coalesced=is_coalesced,
        check_invariants=False,
    )


def pack_compressed(layout: str, parts: Parts) -> Tensor:
    """Return a tensor of a compressed layout (``"sparse_csr"`` …) over given components."""
    make = _makers.get(layout) or _learn_maker(layout)
    arrays = parts.arrays
    indices, pointers = arrays["indices"], arrays["pointers"]
    if indices.dtype is not pointers.dtype:  # there is one object for each of torch's dtypes
        msg = f"torch wants indices of one dtype, not {indices.dtype} and {pointers.dtype}"
        raise Declined(msg)
    values = arrays["values"]
    check_size(parts.shape)
    return make(pointers, indices, values, parts.shape, device=values.device)


def _learn_maker(layout: str) -> Callable[..., Tensor]:
    import torch

    allow_compressed()
    allow_unchecked()
    _makers[layout] = partial(
        torch.sparse_compressed_tensor, layout=getattr(torch, layout), check_invariants=False
    )
    return _makers[layout]


def regroup(layout: str, value: Tensor) -> Tensor:
    """Return blocks that are compressed by rows compressed by columns instead, or the reverse."""
    import torch

    values, indices, pointers = components(checked(value))
    axis = 1 if layout == "sparse_bsc" else 0
    columns = value.shape[axis] // values.shape[1 + axis]
    along = torch.arange(len(pointers) - 1, dtype=indices.dtype, device=indices.device)
    rows = along.repeat_interleave(pointers.diff())
    # The blocks are in the order of their rows already, which a stable sort by columns keeps.
    order = torch.argsort(indices, stable=True)
    ends = torch.bincount(indices, minlength=columns).cumsum(0).to(indices.dtype)
    new_pointers = torch.cat([ends.new_zeros(1), ends])
    parts = _compressed_parts(value, values[order].contiguous(), rows[order], new_pointers)
    return pack_compressed(layout, parts)


def coalesce(value: Tensor) -> Tensor:
    """Return a COO tensor that is sorted and holds every coordinate once; duplicates are summed.

    On the host they are summed in the order in which they are stored, as torch does when it makes
    a tensor dense. Its own sort of few elements does not keep that order.
    """
    if not checked(value).is_cpu or value._nnz() < 2:  # nothing is summed
        return value.coalesce()
    indices, values = _summed(value)
    if value.requires_grad:
        result = value.coalesce()
        result._values().detach().copy_(values)
        return result
    return _coo(indices, values, value.shape, is_coalesced=True)


def coalesce_stored(value: Tensor) -> Tensor:
    """Return a coalesced COO tensor of a dtype that torch cannot add.

    Unsigned integers overflow as those of their width do. Sums of narrow floats are rounded once.
    """
    result = in_bits(coalesce, value)
    if not value.is_floating_point() or result._nnz() == value._nnz():  # only put in order
        return result
    values, indices = components(value)
    result = coalesce(_over(value, values.float(), indices))
    return _over(result, result.values().to(value.dtype), result.indices())


def _summed(value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct coordinates in order, and the sums of their values."""
    import torch

    values, indices = components(value.detach())
    places = indices.new_zeros(indices.shape[1])
    for length, row in zip(value.shape, indices, strict=False):
        places.mul_(length).add_(row)
    places, order = torch.sort(places, stable=True)
    is_first = torch.ones_like(places, dtype=torch.bool)
    torch.ne(places[1:], places[:-1], out=is_first[1:])
    first, later = order[is_first], order[~is_first]
    sums, others = values[first].resolve_conj(), values[later].resolve_conj()
    target = is_first.cumsum(0)[~is_first] - 1
    if value.is_complex():  # by their parts, as in `_in_parts`
        torch.view_as_real(sums).index_add_(0, target, torch.view_as_real(others))
    else:
        sums.index_add_(0, target, others)
    return indices[:, first], sums


def compact(value: Tensor) -> Tensor:
    """Return a sparse tensor with each component in one C-ordered block."""
    return _over(value, *(part.contiguous() for part in components(value)))


def align(value: Tensor) -> Tensor:
    """Return a sparse tensor over copies of its components, which may lie at any address."""
    # torch takes the values for a view of the sparse tensor, and refuses to view those as floats.
    return _over(value, *(align_dense(part.detach()) for part in components(value)))


def _over(value: Tensor, values: Tensor, *places: Tensor) -> Tensor:
    """Return a sparse tensor of the layout and the shape of another over given components."""
    import torch

    if value.layout is torch.sparse_coo:
        return _coo(places[0], values, value.shape, is_coalesced=value.is_coalesced())
    layout = str(value.layout).removeprefix("torch.")
    return pack_compressed(layout, _compressed_parts(value, values, *places))


def in_bits(function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """Return what a function makes of elements that torch can move but not compute with.

    The function sees their bits as integers. Only zero stands for what is not stored.
    """
    import torch

    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
    return _viewed(function(_viewed(value, bits)), value.dtype)


def _viewed(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a dense or sparse tensor over the same memory, of another dtype of the same width."""
    import torch

    if value.layout is torch.strided:
        return value.view(dtype)
    values, *places = components(value)
    return _over(value, values.view(dtype), *places)


def densify(value: Tensor) -> Tensor:
    """Return the dense tensor, part of the same graph; duplicates are summed."""
    import torch

    checked(value)
    if not value.is_complex() or str(value.layout) not in _ADDED:
        single = value.layout is torch.sparse_coo and value.dense_dim() and value._nnz() == 1
        return (_in_one_row(value) if single else value).to_dense()
    if value.requires_grad and value.layout is not torch.sparse_coo:
        # torch has no gradient of views of compressed values.
        if not torch.view_as_real(value.detach().values().detach()).isfinite().all():
            msg = "torch makes NaN of a compressed tensor's complex infinities in a graph"
            raise Declined(msg)
        return value.to_dense()
    return torch.view_as_complex(_in_parts(value).to_dense().contiguous())


def densify_into(value: Tensor) -> Tensor:
    """Return the dense tensor in NumPy memory; duplicates are summed."""
    import torch

    checked(value)
    is_complex = value.is_complex()
    if value.layout is torch.sparse_coo and not is_complex and not is_large(value):
        return value.to_dense()  # does the same in torch memory
    out = fresh(value.shape, dtype_name(value.dtype), zero=True)[1]
    if is_complex:
        torch.view_as_real(out).add_(_in_parts(value.to_sparse()))
        return out
    return out.add_(value)


def _in_parts(value: Tensor) -> Tensor:
    """Return a complex sparse tensor as a real one, with one more axis for the two parts.

    torch multiplies what it adds by one, which for complex numbers makes NaN of infinity.
    """
    import torch

    if value.requires_grad:  # torch differentiates the values of coalesced tensors alone
        value = coalesce(value)
        values, places = value.values(), [value.indices()]
    else:
        values, *places = components(value.detach())
        values = values.detach()
    parts, shape = _rows(torch.view_as_real(values.resolve_conj())), (*value.shape, 2)
    if len(places) == 1:
        return _coo(places[0], parts, shape, is_coalesced=value.is_coalesced())
    arrays = {"values": parts, "indices": places[0], "pointers": places[1]}
    return pack_compressed(str(value.layout).removeprefix("torch."), Parts(shape, arrays))


def _in_one_row(value: Tensor) -> Tensor:
    """Return a COO tensor of one stored row, with a row that torch can add to a dense tensor."""
    value = coalesce(value)  # torch differentiates the values of coalesced tensors alone
    return _coo(value.indices(), _rows(value.values()), value.shape, is_coalesced=True)


def _rows(values: Tensor) -> Tensor:
    """Return values with as many elements between two rows as a row has.

    Where torch adds rows to a dense tensor, it takes the one for the other. A single row may state
    any distance and is contiguous all the same: torch then reads and writes past the ends of both
    (torch 2.6 and 2.13).
    """
    return values[0].contiguous()[None] if len(values) == 1 else values


def to_layout(layout: str, value: Tensor) -> Tensor:
    """Return a dense or sparse tensor in another sparse layout, part of the same graph."""
    import torch

    checked(value)
    if layout != "sparse_coo":
        allow_compressed()
    if layout == "sparse_csr":
        value = _by_rows(value)
    if value.layout in (torch.sparse_csr, torch.sparse_csc) and not value._nnz():
        sides = value.dim() - value.dense_dim()
        if 0 in value.shape[: sides - 2]:
            return _no_matrices(layout, value, sides)
    if value.is_cpu and not value.requires_grad and value.dim() == 2:
        pair = (str(value.layout).removeprefix("torch."), layout)
        if pair == ("sparse_coo", "sparse_csr") and not value.dense_dim():
            return _coo_to_csr(value)
        if pair in (("sparse_csr", "sparse_coo"), ("sparse_csc", "sparse_coo")):
            return _to_coo(value, by_columns=pair[0] == "sparse_csc")
    result = _with_indices_in_one_block(value).to_sparse(layout=getattr(torch, layout))
    # torch takes a tensor that it makes of no blocks for uncoalesced.
    is_empty_coo = layout == "sparse_coo" and not result._nnz()
    return result.coalesce() if is_empty_coo else result


def _no_matrices(layout: str, value: Tensor, sides: int) -> Tensor:
    """Return a batch of no matrices; torch divides by their number, which ends the process."""
    by_rows = layout == "sparse_csr"
    batches, lines = value.shape[: sides - 2], value.shape[sides - (2 if by_rows else 1)]
    values = value.values().new_empty((*batches, 0, *value.shape[sides:]))
    like = value.row_indices() if by_rows else value.col_indices()  # of the other layout
    pointers, indices = like.new_zeros((*batches, lines + 1)), like.new_empty((*batches, 0))
    return pack_compressed(layout, _compressed_parts(value, values, indices, pointers))


def to_batches(layout: str, value: Tensor) -> Tensor:
    """Return a dense tensor as a batch of compressed matrices, outside its graph.

    torch has batches only of matrices that store as many elements as each other. Those that would
    store fewer store some zeros.
    """
    stored = value != 0
    counts = stored.flatten(-2).sum(-1)
    most = int(counts.max()) if counts.numel() else 0
    missing = (most - counts).unsqueeze(-1)
    if counts.numel() and not missing.any():
        return to_layout(layout, value)
    spare = ~stored
    stored |= spare & (spare.flatten(-2).cumsum(-1) <= missing).view_as(spare)
    lines, numbers = (stored, value) if layout == "sparse_csr" else (stored.mT, value.mT)
    pointers = counts.new_zeros((*lines.shape[:-2], lines.shape[-2] + 1))
    pointers[..., 1:] = lines.sum(-1).cumsum(-1)
    indices = lines.nonzero()[:, -1].reshape(*counts.shape, most)
    parts = _compressed_parts(value, numbers[lines].view_as(indices), indices, pointers)
    return pack_compressed(layout, parts)


def _with_indices_in_one_block(value: Tensor) -> Tensor:
    """Return a coalesced tensor, part of the same graph, whose indices are in C order.

    torch compresses rows of indices as if they were, and reads and writes beyond their end.
    """
    import torch

    if value.layout is not torch.sparse_coo or value._indices().is_contiguous():
        return value
    indices = value.indices().contiguous()
    return _coo(indices, value.values(), value.shape, is_coalesced=True)


def _by_rows(value: Tensor) -> Tensor:
    """Return a tensor, part of the same graph, that is in order of rows if it is flagged as such.

    torch believes a wrong flag, and puts elements into other rows.
    """
    import torch

    if value.layout is not torch.sparse_coo or not value.is_cpu or value.sparse_dim() < 1:
        return value
    rows = value._indices()[0].numpy()
    if not (rows[1:] < rows[:-1]).any():
        return value
    return _coo(value.indices(), value.values(), value.shape, is_coalesced=False).coalesce()


def _coo_to_csr(value: Tensor) -> Tensor:
    """Return a coalesced COO matrix as CSR; where rows are long, most indices are not read."""
    import numpy as np
    import torch

    values, (rows, columns) = components(value)
    height = value.shape[0]
    if len(rows) < _LONG_ROW * height:
        pointers = torch._convert_indices_from_coo_to_csr(rows, height, out_int32=False)
    else:
        pointers = torch.from_numpy(np.searchsorted(rows.numpy(), np.arange(height + 1)))
    return pack_compressed("sparse_csr", _compressed_parts(value, values, columns, pointers))


def _to_coo(value: Tensor, *, by_columns: bool) -> Tensor:
    """Return a CSR or CSC matrix as COO, in the same order, with its indices in huge pages."""
    import torch

    values, indices, pointers = components(value)
    coordinates = fresh((2, len(indices)), "int64")[1]
    torch._convert_indices_from_csr_to_coo(
        pointers, indices, out_int32=False, transpose=by_columns, out=coordinates
    )
    return _coo(coordinates, values, value.shape, is_coalesced=not by_columns)


def to_blocks(layout: str, value: Tensor) -> Tensor:
    """Return a dense matrix in blocks of the largest size up to four that divides each side."""
    import torch

    allow_compressed()
    sides = tuple(next(n for n in (4, 3, 2, 1) if length % n == 0) for length in value.shape)
    return value.to_sparse(layout=getattr(torch, layout), blocksize=sides)
