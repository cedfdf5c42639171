"""Components of sparse arrays: what specs count, and what libraries share of one another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.values import numpy_dtype

#: Two blocks, so that blocks of more than one element are stored.
DENSE = np.array([[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8]])


def compressed(value: Any) -> list[Any]:
    return [value.data, value.indices, value.indptr]


def rows(value: Any) -> list[Any]:
    return [value.values(), value.col_indices(), value.crow_indices()]


def columns(value: Any) -> list[Any]:
    return [value.values(), value.row_indices(), value.ccol_indices()]


#: The components of each format, by its library's own means: the elements, and then indices.
COMPONENTS: dict[str, Callable[[Any], list[Any]]] = {
    "scipy.coo": lambda x: [x.data, *x.coords],
    **{f"scipy.{layout}": compressed for layout in ("csr", "csc", "bsr")},
    "scipy.dia": lambda x: [x.data, x.offsets],
    "sparse.coo": lambda x: [x.data, x.coords],
    "sparse.gcxs.csr": compressed,
    "sparse.gcxs.csc": compressed,
    "torch.sparse_coo": lambda x: [x._values(), x._indices()],
    **{f"torch.sparse_{layout}": rows for layout in ("csr", "bsr")},
    **{f"torch.sparse_{layout}": columns for layout in ("csc", "bsc")},
    "jax.bcoo": lambda x: [x.data, x.indices],
    "jax.bcsr": compressed,
    "tensorflow.sparse": lambda x: [x.values, x.indices],
}


pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")


def marked(rows: Iterable[Any]) -> list[Any]:
    """Return cases; those that name TensorFlow need it."""
    mark = pytest.mark.extra("tensorflow")
    return [pytest.param(*row, marks=[mark] * ("tensorflow" in row[0])) for row in rows]


@pytest.mark.parametrize("name", marked((name,) for name in COMPONENTS))
@together("dtype", ["bool", "int8", "float32", "complex64"])
def test_the_spec_of_a_sparse_array_counts_its_components(name: str, dtype: str) -> None:
    """The spec has dtype and shape, and the number, index dtype and bytes of what is stored."""
    value = interop.convert(DENSE.astype(numpy_dtype(dtype)), to=name)
    elements, *indices = arrays = COMPONENTS[name](value)
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape, spec.device) == (name, dtype, (4, 4), "cpu")
    assert spec.nnz == np.prod(elements.shape) if name != "scipy.dia" else value.nnz
    assert spec.index_dtype == str(np.asarray(indices[0]).dtype)
    assert spec.nbytes == sum(np.asarray(array).nbytes for array in arrays)
    assert spec.traits == ({"immutable"} if name[:3] in ("jax", "ten") else set())
    assert interop.convert(value, to=name) is value


#: By source and target, how many components of the result lie in those of the source.
SHARED = {
    **{(f"scipy.{x}", f"torch.sparse_{x}"): 3 for x in ("csr", "csc", "bsr")},
    **{(f"torch.sparse_{x}", f"scipy.{x}"): 3 for x in ("csr", "csc", "bsr")},
    **{(f"sparse.gcxs.{x}", f"scipy.{x}"): 3 for x in ("csr", "csc")},
    **{(f"scipy.{x}", f"sparse.gcxs.{x}"): 3 for x in ("csr", "csc")},
    **{(f"sparse.gcxs.{x}", f"torch.sparse_{x}"): 3 for x in ("csr", "csc")},
    **{(f"torch.sparse_{x}", f"sparse.gcxs.{x}"): 3 for x in ("csr", "csc")},
    ("jax.bcsr", "scipy.csr"): 3,
    ("jax.bcsr", "torch.sparse_csr"): 3,
    # SciPy has an array for each axis, and the others have one for all axes
    ("torch.sparse_coo", "scipy.coo"): 3,
    ("sparse.coo", "scipy.coo"): 3,
    ("scipy.coo", "torch.sparse_coo"): 1,
    ("scipy.coo", "sparse.coo"): 1,
    ("torch.sparse_coo", "sparse.coo"): 2,
    ("sparse.coo", "torch.sparse_coo"): 2,
    ("jax.bcoo", "jax.bcsr"): 1,
    ("jax.bcsr", "jax.bcoo"): 1,
    ("tensorflow.sparse", "scipy.coo"): 1,
    ("tensorflow.sparse", "torch.sparse_coo"): 1,
}


@pytest.mark.parametrize(
    ("source", "target", "count"), marked((*pair, count) for pair, count in SHARED.items())
)
@together("index", ["int32", "int64"])
def test_libraries_share_the_components_of_sparse_arrays(
    source: str, target: str, count: int, index: str
) -> None:
    """All that both libraries have in one form is shared, indices as they are, or copies refused."""
    value = interop.convert(DENSE.astype("float32"), to=source)
    if source[-3:] in ("csr", "csc", "bsr"):
        lines = interop.convert(DENSE.astype("float32"), to=f"scipy.{source[-3:]}")
        lines.indices, lines.indptr = lines.indices.astype(index), lines.indptr.astype(index)
        value = interop.convert(lines, to=source)
    result = interop.convert(value, to=target)
    given, arrays = (
        [np.asarray(array) for array in COMPONENTS[name](x)]
        for name, x in ((source, value), (target, result))
    )
    assert sum(any(np.shares_memory(a, b) for b in given) for a in arrays) == count
    assert np.array_equal(interop.convert(result, to="numpy"), DENSE)
    if count == len(arrays):
        assert {str(array.dtype) for array in arrays[1:]} == {str(given[1].dtype)}
        assert interop.spec(interop.convert(value, to=target, copy=False)).format == target
    else:
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, copy=False)
