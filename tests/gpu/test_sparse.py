"""Sparse arrays on a CUDA device: components shared with torch, moved to SciPy, made dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop

DTYPES = ["bool", "float32", "float64", "complex64", "complex128"]


def matrix(dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Return a matrix with an empty row, an empty column and a full row."""
    dense = np.zeros((6, 5))
    dense[0, [1, 3]] = 1, 2
    dense[2] = 3, 4, 5, 0, 6
    dense[5, 0] = 7
    dense[:, 3] = 0
    return dense.astype(dtype)


def components(dtype: str, index: str) -> tuple[Any, Any, Any]:
    """Return values, columns and row pointers of the matrix."""
    dense = matrix(dtype)
    rows, columns = np.nonzero(dense)
    pointers = np.searchsorted(rows, np.arange(dense.shape[0] + 1))
    return dense[rows, columns], columns.astype(index), pointers.astype(index)


def torch_csr(torch: Any, dtype: str, index: str) -> Any:
    values, columns, pointers = (torch.from_numpy(a).cuda() for a in components(dtype, index))
    return torch.sparse_csr_tensor(pointers, columns, values, matrix().shape)


def cupy_csr(cupy: Any, dtype: str = "float32", index: str = "int32") -> Any:
    import cupyx.scipy.sparse

    arrays = tuple(cupy.asarray(a) for a in components(dtype, index))
    return cupyx.scipy.sparse.csr_array(arrays, shape=matrix().shape)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_csr_to_cupy(torch: Any, cupy: Any, dtype: str, index: str) -> None:
    """A CSR tensor and the cupyx array made from it share all three components."""
    tensor = torch_csr(torch, dtype, index)
    array = interop.convert(tensor, to="cupy.csr")
    assert array.data.data.ptr == tensor.values().data_ptr()
    assert array.indices.data.ptr == tensor.col_indices().data_ptr()
    assert array.indptr.data.ptr == tensor.crow_indices().data_ptr()
    assert (array.dtype, array.indices.dtype, array.shape) == (dtype, index, (6, 5))
    assert (array.toarray().get() == matrix(dtype)).all()


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy_csr_to_torch(torch: Any, cupy: Any, dtype: str, index: str) -> None:
    """A cupyx CSR array and the tensor made from it share all three components."""
    array = cupy_csr(cupy, dtype, index)
    tensor = interop.convert(array, to="torch.sparse_csr")
    assert tensor.layout == torch.sparse_csr
    assert tensor.values().data_ptr() == array.data.data.ptr
    assert tensor.col_indices().data_ptr() == array.indices.data.ptr
    assert tensor.crow_indices().data_ptr() == array.indptr.data.ptr
    assert tensor.col_indices().dtype == getattr(torch, index)
    assert (interop.convert(tensor, to="numpy") == matrix(dtype)).all()


def test_unsorted_is_left_alone(torch: Any, cupy: Any) -> None:
    """What is not sorted is sorted in a copy for torch; the user's buffers stay as they are."""
    import cupyx.scipy.sparse

    parts = [1.0, 2.0, 3.0], [2, 0, 2], [0, 3]
    arrays = tuple(cupy.asarray(p) for p in parts)
    array = cupyx.scipy.sparse.csr_array(arrays, shape=(1, 3))
    tensor = interop.convert(array, to="torch.sparse_csr")
    assert tensor.col_indices().tolist() == [0, 2]
    assert tensor.values().tolist() == [2.0, 4.0]
    assert array.indices.get().tolist() == [2, 0, 2]
    assert array.data.get().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_to_scipy_and_back(torch: Any, cupy: Any, layout: str, dtype: str) -> None:
    """A sparse array goes to SciPy and comes back by its components."""
    pytest.importorskip("scipy", reason="SciPy is not installed here")
    array = interop.convert(cupy_csr(cupy, dtype), to=f"cupy.{layout}")
    with interop.trace() as receipts:
        value = interop.convert(array, to=f"scipy.{layout}")
        back = interop.convert(value, to=f"cupy.{layout}")
    assert all("densify" not in receipt.effects for receipt in receipts)
    assert (value.toarray() == matrix(dtype)).all()
    assert back.format == layout
    assert (back.toarray().get() == matrix(dtype)).all()


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_dense_and_back(cupy: Any, layout: str) -> None:
    """A dense matrix becomes sparse and dense again on the device."""
    sparse = interop.convert(cupy.asarray(matrix()), to=f"cupy.{layout}")
    dense = interop.convert(sparse, to="cupy")
    assert dense.flags.c_contiguous
    assert (dense.get() == matrix()).all()


