"""Sparse and quantized torch tensors: taken apart, put together, and changed in layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from interop.plugin import Declined, Parts

from ._torch_dense import fill, fresh, quietly
from ._torch_describe import components, dtype_name

if TYPE_CHECKING:
    import torch

__all__ = [
    "coalesce",
    "compact",
    "densify",
    "densify_into",
    "dequantize",
    "dequantize_into",
    "fast_unpack_quantized",
    "fast_unpack_rows",
    "pack_compressed",
    "pack_coo",
    "pack_quantized",
    "regroup",
    "to_blocks",
    "to_layout",
    "unpack_compressed",
    "unpack_coo",
    "unpack_quantized",
]

_BETA = "Sparse CSR tensor support is in beta state"
_DEPRECATED = "torch.quantize_per_tensor, torch.quantize_per_channel and other quantized"

#: The real dtypes that every framework with sparse matrices can hold.
_PLAIN = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"})
#: Elements of a row from which on it is quicker to search for its end than to count them all.
_SEARCHED = 512
#: Elements from which on torch would dequantize into small pages that the system has to find anew,
#: rows from which on it is done by rows, and elements that are done at a time.
_MANY, _ROWS, _PIECE = 2**23, 8, 2**19
_QUANTIZED = {"uint8": "quint8", "int8": "qint8", "int32": "qint32"}


#: Filled on first use: the name of each layout, and what makes a tensor of each compressed one.
_layouts: dict[Any, str] = {}
_makers: dict[str, Callable[..., Any]] = {}


def _allow_compressed() -> None:
    """Let torch say once, to nobody, that its compressed layouts are in beta."""
    import torch

    quietly(_BETA, lambda: torch.zeros(1, 1, device="cpu").to_sparse_csr())


def unpack_coo(value: torch.Tensor) -> Parts:
    """Return the components of a COO tensor; the index of each axis is a row of torch's own."""
    values, indices = components(value)
    rows = {f"indices_{axis}": row for axis, row in enumerate(indices)}
    return Parts(
        tuple(value.shape), {"values": values, **rows}, {"canonical": value.is_coalesced()}
    )


def unpack_compressed(value: torch.Tensor) -> Parts:
    """Return the components of a CSR, CSC, BSR or BSC tensor."""
    values, indices, pointers = components(value)
    arrays = {"values": values, "indices": indices, "pointers": pointers}
    return Parts(tuple(value.shape), arrays)


def fast_unpack_rows(layout: str, value: torch.Tensor) -> Any:
    """Return the components of a plain real CSR tensor on the host, or `NotImplemented`.

    ``"sparse_csc"`` likewise. That memory is there at all is for who shares the components to see.
    """
    known = _layouts.get(value.layout) or _learn_layout(value.layout)
    if known != layout or value.requires_grad or not value.is_cpu or value.dim() != 2:
        return NotImplemented
    if layout == "torch.sparse_csr":
        indices, pointers = value.col_indices(), value.crow_indices()
    else:
        indices, pointers = value.row_indices(), value.ccol_indices()
    values = value.values()
    if dtype_name(values.dtype) not in _PLAIN or not values.is_contiguous():
        return NotImplemented
    arrays = {"values": values, "indices": indices, "pointers": pointers}
    return Parts(tuple(value.shape), arrays)


def _learn_layout(layout: Any) -> str:
    _layouts[layout] = str(layout)
    return _layouts[layout]


def fast_unpack_quantized(value: torch.Tensor) -> Any:
    """Return the components of an ordinary quantized tensor on the host, or `NotImplemented`."""
    if value.is_quantized and value.is_cpu and value.is_contiguous():
        return unpack_quantized(value)
    return NotImplemented


def pack_coo(parts: Parts) -> torch.Tensor:
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
    canonical = bool(parts.facts.get("canonical"))
    return torch.sparse_coo_tensor(
        indices, values, parts.shape, is_coalesced=canonical, check_invariants=False
    )


def pack_compressed(layout: str, parts: Parts) -> torch.Tensor:
    """Return a tensor of a compressed layout (``"sparse_csr"`` …) over given components."""
    make = _makers.get(layout) or _learn(layout)
    arrays = parts.arrays
    indices, pointers = arrays["indices"], arrays["pointers"]
    if indices.dtype is not pointers.dtype:  # there is one object for each of torch's dtypes
        msg = f"torch wants indices of one dtype, not {indices.dtype} and {pointers.dtype}"
        raise Declined(msg)
    made: torch.Tensor = make(pointers, indices, arrays["values"], parts.shape)
    return made


