"""What people reported to other projects: conversions that fail there, or lose something.

Each test makes the value of a report and converts it. The report stands above it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import array_api_strict
import dask.array
import jax
import jax.experimental.sparse
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
import scipy.sparse
import torch

import interop
from interop.errors import (
    BadRequestError,
    DensifyMemoryError,
    RefusedError,
    UnknownTargetError,
    UnknownValueError,
)
from tests.cases import together

from .values import same, start


# github.com/meta-pytorch/captum/issues/1325
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_table_of_numbers_and_bools_is_a_tensor(dtype: str | None) -> None:
    """A table whose array in pandas is one of objects, and that array, become a tensor."""
    table = pd.DataFrame({"age": [22.0, 38.0], "male": [True, False], "siblings": [1, 0]})
    rows = [[22.0, 1.0, 1.0], [38.0, 0.0, 0.0]]
    assert table.to_numpy().dtype == object
    result = interop.convert(table, to="torch", dtype=dtype)
    assert (result.dtype, result.tolist()) == (getattr(torch, dtype or "float64"), rows)
    objects = interop.convert(table.to_numpy(), to="torch", dtype=dtype or "float64")
    assert torch.equal(objects, result)


# github.com/pola-rs/polars/issues/19092
def test_a_column_of_lists_of_lists_is_a_tensor() -> None:
    """Rows that a query gathers as lists of lists are a tensor of three axes in shared memory."""
    table = pl.DataFrame({"sample": [1, 1, 2, 2], "a": [0.5, 1.5, 2.5, 3.5], "b": [1.0, 2, 3, 4]})
    rows = table.group_by("sample", maintain_order=True).agg(
        pl.concat_list("a", "b").alias("features")
    )
    result = interop.convert(rows["features"], to="torch", allow="share_readonly", copy=False)
    values = rows["features"].to_arrow().flatten().flatten()
    assert (result.dtype, result.data_ptr()) == (torch.float64, values.buffers()[1].address)
    assert result.tolist() == [[[0.5, 1.0], [1.5, 2.0]], [[2.5, 3.0], [3.5, 4.0]]]
    tree = interop.convert_tree(rows.to_dict(), to="torch")
    assert (tree["sample"].tolist(), tree["features"].tolist()) == ([1, 2], result.tolist())


# github.com/cositools/cosipy/issues/636
@pytest.mark.parametrize("target", ["torch", "jax"])
def test_a_column_of_a_fits_table_is_copied_in_native_order(target: str) -> None:
    """A big-endian field between others becomes numbers in the byte order of the machine."""
    table = np.zeros(4, [("time", ">f8"), ("exposure", ">f4"), ("id", ">i2")])
    table["exposure"] = [1.0, 2.0, 3.0, 0.5]
    result = interop.convert(table["exposure"], to=target)
    assert same(result, np.array([1.0, 2.0, 3.0, 0.5], "float32"))
    assert interop.plan(table["exposure"], to=target).effects == {"copy"}


# github.com/dask/dask/issues/8260
def test_a_stack_of_dask_arrays_is_a_tensor() -> None:
    """A lazy array of unequal chunks is computed once, into one tensor."""
    calls = []

    def chunk(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        calls.append(block.shape)
        return block + 1

    image = np.arange(48.0).reshape(4, 4, 3)
    lazy = dask.array.from_array(image, chunks=(3, 4, 2)).map_blocks(chunk, meta=image[:0])
    result = interop.convert(dask.array.stack([lazy, lazy]), to="torch")
    assert same(result.numpy(), np.stack([image + 1, image + 1]))
    assert len(calls) == 4


# github.com/pytorch/pytorch/issues/188128
@pytest.mark.parametrize("values", [[True, False], [True, False, True, True]])
def test_bools_of_an_array_of_the_standard_stay_bools(values: list[bool]) -> None:
    """The bytes of truth values, in any number, are never read as numbers of four bytes."""
    result = interop.convert(array_api_strict.asarray(values), to="torch")
    assert (result.dtype, result.tolist()) == (torch.bool, values)


# github.com/jax-ml/ml_dtypes/issues/81
def test_bfloat16_crosses_without_float32() -> None:
    """NumPy's bfloat16 is shared with torch, and torch's reaches JAX bit for bit."""
    array = np.array([2.0, 3.140625], ml_dtypes.bfloat16)
    tensor = interop.convert(array, to="torch")
    assert (tensor.dtype, tensor.data_ptr()) == (torch.bfloat16, start(array))
    result = interop.convert(tensor, to="jax")
    assert (type(result), result.dtype) == (type(jax.numpy.ones(1)), "bfloat16")
    assert np.asarray(result).tobytes() == array.tobytes()


# github.com/scikit-hep/awkward/issues/1466
@pytest.mark.extra("awkward", "tensorflow")
@pytest.mark.parametrize("target", ["torch.jagged", "tensorflow.ragged"])
def test_awkward_arrays_are_ragged_tensors_and_back(target: str) -> None:
    """Rows of several lengths, one of them empty, keep their values and lengths both ways."""
    import awkward as ak

    rows = [[1.5, 2.0], [], [3.0]]
    array = ak.Array(rows)
    result = interop.convert(array, to=target)
    back = interop.convert(result, to="awkward")
    assert back.to_list() == rows
    assert str(back.type) == "3 * var * float64"
    if target == "torch.jagged":
        values = result.values()
        assert (values.dtype, values.data_ptr()) == (
            torch.float64,
            start(array.layout.content.data),
        )


# github.com/pytorch/torcharrow/issues/146
def test_a_bitmap_that_hides_nothing_does_not_cost_a_copy() -> None:
    """Arrow's array with a bitmap but without nulls is shared; so is a slice that leaves them out."""
    numbers = np.arange(3.0)
    buffers = [pa.py_buffer(b"\x07"), pa.py_buffer(numbers)]
    whole = pa.Array.from_buffers(pa.float64(), 3, buffers)
    assert whole.buffers()[0] is not None
    sliced = pa.array([None, 1.0, 2.0])[1:]
    for array, values, offset in ((whole, [0.0, 1.0, 2.0], 0), (sliced, [1.0, 2.0], 8)):
        result = interop.convert(array, to="numpy", copy=False)
        assert (result.dtype, result.tolist()) == ("float64", values)
        assert start(result) == array.buffers()[1].address + offset


