"""The grid: one value of each kind, plain or odd, with every target and a dozen requests.

Numbers are small and whole, so that every dtype holds them, and a cast has one right answer.
"""

from __future__ import annotations

import array
import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from interop._model.effect import COPYING, EFFECTS
from tests.properties.readers import FORMATS

__all__ = ["LIBRARIES", "REQUESTS", "TARGETS", "kinds"]

_REFUSED = {name for name, effect in EFFECTS.items() if not effect.allowed} - COPYING
#: What a request may ask for, beside its target.
REQUESTS: list[dict[str, Any]] = [
    {},
    {"copy": True},
    {"copy": False},
    {"copy": "writable"},
    {"dtype": "float32"},
    {"dtype": "int8"},
    {"dtype": "bool"},
    {"dtype": "complex64", "copy": True},
    {"dtype": "bfloat16", "allow": {"drop_mask"}},
    {"device": "cpu", "forbid": {"detach", "drop_labels", "alias_immutable"}},
    {"allow": _REFUSED},
    {"allow": _REFUSED, "dtype": "float64", "copy": True},
]
TARGETS = [*FORMATS, *sorted({name.partition(".")[0] for name in FORMATS} - {*FORMATS})]

ROWS = np.arange(6.0).reshape(2, 3)
LINE = np.arange(5.0)


class ByArray:
    """An object that offers an array by ``__array__``."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if isinstance(self.numbers, Exception):
            raise self.numbers
        return np.array(self.numbers, dtype, copy=copy)


class ByInterface(ByArray):
    """An object that offers an array by its array interface."""

    __array__ = None  # type: ignore[assignment]

    @property
    def __array_interface__(self) -> Any:
        return self.numbers.__array_interface__


class ByDlpack:
    """An object that offers an array by DLPack."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.numbers.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.numbers.__dlpack_device__()


def _unaligned() -> np.ndarray:
    memory = np.zeros(LINE.nbytes + 1, "u1")[1:].view("f8")
    memory[...] = LINE
    return memory


def _readonly() -> np.ndarray:
    result = ROWS.copy()
    result.flags.writeable = False
    return result


def _released() -> memoryview:
    view = memoryview(bytearray(8))
    view.release()
    return view


def _numpy() -> dict[str, Callable[[], Any]]:
    return {
        "C order": ROWS.copy,
        "Fortran order": lambda: np.asfortranarray(ROWS),
        "every second": lambda: np.repeat(ROWS, 2, 1)[:, ::2],
        "backwards": lambda: LINE.copy()[::-1],
        "no axes": lambda: np.array(2.0),
        "no rows": lambda: np.zeros((0, 3)),
        "no columns": lambda: np.zeros((3, 0), "f4"),
        "three axes": lambda: np.arange(12, dtype="i4").reshape(2, 3, 2),
        "read-only": _readonly,
        "byteswapped": lambda: ROWS.astype(">f8"),
        "unaligned": _unaligned,
        "broadcast": lambda: np.broadcast_to(LINE, (2, 5)),
        "bool": lambda: ROWS > 2,
        "bools of any byte": lambda: np.array([0, 1, 2, 255], "u1").view("?"),
        "int64": lambda: np.arange(5),
        "uint64": lambda: np.arange(5, dtype="u8"),
        "float16": lambda: ROWS.astype("f2"),
        "longdouble": lambda: ROWS.astype("g"),
        "complex": lambda: ROWS.astype("c16"),
        "bfloat16": lambda: ROWS.astype(ml_dtypes.bfloat16),
        "float8": lambda: ROWS.astype(ml_dtypes.float8_e4m3fn),
        "int4": lambda: ROWS.astype(ml_dtypes.int4),
        "a scalar": lambda: np.float32(3),
        "masked": lambda: np.ma.masked_array(ROWS, ROWS == 1),
        "masked nowhere": lambda: np.ma.masked_array(ROWS.copy()),
        "a matrix": lambda: np.asmatrix(ROWS),
        "datetimes": lambda: np.zeros(3, "M8[s]"),
        "strings": lambda: np.array(["a", "b"]),
        "objects": lambda: np.array([1, "b", None], object),
        "records": lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]),
        "65 columns of nothing": lambda: np.zeros((0, 65)),
    }


