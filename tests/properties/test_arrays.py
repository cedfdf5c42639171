"""Random requests between all installed formats: every bit arrives as planned, or a refusal."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import interop
from interop._execution.trace import shares_memory
from interop._model.dtype import preserves
from interop.errors import RefusedError
from tests.properties.effort import cases

DECLARED = {declared.name: declared.format for declared in interop.formats()}
#: Protocols are how foreign values offer themselves; nothing is converted to them.
FORMATS = [
    declared.name
    for declared in interop.formats()
    if declared.state != "missing"
    and "cpu" in declared.format.devices
    and not declared.format.protocol
]
FRAMEWORKS = sorted({name.partition(".")[0] for name in FORMATS})
DTYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float8_e8m0fnu "
    "float6_e2m3fn float4_e2m1fn int4 uint2 longdouble"
).split()
#: Those of which some bits of an element mean nothing, and the bits that do.
BITS = {"float6_e2m3fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint2": 2}
#: Where zeros are not stored, so that they may lose their signs.
SPARSE = ("scipy.", "sparse", "jax.bc", "torch.", "cupy.", "tensorflow.", "quantized", "torchao")


def dtype_of(name: str) -> np.dtype:
    """Return NumPy's or ml_dtypes' dtype of a name."""
    return np.dtype(getattr(ml_dtypes, name, name))


def array(rng: Random, source: str) -> np.ndarray:
    """Return an array of any dtype, shape and strides, of bits at random and of extremes."""
    format_ = DECLARED[source]
    dtype = dtype_of(rng.choice(sorted(format_.dtypes & set(DTYPES)) or DTYPES))
    ndim = rng.choice(sorted((format_.ndims or frozenset(range(4))) & set(range(5))))
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(ndim))
    size = int(np.prod(shape, initial=1))
    flat: np.ndarray = np.frombuffer(rng.randbytes(size * dtype.itemsize), dtype).copy()
    if dtype.kind == "b":
        flat = np.frombuffer(rng.randbytes(size), "u1") < 128
    elif dtype.name in BITS:
        codes = np.frombuffer(rng.randbytes(size), "u1") >> 8 - BITS[dtype.name]
        signed = dtype.name.startswith("int")
        flat = (((codes ^ 8) - 8) if signed else codes).view(dtype)  # the sign fills the byte
    elif dtype.char == "g":
        flat = np.array([rng.gauss(0, 1e300) for _ in range(size)], dtype)
    for place in range(size if dtype.name not in BITS else 0):
        if rng.random() < 0.4:
            flat[place] = rng.choice(_extremes(dtype))
    result = flat.reshape(shape)
    if rng.random() < 0.3 and result.ndim:
        result = result.transpose(rng.sample(range(result.ndim), result.ndim))
    if rng.random() < 0.2 and result.ndim:
        result = result[:: rng.choice((-1, 2, -2))]
    if rng.random() < 0.1 and result.ndim and dtype.kind in "fiuc":
        result = result.astype(dtype.newbyteorder())
    if rng.random() < 0.2:
        result = result.view()
        result.flags.writeable = False
    return result


def _extremes(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        return [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    if dtype.char == "g":
        return [0.0, -0.0, float("nan"), float("inf"), 1.5]
    info = ml_dtypes.finfo(dtype)
    if dtype.name == "float8_e8m0fnu":
        return [float("nan"), float(info.max), 1.0]
    most = float(info.max) if dtype.kind != "c" else complex(float(info.max), -0.0)
    return [0.0, -0.0, float("nan"), most, float(info.smallest_subnormal), 1.0]


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
    if value.layout is not torch.strided:
        return _compressed(value)
    name = str(value.dtype).removeprefix("torch.")
    value = value.contiguous()
    bits = value.view(getattr(torch, f"uint{8 * value.element_size()}")) if _odd(name) else value
    return bits.numpy().view(dtype_of(name))


def _compressed(value: Any) -> np.ndarray:
    import torch

    by_rows = value.layout in (torch.sparse_csr, torch.sparse_bsr)
    pointers = value.crow_indices() if by_rows else value.ccol_indices()
    others = (value.col_indices() if by_rows else value.row_indices()).numpy()
    values = _torch(value.values())
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


def _jax(value: Any) -> np.ndarray:
    if not hasattr(value, "todense"):
        return np.asarray(value)
    # Not by JAX's own todense, which takes the smallest numbers for zeros.
    data, places = np.asarray(value.data), np.asarray(value.indices)
    if hasattr(value, "indptr"):
        rows = np.repeat(np.arange(value.shape[0]), np.diff(np.asarray(value.indptr)))
        places = np.stack([rows, places[: len(rows)]], axis=1)
    dense = np.zeros(value.shape, data.dtype)
    for place, number in zip(places.tolist(), data, strict=False):
        dense[tuple(place)] = number
    return dense


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
    if kind.endswith("Scalar"):
        return np.array(value.as_py(), object)
    return np.asarray(value.to_numpy(zero_copy_only=False))


def _tensorflow(value: Any) -> np.ndarray:
    import tensorflow as tf

    if not isinstance(value, tf.SparseTensor):
        return np.asarray(value.numpy())
    values = value.values.numpy()
    dense = np.zeros(value.shape, values.dtype)
    dense[tuple(value.indices.numpy().T)] = values
    return dense


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
    "polars": lambda value: np.asarray(value.to_numpy()),
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
    """Compare all bits, but those of NaN, and the signs of zeros if `zeros` excuses them."""
    if not expected.size and actual.size == expected.size:
        return True  # of what is empty, frames and lists forget dtype or lengths
    if actual.dtype == object:
        if actual.size != expected.size:
            return False
        actual = actual.reshape(expected.shape).astype(expected.dtype)
    expected = expected.astype(actual.dtype) if expected.dtype == object else expected
    if actual.shape != expected.shape or not preserves(expected.dtype.name, actual.dtype.name):
        return False
    with np.errstate(all="ignore"):
        cast = expected.astype(actual.dtype)
    if actual.dtype.kind == "c":
        half = f"f{actual.dtype.itemsize // 2}"
        actual, cast = (np.ascontiguousarray(x).view(half) for x in (actual, cast))
    if actual.dtype.kind in "fV":
        wide = [np.asarray(x, "f8") for x in (actual, cast)]
        nan = [np.isnan(x) for x in wide]
        signs = zeros or np.array_equal(np.signbit(wide[0])[~nan[0]], np.signbit(wide[1])[~nan[0]])
        return np.array_equal(*nan) and np.array_equal(*(x[~nan[0]] for x in wide)) and signs
    return np.array_equal(actual, cast)


def cast(array: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return an array cast by NumPy, and of which elements the cast is defined."""
    target = dtype_of(dtype)
    if array.dtype.kind == "c" and target.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        wide = np.asarray(array.real, "longdouble")
        if array.dtype.isbuiltin != 1 and target.isbuiltin != 1 and array.dtype != target:
            array = array.astype("f4")  # some of ml_dtypes have no cast to others
        result = array.astype(target)
    if "int" not in dtype:
        return result, np.ones(array.shape, bool)
    limits = ml_dtypes.iinfo(target) if target.isbuiltin != 1 else np.iinfo(target)
    return result, (wide > float(limits.min) - 1) & (wide < float(limits.max))