# github.com/scverse/scvi-tools/issues/2152
def test_a_batch_of_sparse_rows_stays_sparse_until_it_is_dense() -> None:
    """Rows of a sparse matrix are shared with torch, made dense on request, or refused as too large."""
    matrix = scipy.sparse.random_array((300, 60), density=0.05, dtype="float32", rng=0).tocsr()
    batch = matrix[10:20]
    result = interop.convert(batch, to="torch.sparse_csr")
    assert (result.layout, result.dtype) == (torch.sparse_csr, torch.float32)
    assert result.values().data_ptr() == start(batch.data)
    assert result.crow_indices().dtype == torch.int32
    dense = interop.convert(result, to="torch")
    assert torch.equal(dense, interop.convert(batch, to="torch"))
    assert same(dense.numpy(), batch.toarray())
    with pytest.raises(DensifyMemoryError):
        interop.convert(scipy.sparse.csr_array((30_000_000, 300_000)), to="torch")


class _Variable:
    """A variable of a netCDF file, as netCDF4 gives it: reading it gives a masked array."""

    shape, dtype = (3,), np.dtype("float32")

    def __getitem__(self, key: object) -> Any:
        values = np.ma.array([1.0, 9e36, 3.0], "float32", mask=[False, True, False])
        return values[key]

    def __len__(self) -> int:
        return 3

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self[...]


# github.com/Unidata/netcdf4-python/issues/1092
def test_the_mask_of_what_array_gives_is_not_lost() -> None:
    """An object whose `__array__` gives a masked array is masked: no fill value passes for a number."""
    variable = _Variable()
    assert np.asarray(variable).tolist()[1] > 1e36  # where the mask is lost
    for target in ("torch", "numpy", "jax"):
        with pytest.raises(RefusedError):
            interop.convert(variable, to=target)
    masked = interop.convert(variable, to="numpy.ma")
    assert (masked.dtype, masked.filled(np.nan)[[0, 2]].tolist()) == ("float32", [1.0, 3.0])
    assert masked.mask.tolist() == [False, True, False]


# github.com/pytorch/vision/issues/2322
@pytest.mark.extra("PIL")
def test_images_are_read_and_made_by_pillow() -> None:
    """An image is an array; as a target it is refused with the call of Pillow that makes one."""
    from PIL import Image

    array = np.arange(12, dtype="uint8").reshape(2, 2, 3)
    image = Image.fromarray(array)
    assert interop.convert(image, to="torch").tolist() == array.tolist()
    x = torch.from_numpy(array)
    for to in ("PIL", "PIL.Image", Image, Image.Image):
        with pytest.raises(UnknownTargetError) as caught:
            interop.convert(x, to=to)
        (call,) = re.findall(r"PIL\.Image\.\S+\(.*\)\)", str(caught.value))
        names = {"PIL": sys.modules["PIL"], "interop": interop, "x": x}
        assert np.asarray(eval(call, names)).tolist() == array.tolist()


# github.com/docarray/docarray/pull/1429
def test_losses_in_a_column_are_numbers() -> None:
    """A column, or an array of objects, of tensors without axes is an array, also with gradients."""
    weight = torch.tensor(2.0, requires_grad=True)
    for make in (pd.Series, lambda losses: pd.Series(losses).to_numpy()):
        value = make([weight * n for n in (1, 2, 3)])
        array = interop.convert(value, to="numpy")
        assert (array.dtype, array.tolist()) == (np.float32, [2, 4, 6])
        assert interop.convert(value, to="numpy", dtype="float64").tolist() == [2, 4, 6]
        tensor = interop.convert(value, to="torch")
        (gradient,) = torch.autograd.grad(tensor.sum(), weight)
        assert gradient == 6


