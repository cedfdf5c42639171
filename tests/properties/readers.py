"""What values hold, as their own frameworks show it, to compare conversions by."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop._model.dtype import preserves

DECLARED = {declared.name: declared.format for declared in interop.formats()}
#: Protocols are how foreign values offer themselves; nothing is converted to them.
FORMATS = [
    declared.name
    for declared in interop.formats()
    if declared.state != "missing"
    and declared.name != "dlpack.capsule"  # which reading would use up
    and "cpu" in declared.format.devices
    and not declared.format.protocol
    and not (declared.format.wrapper and declared.format.wrapper.once)
]
FRAMEWORKS = sorted({name.partition(".")[0] for name in FORMATS})


def dtype_of(name: str) -> np.dtype:
    """Return NumPy's or ml_dtypes' dtype of a name."""
    return np.dtype(getattr(ml_dtypes, name, name))


def _of(value: Any) -> np.ndarray:
    return np.asarray(value)


def _torch(value: Any) -> np.ndarray:
    import torch

    value = value.dequantize() if value.is_quantized else value
    value = value.detach().resolve_conj().resolve_neg()
    if value.layout is torch.sparse_coo:
        dense = np.zeros(value.shape, dtype_of(str(value.dtype).removeprefix("torch.")))
        values = _torch(value._values())
        for place, number in zip(value._indices().numpy().T.tolist(), values, strict=True):
            dense[tuple(place)] = number
        return dense
    if value.layout is torch.jagged:
        rows = [_torch(row) for row in value.unbind()]
        return np.stack(rows) if rows else _torch(value.values())[:0, None][:, :0]
    if value.layout is not torch.strided:
        return _compressed(value)
    name = str(value.dtype).removeprefix("torch.")
    if name == "float4_e2m1fn_x2":  # two numbers a byte, the first in its lower half
        pairs = value.view(torch.uint8).numpy()
        halves = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1)
        return halves.view(dtype_of("float4_e2m1fn"))
    value = value.contiguous()
    bits = value.view(getattr(torch, f"uint{8 * value.element_size()}")) if _odd(name) else value
    return bits.numpy().view(dtype_of(name))


def _compressed(value: Any) -> np.ndarray:
    import torch

    by_rows = value.layout in (torch.sparse_csr, torch.sparse_bsr)
    pointers = value.crow_indices() if by_rows else value.ccol_indices()
    others = (value.col_indices() if by_rows else value.row_indices()).numpy()
    values = _torch(value.values())
    if pointers.ndim > 1:
        parts = zip(pointers, torch.from_numpy(others), value.values(), strict=True)
        make = partial(torch.sparse_compressed_tensor, layout=value.layout, size=value.shape[1:])
        dense = [_compressed(make(*part, check_invariants=False)) for part in parts]
        return np.reshape(np.array(dense, values.dtype), value.shape)
    block = values.shape[1:] or (1, 1)
    dense = np.zeros(value.shape, values.dtype)
    for major in range(len(pointers) - 1):
        for at in range(int(pointers[major]), int(pointers[major + 1])):
            row, column = (major, others[at]) if by_rows else (others[at], major)
            rows, columns = row * block[0], column * block[1]
            dense[rows : rows + block[0], columns : columns + block[1]] = values[at]
    return dense


def _odd(name: str) -> bool:
    return name == "bfloat16" or name.startswith("float8")


def _mlx(value: Any) -> np.ndarray:
    import mlx.core

    odd = value.dtype == mlx.core.bfloat16
    bits = np.array(value.view(mlx.core.uint16) if odd else value)
    return bits.view(ml_dtypes.bfloat16) if odd else bits


def _scattered(shape: Any, places: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return numbers at their places; those at one place are added, and zeros keep their signs."""
    dense = np.zeros(shape, numbers.dtype)
    taken = set()
    for place, number in zip(map(tuple, places.tolist()), numbers, strict=False):
        dense[place] = dense[place] + number if place in taken else number
        taken.add(place)
    return dense


def _jax(value: Any) -> np.ndarray:
    if not hasattr(value, "todense"):
        return np.asarray(value)
    # Not by JAX's own todense, which takes the smallest numbers for zeros.
    data, places = np.asarray(value.data), np.asarray(value.indices)
    if hasattr(value, "indptr"):
        rows = np.repeat(np.arange(value.shape[0]), np.diff(np.asarray(value.indptr)))
        places = np.stack([rows, places[: len(rows)]], axis=1)
    return _scattered(value.shape, places, data)


def _sparse(value: Any) -> np.ndarray:
    return np.asarray(value.todense())


def _pyarrow(value: Any) -> np.ndarray:
    kind = type(value).__name__
    if kind.startswith("Sparse"):
        return np.asarray(value.to_tensor().to_numpy())
    if kind == "Tensor":
        return np.asarray(value.to_numpy())
    if kind.startswith("FixedShape"):
        flat = value.storage.flatten().to_numpy(zero_copy_only=False)
        stored = np.asarray(flat).reshape(len(value), *value.type.shape)
        order = value.type.permutation
        return stored.transpose(0, *(1 + n for n in order)) if order else stored
    if kind.startswith("FixedSizeList"):
        shape = [len(value)]
        while hasattr(value.type, "list_size"):
            shape.append(value.type.list_size)
            value = value.flatten()
        return np.asarray(value.to_numpy(zero_copy_only=False)).reshape(shape)
    if kind in ("ListArray", "LargeListArray"):
        lengths = value.value_lengths().to_pylist()
        numbers = np.asarray(value.flatten().to_numpy(zero_copy_only=False))
        return numbers.reshape(len(lengths), *set(lengths))
    if kind == "Table":
        columns = [column.to_numpy() for column in value.columns]
        return np.column_stack(columns) if columns else np.empty(value.shape, bool)
    if kind.endswith("Scalar"):
        return np.array(value.as_py(), object)
    return np.asarray(value.to_numpy(zero_copy_only=False))


