"""What users of the plugin rely on."""

from __future__ import annotations

import numpy as np
import pytest

import interop

ust = pytest.importorskip("nvmath.sparse.ust")
sparse, torch = pytest.importorskip("scipy.sparse"), pytest.importorskip("torch")


def matrix(layout: str, dtype: str = "float64") -> sparse.sparray:
    """Return a sparse array of four rows and six columns."""
    dense = np.arange(24).reshape(4, 6) % 5 * (np.arange(24).reshape(4, 6) % 3 == 0)
    return sparse.csr_array(dense.astype(dtype)).asformat(layout)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_a_tensor_is_what_it_views(layout: str, dtype: str) -> None:
    """Its description is that of the matrix in it, whose numbers leave in the same memory."""
    value = matrix(layout, dtype)
    tensor = ust.Tensor.from_package(value)
    spec = interop.spec(tensor)
    assert (spec.format, spec.wrapped) == ("nvmath.ust", f"scipy.{layout}")
    assert (spec.dtype, spec.shape, spec.nnz) == (dtype, (4, 6), value.nnz)
    result = interop.convert(tensor, to=f"torch.sparse_{layout}", copy=False)
    assert result.values().data_ptr() == value.data.ctypes.data
    assert np.array_equal(result.to_dense().numpy(), value.toarray())


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_matrices_become_tensors_over_their_memory(layout: str) -> None:
    """SciPy's and torch's share their values; another layout is written anew, with its numbers."""
    value = matrix(layout)
    hers = getattr(torch, f"sparse_{layout}_tensor")(
        *map(torch.from_numpy, (value.indptr, value.indices, value.data)), size=value.shape
    )
    for source in (value, hers):
        tensor = interop.convert(source, to="nvmath.ust", copy=False)
        assert isinstance(tensor, ust.Tensor)
        assert (
            interop.convert(tensor, to=f"scipy.{layout}").data.ctypes.data == value.data.ctypes.data
        )
    scattered = interop.convert(matrix("coo"), to="nvmath.ust")
    assert np.array_equal(interop.convert(scattered, to="scipy.coo").toarray(), value.toarray())


def test_what_nvmath_does_not_have_is_refused() -> None:
    """A matrix without elements is refused in nvmath's words."""
    with pytest.raises(interop.errors.RefusedError, match="unsupported or invalid"):
        interop.convert(sparse.csr_array((0, 3)), to="nvmath.ust")