# github.com/pola-rs/polars/issues/16398
@together("dtype", ["int64", "uint8", "float32", "bool"])
def test_masks_of_two_axes_are_nulls_of_columns_both_ways(dtype: str) -> None:
    """Masked places are nulls, in columns of the dtype; nulls are masked in an array of it."""
    numbers = np.array([[1, 0], [0, 1], [1, 1]], dtype)
    mask = np.array([[False, True], [False, False], [True, False]])
    expected = np.where(mask, None, numbers.astype(object)).tolist()
    masked = np.ma.MaskedArray(numbers, mask)
    for value in (masked, masked.copy(order="F"), np.ma.array(masked, hard_mask=True)):
        frame = interop.convert(value, to="polars")
        assert [list(row) for row in frame.rows()] == expected
        assert frame.dtypes == [pl.Series(numbers[0]).dtype] * 2
        table = interop.convert(value, to="pyarrow.table")
        assert [list(row.values()) for row in table.to_pylist()] == expected
        for back in (frame, table):
            again = interop.convert(back, to="numpy.ma")
            assert (again.dtype, again.mask.tolist()) == (dtype, mask.tolist())
            assert again.tolist() == expected
    assert masked.mask.tolist() == mask.tolist()


# github.com/pandas-dev/pandas/issues/24574
@together("hard", [True, False])
def test_a_hard_mask_is_a_mask(hard: bool) -> None:
    """What a hard mask hides is missing in pandas, as what any other mask hides."""
    value = np.ma.array([[1.0, 2.0]], mask=[[True, False]], hard_mask=hard)
    frame = interop.convert(value, to="pandas")
    assert frame.isna().to_numpy().tolist() == [[True, False]]
    assert frame[1].tolist() == [2]


# github.com/kipoi/kipoi/issues/457
@pytest.mark.extra("h5py")
def test_rows_of_several_lengths_in_a_file_are_ragged(tmp_path: Path) -> None:
    """A data set whose dtype is of objects is what its array is; text is refused, not read as rows."""
    import h5py

    with h5py.File(tmp_path / "rows.h5", "w") as file:
        rows = file.create_dataset("rows", (2,), h5py.vlen_dtype(np.float32))
        rows[0], rows[1] = [1, 2], [3]
        assert interop.convert(rows, to="pyarrow.list").to_pylist() == [[1, 2], [3]]
        jagged = interop.convert(rows, to="torch.jagged")
        assert (jagged.dtype, jagged.values().tolist()) == (torch.float32, [1, 2, 3])
        tree = interop.convert_tree(file, to="torch", allow="pad")
        assert tree["rows"].tolist() == [[1, 2], [3, 0]]
        text = file.create_dataset("text", data=["a", "b"])
        records = file.create_dataset("records", data=np.ones(2, [("name", "f4")]))
        with pytest.raises(RefusedError):
            interop.convert(text, to="torch")
        with pytest.raises(RefusedError):
            interop.convert(records, to="torch")
        assert interop.convert(records["name"], to="torch").tolist() == [1, 1]


# github.com/apache/arrow/issues/40659, github.com/apache/arrow/issues/40205,
# github.com/ray-project/ray/pull/52572
@together(
    "array, move",
    [
        (pyarrow.compute.run_end_encode(pa.array([1, 1, 2])), "pyarrow.compute.run_end_decode(x)"),
        (pa.array([[1, 1], [1, 2]], pa.list_view(pa.int64())), "x.to_pylist()"),
        (pa.array([{"a": 1, "b": 2}]), "x.flatten()"),
    ],
)
def test_encodings_of_arrow_are_refused_with_what_decodes_them(array: Any, move: str) -> None:
    """Elements that are encoded are not read as numbers; the call in the refusal gives those."""
    for x in (array, pa.chunked_array([array])):
        with pytest.raises(RefusedError, match=re.escape(move)):
            interop.convert(x, to="numpy")
        decoded = interop.convert(eval(move, {"x": x, "pyarrow": pa}), to="numpy")
        assert (decoded.ravel()[0], decoded.ravel()[-1], decoded.dtype) == (1, 2, np.int64)


# github.com/ray-project/ray/pull/52572
def test_nulls_without_a_type_are_refused_with_a_cast() -> None:
    """A column that holds nothing has no dtype; once it has one, its nulls are as any others."""
    x = pa.array([None, None])
    with pytest.raises(RefusedError, match=r"x\.cast\('float64'\) gives them a dtype"):
        interop.convert(x, to="torch")
    result = interop.convert(x.cast("float64"), to="torch", allow="drop_mask")
    assert result.isnan().tolist() == [True, True]