def test_dense_on_the_host(torch: Any, cupy: Any) -> None:
    """A sparse array or tensor on the device becomes a dense NumPy array."""
    assert (interop.convert(cupy_csr(cupy), to="numpy") == matrix()).all()
    tensor = torch_csr(torch, "float32", "int64")
    assert (interop.convert(tensor, to="numpy") == matrix()).all()


def test_vectors(cupy: Any) -> None:
    """A sparse array of one axis becomes COO, and dense."""
    import cupyx.scipy.sparse

    vector = cupyx.scipy.sparse.coo_array(cupy.asarray([0.0, 3.0, 0.0, 4.0])).tocsr()
    assert vector.shape == (4,)
    assert interop.convert(vector, to="cupy.coo").shape == (4,)
    assert interop.convert(vector, to="numpy").tolist() == [0, 3, 0, 4]


def test_diagonals(cupy: Any) -> None:
    """A DIA matrix becomes CSR, and dense."""
    import cupyx.scipy.sparse

    stored = cupy.asarray([[1.0, 2.0, 3.0], [0.0, 4.0, 5.0]])
    value = cupyx.scipy.sparse.dia_matrix((stored, cupy.asarray([0, 1])), shape=(3, 3))
    expected = [[1, 4, 0], [0, 2, 5], [0, 0, 3]]
    assert interop.convert(value, to="numpy").tolist() == expected


def test_moves_by_components(cupy: Any, second_device: str) -> None:
    """A sparse array moves to another device component by component."""
    array = interop.convert(cupy_csr(cupy), to="cupy.csr", device=second_device)
    assert {part.device.id for part in (array.data, array.indices, array.indptr)} == {1}
    assert (interop.convert(array, to="numpy") == matrix()).all()


JAX_PROGRAM = """
import interop, jax, numpy as np
from jax.experimental.sparse import BCOO, BCSR
if jax.default_backend() != "gpu":
    print("no device")
    raise SystemExit
X = np.array([[0, 2, 0], [1, 0, 3]], "float32")
data = jax.numpy.array([2, 1, 3, 9], "float32")
coordinates = jax.numpy.array([[0, 1], [1, 0], [1, 2], [2, 3]], "int32")
indices, pointers = (jax.numpy.array(a, "int32") for a in ([1, 0, 2, 0], [0, 1, 3]))
padded = BCOO((data, coordinates), shape=X.shape), BCSR((data, indices, pointers), shape=X.shape)
for value in padded:
    assert "padded" in interop.spec(value).traits
    for to in ("numpy", "scipy.csr", "jax", "torch", "torch.sparse_csr", "cupy", "cupy.csr"):
        result = interop.convert(value, to)
        device = "cpu" if to in ("numpy", "scipy.csr") else "cuda:0"
        assert interop.spec(result).device == device, to
        assert (interop.convert(result, "numpy") == X).all(), to
        if to == "torch.sparse_csr":
            back = interop.convert(result, "jax.bcsr")
            spec = interop.spec(back)
            assert spec.device == "cuda:0" and "padded" not in spec.traits, spec
for shape in ((0,), (0, 3), (3, 0)):
    for device in (jax.devices("cpu")[0], jax.devices("gpu")[0]):
        empty = jax.device_put(np.zeros(shape, "float32"), device)
        for to in ("jax.bcoo", "jax.bcsr")[: len(shape)]:
            dense = interop.convert(interop.convert(empty, to), "jax")
            assert dense.devices() == {device}, (shape, to)
print("left")
"""


def test_sparse_arrays_of_jax_leave_the_device_without_their_padding(
    in_process: Callable[..., str],
) -> None:
    """BCOO and BCSR arrays reach every other format, and empty ones stay where they are."""
    pytest.importorskip("jax")
    assert in_process(JAX_PROGRAM) == "left"


QUIET = """
import warnings
import cupy, torch
import interop

deprecated = cupy.cuda.ExternalStream(cupy.cuda.Stream.null.ptr)
side = cupy.cuda.ExternalStream(torch.cuda.Stream().cuda_stream)
dense = cupy.eye(6)
for message in ("Sparse ", "ExternalStream is deprecated"):
    warnings.filterwarnings("error", message)
for stream in (deprecated, side):
    for layout in ("csr", "csc", "coo"):
        array = interop.convert(dense, to=f"cupy.{layout}", stream=stream)
        tensor = interop.convert(array, to=f"torch.sparse_{layout}", stream=stream)
        assert interop.convert(tensor, to="torch", stream=stream).sum().item() == 6
        assert interop.convert(tensor, to="cupy", stream=stream).get().sum() == 6
print("quiet")
"""


def test_nothing_is_warned_of(in_process: Callable[..., str]) -> None:
    """No call of interop's own is one that torch or CuPy warns of."""
    assert in_process(QUIET) == "quiet"