def _tensorflow(value: Any) -> np.ndarray:
    import tensorflow as tf

    if not isinstance(value, tf.SparseTensor):
        return np.asarray(value.numpy())
    values = value.values.numpy()
    return _scattered(value.shape, value.indices.numpy(), values)


def _onnxruntime(value: Any) -> np.ndarray:
    shape, dtype = value.shape(), dtype_of(interop.spec(value).dtype or "")
    nbytes = value.tensor_size_in_bytes()
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), nbytes) if nbytes else b"", "u1")
    size = int(np.prod(shape, initial=1))
    if nbytes < size:  # several to a byte, the first in its lowest bits
        width = 4 if dtype.name.endswith(("int4", "e2m1fn")) else 2
        parts = np.stack([bits >> shift << 8 - width for shift in range(0, 8, width)], axis=1)
        signed = parts.view("i1") if dtype.name.startswith("int") else parts
        bits = (signed >> 8 - width).reshape(-1)[:size].view("u1")
    return bits.view(dtype).reshape(shape)


def _polars(value: Any) -> np.ndarray:
    numbers = np.asarray(value.to_numpy())
    lists = numbers.dtype == object and len(numbers) and isinstance(numbers[0], np.ndarray)
    return np.stack(list(numbers)) if lists else numbers


def _dask(value: Any) -> np.ndarray:
    return read(value.compute())


def _scipy(value: Any) -> np.ndarray:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value.todense())


#: How each framework itself shows the numbers of its values. Others are read as by NumPy.
READERS: dict[str, Callable[[Any], np.ndarray]] = {
    "torch": _torch,
    "mlx": _mlx,
    "jax": _jax,
    "scipy": _scipy,
    "sparse": _sparse,
    "pyarrow": _pyarrow,
    "tensorflow": _tensorflow,
    "polars": _polars,
    "pandas": lambda value: np.asarray(value.to_numpy()),
    "xarray": lambda value: read(value.data),
    "dask": _dask,
    "onnxruntime": _onnxruntime,
    "python": lambda value: np.array(value, object),
    "quantized": lambda value: interop.convert(value, to="numpy"),
    "torchao": lambda value: _torch(value.dequantize()),
}


def read(value: Any) -> np.ndarray:
    """Return the numbers of a value, as its own framework shows them."""
    return READERS.get(interop.spec(value).format.partition(".")[0], _of)(value)


def same(actual: np.ndarray, expected: np.ndarray, *, zeros: bool) -> bool:
    """Compare all bits, those of NaN if the dtype is kept, but the signs of zeros if `zeros`.

    Integers may be of any dtype that holds each of them.
    """
    if not expected.size and actual.size == expected.size:
        return True  # of what is empty, frames and lists forget dtype or lengths
    expected = expected.astype(expected.dtype.newbyteorder("="))
    if actual.dtype == expected.dtype == object:
        return repr(actual) == repr(expected)
    if actual.dtype == object:
        if actual.size != expected.size:
            return False
        actual = actual.reshape(expected.shape).astype(expected.dtype)
    elif actual.dtype == expected.dtype and not zeros:
        return (
            actual.shape == expected.shape
            and _plain(actual).tobytes() == _plain(expected).tobytes()
        )
    expected = expected.astype(actual.dtype) if expected.dtype == object else expected
    if actual.shape != expected.shape:
        return False
    if not preserves(expected.dtype.name, actual.dtype.name):  # checked one by one on the way
        return expected.dtype.kind in "iu" and actual.tolist() == expected.tolist()
    with np.errstate(all="ignore"):
        cast = _plain(expected).astype(actual.dtype)
    if actual.dtype.kind == "c":
        half = f"f{actual.dtype.itemsize // 2}"
        actual, cast = (np.ascontiguousarray(x).view(half) for x in (actual, cast))
    if actual.dtype.kind in "fV":
        wide = [np.asarray(x, "f8") for x in (actual, cast)]
        nan = [np.isnan(x) for x in wide]
        signs = zeros or np.array_equal(np.signbit(wide[0])[~nan[0]], np.signbit(wide[1])[~nan[0]])
        return np.array_equal(*nan) and np.array_equal(*(x[~nan[0]] for x in wide)) and signs
    return np.array_equal(actual, cast)


def _plain(array: np.ndarray) -> np.ndarray:
    """Return numbers of less than a byte, of which some bits mean nothing, as others; or an array."""
    narrow = array.dtype.itemsize == 1 and array.dtype.name.lstrip("uintfloa")[0] in "1246"
    if array.dtype.char == "g" and np.finfo("g").bits == 128:  # six of its bytes mean nothing
        array = array.copy()
        array.reshape(-1).view("u1").reshape(-1, 16)[:, 10:] = 0
    return array.astype("f4") if narrow else array


@pytest.fixture(autouse=True)
def calm() -> Any:
    """Let frameworks say what they like about being old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
