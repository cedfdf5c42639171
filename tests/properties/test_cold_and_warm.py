"""Arrays drawn at random, between every pair of installed formats: every bit arrives, or an error."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import interop
import interop.plugin
from interop import Interop
from interop._execution.trace import shares_memory
from interop._model.dtype import preserves
from interop.errors import HandOffError, InteropError, RefusedError, UnknownValueError
from tests.properties.effort import cases

#: An instance that has planned nothing yet, as often as its cache is cleared.
COLD = Interop()
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
#: NumPy has no complex32, and of the bits of a longdouble some are nobody's.
DTYPES = interop.plugin.DTYPES.keys() - {"complex32", "longdouble", "clongdouble"}


def dtype_of(name: str) -> np.dtype:
    """Return NumPy's or ml_dtypes' dtype of a name."""
    return np.dtype(getattr(ml_dtypes, name, name))


def array(rng: Random, source: str) -> np.ndarray:
    """Return an array of any dtype, shape and strides, of bits at random and of extremes."""
    format_ = DECLARED[source]
    dtype = dtype_of(rng.choice(sorted(format_.dtypes & DTYPES) or sorted(DTYPES)))
    ndim = rng.choice(sorted((format_.ndims or frozenset(range(4))) & set(range(5))))
    # An empty frame forgets its dtype.
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(ndim))
    result = laid_out(rng, numbers(rng, dtype, int(np.prod(shape, initial=1))).reshape(shape))
    if rng.random() < 0.2:
        result = result.view()
        result.flags.writeable = False
    return result


def numbers(rng: Random, dtype: np.dtype, size: int) -> np.ndarray:
    """Return numbers of bits at random, among them zeros of both signs, NaN and extremes."""
    bits = np.frombuffer(rng.randbytes(size * dtype.itemsize), "u1")
    if dtype.kind == "b":
        flat = bits < 128
    elif dtype.name.strip("uint") in ("1", "2", "4"):
        flat = bits.view("i1").astype(dtype)  # one to a byte, of which it has the lowest bits
    elif dtype.name.startswith(("float4", "float6")):
        flat = (bits & (0x0F if dtype.name.startswith("float4") else 0x3F)).view(dtype)
    else:
        flat = bits.view(dtype).copy()
    for place in range(size):
        if rng.random() < 0.4:
            flat[place] = rng.choice(_extremes(dtype))
    return flat


def laid_out(rng: Random, result: np.ndarray) -> np.ndarray:
    """Return an array of the same dtype with its axes, strides, bytes and address at random."""
    if result.ndim:
        if rng.random() < 0.3:
            result = result.transpose(rng.sample(range(result.ndim), result.ndim))
        if rng.random() < 0.3:
            steps = (slice(None, None, rng.choice((1, 1, -1, 2, -2))) for _ in result.shape)
            result = result[tuple(steps)]
        if rng.random() < 0.1:
            result = np.repeat(result[:1], 1, 0)
            result = np.broadcast_to(result, (3, *result.shape[1:])) if len(result) else result
        if rng.random() < 0.1 and result.dtype.kind in "fiuc" and result.dtype.isbuiltin == 1:
            result = result.astype(result.dtype.newbyteorder())
    if rng.random() < 0.1 and result.size:
        memory = np.zeros(result.nbytes + 1, "u1")[1:].view(result.dtype).reshape(result.shape)
        memory[...] = result
        result = memory
    return result


def another(rng: Random, like: np.ndarray) -> np.ndarray:
    """Return other numbers that lie as those of an array do."""
    low, high = np.lib.array_utils.byte_bounds(like)
    start = low % 16  # as far from what every dtype is aligned to
    memory = np.zeros(high - low + 32, "u1")
    start += -memory.ctypes.data % 16
    first = start + like.ctypes.data - low if like.size else start
    other = np.ndarray(like.shape, like.dtype, memory, first, like.strides)
    other[...] = numbers(rng, like.dtype.newbyteorder("="), like.size).reshape(like.shape)
    other.flags.writeable = like.flags.writeable
    return other


def _extremes(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "b":
        return [True, False]
    if interop.plugin.DTYPES[dtype.name].kind in "iu":
        return [0, ml_dtypes.iinfo(dtype).max, ml_dtypes.iinfo(dtype).min]
    info = ml_dtypes.finfo(dtype)
    most = float(info.max) if dtype.kind != "c" else complex(float(info.max), -0.0)
    least = float(info.smallest_subnormal)
    if dtype.name == "float8_e8m0fnu":
        return [float("nan"), most, least, 1.0]
    return [0.0, -0.0, float("nan"), most, least, 1.0]


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
    width = {"4": 4, "float4_e2m1fn": 4, "2": 2}.get(
        dtype.name.removeprefix("u").removeprefix("int"), 8
    )
    count, in_byte = int(np.prod(shape, initial=1)), 8 // width
    nbytes = -(-count * dtype.itemsize // in_byte)
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), nbytes) if count else b"", "u1")
    if in_byte == 1:
        return bits.view(dtype).reshape(shape)
    codes = np.stack([bits >> (place * width) & 2**width - 1 for place in range(in_byte)], -1)
    codes = codes.reshape(-1)[:count]
    if dtype.name.startswith("int"):
        codes = codes.astype("i1") - ((codes >> width - 1 << width).astype("i1"))
    codes = codes.view(dtype) if dtype.name.startswith("float") else codes.astype(dtype)
    return codes.reshape(shape)


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
    """Compare all bits, those of NaN if the dtype is kept, but the signs of zeros if `zeros`."""
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
        return actual.shape == expected.shape and actual.tobytes() == expected.tobytes()
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


def attempted(instance: Interop, value: Any, target: str, copy: bool | None = None) -> Any:
    """Return what a value becomes, or the refusal; a step that fails or lies is neither."""
    try:
        return instance.convert(value, to=target, copy=copy)
    except (RefusedError, HandOffError, UnknownValueError) as refusal:
        return refusal


def made_lazy(rng: Random, value: Any, numbers: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return a tensor, and its numbers, with a conjugation or negation that is not carried out."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value, numbers
    if value.is_complex() and rng.random() < 0.5:
        value, numbers = value.conj(), numbers.conj()
        if rng.random() < 0.3:
            value, numbers = value.imag, numbers.imag
    if (value.is_complex() or value.dtype in (torch.float32, torch.float64)) and rng.random() < 0.3:
        value, numbers = torch._neg_view(value), -numbers
    return value, numbers


def facts(source: Any, result: Any) -> Any:
    """Return what is to be the same for every value of a class."""
    if isinstance(result, InteropError):
        return type(result)
    spec = interop.spec(result)
    kind = spec.format, spec.dtype, spec.device, result is source
    if spec.nnz is not None:  # how much it stores, and by which indices, depends on the numbers
        return *kind, "uncoalesced" in spec.traits
    # Whether Python's numbers fit in 32 bits depends on them.
    return *kind, spec.traits - {"weak"}, shares_memory(interop.default._registry, source, result)


def check(rng: Random, source: str, target: str) -> str:
    """Convert arrays from a format to another, and tell what has become of them.

    The first is converted by an instance that knows no plan, the second by one that has planned.
    """
    drawn = array(rng, source)
    zeros = any("." in name for name in (source, target))  # sparse arrays do not store them
    copy, seed, outcomes = rng.choice((None, None, True, False)), rng.random(), []
    COLD._cache.clear()
    for instance, numbers in ((COLD, drawn), (interop.default, drawn), (COLD, another(rng, drawn))):
        before = numbers.copy()
        note(f"{source} → {target}, {copy=}: {numbers.dtype, numbers.strides}\n{numbers!r}")
        value = attempted(instance, numbers, source)
        if isinstance(value, InteropError):
            return "no value"
        assert same(read(value), before, zeros=zeros), f"numpy → {source}: {read(value)!r}"
        value, expected = made_lazy(Random(seed), value, read(value).copy())
        result = attempted(instance, value, target, copy)
        assert numbers.tobytes() == before.tobytes()
        assert same(read(value), expected, zeros=False), "the source has changed"
        if not isinstance(result, InteropError):
            check_result(value, result, expected, copy, zeros=zeros)
        outcomes.append(facts(value, result))
    # Of Python's numbers the dtype is that of the least that holds them.
    assert len(set(outcomes)) == 1 or source == "python", outcomes
    return "refused" if isinstance(result, InteropError) else "right"


def check_result(
    value: Any, result: Any, expected: np.ndarray, copy: bool | None, *, zeros: bool
) -> None:
    """Hold a result to its source's numbers and to what ``copy=`` promises."""
    actual = read(result)
    assert same(actual, expected, zeros=zeros), f"{expected!r} became {actual!r}"
    shared = shares_memory(interop.default._registry, value, result)
    if copy is True and interop.spec(result).format != "python":  # one True is all Trues
        assert not shared
        assert "readonly" not in interop.spec(result).traits
    if copy is False and expected.size and shared is not None and result is not value:
        assert shared


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