# github.com/GokuMohandas/Made-With-ML/issues/194
def test_the_columns_of_a_batch_of_objects_are_arrays() -> None:
    """The inputs and the labels of a batch that is an array of pairs convert column by column."""
    batch = np.empty((2, 2), object)
    batch[0, 0], batch[0, 1] = np.array([1.0, 2.0]), np.array([0, 1])
    batch[1, 0], batch[1, 1] = np.array([3.0]), np.array([1, 0])
    inputs = interop.convert(batch[:, 0], to="torch", allow="pad")
    assert (inputs.dtype, inputs.tolist()) == (torch.float64, [[1, 2], [3, 0]])
    labels = interop.convert(batch[:, 1], to="torch")
    assert (labels.dtype, labels.tolist()) == (torch.int64, [[0, 1], [1, 0]])


# github.com/shader-slang/slangpy/pull/907
def test_chosen_fields_of_records_are_refused_with_what_makes_arrays() -> None:
    """Records with gaps between their fields get the advice that others get."""
    records = np.array([(1, 2.5, 7), (3, 4.5, 8)], [("id", "i4"), ("x", "f8"), ("y", "u1")])
    x = records[["id", "y"]]
    with pytest.raises(RefusedError):
        interop.convert(x, to="torch")
    tree = interop.convert_tree(x, to="torch")
    assert {name: field.tolist() for name, field in tree.items()} == {"id": [1, 3], "y": [7, 8]}
    assert tree["y"].dtype == torch.uint8


# github.com/Lucaslab-Berkeley/Leopard-EM/pull/17
def test_a_column_whose_index_has_no_zero_is_a_tensor() -> None:
    """The index of a column that was filtered plays no part."""
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "y": [1, 2, 3]})
    column = frame[frame["y"] > 1]["x"]
    assert interop.convert(column, to="torch").tolist() == [2.5, 3.5]


@together(
    "x, move, expected",
    [
        (pl.Series([1, 2], dtype=pl.Int128), "x.cast(polars.Int64)", [1, 2]),
        (pl.Series([{"a": 1, "b": 2}]), "x.struct.unnest()", [[1, 2]]),
    ],
)
def test_elements_of_polars_that_no_array_has_are_refused_with_a_call(
    x: pl.Series, move: str, expected: list[Any]
) -> None:
    """Integers of 128 bits and structs name the call that makes what an array can hold."""
    with pytest.raises(RefusedError, match=re.escape(move)):
        interop.convert(x, to="numpy")
    made = eval(move, {"x": x, "polars": pl})
    assert interop.convert(made, to="numpy").tolist() == expected


# ---------------------------------------------------------------------- one table of further reports


def _tensorflow() -> Any:
    return pytest.importorskip("tensorflow")


def _mlx() -> Any:
    return pytest.importorskip("mlx.core")


def _mapped() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.npy"
        np.save(path, np.zeros((3, 4)))
        return np.load(path, mmap_mode="r")


def _awkward() -> Any:
    return pytest.importorskip("awkward")


def _padded_bcoo(**how: Any) -> Any:
    return jax.experimental.sparse.BCOO.fromdense(jax.numpy.array([[0, 1.0], [0, 0]]), **how)


def _twice_in_bcoo() -> Any:
    indices = jax.numpy.array([[0, 1, 0, 0, 1, 1], [1, 0, 1, 2, 0, 2]]).T
    return jax.experimental.sparse.BCOO((jax.numpy.arange(1, 7), indices), shape=(3, 3))


def _image(mode: str, size: tuple[int, int], color: float) -> Any:
    return pytest.importorskip("PIL.Image").new(mode, size, color)


class _Measured:
    """An array-like whose `__array__` is older than NumPy's keyword ``copy``."""

    def __init__(self) -> None:
        self.value = np.arange(3.0)

    def __array__(self, dtype: Any = None) -> Any:
        return self.value.astype(dtype, copy=False)


_TENSORS = "pyarrow.fixed_shape_tensor"