def _torch() -> dict[str, Callable[[], Any]]:
    import torch

    rows, line = torch.from_numpy(ROWS.copy()), torch.from_numpy(LINE.copy())
    sparse = rows.to_sparse()
    twice = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    ragged = [torch.arange(2.0), torch.arange(3.0)]

    def shrunk() -> Any:
        result = line.clone()
        result.untyped_storage().resize_(8)
        return result

    def fake() -> Any:
        from torch._subclasses.fake_tensor import FakeTensorMode

        return FakeTensorMode().from_tensor(rows)

    return {
        "C order": rows.clone,
        "Fortran order": lambda: rows.t().contiguous().t(),
        "no axes": lambda: torch.tensor(2),
        "no rows": lambda: torch.zeros(0, 3),
        "broadcast": lambda: line.expand(2, 5),
        "with a history": lambda: rows.clone().requires_grad_(),
        "computed with a history": lambda: rows.clone().requires_grad_() * 1,
        "a parameter": lambda: torch.nn.Parameter(rows.clone()),
        "conjugate": lambda: rows.to(torch.complex64).conj(),
        "negated": lambda: torch._neg_view(-rows),
        "bfloat16": rows.bfloat16,
        "float8": lambda: rows.to(torch.float8_e5m2),
        "complex32": lambda: rows.to(torch.complex32),
        "uint16": lambda: rows.to(torch.uint16),
        "bool": lambda: rows > 2,
        "on no device": lambda: rows.to("meta"),
        "fake": fake,
        "all zeros": lambda: torch._efficientzerotensor((2, 3)),
        "longer than its storage": shrunk,
        "COO": lambda: sparse,
        "COO with duplicates": lambda: twice,
        "COO of vectors": lambda: rows.to_sparse(1),
        "COO with a history": lambda: sparse.clone().requires_grad_(),
        "CSR": rows.to_sparse_csr,
        "CSC": rows.to_sparse_csc,
        "BSR": lambda: rows.to_sparse_bsr((1, 3)),
        "CSR in batches": lambda: torch.stack([rows, rows]).to_sparse_csr(),
        "quantized": lambda: torch.quantize_per_tensor(rows.float(), 1.0, 0, torch.quint8),
        "quantized by row": lambda: torch.quantize_per_channel(
            rows.float(), torch.ones(2), torch.zeros(2), 0, torch.qint8
        ),
        "quantized to four bits": lambda: torch.quantize_per_channel(
            torch.ones(2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint4x2
        ),
        "complex with a history": lambda: rows.to(torch.complex64).requires_grad_(),
        "jagged": lambda: torch.nested.nested_tensor(ragged, layout=torch.jagged),
        "nested": lambda: torch.nested.nested_tensor(ragged),
        "for oneDNN": lambda: rows.float().to_mkldnn(),
    }


def _jax() -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp
    from jax.experimental import sparse

    def deleted() -> Any:
        result = jnp.arange(3.0)
        result.delete()
        return result

    return {
        "plain": lambda: jnp.asarray(ROWS, "f4"),
        "no axes": lambda: jnp.asarray(2),
        "bfloat16": lambda: jnp.asarray(ROWS, jnp.bfloat16),
        "int4": lambda: jnp.asarray(ROWS, jnp.int4),
        "weak": lambda: jnp.asarray(2.0) * 1,
        "a key": lambda: jax.random.key(0),
        "deleted": deleted,
        "BCOO": lambda: sparse.BCOO.fromdense(jnp.asarray(ROWS, "f4")),
        "BCSR": lambda: sparse.BCSR.fromdense(jnp.asarray(ROWS, "f4")),
        "BCOO with an axis of batches": lambda: sparse.BCOO.fromdense(
            jnp.asarray(ROWS, "f4"), n_batch=1
        ),
    }


def _scipy() -> dict[str, Callable[[], Any]]:
    import scipy.sparse as sp

    layouts = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
    twice = [1.0, 2.0, 3.0], ([1, 0, 1], [2, 0, 2])
    of_arrays = {name.upper(): lambda n=name: sp.coo_array(ROWS).asformat(n) for name in layouts}
    return {
        **of_arrays,
        "a CSR matrix": lambda: sp.csr_matrix(ROWS),
        "COO with duplicates": lambda: sp.coo_array(twice, (2, 3)),
        "COO of one axis": lambda: sp.coo_array(LINE),
        "COO of three axes": lambda: sp.coo_array(np.arange(8.0).reshape(2, 2, 2)),
        "CSR without elements": lambda: sp.csr_array((2, 3)),
        "CSR of complex numbers": lambda: sp.csr_array(ROWS.astype("c8")),
        "CSR of bools": lambda: sp.csr_array(ROWS > 2),
    }


def _sparse() -> dict[str, Callable[[], Any]]:
    import sparse

    return {
        "COO": lambda: sparse.COO.from_numpy(ROWS),
        "COO that is filled up with 1": lambda: sparse.COO.from_numpy(ROWS, fill_value=1.0),
        "GCXS": lambda: sparse.GCXS.from_numpy(ROWS),
        "GCXS of three axes": lambda: sparse.GCXS.from_numpy(np.arange(8.0).reshape(2, 2, 2)),
        "DOK": lambda: sparse.DOK.from_numpy(ROWS),
    }


def _pandas() -> dict[str, Callable[[], Any]]:
    import pandas as pd

    labels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    frame = pd.DataFrame(ROWS)
    return {
        "a series": lambda: pd.Series(LINE.copy()),
        "a series with labels": lambda: pd.Series(LINE.copy(), list("abcde"), name="x"),
        "a series with nulls": lambda: pd.Series([1, None, 3], dtype="Int64"),
        "a series without nulls": lambda: pd.Series([1, 2, 3], dtype="Float32"),
        "a series of Arrow's": lambda: pd.Series([1.0, None], dtype="double[pyarrow]"),
        "a sparse series": lambda: pd.Series(pd.arrays.SparseArray([0.0, 1.0])),
        "strings": lambda: pd.Series(["a", "b"]),
        "categories": lambda: pd.Series(["a", "b"], dtype="category"),
        "times": lambda: pd.Series(pd.to_datetime(["2020-01-01"])),
        "objects": lambda: pd.Series([1, "a"], dtype=object),
        "a frame": frame.copy,
        "a frame with labels": lambda: pd.DataFrame(ROWS.copy(), labels, list("abc")),
        "a frame of several dtypes": lambda: pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
        "a frame of two floats": lambda: pd.DataFrame({"a": LINE.astype("f4"), "b": LINE}),
        "a frame of bools": lambda: pd.DataFrame(ROWS > 2),
        "a frame with an index of numbers": lambda: pd.DataFrame(ROWS.copy(), [0.5, 1.5]),
        "a frame with an index": lambda: pd.DataFrame({"a": LINE, "b": LINE > 2}, list("abcde")),
        "a series of every second": lambda: pd.Series(np.arange(8.0)[::2], copy=False),
        "a series of bools": lambda: pd.Series(LINE > 2, name="x"),
        "a frame with strings": lambda: pd.DataFrame({"a": [1, 2], "b": ["a", "b"]}),
        "a frame with nulls": lambda: pd.DataFrame({"a": pd.array([1, None], "Int64")}),
        "a frame without rows": lambda: pd.DataFrame({"a": np.zeros(0)}),
        "an empty frame": pd.DataFrame,
        "an index": lambda: pd.Index([1, 2, 3]),
        "a range": lambda: pd.RangeIndex(3),
        "labels of two levels": lambda: labels,
        "an array": lambda: pd.array([1, 2, 3]),
    }


def _polars() -> dict[str, Callable[[], Any]]:
    import polars as pl

    return {
        "a series": lambda: pl.Series(LINE),
        "a series with nulls": lambda: pl.Series([1, None, 3]),
        "bools": lambda: pl.Series([True, False, True]),
        "strings": lambda: pl.Series(["a"]),
        "dates": lambda: pl.Series([dt.date(2020, 1, 1)]),
        "decimals": lambda: pl.Series([decimal.Decimal("1.5")]),
        "nulls alone": lambda: pl.Series([None, None]),
        "lists": lambda: pl.Series([[1.0, 2.0], [3.0, 4.0]]),
        "ragged lists": lambda: pl.Series([[1.0, 2.0], [3.0]]),
        "a missing list": lambda: pl.Series([[1.0, 2.0], None]),
        "arrays": lambda: pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2)),
        "a frame": lambda: pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        "a frame of several dtypes": lambda: pl.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}),
        "a frame of two floats": lambda: pl.DataFrame({"a": LINE.astype("f4"), "b": LINE}),
        "a frame of bools": lambda: pl.DataFrame({"a": [True, False]}),
        "chunks": lambda: pl.concat([pl.Series(LINE), pl.Series(LINE)], rechunk=False),
        "a frame with nulls": lambda: pl.DataFrame({"a": [1, None]}),
        "an empty frame": pl.DataFrame,
        "a lazy frame": lambda: pl.LazyFrame({"a": [1.0]}),
    }


