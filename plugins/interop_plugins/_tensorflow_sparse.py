"""SparseTensor and IndexedSlices: what they are, apart and put together.

Neither says whether its indices are in order, distinct, or inside of the shape, so on the host
they are looked through, once for each tensor of indices, since tensors never change. The work is
left to NumPy, because an operation of TensorFlow's inside of a ``tf.function`` is only noted down.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any
from weakref import ref

from interop.plugin import Declined, Parts, Spec

from . import _tensorflow_dense as dense
from . import _tensorflow_describe as known

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "canonicalize",
    "describe",
    "describe_slices",
    "from_array",
    "from_tensor",
    "memory",
    "pack",
    "sample_slices",
    "slices_to_array",
    "slices_to_sparse",
    "slices_to_tensor",
    "to_array",
    "to_tensor",
    "to_tensor_there",
    "twice",
    "unpack",
]

_NONE: frozenset[str] = frozenset()
_UNCOALESCED, _INVALID = frozenset({"uncoalesced"}), frozenset({"invalid_indices"})

#: Of each tensor of indices looked through, for a shape: itself, and the traits that were found.
_looked_through: dict[tuple[int, tuple[int, ...]], tuple[ref[Any], frozenset[str]]] = {}


def describe(value: Any) -> Spec:
    """Return the spec of a SparseTensor."""
    values, indices = known.describe(value.values), known.describe(value.indices)
    traits = values.traits | indices.traits | known.describe(value.dense_shape).traits
    if traits - {"immutable"}:
        return Spec("tensorflow.sparse", values.dtype, values.device, (), traits)
    shape = tuple(value.shape)
    traits |= _index_traits(value.indices, shape, values.device)
    nbytes = values.nbytes + indices.nbytes
    stored = values.shape[0]
    return Spec(
        "tensorflow.sparse", values.dtype, values.device, shape, traits, nbytes, stored, "int64"
    )


def describe_slices(value: Any) -> Spec:
    """Return the spec of an IndexedSlices."""
    name = "tensorflow.indexed_slices"
    values, indices = known.describe(value.values), known.describe(value.indices)
    traits = values.traits | indices.traits
    if value.dense_shape is None:
        traits |= {"shapeless", "unknown_shape"}
    else:
        traits |= known.describe(value.dense_shape).traits
    if traits - {"immutable"}:
        return Spec(name, values.dtype, values.device, (0, *values.shape[1:]), traits)
    shape = _told(value.dense_shape)
    if shape[1:] != values.shape[1:] or len(indices.shape) != 1:
        traits |= _INVALID
    else:
        traits |= _index_traits(value.indices, shape[:1], values.device)
    nbytes, stored = values.nbytes + indices.nbytes, prod(values.shape)
    return Spec(name, values.dtype, values.device, shape, traits, nbytes, stored, indices.dtype)


def _told(shape: Any) -> tuple[int, ...]:
    """Return the lengths that a tensor of lengths holds."""
    return tuple(dense.view(shape).tolist())


def _index_traits(indices: Any, shape: tuple[int, ...], device: str) -> frozenset[str]:
    """Return whether indices are out of order or given twice, or outside of the shape."""
    if device != "cpu":  # not worth a look: what may be is reported as if it were
        return _UNCOALESCED
    key = (id(indices), shape)
    before = _looked_through.get(key)
    if before is not None and before[0]() is indices:
        return before[1]
    found = _look(dense.view(indices), shape)
    _looked_through[key] = (ref(indices, lambda _: _looked_through.pop(key, None)), found)
    return found


def _look(coords: Array, shape: tuple[int, ...]) -> frozenset[str]:
    import numpy as np

    coords = coords.reshape(len(coords), len(shape))
    if coords.size and (coords.min() < 0 or (coords >= np.array(shape)).any()):
        return _INVALID
    rising = np.zeros(max(len(coords) - 1, 0), bool)
    for axis in reversed(range(len(shape))):
        one, other = coords[:-1, axis], coords[1:, axis]
        rising = (other > one) | ((other == one) & rising)
    return _NONE if rising.all() else _UNCOALESCED


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return where the component tensors lie."""
    return (*dense.memory(value.values), *dense.memory(value.indices))


# ---------------------------------------------------------------------- components


def unpack(value: Any) -> Parts:
    """Return the values of a SparseTensor, and copies of its columns of coordinates."""
    shape = tuple(value.shape)
    columns = {f"indices_{axis}": _column(value.indices, axis) for axis in range(len(shape))}
    seen = _looked_through.get((id(value.indices), shape))
    canonical = seen is not None and seen[0]() is value.indices and not seen[1]
    return Parts(shape, {"values": value.values, **columns}, {"canonical": canonical})


def _column(indices: Any, axis: int) -> Any:
    """Return one column of coordinates, of which TensorFlow has no views."""
    if _on_host(indices):
        return dense.from_numpy(dense.view(indices)[:, axis])
    with known.eagerly(indices.backing_device):
        return indices[:, axis]


def _on_host(tensor: Any) -> bool:
    return known.describe(tensor).device == "cpu"


def pack(parts: Parts) -> Any:
    """Return a SparseTensor over given values; the coordinates are copied into one tensor."""
    columns = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    return _made(_stacked(columns), parts.arrays["values"], parts.shape)


def _stacked(columns: list[Any]) -> Any:
    import numpy as np
    import tensorflow as tf

    if not all(_on_host(column) for column in columns):
        with known.eagerly(columns[0].backing_device):
            return tf.stack(columns, axis=1)
    seen = [dense.view(column) for column in columns]
    out = dense.aligned((len(seen[0]), len(seen)), np.dtype(np.int64))
    for axis, column in enumerate(seen):
        out[:, axis] = column
    return dense.put(out)


