"""Numbers that frameworks lose in sparse arrays: infinities, the least ones, dtypes without a zero."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked
from tests.properties.readers import FORMATS, dtype_of, read, same

#: The number of codes of each dtype narrower than 32 bits that ml_dtypes has, and NumPy's float16.
CODES = {
    **dict.fromkeys(("int2", "uint2"), 4),
    **dict.fromkeys(("int4", "uint4", "float4_e2m1fn"), 16),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn"), 64),
    **dict.fromkeys(
        (
            *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
            *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
        ),
        256,
    ),
    **dict.fromkeys(("bfloat16", "float16"), 65536),
}

_INF, _NAN = float("inf"), float("nan")
SPECIAL = [
    complex(_NAN, 0.0),
    complex(_INF, 0.0),
    complex(0.0, _INF),
    complex(-_INF, 2.0),
    complex(3.0, _NAN),
    complex(0.0, -_INF),
    complex(1.5e-45, 0.0),  # in complex64 the least number, which XLA takes for zero when it adds
    complex(0.0, -1.5e-45),
]
SPARSE = [
    declared.name
    for declared in interop.formats()
    if declared.name in FORMATS
    and declared.format.is_sparse
    and "complex64" in declared.format.dtypes
]


def _array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    array = np.zeros(shape, dtype)
    flat = array.reshape(-1)
    places = range(1, flat.size, 2)
    for place, number in zip(places, SPECIAL, strict=False):
        flat[place] = number
    return array


@pytest.mark.parametrize("to", ["numpy", "torch"])
@pytest.mark.parametrize("name", marked(SPARSE))
def test_each_part_survives_a_sparse_format(name: str, to: str) -> None:
    """There and back, matrices and batches of them: no infinity becomes a NaN."""
    came_back = 0
    for dtype in ("complex64", "complex128"):
        for shape in ((4, 4), (2, 4, 4), (1, 2, 1), (12,)):
            array = _array(dtype, shape)
            try:
                stored = interop.convert(array, to=name)
                result = np.asarray(interop.convert(stored, to=to))
            except RefusedError:
                continue  # it has no such dtype, or not as many axes
            came_back += 1
            parts = [part.view(part.real.dtype) for part in (array, result)]
            assert np.array_equal(*parts, equal_nan=True), (dtype, shape)
    # Nothing is made into slices but by TensorFlow.
    assert came_back or name == "tensorflow.indexed_slices"


def _sparse(layout: str, numbers: torch.Tensor) -> torch.Tensor:
    """Return numbers along the diagonal of a matrix, of a batch, or of blocks of two numbers."""
    count = len(numbers)
    along, ends = torch.arange(count), torch.arange(count + 1)
    if layout == "coo":
        return torch.sparse_coo_tensor(torch.stack([along, along]), numbers, (count, count))
    if layout == "duplicates":
        twice = torch.cat([torch.stack([along, along])] * 2, 1)
        return torch.sparse_coo_tensor(twice, torch.cat([numbers, numbers]), (count, count))
    if layout == "hybrid":
        pairs = numbers.reshape(-1, 2)
        return torch.sparse_coo_tensor(along[None, : len(pairs)], pairs, pairs.shape)
    make = {"csr": torch.sparse_csr_tensor, "csc": torch.sparse_csc_tensor}[layout[:3]]
    if layout.endswith("batch"):
        one = torch.ones(count, 1, dtype=torch.int64)
        pointers = torch.tensor([[0, 1]]).expand(count, 2)
        return make(pointers, one * 0, numbers[:, None], (count, 1, 1))
    return make(ends, along, numbers, (count, count))


LAYOUTS = ["coo", "duplicates", "hybrid", "csr", "csc", "csr batch", "csc batch"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grad", [False, True])
def test_torchs_layouts_become_dense(layout: str, grad: bool) -> None:
    """Duplicates, dense axes, batches and graphs included, where torch itself gives NaN."""
    numbers = torch.tensor(SPECIAL, dtype=torch.complex128)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        value = _sparse(layout, numbers)
    if grad:
        value.requires_grad_()
    expected = np.zeros(value.shape, "complex128")  # torch's own sums have NaN in them
    for place, number in enumerate(numbers.numpy()):
        if layout == "hybrid":
            expected[place // 2, place % 2] = number
        elif layout.endswith("batch"):
            expected[place, 0, 0] = number
        else:
            expected[place, place] = number + (number if layout == "duplicates" else 0)
    result = interop.convert(value, to="torch")
    parts = [array.view("float64") for array in (result.detach().numpy(), expected)]
    assert np.array_equal(*parts, equal_nan=True)
    if grad and layout in ("coo", "duplicates", "hybrid"):
        assert result.requires_grad


@pytest.mark.parametrize("layout", ["coo", "duplicates", "hybrid", "csr"])  # torch has no others
def test_finite_numbers_keep_their_graph(layout: str) -> None:
    """The gradient of every stored number is that of torch's own way."""
    gradients = []
    for dense in (lambda value: value.to_dense(), lambda value: interop.convert(value, to="torch")):
        numbers = torch.tensor([1 + 2j, 3 - 1j, 0.5j, 2 + 0j], dtype=torch.complex128)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse")
            value = _sparse(layout, numbers).requires_grad_()
        (dense(value) * (2 - 1j)).abs().sum().backward()
        assert value.grad is not None
        gradients.append(value.grad.to_dense())
    assert torch.equal(*gradients)