def _pyarrow() -> dict[str, Callable[[], Any]]:
    import pyarrow as pa

    numbers = pa.array(LINE)
    return {
        "an array": lambda: pa.array(LINE),
        "an array with nulls": lambda: pa.array([1, None, 3]),
        "a slice of bools": lambda: pa.array([True, False, True, True])[1:],
        "chunks": lambda: pa.chunked_array([[1.0, 2.0], [3.0]]),
        "a dictionary": numbers.dictionary_encode,
        "strings": lambda: pa.array(["a"]),
        "decimals": lambda: pa.array([decimal.Decimal("1.5")]),
        "records": lambda: pa.array([{"a": 1}]),
        "times": lambda: pa.array([dt.datetime(2020, 1, 1)]),
        "nulls alone": lambda: pa.nulls(2),
        "lists": lambda: pa.array([[1.0, 2.0], [3.0, 4.0]]),
        "ragged lists": lambda: pa.array([[1.0, 2.0], [3.0]]),
        "a slice of ragged lists": lambda: pa.array([[9.0], [1.0, 2.0], [3.0]])[1:],
        "a missing list": lambda: pa.array([[1.0, 2.0], None]),
        "lists of lists": lambda: pa.array([[[1.0], [2.0, 3.0]], [[4.0]]]),
        "lists of a fixed size": lambda: pa.FixedSizeListArray.from_arrays(pa.array(LINE[:4]), 2),
        "tensors": lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(ROWS.copy()),
        "a tensor": lambda: pa.Tensor.from_numpy(ROWS.copy()),
        "a table": lambda: pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        "a table of several dtypes": lambda: pa.table({"a": [1, 2], "b": [3.0, 4.0]}),
        "a table of bools": lambda: pa.table({"a": [True, False]}),
        "a table in chunks": lambda: pa.concat_tables([pa.table({"a": [1.0]})] * 2),
        "a table with nulls": lambda: pa.table({"a": [1, None]}),
        "a table with strings": lambda: pa.table({"a": [1.0], "b": ["a"]}),
        "an empty table": lambda: pa.table({}),
        "a batch": lambda: pa.record_batch({"a": [1, 2]}),
        "a scalar": lambda: pa.scalar(2.0),
        "a missing scalar": lambda: pa.scalar(None, pa.int8()),
        "a sparse tensor": lambda: pa.SparseCOOTensor.from_dense_numpy(ROWS),
        "a reader": lambda: pa.table({"a": [1.0]}).to_reader(),
    }