#: Boxes in images, as a batch of a dataset gives them.
_BOXES = [[[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]]


def _readonly() -> Any:
    array = np.arange(5.0)
    array.flags.writeable = False
    return array


def _csr() -> Any:
    return scipy.sparse.csr_array(np.array([[1.0, 2.0], [3.0, 4.0]]))


def _narrow_rows() -> Any:
    dense = np.arange(1.0, 25).reshape(6, 4)
    dense[2] = 0
    rows = scipy.sparse.csr_array(dense)
    assert rows.indices.dtype == np.int32
    return interop.convert(rows, to="torch.sparse_csr")


def _chained(csr: Any) -> Any:
    for name in ("coo", "csc", "coo", "csr"):
        csr = interop.convert(csr, to=f"torch.sparse_{name}")
    return interop.convert(csr, to="numpy")


def _written(result: Any) -> Any:
    result[0] = 1  # which ended the process, or wrote into the file
    return result[0].tolist()


#: The report, the situation, what somebody converts, the call, and what is right: what the result
#: is, by a function of it, or the words of a refusal.
REPORTS: list[tuple[str, str, Callable[[], Any], dict[str, Any], Any]] = [
    (
        "pytorch/pytorch#92680",
        "an array that is flipped",
        lambda: np.flip(np.asarray([1, 34])),
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.int64, [34, 1]),
    ),
    (
        "numpy/numpy#23349",
        "one channel that is walked backwards",
        lambda: np.zeros((1, 10, 20))[::-1],
        {"to": "torch"},
        lambda x: (x.shape, x.sum().item()) == ((1, 10, 20), 0),
    ),
    (
        "pytorch/pytorch#110285",
        "bfloat16 of torch",
        lambda: torch.ones(10, dtype=torch.bfloat16),
        {"to": "numpy"},
        lambda x: (x.dtype, x.sum()) == (ml_dtypes.bfloat16, 10),
    ),
    (
        "ml-explore/mlx#3974",
        "bfloat16 of MLX",
        lambda: _mlx().ones((5,), dtype=_mlx().bfloat16),
        {"to": "numpy"},
        lambda x: (x.dtype, x.tolist()) == (ml_dtypes.bfloat16, [1] * 5),
    ),
    (
        "vllm-project/vllm-metal#27",
        "bfloat16 of MLX for torch",
        lambda: _mlx().ones((5,), dtype=_mlx().bfloat16),
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.bfloat16, [1] * 5),
    ),
    (
        "ml-explore/mlx#1075",
        "bfloat16 of ml_dtypes, which was taken for a complex number",
        lambda: np.array(1.5, ml_dtypes.bfloat16),
        {"to": "mlx"},
        lambda x: (x.dtype, x.item()) == (_mlx().bfloat16, 1.5),
    ),
    (
        "onnx/onnx#4618",
        "bfloat16 of TensorFlow",
        lambda: _tensorflow().constant([1, 2, 3], _tensorflow().bfloat16),
        {"to": "numpy"},
        lambda x: (x.dtype, x.tolist()) == (ml_dtypes.bfloat16, [1, 2, 3]),
    ),
    (
        "ModelCloud/GPTQModel#2863",
        "bytes of float8",
        lambda: torch.tensor([1.0, -0.5]).to(torch.float8_e4m3fn),
        {"to": "numpy"},
        lambda x: x.tobytes() == b"\x38\xb0",
    ),
    (
        "jax-ml/jax#40789",
        "a column that is read-only",
        _readonly,
        {"to": "jax", "dtype": "float32"},
        lambda x: x.tolist() == [0, 1, 2, 3, 4],
    ),
    (
        "pytorch/pytorch#46741",
        "an array over a mapped file, into which the tensor is written",
        _mapped,
        {"to": "torch"},
        lambda x: _written(x) == [1, 1, 1, 1],
    ),
    (
        "pytorch/pytorch#47160",
        "a copy of a read-only array, without a warning",
        _readonly,
        {"to": "torch", "copy": True},
        lambda x: x.tolist() == [0, 1, 2, 3, 4],
    ),
    (
        "jax-ml/jax#4719",
        "truth values of JAX",
        lambda: jax.numpy.array([True, False]),
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.bool, [True, False]),
    ),
    (
        "pytorch/pytorch#67081",
        "truth values of torch",
        lambda: torch.BoolTensor([False, True]),
        {"to": "jax"},
        lambda x: (x.dtype, x.tolist()) == (bool, [False, True]),
    ),
    (
        "pytorch/pytorch#33831",
        "a depth image of 16 bits as floats",
        lambda: np.full((2, 2, 1), 65535, np.uint16),
        {"to": "torch", "dtype": torch.float32},
        lambda x: (x.dtype, x.max().item()) == (torch.float32, 65535),
    ),
    (
        "Project-MONAI/MONAI#4639",
        "a label image of torch as 16 bits",
        lambda: torch.full((2, 2), 60000, dtype=torch.long),
        {"to": "numpy", "dtype": np.uint16},
        lambda x: (x.dtype, x.max()) == (np.uint16, 60000),
    ),
    (
        "jax-ml/jax#13795",
        "a masked array for JAX, which drops the mask",
        lambda: np.ma.array([1, 2, 3], mask=[True, False, True]),
        {"to": "jax"},
        "drop_mask",
    ),
    (
        "jax-ml/jax#18385",
        "a number of 64 bits, which JAX makes zero",
        lambda: np.array([2**32]),
        {"to": "jax"},
        "narrow|does not fit",
    ),
    (
        "jax-ml/jax#4903",
        "a list with a number of 64 bits",
        lambda: [1000000000000, 2, 3, 4],
        {"to": "jax"},
        "1000000000000 does not fit in int32",
    ),
    (
        "data-apis/array-api-compat#173",
        "a lazy conjugate",
        lambda: torch.tensor([1 + 2j]).conj(),
        {"to": "numpy"},
        lambda x: x.tolist() == [1 - 2j],
    ),
    (
        "apache/arrow#35573",
        "a slice of tensors of Arrow",
        lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24.0).reshape(4, 3, 2))[2:],
        {"to": "numpy"},
        lambda x: (x.shape, x[0, 0].tolist()) == ((2, 3, 2), [12, 13]),
    ),
    (
        "scikit-hep/awkward#624",
        "a slice of an array of Arrow",
        lambda: pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])[5:],
        {"to": "torch"},
        lambda x: x.tolist() == [6, 7, 8, 9, 10],
    ),
    (
        "pytorch/pytorch#95814",
        "layouts of torch in turn, which changed the matrix",
        _csr,
        {"to": "torch.sparse_csr"},
        lambda x: _chained(x).tolist() == [[1, 2], [3, 4]],
    ),
    (
        "pytorch/pytorch#91010",
        "columns as coordinates, which are out of order",
        lambda: torch.eye(3).flip(0).to_sparse_csc(),
        {"to": "scipy.coo"},
        lambda x: np.array_equal(x.toarray(), np.eye(3)[::-1]),
    ),
    (
        "tensorflow/tensorflow#42660",
        "columns in memory for TensorFlow",
        lambda: np.asfortranarray(np.arange(10.0).reshape(5, 2)),
        {"to": "tensorflow"},
        lambda x: x.numpy().tolist() == np.arange(10.0).reshape(5, 2).tolist(),
    ),
    (
        "tensorflow/tensorflow#51598",
        "an array that is flipped for TensorFlow",
        lambda: np.flip(np.arange(10)),
        {"to": "tensorflow"},
        lambda x: x.numpy().tolist() == [*range(9, -1, -1)],
    ),
    (
        "tensorflow/tensorflow#44555",
        "a list of images for TensorFlow",
        lambda: [np.full((4, 4, 3), n, "uint8") for n in range(5)],
        {"to": "tensorflow"},
        lambda x: (x.shape, x.dtype.name, int(x[4].numpy().min())) == ((5, 4, 4, 3), "uint8", 4),
    ),
    (
        "fastai/course22#99",
        "the values of a table of floats and truth values",
        lambda: pd.DataFrame({"Age": [22.0, 38.0], "Sex_male": [True, False]}).values,
        {"to": "torch", "dtype": torch.float32},
        lambda x: (x.dtype, x.tolist()) == (torch.float32, [[22, 1], [38, 0]]),
    ),
    (
        "ray-project/ray#59445",
        "a nullable column, whose null is kept",
        lambda: pd.Series([1, None, 3], dtype="Int64"),
        {"to": "pyarrow"},
        lambda x: x.to_pylist() == [1, None, 3],
    ),
    (
        "krishnaik06/Pytorch-Tutorial#2",
        "labels that are text",
        lambda: np.where(np.array([1, 0]) == 1, "Diabetic", "No Diabetic"),
        {"to": "torch"},
        "is not a dtype of numbers",
    ),
    (
        "emadeldeen24/ECGTransForm#2",
        "the values of a dict of weights",
        {"a": 0.5, "b": 2.0}.values,
        {"to": "torch"},
        "make a list of it first",
    ),
    (
        "jax-ml/jax#7657",
        "a transposed tensor, whose elements JAX found at other places",
        lambda: torch.arange(6, dtype=torch.int32).reshape(2, 3).moveaxis(1, 0),
        {"to": "jax"},
        lambda x: (x[1, 0].item(), x.tolist()) == (1, [[0, 3], [1, 4], [2, 5]]),
    ),
    (
        "jax-ml/jax#4196",
        "columns of a tensor, whose strides JAX ignored",
        lambda: torch.arange(6, dtype=torch.int32).reshape(2, 3)[:, 0:2],
        {"to": "jax"},
        lambda x: (x[1, 0].item(), x.tolist()) == (3, [[0, 1], [3, 4]]),
    ),
    (
        "samuela/torch2jax#6",
        "weights with the channels last in memory",
        lambda: (
            torch.arange(24.0).reshape(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
        ),
        {"to": "jax"},
        lambda x: (x.shape, x[1, 2, 0, 1].item()) == ((2, 3, 2, 2), 21),
    ),
    (
        "jax-ml/jax#24680",
        "uint16 of torch, whose layout JAX took for another",
        lambda: torch.full((1, 3, 5, 8), 65535, dtype=torch.uint16),
        {"to": "jax"},
        lambda x: (x.dtype, bool((x == 65535).all())) == (np.uint16, True),
    ),
    (
        "erfanzar/EasyDeL#269",
        "bfloat16 of JAX for torch, bit for bit",
        lambda: jax.numpy.array([1.5, -0.0, float("nan")], "bfloat16"),
        {"to": "torch"},
        lambda x: x.view(torch.int16).tolist() == [16320, -32768, 32704],
    ),
    (
        "jax-ml/jax#8889",
        "coordinates that JAX has twice",
        _twice_in_bcoo,
        {"to": "scipy.coo"},
        lambda x: x.toarray().tolist() == [[0, 4, 4], [7, 0, 6], [0, 0, 0]],
    ),
    (
        "jax-ml/jax#8021",
        "coordinates outside of the matrix, with which JAX fills one up",
        lambda: _padded_bcoo(n_batch=1),
        {"to": "scipy.coo"},
        lambda x: (x.toarray().tolist(), x.nnz) == ([[0, 1], [0, 0]], 1),
    ),
    (
        "pytorch/vision#8188",
        "an image of 16 bits without a sign",
        lambda: _image("I;16", (2, 3), 65535),
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.uint16, [[65535] * 2] * 3),
    ),
    (
        "pytorch/vision#371",
        "an image of one bit, of which eight share a byte",
        lambda: _image("1", (9, 3), 1),
        {"to": "torch"},
        lambda x: (x.dtype, x.shape, bool(x.all())) == (torch.bool, (3, 9), True),
    ),
    (
        "pola-rs/polars#12730",
        "a table with a column of decimals",
        lambda: pl.DataFrame([{"temperature": Decimal("35.65"), "result": 42.42}]),
        {"to": "numpy", "dtype": "float64"},
        lambda x: (x.dtype, x.tolist()) == (np.float64, [[35.65, 42.42]]),
    ),
    (
        "pola-rs/polars#7689",
        "a column of objects, which came out as their addresses",
        lambda: pl.Series([42], dtype=pl.Object),
        {"to": "numpy"},
        r"x\.to_list\(\) makes a list of its objects",
    ),
    (
        "pola-rs/polars#8393",
        "a column of truth values, one of them null",
        lambda: pl.Series([True, False, None]),
        {"to": "numpy.ma"},
        lambda x: (x.dtype, x.tolist()) == (np.bool_, [True, False, None]),
    ),
    (
        "pola-rs/polars#17453",
        "a table made of a tensor",
        lambda: torch.tensor([[1234.5, 200.0], [8000.0, 500.5]]),
        {"to": "polars"},
        lambda x: (x.dtypes, x.rows()) == ([pl.Float32] * 2, [(1234.5, 200.0), (8000.0, 500.5)]),
    ),
    (
        "ray-project/ray#22323",
        "a slice of tensors of truth values in Arrow, which are bits",
        lambda: interop.convert(np.array([[True, False]] * 3 + [[False, True]]), to=_TENSORS)[3:],
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.bool, [[False, True]]),
    ),
    (
        "ray-project/ray#29135",
        "images of several sizes",
        lambda: [np.zeros((4, 4, 3)), np.zeros((2, 2, 3))],
        {"to": "tensorflow.ragged"},
        "pad each to one shape|convert each",
    ),
    (
        "huggingface/datasets#7534",
        "a batch of boxes, of which images have several numbers",
        lambda: pa.chunked_array([_BOXES[:1], _BOXES[1:]]),
        {"to": "tensorflow.ragged"},
        lambda x: (x.shape.as_list(), x.to_list()) == ([2, None, 4], _BOXES),
    ),
    (
        "tensorflow/tensorflow#22438",
        "coordinates out of order for TensorFlow, whose operations refuse them",
        lambda: scipy.sparse.coo_array(([1.0, 2, 3], ([1, 0, 1], [0, 1, 1])), shape=(2, 2)),
        {"to": "tensorflow.sparse"},
        lambda x: x.indices.numpy().tolist() == [[0, 1], [1, 0], [1, 1]],
    ),
    (
        "tensorflow/tensorflow#371",
        "one place twice, which is a sum in SciPy and was the last value in TensorFlow",
        lambda: scipy.sparse.coo_array(([1, 2], ([0, 0], [0, 0])), shape=(1, 1)),
        {"to": "tensorflow.sparse"},
        lambda x: (x.values.numpy().tolist(), x.indices.shape) == ([3], (1, 2)),
    ),
    (
        "ml-explore/mlx#413",
        "an array of two axes of MLX, of which torch could not tell the shape",
        lambda: _mlx().ones([5, 10]),
        {"to": "torch"},
        lambda x: (x.dtype, x.shape) == (torch.float32, (5, 10)),
    ),
    (
        "microsoft/onnxruntime#13001",
        "bfloat16 for ONNX Runtime",
        lambda: torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        {"to": "onnxruntime"},
        lambda x: interop.convert(x, to="torch").tolist() == [1.5, -2.0],
    ),
    (
        "scikit-hep/awkward#2931",
        "a list in which pandas says that a number is missing",
        lambda: [1.0, pd.NA],
        {"to": "awkward"},
        "<NA>, of type NAType, is not an array of numbers; leave it out",
    ),
    (
        "scverse/anndata#2561",
        "an index of pandas, which is read-only, for JAX",
        lambda: pd.Index([2, 1]),
        {"to": "jax", "dtype": "int32"},
        lambda x: (x.dtype, x.tolist()) == (np.int32, [2, 1]),
    ),
    (
        "iterorganization/IMAS-Python#118",
        "an `__array__` without the keyword copy, shared and without a warning",
        _Measured,
        {"to": "torch", "copy": False},
        lambda x: x.tolist() == [0, 1, 2],
    ),
    (
        "numpy/numpy#28599",
        "a tensor for NumPy, which is read-only if it comes by from_dlpack",
        lambda: torch.zeros(2),
        {"to": "numpy"},
        lambda x: (_written(x), x.flags.writeable) == (1, True),
    ),
    (
        "narwhals-dev/narwhals#4",
        "a column that could have nulls, and has none",
        lambda: pd.Series([1, 2], dtype="Int64"),
        {"to": "numpy"},
        lambda x: (x.dtype, x.tolist()) == (np.int64, [1, 2]),
    ),
    (
        "pytorch/pytorch#188023",
        "rows walked backwards, which ended the process by way of from_dlpack",
        lambda: np.arange(12.0).reshape(3, 4)[:, ::-1],
        {"to": "torch"},
        lambda x: (x.dtype, x[2].tolist()) == (torch.float64, [11, 10, 9, 8]),
    ),
    (
        "pytorch/pytorch#484",
        "a plane between others, of which all but the first row was garbage",
        lambda: np.arange(125.0).reshape(5, 5, 5)[:, 1],
        {"to": "torch", "copy": False},
        lambda x: (x.shape, x[4].tolist()) == ((5, 5), [105, 106, 107, 108, 109]),
    ),
    (
        "pytorch/pytorch#541",
        "numbers in the other order of bytes, which came out tiny",
        lambda: np.array([[1.0, 2, 3], [4, 5, 6]], ">f4"),
        {"to": "torch"},
        lambda x: (x.dtype, x.tolist()) == (torch.float32, [[1, 2, 3], [4, 5, 6]]),
    ),
    (
        "pytorch/pytorch#22615",
        "the other of two of C's types for one dtype",
        lambda: np.array([1, 2], np.longlong),
        {"to": "torch", "copy": False},
        lambda x: (x.dtype, x.tolist()) == (torch.int64, [1, 2]),
    ),
    (
        "pytorch/pytorch#26158",
        "an array of objects that all are float16",
        lambda: np.array([np.float16(1.5), np.float16(2)], object),
        {"to": "torch", "dtype": "float16"},
        lambda x: (x.dtype, x.tolist()) == (torch.float16, [1.5, 2]),
    ),
    (
        "pytorch/pytorch#91007",
        "rows compressed with narrow indices for columns, which came out of order",
        _narrow_rows,
        {"to": "torch.sparse_csc"},
        lambda x: (
            torch._validate_sparse_csc_tensor_args(
                x.ccol_indices(), x.row_indices(), x.values(), x.shape
            )
            is None
            and torch.equal(x.to_dense(), _narrow_rows().to_dense())
        ),
    ),
    (
        "pytorch/pytorch#102808",
        "a diagonal of compressed rows, of which the last was lost",
        lambda: scipy.sparse.csr_array((np.arange(1, 7), (np.arange(6), np.arange(6)))),
        {"to": "torch.sparse_csr"},
        lambda x: torch.equal(x.to_dense(), torch.diag(torch.arange(1, 7))),
    ),
    (
        "numpy/numpy#17659",
        "a column of bytes with a missing one, which is an array of objects in pandas",
        lambda: pd.DataFrame({"col": [1, np.nan, 3]}).astype("UInt8"),
        {"to": "numpy.ma"},
        lambda x: (x.dtype, x.max(), x.mask.tolist()) == (np.uint8, 3, [[False], [True], [False]]),
    ),
    (
        "pola-rs/polars#23579",
        "a frame with a column of text beside that of a feature",
        lambda: pl.DataFrame({"feature": [0], "unused_column": ["some string"]}),
        {"to": "torch", "dtype": "float32"},
        "unused_column",
    ),
    (
        "jax-ml/jax#1865",
        "an array of JAX for torch, in shared memory",
        lambda: jax.numpy.arange(3.0),
        {"to": "torch", "copy": False, "allow": "share_readonly"},
        lambda x: (x.dtype, x.tolist()) == (torch.float32, [0, 1, 2]),
    ),
    (
        "TorchIO-project/torchio#764",
        "an image of uint16 for a tensor of floats",
        lambda: np.full((1, 2, 2), 40000, np.uint16),
        {"to": "torch", "dtype": "float32"},
        lambda x: (x.dtype, x.max().item()) == (torch.float32, 40000),
    ),
    (
        "aleju/imgaug#630",
        "images turned upside down, as one batch",
        lambda: [np.full((2, 3), n, np.uint8)[::-1, ...] for n in range(2)],
        {"to": "torch"},
        lambda x: (x.dtype, x.shape, x.sum().item()) == (torch.uint8, (2, 2, 3), 6),
    ),
]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@together("report, situation, make, call, right", REPORTS)
def test_what_was_reported_is_right_here(
    report: str, situation: str, make: Callable[[], Any], call: dict[str, Any], right: Any
) -> None:
    """Each report, tried as its author would, gives the right answer, cold and warm, or refuses."""
    for _ in range(2):
        match call["to"].partition(".")[0]:
            case "tensorflow":
                _tensorflow()
            case "mlx":
                _mlx()
            case "awkward":
                _awkward()
            case "onnxruntime":
                pytest.importorskip("onnxruntime")
        if isinstance(right, str):
            with pytest.raises((BadRequestError, RefusedError, UnknownValueError), match=right):
                interop.convert(make(), **call)
        else:
            assert right(interop.convert(make(), **call)), (report, situation)