@pytest.mark.parametrize(
    "to", marked(["sparse.coo", "scipy.csr", "torch.sparse_csr", "tensorflow.sparse"])
)
@pytest.mark.parametrize("grad", [False, True])
def test_duplicates_are_summed_part_by_part(grad: bool, to: str) -> None:
    """Wherever a tensor of duplicates goes, the sums are those of NumPy."""
    numbers = torch.tensor(SPECIAL, dtype=torch.complex128)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        value = _sparse("duplicates", numbers)
    if grad:
        value.requires_grad_()
    result = interop.convert(interop.convert(value, to=to), to="numpy")
    expected = numbers.numpy() + numbers.numpy()
    parts = [array.view("float64") for array in (result.diagonal().copy(), expected)]
    assert np.array_equal(*parts, equal_nan=True)


@pytest.mark.parametrize("name", marked(SPARSE))
def test_a_dtype_without_zero_is_not_stored_sparse(name: str) -> None:
    """What is left out would be read as the smallest number: it is refused."""
    for numbers in (np.array([[0.0, 1.5], [2.0, 0.0]], "float32"), np.array(0.0, "float32")):
        with pytest.raises(RefusedError):
            interop.convert(numbers, to=name, dtype="float8_e8m0fnu")


@pytest.mark.slow
@pytest.mark.extra("tensorflow")
@pytest.mark.parametrize("dtype", CODES)
def test_every_code_of_a_narrow_dtype_arrives_or_is_refused(dtype: str) -> None:
    """In every format: each number, NaN, infinity and zero, by its own dtype or a wider one."""
    bits = np.arange(CODES[dtype], dtype="u2" if CODES[dtype] > 256 else "u1")
    codes = bits.view(dtype_of(dtype))
    arrived = set()
    for target in FORMATS:
        sparse = target in SPARSE or "indexed_slices" in target
        for array in (codes, codes.reshape(2, -1)):
            try:
                result = interop.convert(array, to=target)
            except RefusedError:
                continue
            arrived.add(target.partition(".")[0])
            assert same(read(result), array, zeros=sparse), target
            back = interop.convert(result, to="numpy")
            assert same(back.reshape(array.shape), array, zeros=sparse), f"{target} → numpy"
    assert arrived >= {"torch", "jax", "tensorflow", "mlx", "pyarrow", "onnxruntime", "python"}