def _made(indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """Return a SparseTensor of tensors, which are kept as they are."""
    import numpy as np
    import tensorflow as tf

    lengths = dense.from_numpy(np.array(shape, np.int64))
    with known.eagerly():
        return tf.SparseTensor(indices, values, lengths)


# ---------------------------------------------------------------------- within TensorFlow


def canonicalize(value: Any) -> Any:
    """Return a SparseTensor in order that holds every coordinate once; duplicates are summed."""
    import numpy as np

    coords, values = dense.view(value.indices), dense.view(value.values)
    order = np.lexsort(coords.T[::-1])  # stable, so that sums are in the order of storage
    coords, values = coords[order], values[order]
    first = np.ones(len(coords), bool)
    first[1:] = (coords[1:] != coords[:-1]).any(axis=1)
    summed = values[first]
    groups = np.cumsum(first) - 1
    with np.errstate(all="ignore"):
        np.add.at(summed, groups[~first], values[~first])
    shape = tuple(value.shape)
    return _made(dense.from_numpy(coords[first]), dense.from_numpy(summed), shape)


def to_array(value: Any) -> Array:
    """Return the dense NumPy array; duplicates are summed in the order they are stored in."""
    import numpy as np

    out = np.zeros(tuple(value.shape), dense.view(value.values).dtype)
    return _scattered(out, value)


def to_tensor(value: Any) -> Any:
    """Return the dense tensor; duplicates are summed in the order they are stored in."""
    return dense.put(_scattered(_zeros(tuple(value.shape), value.values), value))


def _zeros(shape: tuple[int, ...], values: Any) -> Array:
    out = dense.aligned(shape, dense.view(values).dtype)
    out[...] = 0
    return out


def _scattered(out: Array, value: Any) -> Array:
    coords = dense.view(value.indices)
    places = tuple(coords[:, axis] for axis in range(coords.shape[1]))
    distinct = "uncoalesced" not in describe(value).traits
    return _added(out, places, dense.view(value.values), distinct=distinct)


def _added(out: Array, places: Any, values: Array, *, distinct: bool) -> Array:
    import numpy as np

    if distinct:
        out[places] = values
    else:
        with np.errstate(all="ignore"):
            np.add.at(out, places, values)
    return out


def to_tensor_there(value: Any) -> Any:
    """Return the dense tensor on the same device; duplicates are summed in any order."""
    import tensorflow as tf

    with known.eagerly(value.values.backing_device):
        return tf.scatter_nd(value.indices, value.values, value.dense_shape)


def from_array(value: Array) -> Any:
    """Return the elements of a NumPy array that are not zero, as a SparseTensor."""
    import numpy as np

    places = np.nonzero(value != 0)
    coords = dense.aligned((len(places[0]), value.ndim), np.dtype(np.int64))
    for axis, column in enumerate(places):
        coords[:, axis] = column
    return _made(dense.put(coords), dense.from_numpy(value[places]), value.shape)


def from_tensor(value: Any) -> Any:
    """Return the elements of a tensor that are not zero, as a SparseTensor."""
    return from_array(dense.view(value))


def twice(value: Any) -> Any:
    """Return a SparseTensor that holds its first coordinate twice, the second time with a zero."""
    import numpy as np

    coords, values = dense.view(value.indices), dense.view(value.values)
    if not len(values):
        msg = "a tensor that stores nothing cannot hold a coordinate twice"
        raise Declined(msg)
    places = np.concatenate([coords, coords[:1]])
    stored = np.append(values, np.zeros(1, values.dtype))
    return _made(dense.from_numpy(places), dense.from_numpy(stored), tuple(value.shape))


# ---------------------------------------------------------------------- indexed slices


def slices_to_array(value: Any) -> Array:
    """Return the dense NumPy array; slices of one index are summed in their order."""
    import numpy as np

    out = np.zeros(_told(value.dense_shape), dense.view(value.values).dtype)
    return _slices_added(out, value)


def slices_to_tensor(value: Any) -> Any:
    """Return the dense tensor; slices of one index are summed in their order."""
    return dense.put(_slices_added(_zeros(_told(value.dense_shape), value.values), value))


def _slices_added(out: Array, value: Any) -> Array:
    distinct = "uncoalesced" not in describe_slices(value).traits
    return _added(out, dense.view(value.indices), dense.view(value.values), distinct=distinct)


def slices_to_sparse(value: Any) -> Any:
    """Return the slices as a SparseTensor that stores every element of theirs, zero or not."""
    import numpy as np

    values = dense.view(value.values)
    coords = dense.aligned((values.size, values.ndim), np.dtype(np.int64))
    by_axis = coords.T.reshape(values.ndim, *values.shape)
    grid: tuple[Array, ...] = np.indices(values.shape, sparse=True)
    for axis, places in enumerate(grid):
        by_axis[axis] = places
    by_axis[0] = dense.view(value.indices).reshape(-1, *(1,) * (values.ndim - 1))
    flat = dense.from_numpy(values.reshape(-1))
    return _made(dense.put(coords), flat, _told(value.dense_shape))


def sample_slices(value: Any) -> Any:
    """Return a tensor as the slices along its first axis: to try conversions out."""
    import numpy as np
    import tensorflow as tf

    if not value.shape.rank:
        msg = "a tensor without axes has no slices"
        raise Declined(msg)
    rows = dense.from_numpy(np.arange(value.shape[0]))
    lengths = dense.from_numpy(np.array(value.shape, np.int64))
    with known.eagerly():
        return tf.IndexedSlices(value, rows, lengths)
