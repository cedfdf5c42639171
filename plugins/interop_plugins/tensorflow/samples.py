"""Values to try conversions out: a variable, a coordinate given twice, slices of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.plugin import Declined

from .dense import from_numpy, view
from .describe import eagerly
from .sparse import sparse_tensor

if TYPE_CHECKING:
    from tensorflow import IndexedSlices, SparseTensor, Tensor, Variable


def stored(value: Tensor) -> SparseTensor:
    """Return the elements that are not zero, as TensorFlow finds them.

    Raises
    ------
    Declined
        TensorFlow has no kernel for the dtype.
    """
    import tensorflow as tf

    with eagerly("/CPU:0"):
        try:
            return tf.sparse.from_dense(value)
        except tf.errors.OpError as error:
            msg = f"TensorFlow finds no elements of {value.dtype.name}"
            raise Declined(msg) from error


def variable(value: Tensor) -> Variable:
    """Return a variable of the numbers of a tensor."""
    import tensorflow as tf

    with eagerly("/CPU:0"):
        return tf.Variable(value)


def twice(value: SparseTensor) -> SparseTensor:
    """Return a SparseTensor that holds its first coordinate twice, the second time with a zero."""
    import numpy as np

    coords, values = view(value.indices), view(value.values)
    if not len(values):
        msg = "a tensor that stores nothing cannot hold a coordinate twice"
        raise Declined(msg)
    indices = np.concatenate([coords, coords[:1]])
    stored = np.append(values, np.zeros(1, values.dtype))
    return sparse_tensor(from_numpy(indices), from_numpy(stored), tuple(value.shape))


def slices(value: Tensor) -> IndexedSlices:
    """Return a tensor as the slices along its first axis."""
    import numpy as np
    import tensorflow as tf

    if not value.shape.rank:
        msg = "a tensor without axes has no slices"
        raise Declined(msg)
    rows = from_numpy(np.arange(value.shape[0]))
    lengths = from_numpy(np.array(value.shape, np.int64))
    with eagerly():
        return tf.IndexedSlices(value, rows, lengths)
