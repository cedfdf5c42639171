"""Ragged tensors: rows of several lengths, as their values and the offsets of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.kit import check_offsets
from interop.plugin import Declined, Parts, Spec

from . import describe as tensors
from .dense import memory as memory_of_tensor

if TYPE_CHECKING:
    import tensorflow as tf


def describe(value: tf.RaggedTensor) -> Spec:
    """Return the spec of a ragged tensor, whose second axis is as long as its longest row.

    The offsets are read for that. Rows of one length are those of a dense tensor; others have the
    trait ``nested``.
    """
    dtype = tensors.dtype_name(value.dtype)
    if "traced" in tensors.describe(value.flat_values).traits:
        return Spec("tensorflow.ragged", dtype, "cpu", (0,), frozenset({"traced"}))
    values = _values(value)
    if values is None:
        shape = (0 if value.shape[0] is None else value.shape[0],)
        return Spec("tensorflow.ragged", dtype, "cpu", shape, frozenset({"lists_of_lists"}))
    spec = tensors.describe(values)
    offsets = value.row_splits.numpy()
    lengths = offsets[1:] - offsets[:-1]
    longest = int(lengths.max(initial=0))
    if len(lengths):
        ends = int(offsets[0]), int(offsets[-1])
        check_offsets("a RaggedTensor", ends, int(lengths.min()), spec.shape[0])
    traits, inner = spec.traits, spec.shape[1:]
    traits |= frozenset({"nested"} if (lengths != longest).any() else ())
    traits |= frozenset({"hybrid"} if inner else ())
    return spec._replace(
        format="tensorflow.ragged",
        shape=(len(lengths), longest, *inner),
        traits=traits,
        nbytes=spec.nbytes + offsets.nbytes,
        nnz=spec.shape[0],
        index_dtype=offsets.dtype.name,
    )


def _values(value: tf.RaggedTensor) -> tf.Tensor | None:
    """Return the values of all rows, or None if rows within them differ in length.

    Rows within them that are of one length count as vectors.
    """
    if not value.flat_values.shape.rank:
        return None
    if value.ragged_rank == 1:
        return value.values
    is_even = describe(value.values).traits.isdisjoint({"nested", "lists_of_lists"})
    return regular(value.values) if is_even else None


def memory(value: tf.RaggedTensor) -> tuple[tuple[int, int], ...]:
    """Return the addresses and the lengths of the values of all rows and of their offsets."""
    return memory_of_tensor(value.flat_values) + memory_of_tensor(value.row_splits)


def unpack(value: tf.RaggedTensor) -> Parts:
    """Return the values and the offsets of a ragged tensor."""
    return Parts(describe(value).shape, {"values": _values(value), "offsets": value.row_splits})


def pack(parts: Parts) -> tf.RaggedTensor:
    """Return a ragged tensor of values and offsets; TensorFlow itself checks the offsets."""
    import tensorflow as tf

    return tf.RaggedTensor.from_row_splits(parts.arrays["values"], parts.arrays["offsets"])


def regular(value: tf.RaggedTensor) -> Any:
    """Return rows of one length as a dense tensor over the same memory."""
    import tensorflow as tf

    return tf.reshape(value.flat_values, describe(value).shape)


def padded(value: tf.RaggedTensor) -> Any:
    """Return the rows one below the other in a new tensor, with zeros after the shorter ones."""
    return value.to_tensor()


def from_dense(value: Any) -> tf.RaggedTensor:
    """Return the rows of a dense tensor as a ragged one, over the same memory."""
    import tensorflow as tf

    rows, length = value.shape
    if length and not rows:
        msg = f"no row is left to have {length} elements"
        raise Declined(msg)
    splits = _splits(rows, length).astype("int32" if rows * length < 2**31 else "int64")
    return pack(Parts((), {"values": tf.reshape(value, [-1]), "offsets": splits}))


def sample(dense: Any) -> tf.RaggedTensor:
    """Return a ragged tensor with the rows of a matrix, to try conversions out."""
    import tensorflow as tf

    rows, length, *inner = dense.shape
    values = tf.reshape(dense, [rows * length, *inner])
    return pack(Parts((), {"values": values, "offsets": _splits(rows, length)}))


def variant(value: tf.RaggedTensor) -> tf.RaggedTensor:
    """Return a ragged tensor with the same numbers whose first row lacks an element."""
    offsets = value.row_splits.numpy().copy()
    if len(offsets) < 3 or offsets[1] < 1:
        msg = "rows differ in length only if there are two, and one is not empty"
        raise Declined(msg)
    offsets[1:] -= 1
    return pack(Parts((), {"values": value.values[1:], "offsets": offsets}))


def _splits(rows: int, length: int) -> Any:
    import numpy as np

    return np.arange(rows + 1) * length