def check(rng: Random, source: str, target: str) -> str:
    """Convert one array from a format to another, and tell what has become of it."""
    drawn = array(rng, source)
    before = drawn.copy()
    facts = drawn.dtype, drawn.shape, drawn.strides
    note(f"{source} → {target}: {facts}\n{drawn!r}")
    zeros = any(name.removeprefix("dask.").startswith(SPARSE) for name in (source, target))
    try:
        value = interop.convert(drawn, to=source)
    except RefusedError:
        return "no value"
    numbers = read(value).copy()
    assert same(numbers, before, zeros=zeros), f"numpy → {source}: {numbers!r}"
    request = {"to": target, "copy": rng.choice((None, None, True, False))}
    if rng.random() < 0.3:
        request["dtype"] = rng.choice(DTYPES)
    note(f"{request}")
    try:
        route = interop.plan(value, **request)
    except RefusedError:
        with pytest.raises(RefusedError):
            interop.convert(value, **request)
        return "refused"
    batches = any("batched_sparse" in step.label for step in route.steps)
    try:
        result = interop.convert(value, **request)
    except RefusedError:
        if not batches:  # of which only the numbers tell whether all matrices store equally many
            raise
        return "refused"
    assert drawn.tobytes() == before.tobytes()
    assert repr(read(value)) == repr(numbers), "the source has changed"
    expected = numbers
    numbers_after = read(result)
    if "dtype" in request:
        expected, defined = cast(numbers if numbers.dtype != object else before, request["dtype"])
        if numbers_after.dtype != object and numbers_after.shape == expected.shape:
            expected, numbers_after = expected[defined], numbers_after[defined]
        elif not defined.all():
            return "undefined"
    assert same(numbers_after, expected, zeros=zeros), f"{expected!r} became {numbers_after!r}"
    check_plan(route, value, result)
    return "right"


def check_plan(route: interop.Route, value: Any, result: Any) -> None:
    """Compare a result with what was planned: what it is, and whether it shares memory."""
    planned, actual = route.result, interop.spec(result)
    assert (actual.format, actual.device) == (planned.format, planned.device)
    if planned.format == "python":
        return
    assert actual.shape == planned.shape
    assert actual.dtype == planned.dtype or "unknown_dtype" in actual.traits
    shared = shares_memory(interop.default._registry, value, result)
    # What is made of several arrays may share some of them, and of those some are empty.
    composite = any(spec.nnz is not None or spec.code_dtype for spec in (route.spec, actual))
    if result is not value and actual.size and shared is not None:
        assert shared == route.aliases or (composite and not shared)
    assert route.request.copy is not True or "readonly" not in actual.traits


@pytest.fixture(autouse=True)
def calm() -> Any:
    """Let frameworks say what they like about being old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_bit_arrives_or_an_error(framework: str) -> None:
    """Every conversion from a framework is exact or refused, and leaves its source as it was."""
    sources = [name for name in FORMATS if name.partition(".")[0] == framework]
    outcomes = []

    @cases(20 if framework == "dask" else 60)
    @given(st.randoms(use_true_random=False), st.sampled_from(sources), st.sampled_from(FORMATS))
    def tried(rng: Random, source: str, target: str) -> None:
        outcomes.append(check(rng, source, target))

    tried()
    assert "right" in outcomes or framework in ("torchao", "quantized")