def _learn(layout: str) -> Callable[..., Any]:
    import torch

    _allow_compressed()
    _makers[layout] = partial(
        torch.sparse_compressed_tensor, layout=getattr(torch, layout), check_invariants=False
    )
    return _makers[layout]


def regroup(layout: str, value: torch.Tensor) -> torch.Tensor:
    """Return blocks that are compressed by rows compressed by columns instead, or the reverse."""
    import torch

    values, indices, pointers = components(value)
    axis = 1 if layout == "sparse_bsc" else 0
    columns = value.shape[axis] // values.shape[1 + axis]
    along = torch.arange(len(pointers) - 1, dtype=indices.dtype, device=indices.device)
    rows = along.repeat_interleave(pointers.diff())
    # The blocks are in order of their rows already, which a stable sort by columns keeps.
    order = torch.argsort(indices, stable=True)
    ends = torch.bincount(indices, minlength=columns).cumsum(0).to(indices.dtype)
    arrays = {
        "values": values[order].contiguous(),
        "indices": rows[order],
        "pointers": torch.cat([ends.new_zeros(1), ends]),
    }
    return pack_compressed(layout, Parts(tuple(value.shape), arrays))


def coalesce(value: torch.Tensor) -> torch.Tensor:
    """Return a COO tensor that is sorted and holds every coordinate once; duplicates are summed.

    On the host they are summed in the order in which they are stored, as torch does where it makes
    a tensor dense. Its own sort of few elements does not keep that order.
    """
    import torch

    if not value.is_cpu or not value._nnz():
        return value.coalesce()
    indices, values = _summed(value)
    if value.requires_grad:
        result = value.coalesce()
        result._values().detach().copy_(values)
        return result
    return torch.sparse_coo_tensor(
        indices, values, value.shape, is_coalesced=True, check_invariants=False
    )