def _python() -> dict[str, Callable[[], Any]]:
    return {
        "a list": lambda: [1.0, 2.0],
        "lists": lambda: [[1, 2], [3, 4]],
        "a tuple": lambda: (1, 2.5),
        "an empty list": list,
        "ragged lists": lambda: [[1, 2], [3]],
        "large integers": lambda: [2**70, 1],
        "a list with None": lambda: [1, None],
        "a list of strings": lambda: ["a"],
        "a list of arrays": lambda: [LINE, LINE],
        "a list of unequal arrays": lambda: [LINE, ROWS],
        "complex numbers": lambda: [complex("nan+1e39j"), 1],
        "a number": lambda: 2.5,
        "a bool": lambda: True,
        "nothing": lambda: None,
        "text": lambda: "abc",
        "bytes": lambda: b"abc",
        "a bytearray": lambda: bytearray(b"abc"),
        "a view": lambda: memoryview(array.array("d", LINE)),
        "a released view": _released,
        "an array": lambda: array.array("d", LINE),
        "an array of text": lambda: array.array("u", "abc"),
        "a range": lambda: range(3),
        "a set": lambda: {1, 2},
        "a dict": lambda: {"a": 1},
        "a generator": lambda: (n for n in range(3)),
        "an object": object,
        "a class": lambda: int,
        "a function": lambda: len,
        "a list in itself": lambda: (loop := [], loop.append(loop))[0],
        "fractions": lambda: [decimal.Decimal("1.5")],
    }


