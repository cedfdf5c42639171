"""Jagged nested tensors: rows of several lengths, as their values and the offsets of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import interop
from interop.kit import check_offsets
from interop.plugin import Declined, Parts, Spec

from .describe import dtype_name, short_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor


def describe(value: Tensor) -> Spec:
    """Return the spec of a jagged tensor, whose second axis is as long as its longest row.

    The offsets are read for that. Rows of one length are those of a dense tensor; others have the
    trait ``nested``.
    """
    rows: Any = value
    values, offsets = rows._values, rows._offsets
    traits = {"grad"} if value.requires_grad else set()
    name, device = dtype_name(values.dtype), str(values.device)
    if values.device.type == "meta" or rows._lengths is not None or rows._ragged_idx != 1:
        # There is no data, there are gaps between the rows, or another axis than the second is
        # jagged.
        trait = "meta" if values.device.type == "meta" else "rearranged"
        return Spec("torch.jagged", name, device, (offsets.shape[0] - 1,), frozenset({trait}))
    lengths = offsets.diff()
    longest, shortest = (int(lengths.max()), int(lengths.min())) if len(lengths) else (0, 0)
    if values.is_cpu and len(lengths):
        ends = int(offsets[0]), int(offsets[-1])
        check_offsets("a jagged tensor", ends, shortest, values.shape[0])
    if longest != shortest:
        traits.add("nested")
    if values.dim() > 1:
        traits.add("hybrid")
    if not values.is_contiguous():
        traits.add("noncontiguous")
    traits |= short_memory(values)
    shape = (len(lengths), longest, *values.shape[1:])
    nbytes = values.nbytes + offsets.nbytes
    index = dtype_name(offsets.dtype)
    return Spec(
        "torch.jagged", name, device, shape, frozenset(traits), nbytes, values.shape[0], index
    )


def memory(value: Tensor) -> tuple[tuple[int, int], ...]:
    """Return the addresses and the lengths of the values of all rows and of their offsets."""
    rows: Any = value
    return tuple((array.data_ptr(), array.nbytes) for array in (rows._values, rows._offsets))


def _stored(value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values of all rows and offsets that count them from the first row."""
    rows: Any = value
    # In a graph the buffer itself is no part of it.
    offsets, values = rows._offsets, rows.values() if rows.requires_grad else rows._values
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return values[first:last], offsets - first if first else offsets


def unpack(value: Tensor) -> Parts:
    """Return the values and the offsets of a jagged tensor, which share its memory."""
    values, offsets = _stored(value)
    return Parts(describe(value).shape, {"values": values, "offsets": offsets})


def pack(parts: Parts) -> Tensor:
    """Return a jagged tensor over values and offsets."""
    import torch

    arrays = parts.arrays
    packed: Tensor = torch.nested.nested_tensor_from_jagged(arrays["values"], arrays["offsets"])
    return packed


def _rows(value: Sequence[object]) -> list[Tensor]:
    """Return rows as tensors of their common dtype, part of their graphs, on their device."""
    dtype: Any = interop.spec(value).dtype
    return [interop.convert(row, "torch", dtype=dtype) for row in value]


def from_rows(value: Sequence[object]) -> Tensor:
    """Return a jagged tensor of rows of several lengths."""
    import torch

    rows = _rows(value)
    values = torch.cat(rows)
    lengths = torch.tensor([0, *map(len, rows)], device=values.device)
    offsets = lengths.cumsum(0, dtype=_index_dtype(len(values)))
    return pack(Parts((), {"values": values, "offsets": offsets}))


def from_nested(value: Tensor) -> Tensor:
    """Return the rows of a nested tensor of torch's older layout as a jagged one.

    Raises
    ------
    Declined
        Its rows differ along another axis, too.
    """
    import torch

    rows = value.unbind()
    if len({row.shape[1:] for row in rows}) != 1:
        msg = "its rows differ along another axis than their first"
        raise Declined(msg)
    values = torch.cat(rows)
    lengths = torch.tensor([0, *map(len, rows)], device=values.device)
    offsets = lengths.cumsum(0, dtype=torch.int32)
    return pack(Parts((), {"values": values, "offsets": offsets}))


def from_dense(value: Tensor) -> Tensor:
    """Return the rows of a dense tensor as a jagged one, over the same memory."""
    import torch

    rows, length = value.shape
    if length and not rows:
        msg = f"no row is left to have {length} elements"
        raise Declined(msg)
    dtype = _index_dtype(rows * length)
    offsets = torch.arange(rows + 1, dtype=dtype, device=value.device) * length
    return pack(Parts((), {"values": value.reshape(-1), "offsets": offsets}))


def _index_dtype(stored: int) -> torch.dtype:
    """Return the dtype of the offsets of so many numbers, as lists of Python's and Arrow have."""
    import torch

    return torch.int32 if stored < 2**31 else torch.int64


def padded_rows(value: Sequence[object]) -> Tensor:
    """Return rows one below the other in a new tensor, with zeros after the shorter ones."""
    import torch

    return torch.nn.utils.rnn.pad_sequence(_rows(value), batch_first=True)


def regular(value: Tensor) -> Tensor:
    """Return rows of one length as a dense tensor over the same memory."""
    values, _ = _stored(value)
    return values.reshape(describe(value).shape)


def padded(value: Tensor) -> Tensor:
    """Return the rows one below the other in a new tensor, with zeros after the shorter ones."""
    import torch

    values, offsets = _stored(value)
    shape = describe(value).shape
    out = values.new_zeros(shape)
    places = torch.arange(shape[1], device=values.device)
    out[places < offsets.diff().unsqueeze(1)] = values
    return out


def sample(dense: Tensor) -> Tensor:
    """Return a jagged tensor with the rows of a matrix, to try conversions out."""
    import torch

    rows, length, *inner = dense.shape
    offsets, values = torch.arange(rows + 1) * length, dense.reshape(rows * length, *inner)
    return pack(Parts(tuple(dense.shape), {"values": values, "offsets": offsets}))


def variant(value: Tensor) -> Tensor:
    """Return a jagged tensor with the same numbers whose first row lacks an element."""
    rows: Any = value
    if len(rows._offsets) < 3 or int(rows._offsets[1]) < 1:
        msg = "rows differ in length only if there are two, and one is not empty"
        raise Declined(msg)
    offsets = rows._offsets.clone()
    offsets[1:] -= 1
    return pack(Parts((), {"values": rows._values[1:], "offsets": offsets}))
