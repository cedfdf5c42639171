"""What users of the plugin rely on."""

from __future__ import annotations

import numpy as np
import pytest

import interop

paddle = pytest.importorskip("paddle")
sparse = pytest.importorskip("scipy.sparse")

MATRIX = [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]
DTYPES = ("bool", "uint8", "int64", "uint32", "float16", "float64", "complex64", "bfloat16")


@pytest.mark.parametrize("dtype", [*DTYPES, "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    """An array becomes a tensor of the same dtype, shape and memory, and an array of it again."""
    array = interop.convert(np.arange(np.prod(shape)).reshape(shape), to="numpy", dtype=dtype)
    result = interop.convert(array, to="paddle", copy=False)
    assert (type(result), result.dtype) == (paddle.Tensor, getattr(paddle, dtype))
    assert interop.spec(result) == interop.make_spec("paddle", dtype, shape=shape)
    assert not array.size or result.data_ptr() == array.ctypes.data
    back = interop.convert(result, to="numpy", copy=False)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, shape, array.tobytes())
    assert not array.size or back.ctypes.data == array.ctypes.data


def test_layouts_and_names() -> None:
    """Strides are handed over; the type, the module and the dtypes of Paddle are understood."""
    array = np.arange(6.0).reshape(2, 3)
    for target in (paddle, paddle.Tensor):
        assert interop.convert(array.T, to=target, copy=False).tolist() == array.T.tolist()
    tensor = paddle.to_tensor(array).transpose([1, 0])
    assert interop.spec(tensor).traits == {"noncontiguous", "fortran"}
    assert interop.convert(tensor, to="torch", copy=False).tolist() == array.T.tolist()
    assert interop.convert(array, to="torch", dtype=paddle.float32).dtype.itemsize == 4
    with pytest.raises(interop.errors.RefusedError, match="negative_strides"):
        interop.convert(array[::-1], to=paddle, copy=False)


def test_sixteen_bits_are_those_of_integers() -> None:
    """An array of uint16 does not become bfloat16, though Paddle writes both names alike."""
    tensor = interop.convert(np.array([1, 40_000], "uint16"), to=paddle)
    assert interop.spec(tensor).dtype == "uint16"
    assert interop.convert(tensor, to="torch", dtype="int64").tolist() == [1, 40_000]


def test_tensors_that_need_a_gradient_are_detached() -> None:
    """The first one that is seen, too; the tensor stays as it was, and shares its memory."""
    tensor = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert interop.spec(tensor).traits == {"grad"}
    plan = interop.plan(tensor * 1, to="numpy")
    assert plan.effects == {"detach"}
    result = interop.convert(tensor, to="numpy", copy=False)
    assert (result.ctypes.data, tensor.stop_gradient) == (tensor.data_ptr(), False)
    with pytest.raises(interop.errors.RefusedError, match="detach"):
        interop.convert(tensor, to="numpy", forbid="detach")


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64"])
def test_matrices_by_rows_share_all_their_memory(dtype: str) -> None:
    """CSR goes to SciPy and comes back with its three arrays."""
    matrix = sparse.csr_array(np.array(MATRIX, dtype))
    tensor = interop.convert(matrix, to="paddle.sparse_csr", copy=False)
    assert tensor.is_sparse_csr()
    assert tensor.to_dense().tolist() == matrix.toarray().tolist()
    back = interop.convert(tensor, to="scipy.csr", copy=False)
    for name in ("data", "indices", "indptr"):
        assert getattr(back, name).ctypes.data == getattr(matrix, name).ctypes.data
    assert (back.dtype, back.toarray().tolist()) == (dtype, matrix.toarray().tolist())


def test_coordinates_share_their_values() -> None:
    """COO of any number of axes goes there and back, stored twice or not; gradients are dropped."""
    indices = [[0, 1, 1, 0], [1, 0, 2, 1]]
    tensor = paddle.sparse.sparse_coo_tensor(indices, [1.0, 2.0, 3.0, 4.0], [2, 3])
    assert interop.spec(tensor).traits == {"uncoalesced"}
    result = interop.convert(tensor, to="scipy.coo", copy=False)
    assert result.data.ctypes.data == tensor.values().data_ptr()
    assert result.toarray().tolist() == [[0, 5, 0], [2, 0, 3]]
    assert tensor.coalesce().to_dense().tolist() == [[0, 5, 0], [2, 0, 3]]
    again = interop.convert(result, to="paddle.sparse_coo")
    assert again.values().data_ptr() == tensor.values().data_ptr()
    assert again.coalesce().to_dense().tolist() == [[0, 5, 0], [2, 0, 3]]
    cube = interop.convert(np.eye(2)[None], to="paddle.sparse_coo")
    assert cube.to_dense().tolist() == [[[1, 0], [0, 1]]]
    again.stop_gradient = False
    assert interop.plan(again, to="torch.sparse_coo").effects >= {"detach"}
    assert interop.convert(again, to="torch").tolist() == [[0, 5, 0], [2, 0, 3]]


def test_what_paddle_cannot_hold_is_refused() -> None:
    """A COO tensor without elements cannot be made, and values that are arrays are named."""
    with pytest.raises(interop.errors.RefusedError, match="stores no element"):
        interop.convert(np.zeros((2, 3)), to="paddle.sparse_coo")
    hybrid = paddle.sparse.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], [2, 2])
    with pytest.raises(interop.errors.UnknownValueError, match="its values are arrays"):
        interop.convert(hybrid, to="numpy")