def _foreign() -> dict[str, Callable[[], Any]]:
    return {
        "by __array__": lambda: ByArray(ROWS.copy()),
        "by __array__, which raises": lambda: ByArray(OSError("closed")),
        "by the interface": lambda: ByInterface(ROWS.copy()),
        "by DLPack": lambda: ByDlpack(ROWS.copy()),
        "by DLPack, which refuses": lambda: ByDlpack(np.zeros(2, "M8[s]")),
        "a capsule": lambda: ROWS.copy().__dlpack__(),
    }


def _dask() -> dict[str, Callable[[], Any]]:
    import dask.array as da

    def fail(block: Any) -> Any:
        raise OSError("the file is closed")

    lazy = da.from_array(ROWS.copy(), chunks=(1, 3))
    return {
        "plain": lambda: lazy,
        "of unknown length": lambda: lazy[lazy > 2],
        "that cannot be computed": lambda: lazy.map_blocks(fail, dtype="f8"),
        "of strings": lambda: da.from_array(np.array(["a", "b"])),
    }


def _others() -> dict[str, Callable[[], Any]]:
    import array_api_strict
    import mlx.core as mx
    import onnxruntime
    import xarray

    labelled = {"x": [10, 20]}
    return {
        "array_api_strict": lambda: array_api_strict.asarray(ROWS),
        "mlx": lambda: mx.array(ROWS.astype("f4")),
        "mlx bfloat16": lambda: mx.array(ROWS.astype("f4")).astype(mx.bfloat16),
        "onnxruntime": lambda: onnxruntime.OrtValue.ortvalue_from_numpy(ROWS.copy()),
        "xarray": lambda: xarray.Variable(("x", "y"), ROWS.copy()),
        "xarray with labels": lambda: xarray.DataArray(ROWS.copy(), labelled, ("x", "y")),
        "xarray of strings": lambda: xarray.Variable("x", ["a", "b"]),
    }


def _awkward() -> dict[str, Callable[[], Any]]:
    import awkward as ak

    return {
        "regular": lambda: ak.from_numpy(ROWS),
        "of one length": lambda: ak.Array([[1.0, 2.0], [3.0, 4.0]]),
        "ragged": lambda: ak.Array([[1.0, 2.0], [3.0]]),
        "a slice": lambda: ak.Array([[9.0], [1.0, 2.0], [3.0]])[1:],
        "in another order": lambda: ak.Array([[1.0, 2.0], [3.0]])[[1, 0]],
        "records": lambda: ak.Array([{"a": 1}]),
        "missing": lambda: ak.Array([1, None]),
    }


def _tensorflow() -> dict[str, Callable[[], Any]]:
    import tensorflow as tf

    return {
        "plain": lambda: tf.constant(ROWS),
        "a variable": lambda: tf.Variable(ROWS),
        "bfloat16": lambda: tf.constant(ROWS, tf.bfloat16),
        "strings": lambda: tf.constant(["a"]),
        "ragged": lambda: tf.ragged.constant([[1.0, 2.0], [3.0]]),
        "sparse": lambda: tf.sparse.from_dense(ROWS),
        "slices": lambda: tf.IndexedSlices(tf.constant(ROWS), tf.constant([0, 2]), (3, 3)),
        "quantized": lambda: tf.quantization.quantize(ROWS.astype("f4"), 0, 5, tf.quint8)[0],
    }


#: Those that make the kinds of values of a library.
_MAKERS = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "scipy": _scipy,
    "sparse": _sparse,
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "python": _python,
    "foreign": _foreign,
    "dask": _dask,
    "others": _others,
    "awkward": _awkward,
    "tensorflow": _tensorflow,
}
LIBRARIES = list(_MAKERS)


def kinds(library: str) -> dict[str, Callable[[], Any]]:
    """Return functions that make the kinds of values of a library, by what is odd in them."""
    return _MAKERS[library]()
