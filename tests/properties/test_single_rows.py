"""Single rows: where an axis has one element, its stride may be any, and nobody may step by it.

Libraries call such memory contiguous whatever the stride. torch's kernels for sparse tensors take
the stride for the length of a row all the same, and end the process, or not even that.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

#: Values that hold one row of two numbers, and values that hold one number.
ROWS = (
    "row",
    "row.reshape(1, 1, 2)",
    "torch.from_numpy(row)",
    "pandas.DataFrame(row, copy=False)",
    "memoryview(row)",
    "torch.sparse_coo_tensor([[1]], torch.from_numpy(row), (4, 2))",
    "torch.sparse_csr_tensor([0, 0, 1], [2], torch.from_numpy(row), (2, 4, 2))",
)
NUMBERS = (
    "one",
    "one[::-1]",
    "torch.from_numpy(one)",
    "torch.sparse_coo_tensor([[0]], torch.from_numpy(one), (4,))",
    "torch.sparse_csr_tensor([0, 0, 1], [2], torch.from_numpy(one), (2, 4))",
    "torch.sparse_csc_tensor([0, 0, 1], [1], torch.from_numpy(one), (2, 2))",
    "over(scipy.sparse.coo_array(([1], ([1], [2])), (2, 4)))",
    "over(scipy.sparse.csr_array(([1], ([1], [2])), (2, 4)))",
    "over(scipy.sparse.csc_array(([1], ([1], [2])), (2, 4)))",
    "over(sparse.COO([[1], [2]], [1], (2, 4)))",
)
TARGETS = (
    "numpy torch jax tensorflow mlx pandas polars pyarrow python torch.sparse_coo torch.sparse_csr "
    "scipy.coo scipy.csr sparse.coo jax.bcoo jax.bcsr tensorflow.sparse"
).split()

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import numpy as np, pandas, scipy.sparse, sparse, torch
import interop

wide = np.arange(1, 1 + 64 * 2).reshape(1, 64, 2).astype({dtype!r})
row, one = wide[:, 3], wide[:, 3, 0]
assert row.strides[0] == wide.strides[0] and row.flags.c_contiguous

def over(array):
    array.data = one
    return array

def check(source, count):
    value = eval(source)
    first = interop.convert(value, to="numpy", copy=True)
    assert np.count_nonzero(first) == count, first
    for target in {targets!r}:
        for words in ({{}}, {{"copy": True}}, {{"dtype": {wider!r}, "allow": "narrow"}}) * 2:
            try:
                result = interop.convert(value, target, **words)
            except interop.errors.RefusedError:
                continue
            numbers = np.asarray(interop.convert(result, to="numpy")).reshape(first.shape)
            assert np.array_equal(numbers, first), (source, target, words, numbers)
    out = np.zeros(first.shape, first.dtype)
    assert np.array_equal(interop.convert(value, out=out), first), source

for sources, count in (({rows!r}, 2), ({numbers!r}, 1)):
    for source in sources:
        print(source, flush=True)  # the last line names the one that ends the process
        check(source, count)
print("done")
"""


@pytest.mark.slow
@pytest.mark.extra("tensorflow")
@pytest.mark.parametrize(("dtype", "wider"), [("float32", "float64"), ("complex64", "complex128")])
def test_a_row_is_no_longer_than_it_is(
    dtype: str, wider: str, in_subprocess: Callable[..., str]
) -> None:
    """To every target, through every route, goes what the row holds and nothing beside it."""
    program = PROGRAM.format(dtype=dtype, wider=wider, targets=TARGETS, rows=ROWS, numbers=NUMBERS)
    assert in_subprocess(program).endswith("done\n")
