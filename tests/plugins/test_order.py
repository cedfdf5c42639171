"""Copies and casts keep the order in which the elements of a value lie."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

import interop
from tests.cases import together

#: One that NumPy and torch copy by their own short ways, and one that is divided and cast in blocks.
SHAPES = [(3, 4, 5), (20, 130, 850)]


def arrays(shape):
    """Yield an array in each order of its axes, one with gaps, and one that runs backwards."""
    block = np.arange(np.prod(shape), dtype="float32")
    for axes in permutations(range(3)):
        yield block.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    wide = np.zeros((2 * shape[0], *shape[1:]), "float32")
    wide[::2] = block.reshape(shape)
    yield wide[::2].transpose(2, 0, 1)


def strides(value):
    """Return the distances between neighbours, in bytes."""
    if isinstance(value, np.ndarray):
        return value.strides
    return tuple(step * value.itemsize for step in value.stride())


@together("shape", SHAPES)
@together("to", ["numpy", "torch"])
@pytest.mark.parametrize("source", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float64"}], ids=str)
def test_a_copy_lies_as_its_source(convert, keywords, source, to, shape):
    """Its strides are those of NumPy's own copy in the order of memory, the second time too."""
    for array in arrays(shape):
        expected = array.astype(keywords.get("dtype", "float32"), order="K", copy=True)
        result = convert(source(array), to=to, **keywords)
        assert strides(result) == expected.strides
        assert np.array_equal(np.asarray(result), expected)
        assert not np.shares_memory(np.asarray(result), array)


@together("to", ["numpy", "torch"])
@together("keywords", [{"copy": True}, {"dtype": "float64"}])
def test_repeated_elements_are_written_in_c_order(keywords, to):
    """Elements that lie in one place have no order to keep."""
    repeated = np.broadcast_to(np.arange(3.0, dtype="float32")[:, None], (3, 4))
    result = interop.convert(repeated, to=to, **keywords)
    assert np.asarray(result).flags.c_contiguous
    assert np.array_equal(np.asarray(result), repeated)