def _summed(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distinct coordinates in order, and the sums of their values."""
    import torch

    values, indices = components(value.detach())
    places = torch.zeros_like(indices[0])
    for length, row in zip(value.shape, indices, strict=False):
        places.mul_(length).add_(row)
    places, order = torch.sort(places, stable=True)
    group = torch.ones_like(places, dtype=torch.bool)
    torch.ne(places[1:], places[:-1], out=group[1:])
    first, later = order[group], order[~group]
    sums = values[first]
    sums.index_add_(0, group.cumsum(0)[~group] - 1, values[later])
    return indices[:, first], sums


def compact(value: torch.Tensor) -> torch.Tensor:
    """Return a sparse tensor with each component in one C-ordered block."""
    import torch

    parts = [part.contiguous() for part in components(value)]
    if value.layout is torch.sparse_coo:
        values, indices = parts
        return torch.sparse_coo_tensor(
            indices, values, value.shape, is_coalesced=value.is_coalesced(), check_invariants=False
        )
    arrays = dict(zip(("values", "indices", "pointers"), parts, strict=True))
    layout = str(value.layout).removeprefix("torch.")
    return pack_compressed(layout, Parts(tuple(value.shape), arrays))


def densify(value: torch.Tensor) -> torch.Tensor:
    """Return the dense tensor, part of the same graph; duplicates are summed."""
    return value.to_dense()


def densify_into(value: torch.Tensor) -> torch.Tensor:
    """Return the dense tensor in memory of NumPy's; duplicates are summed."""
    return fresh(value.shape, dtype_name(value.dtype), zero=True)[1].add_(value)


def to_layout(layout: str, value: torch.Tensor) -> torch.Tensor:
    """Return a dense or sparse tensor in another sparse layout, part of the same graph."""
    import torch

    if value.is_complex() and value.requires_grad:
        msg = "torch differentiates no change of layout of complex tensors"
        raise Declined(msg)
    if layout != "sparse_coo":
        _allow_compressed()
    if value.is_cpu and not value.requires_grad and value.dim() == 2:
        pair = (str(value.layout).removeprefix("torch."), layout)
        if pair == ("sparse_coo", "sparse_csr") and not value.dense_dim():
            return _compressed(value)
        if pair in (("sparse_csr", "sparse_coo"), ("sparse_csc", "sparse_coo")):
            return _expanded(value, by_columns=pair[0] == "sparse_csc")
    return _in_one_block(value).to_sparse(layout=getattr(torch, layout))


def _in_one_block(value: torch.Tensor) -> torch.Tensor:
    """Return a coalesced tensor, part of the same graph, whose indices are in C order.

    torch compresses rows of indices as if they were, and reads and writes beyond their end.
    """
    import torch

    if value.layout is not torch.sparse_coo or value._indices().is_contiguous():
        return value
    return torch.sparse_coo_tensor(
        value.indices().contiguous(),
        value.values(),
        value.shape,
        is_coalesced=True,
        check_invariants=False,
    )


def _compressed(value: torch.Tensor) -> torch.Tensor:
    """Return a coalesced COO matrix as CSR; where rows are long, most indices are not read."""
    import numpy as np
    import torch

    values, (rows, columns) = components(value)
    height = value.shape[0]
    if len(rows) < _SEARCHED * height:
        pointers = torch._convert_indices_from_coo_to_csr(rows, height, out_int32=False)
    else:
        pointers = torch.from_numpy(np.searchsorted(rows.numpy(), np.arange(height + 1)))
    arrays = {"values": values, "indices": columns, "pointers": pointers}
    return pack_compressed("sparse_csr", Parts(tuple(value.shape), arrays))


def _expanded(value: torch.Tensor, *, by_columns: bool) -> torch.Tensor:
    """Return a CSR or CSC matrix as COO, in the same order, with its indices in huge pages."""
    import torch

    values, indices, pointers = components(value)
    places = fresh((2, len(indices)), "int64")[1]
    torch._convert_indices_from_csr_to_coo(
        pointers, indices, out_int32=False, transpose=by_columns, out=places
    )
    return torch.sparse_coo_tensor(
        places, values, value.shape, is_coalesced=not by_columns, check_invariants=False
    )


def to_blocks(layout: str, value: torch.Tensor) -> torch.Tensor:
    """Return a dense matrix in blocks of the largest size up to four that divides each side."""
    import torch

    _allow_compressed()
    sides = tuple(next(n for n in (4, 3, 2, 1) if length % n == 0) for length in value.shape)
    return value.to_sparse(layout=getattr(torch, layout), blocksize=sides)


class _Tools(NamedTuple):
    """What taking a quantized tensor apart needs: an import statement is slow on every call."""

    blanks: dict[Any, Any]
    per_tensor: Any
    from_numpy: Callable[[Any], Any]
    array: Callable[..., Any]


@cache
def _affine_tools() -> _Tools:
    import numpy as np
    import torch

    blanks = {
        getattr(torch, kind): torch.empty(0, dtype=getattr(torch, code), device="cpu")
        for code, kind in _QUANTIZED.items()
    }
    return _Tools(blanks, torch.per_tensor_affine, torch.from_numpy, np.array)


def unpack_quantized(value: torch.Tensor) -> Parts:
    """Return codes that share the tensor's memory, with their scale and zero point."""
    tools = _affine_tools()
    blank = tools.blanks[value.dtype]
    # To make one like another is quicker than to name its dtype and device.
    codes = blank.new_empty(0) if value.is_cpu else blank.new_empty(0, device=value.device)
    codes.set_(value.untyped_storage(), value.storage_offset(), value.size(), value.stride())
    axis = None
    if value.qscheme() == tools.per_tensor:
        # By way of NumPy, which is four times as fast as torch.tensor and knows no other device.
        scale = tools.from_numpy(tools.array(value.q_scale(), "float64"))
        zero_point = tools.from_numpy(tools.array(value.q_zero_point(), "int64"))
    else:
        axis = value.q_per_channel_axis()
        scale, zero_point = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    arrays = {"codes": codes, "scale": scale, "zero_point": zero_point}
    facts = {"axis": axis, "block_size": None, "dtype": "float32"}
    return Parts(tuple(value.shape), arrays, facts)


def pack_quantized(parts: Parts) -> torch.Tensor:
    """Return a quantized tensor over given codes.

    Raises
    ------
    Declined
        torch has no such scheme.
    """
    import torch

    codes = parts.arrays["codes"]
    dtype, axis = dtype_name(codes.dtype), parts.facts["axis"]
    if dtype not in _QUANTIZED:
        msg = f"torch has no quantized dtype for {dtype} codes"
        raise Declined(msg)
    if parts.facts["block_size"] is not None:
        msg = "torch has no quantized tensors with a scale per block"
        raise Declined(msg)
    if axis is not None and not codes.is_contiguous():
        msg = "torch's per-channel tensors are contiguous, and these codes are not"
        raise Declined(msg)
    scale, zero_point = _parameters(torch, parts)
    kind = getattr(torch, _QUANTIZED[dtype])
    quietly(
        _DEPRECATED,
        lambda: _affine(torch, kind, scale.new_ones(()), zero_point.new_zeros(()), None),
    )
    empty = _affine(torch, kind, scale, zero_point, axis)
    shared: torch.Tensor = empty.set_(
        codes.untyped_storage(), codes.storage_offset(), codes.size(), codes.stride()
    )
    return shared


def _parameters(torch: Any, parts: Parts) -> tuple[Any, Any]:
    """Return scale and zero point in the dtypes that torch's schemes want."""
    codes, scale, zero_point = (parts.arrays[role] for role in ("codes", "scale", "zero_point"))
    if zero_point is None:
        zero_point = torch.zeros_like(scale, dtype=torch.int64)
    if zero_point.is_floating_point():
        # torch ends the process when it dequantizes 32-bit codes with such zero points.
        if parts.facts["axis"] is None or codes.itemsize > 1:
            msg = "torch takes zero points that are real numbers only per channel, for 8-bit codes"
            raise Declined(msg)
        return scale.to(torch.float32), zero_point.to(torch.float32)
    limits = torch.iinfo(codes.dtype)
    # Before they are compared: an int8 tensor makes one of its own dtype of a limit, and -1 of 255.
    zero_point = zero_point.to(torch.int64)
    if zero_point.numel() and not limits.min <= zero_point.min() <= zero_point.max() <= limits.max:
        msg = f"torch takes only zero points that are {dtype_name(codes.dtype)} themselves"
        raise Declined(msg)
    return scale.to(torch.float64), zero_point


def _affine(torch: Any, dtype: Any, scale: Any, zero_point: Any, axis: int | None) -> Any:
    """Return an empty quantized tensor."""
    place = {"dtype": dtype, "device": scale.device}
    if axis is None:
        return torch._empty_affine_quantized(
            [0], scale=scale.item(), zero_point=int(zero_point), **place
        )
    return torch._empty_per_channel_affine_quantized(
        [0] * (axis + 1), scales=scale, zero_points=zero_point, axis=axis, **place
    )


def dequantize(value: torch.Tensor) -> torch.Tensor:
    """Return the real numbers that the codes stand for."""
    if value.is_cpu and value.numel() >= _MANY and len(value) >= _ROWS:
        out = fresh(value.shape, "float32")[1]
        dequantize_into(out, value)
        return out
    _check_zero_points(value)
    return value.dequantize()


def dequantize_into(out: torch.Tensor, value: torch.Tensor) -> None:
    """Write the real numbers into a tensor, some rows of them at a time."""
    _check_zero_points(value)
    if value.numel() < _PIECE or value.dtype not in _affine_tools().blanks:
        fill(out, value.dequantize())
        return
    parts = unpack_quantized(value)
    # Each row has a scale of its own if that is where the channels are.
    by_row = parts.arrays.keys() if parts.facts["axis"] == 0 else {"codes"}
    step = max(1, _PIECE * len(value) // value.numel())
    for start in range(0, len(value), step):
        rows = slice(start, start + step)
        arrays = {
            role: array[rows] if role in by_row else array for role, array in parts.arrays.items()
        }
        fill(out[rows], pack_quantized(parts._replace(arrays=arrays)).dequantize())


def _check_zero_points(value: torch.Tensor) -> None:
    """Refuse what would end the process."""
    import torch

    real_zeros = value.qscheme() == torch.per_channel_affine_float_qparams
    if real_zeros and value.dtype == torch.qint32:
        msg = "torch ends the process when it dequantizes 32-bit codes with real zero points"
        raise Declined(msg)
