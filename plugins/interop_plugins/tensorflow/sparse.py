"""SparseTensor and IndexedSlices: described, unpacked, packed, converted.

Neither says whether its indices are in order, distinct, or inside the shape. So on the host they
are inspected, once for each tensor of indices, since tensors never change. NumPy does the work,
because inside a ``tf.function`` TensorFlow only records an operation.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from interop.kit import EMPTY, inspect_once, rising
from interop.plugin import Parts, Spec

from . import dense
from .dense import view
from .describe import IMMUTABLE, describe, eagerly

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from tensorflow import IndexedSlices, SparseTensor, Tensor

    NumpyArray = np.ndarray[Any, Any]

UNCOALESCED, _INVALID = frozenset({"uncoalesced"}), frozenset({"invalid_indices"})

#: The traits that inspected tensors of indices give what has a shape.
_inspected: dict[int, Any] = {}


# ---------------------------------------------------------------------- described


def describe_sparse(value: SparseTensor) -> Spec:
    """Return the spec of a SparseTensor."""
    values, indices = describe(value.values), describe(value.indices)
    traits = values.traits | indices.traits | describe(value.dense_shape).traits
    if traits - IMMUTABLE:
        return Spec("tensorflow.sparse", values.dtype, values.device, (), traits)
    shape = tuple(value.shape)
    traits |= _index_traits(value.indices, shape, values.device)
    nbytes = values.nbytes + indices.nbytes
    stored = values.shape[0]
    return Spec(
        "tensorflow.sparse", values.dtype, values.device, shape, traits, nbytes, stored, "int64"
    )


def describe_slices(value: IndexedSlices) -> Spec:
    """Return the spec of an IndexedSlices."""
    name = "tensorflow.indexed_slices"
    values, indices = describe(value.values), describe(value.indices)
    traits = values.traits | indices.traits
    if value.dense_shape is None:
        traits |= {"shapeless", "unknown_shape"}
    else:
        traits |= describe(value.dense_shape).traits
    if traits - IMMUTABLE:
        return Spec(name, values.dtype, values.device, (0, *values.shape[1:]), traits)
    shape = _lengths(value.dense_shape)
    if shape[1:] != values.shape[1:] or len(indices.shape) != 1:
        traits |= _INVALID
    else:
        traits |= _index_traits(value.indices, shape[:1], values.device)
    nbytes, stored = values.nbytes + indices.nbytes, prod(values.shape)
    return Spec(name, values.dtype, values.device, shape, traits, nbytes, stored, indices.dtype)


def _lengths(shape: Tensor) -> tuple[int, ...]:
    """Return the lengths of axes that a tensor holds."""
    return tuple(view(shape).tolist())


def _index_traits(indices: Tensor, shape: tuple[int, ...], device: str) -> frozenset[str]:
    """Return whether indices are out of order or given twice, or outside the shape."""
    if device != "cpu":  # inspecting them would cost too much: report what may be as if it were
        return UNCOALESCED
    return inspect_once(_inspected, indices, shape, lambda: _inspect(view(indices), shape))


def _inspect(coords: NumpyArray, shape: tuple[int, ...]) -> frozenset[str]:
    import numpy as np

    coords = coords.reshape(len(coords), len(shape))
    if coords.size and (coords.min() < 0 or (coords >= np.array(shape)).any()):
        return _INVALID
    in_order = rising(coords.T).all() if shape else len(coords) < 2
    return EMPTY if in_order else UNCOALESCED


def memory(value: SparseTensor | IndexedSlices) -> tuple[tuple[int, int], ...]:
    """Return where the component tensors lie."""
    return (*dense.memory(value.values), *dense.memory(value.indices))


# ---------------------------------------------------------------------- components


def unpack(value: SparseTensor) -> Parts:
    """Return the values of a SparseTensor, and copies of its columns of coordinates."""
    shape = tuple(value.shape)
    columns = {f"indices_{axis}": _column(value.indices, axis) for axis in range(len(shape))}
    device = describe(value.indices).device  # a step may have made it: nobody has described it yet
    canonical = _index_traits(value.indices, shape, device) == EMPTY
    return Parts(shape, {"values": value.values, **columns}, {"canonical": canonical})


def _column(indices: Tensor, axis: int) -> Tensor:
    """Return a copy of one column of coordinates; TensorFlow has no views."""
    if _on_host(indices):
        return dense.from_numpy(view(indices)[:, axis])
    with eagerly(indices.backing_device):
        return indices[:, axis]


def _on_host(tensor: Tensor) -> bool:
    return describe(tensor).device == "cpu"


def pack(parts: Parts) -> SparseTensor:
    """Return a SparseTensor over given values; the coordinates are copied into one tensor."""
    columns = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    values = parts.arrays["values"]
    return sparse_tensor(_stack(columns, values.shape[0]), values, parts.shape)


def _stack(columns: list[Tensor], stored: int) -> Tensor:
    import tensorflow as tf

    if all(_on_host(column) for column in columns):
        return _from_columns([view(column) for column in columns], stored)
    with eagerly(columns[0].backing_device):
        return tf.stack(columns, axis=1)


def _from_columns(columns: Sequence[NumpyArray], stored: int) -> Tensor:
    """Return coordinates in the order in which TensorFlow has them, from a column for each axis."""
    import numpy as np

    coords = dense.aligned((stored, len(columns)), np.dtype(np.int64))
    for axis, column in enumerate(columns):
        coords[:, axis] = column
    return dense.put(coords)


def sparse_tensor(indices: Tensor, values: Tensor, shape: tuple[int, ...]) -> SparseTensor:
    """Return a SparseTensor of tensors, which are kept as they are."""
    import numpy as np
    import tensorflow as tf

    lengths = dense.from_numpy(np.array(shape, np.int64))
    with eagerly():
        return tf.SparseTensor(indices, values, lengths)


# ---------------------------------------------------------------------- within TensorFlow


def canonicalize(value: SparseTensor) -> SparseTensor:
    """Return a SparseTensor in order that holds every coordinate once; duplicates are summed."""
    import numpy as np

    coords, values = view(value.indices), view(value.values)
    order = np.lexsort(coords.T[::-1])  # stable, so that sums are in the order of storage
    coords, values = coords[order], values[order]
    first = np.ones(len(coords), bool)
    first[1:] = (coords[1:] != coords[:-1]).any(axis=1)
    summed = values[first]
    groups = np.cumsum(first) - 1
    with np.errstate(all="ignore"):
        np.add.at(summed, groups[~first], values[~first])
    shape = tuple(value.shape)
    return sparse_tensor(dense.from_numpy(coords[first]), dense.from_numpy(summed), shape)


def to_array(value: SparseTensor) -> NumpyArray:
    """Return the dense NumPy array; duplicates are summed in the order they are stored in."""
    import numpy as np

    return _scatter(np.zeros(tuple(value.shape), view(value.values).dtype), value)


def to_tensor(value: SparseTensor) -> Tensor:
    """Return the dense tensor; duplicates are summed in the order they are stored in."""
    return dense.put(_scatter(_zeros(tuple(value.shape), value.values), value))


def _zeros(shape: tuple[int, ...], values: Tensor) -> NumpyArray:
    """Return zeros of the dtype of some values, where TensorFlow can work on them."""
    out = dense.aligned(shape, view(values).dtype)
    out[...] = 0
    return out


def _scatter(out: NumpyArray, value: SparseTensor) -> NumpyArray:
    import numpy as np

    coords = view(value.indices)
    places = tuple(coords[:, axis] for axis in range(coords.shape[1]))
    distinct = "uncoalesced" not in describe_sparse(value).traits
    if not places:  # without axes there is one place, in which all elements lie
        places = (np.zeros(len(coords), np.intp),)
    _add(np.atleast_1d(out), places, view(value.values), distinct=distinct)
    return out


def _add(
    out: NumpyArray,
    places: NumpyArray | tuple[NumpyArray, ...],
    values: NumpyArray,
    *,
    distinct: bool,
) -> NumpyArray:
    """Add values to zeros at some places; where these are distinct, writing does the same."""
    import numpy as np

    if distinct:
        out[places] = values
    else:
        with np.errstate(all="ignore"):
            np.add.at(out, places, values)
    return out


def to_tensor_there(value: SparseTensor) -> Tensor:
    """Return the dense tensor on the same device; duplicates are summed in any order."""
    import tensorflow as tf

    with eagerly(value.values.backing_device):
        return tf.scatter_nd(value.indices, value.values, value.dense_shape)


def from_array(value: NumpyArray) -> SparseTensor:
    """Return the elements of a NumPy array that are not zero, as a SparseTensor."""
    import numpy as np

    places = np.nonzero(value != 0)
    values = dense.from_numpy(value[places])
    return sparse_tensor(_from_columns(places, len(places[0])), values, value.shape)


def from_tensor(value: Tensor) -> SparseTensor:
    """Return the elements of a tensor that are not zero, as a SparseTensor."""
    return from_array(view(value))


# ---------------------------------------------------------------------- indexed slices


def slices_to_array(value: IndexedSlices) -> NumpyArray:
    """Return the dense NumPy array; slices of one index are summed in their order."""
    import numpy as np

    out = np.zeros(_lengths(value.dense_shape), view(value.values).dtype)
    return _add_slices(out, value)


def slices_to_tensor(value: IndexedSlices) -> Tensor:
    """Return the dense tensor; slices of one index are summed in their order."""
    return dense.put(_add_slices(_zeros(_lengths(value.dense_shape), value.values), value))


def _add_slices(out: NumpyArray, value: IndexedSlices) -> NumpyArray:
    distinct = "uncoalesced" not in describe_slices(value).traits
    return _add(out, view(value.indices), view(value.values), distinct=distinct)


def slices_to_sparse(value: IndexedSlices) -> SparseTensor:
    """Return a SparseTensor of every element, zero or not; slices of one index are summed."""
    import numpy as np

    values = view(value.values)
    coords = dense.aligned((values.size, values.ndim), np.dtype(np.int64))
    by_axis = coords.T.reshape(values.ndim, *values.shape)
    grid: tuple[NumpyArray, ...] = np.indices(values.shape, sparse=True)
    for axis, places in enumerate(grid):
        by_axis[axis] = places
    by_axis[0] = view(value.indices).reshape(-1, *(1,) * (values.ndim - 1))
    flat = dense.from_numpy(values.reshape(-1))
    result = sparse_tensor(dense.put(coords), flat, _lengths(value.dense_shape))
    return canonicalize(result) if "uncoalesced" in describe_slices(value).traits else result
